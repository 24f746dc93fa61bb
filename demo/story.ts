import { addIntervals } from '../src/domain/billing/calendar.ts'
import { type BillingEvent, type SubscriptionState, subscriptionPayload } from './billing-events.ts'
import type { Random } from './random.ts'
import type { Agreement } from './subscriptions.ts'
import { DAY_MS, isoTime, numbered } from './year.ts'

/** A subscription while its life is being told, as the billing system would tell it. */
export type Story = {
  agreement: Agreement
  random: Random
  /** What comes later has not happened yet: it is neither told nor does it change anything. */
  until: number
  state: SubscriptionState
  /** Periods are counted from here. */
  anchor: number
  periods: number
  invoices: number
  events: BillingEvent[]
}

export function beginStory(agreement: Agreement, until: number, random: Random): Story {
  const { startedAt, trialDays, terms } = agreement
  const trialEnd = trialDays > 0 ? startedAt + trialDays * DAY_MS : null
  const state: SubscriptionState = {
    status: trialEnd === null ? 'active' : 'trialing',
    terms,
    periodStart: startedAt,
    periodEnd: trialEnd ?? addIntervals(startedAt, terms.term.interval, terms.term.count),
    trialEnd,
    cancelAtPeriodEnd: false,
    canceledAt: null,
    endedAt: null,
    reason: null,
  }
  return { agreement, random, until, state, anchor: startedAt, periods: 1, invoices: 0, events: [] }
}

export function tell(story: Story, at: number, eventType: string, payload: BillingEvent['payload']): void {
  const { agreement, events, until } = story
  if (at > until) return
  const inbound_event_id = `${agreement.id}-evt-${numbered(events.length + 1, 3)}`
  events.push({ inbound_event_id, event_type: eventType, occurred_at: isoTime(at), payload })
}

export function change(
  story: Story,
  at: number,
  kind: 'created' | 'updated' | 'deleted',
  changes: Partial<SubscriptionState> = {},
): void {
  if (at > story.until) return
  Object.assign(story.state, changes)
  tell(story, at, `subscription.${kind}`, subscriptionPayload(story.agreement, story.state, at))
}

export function end(story: Story, at: number, reason: string): void {
  const { state } = story
  change(story, at, 'deleted', {
    status: 'canceled',
    canceledAt: state.canceledAt ?? at,
    endedAt: at,
    reason: state.reason ?? reason,
  })
}

/** A new period from `at` on: the next one of its cycle, or the first of a new cycle. */
export function beginPeriod(story: Story, at: number, isNewCycle: boolean): void {
  if (at > story.until) return
  if (isNewCycle) {
    story.anchor = at
    story.periods = 0
  }
  story.periods++
  const { term } = story.state.terms
  const periodEnd = addIntervals(story.anchor, term.interval, term.count * story.periods)
  change(story, at, 'updated', { status: 'active', periodStart: at, periodEnd })
}
