import { addIntervals } from '../src/domain/billing/calendar.ts'
import type { BillingEvent } from './billing-events.ts'
import { charge, type Outcome, prorate } from './payments.ts'
import { ADD_ONS, movedPlan, periodCents, type Terms } from './plans.ts'
import { randomFor } from './random.ts'
import { beginPeriod, beginStory, change, end, type Story } from './story.ts'
import type { Agreement } from './subscriptions.ts'
import { DAY_MS, HOUR_MS, type Year } from './year.ts'

/** `endedAt` is null where a subscription outlives the year. */
export type Life = { agreement: Agreement; events: BillingEvent[]; endedAt: number | null }

/** What becomes of a subscription from its start to the end of the year. */
export function lifeOf(agreement: Agreement, year: Year): Life {
  const story = beginStory(agreement, year.end, randomFor(year.label, 'life', agreement.id))
  let goesOn = begin(story)
  while (goesOn) goesOn = livePeriod(story)
  return { agreement, events: story.events, endedAt: story.state.endedAt }
}

/** Each of these returns whether there is more to tell. */
function begin(story: Story): boolean {
  const { agreement, random, state, until } = story
  const { startedAt } = agreement
  if (state.trialEnd === null) {
    if (random.chance(0.012)) return neverPays(story)
    change(story, startedAt, 'created')
    return bill(story, startedAt, true)
  }
  change(story, startedAt, 'created')
  const converts = random.chance(0.72)
  if (!converts) {
    requestCancellation(story, startedAt + random.int(3, 13) * DAY_MS, 'trial_not_converted')
    end(story, state.trialEnd, 'trial_not_converted')
    return false
  }
  if (state.trialEnd > until) return false
  beginPeriod(story, state.trialEnd, true)
  return bill(story, state.trialEnd, true)
}

function neverPays(story: Story): boolean {
  const { startedAt } = story.agreement
  change(story, startedAt, 'created', { status: 'incomplete' })
  change(story, startedAt + 23 * HOUR_MS, 'updated', { status: 'incomplete_expired' })
  return false
}

function livePeriod(story: Story): boolean {
  const { state, until } = story
  const months = state.terms.term.interval === 'year' ? 12 : state.terms.term.count
  happen(story, months)
  const at = state.periodEnd
  if (at > until) return false
  if (state.cancelAtPeriodEnd) {
    end(story, at, 'cancellation_requested')
    return false
  }
  const resumesAt = state.status === 'paused' ? addIntervals(at, 'month', 1) : at
  if (resumesAt > until) return false
  beginPeriod(story, resumesAt, resumesAt !== at)
  return bill(story, resumesAt, false)
}

function bill(story: Story, at: number, isFirst: boolean): boolean {
  const { agreement, random, state } = story
  const usage = isFirst ? 0 : usageCents(state.terms, agreement.currency, random.int(40, 300))
  const outcome = charge(story, at, periodCents(state.terms, agreement.currency, at, isFirst) + usage)
  follow(story, outcome)
  return outcome.kind !== 'lost'
}

function usageCents({ addOns }: Terms, currency: Agreement['currency'], units: number): number {
  return addOns
    .filter(({ usage }) => usage === 'metered')
    .reduce((sum, one) => sum + units * one.perMonth[currency], 0)
}

/** A payment that fails makes the subscription past due, and in the end unpaid or over. */
function follow(story: Story, outcome: Outcome): void {
  if (outcome.kind === 'paid') return
  change(story, outcome.failedAt + 1000, 'updated', { status: 'past_due' })
  if (outcome.kind === 'recovered') change(story, outcome.at + 1000, 'updated', { status: 'active' })
  else if (outcome.ends) end(story, outcome.at + 1000, 'payment_failed')
  else change(story, outcome.at + 1000, 'updated', { status: 'unpaid' })
}

type Happening = 'nothing' | 'cancels' | 'upgrades' | 'downgrades' | 'adds' | 'pauses'

/** Out of a thousand months. */
const RATES: [Happening, number][] = [
  ['cancels', 32],
  ['upgrades', 28],
  ['downgrades', 14],
  ['adds', 20],
  ['pauses', 9],
]

/** At most one thing a period, when everything about its payment is over. */
function happen(story: Story, months: number): void {
  const { random, state } = story
  const quiet = RATES.reduce((rest, [, rate]) => rest * (1 - rate / 1000) ** months, 1) * 1000
  const scale = (1000 - quiet) / RATES.reduce((sum, [, rate]) => sum + rate, 0)
  const what = random.weighted<Happening>([
    ['nothing', quiet],
    ...RATES.map(([happening, rate]): [Happening, number] => [happening, rate * scale]),
  ])
  const room = state.periodEnd - state.periodStart - 14 * DAY_MS
  const at = state.periodStart + 12 * DAY_MS + Math.floor((random.next() * room) / 1000) * 1000
  if (state.status !== 'active') return
  if (what === 'cancels') requestCancellation(story, at, random.weighted(REASONS))
  if (what === 'pauses' && months === 1) change(story, at, 'updated', { status: 'paused' })
  if (what === 'upgrades') adjust(story, at, upgraded(state.terms))
  if (what === 'downgrades') adjust(story, at, downgraded(state.terms))
  if (what === 'adds') adjust(story, at, withPapers(state.terms))
}

const REASONS: [string, number][] = [
  ['too_much_coffee', 30],
  ['too_expensive', 30],
  ['moved', 15],
  ['switched_service', 15],
  ['unused', 10],
]

function requestCancellation(story: Story, at: number, reason: string): void {
  change(story, at, 'updated', { cancelAtPeriodEnd: true, canceledAt: at, reason })
}

function adjust(story: Story, at: number, terms: Terms): void {
  const { state, agreement, until } = story
  if (terms === state.terms || at > until) return
  const price = (of: Terms) => periodCents(of, agreement.currency, at, false)
  const rest = (state.periodEnd - at) / (state.periodEnd - state.periodStart)
  const difference = Math.round((price(terms) - price(state.terms)) * rest)
  change(story, at, 'updated', { terms })
  prorate(story, at, difference)
}

function upgraded(terms: Terms): Terms {
  if (terms.isFree) return terms
  return terms.plan.rank === 0
    ? { ...terms, plan: movedPlan(terms.plan, 1) }
    : { ...terms, quantity: terms.quantity + 1 }
}

/** Whoever has the least already keeps it. */
function downgraded(terms: Terms): Terms {
  if (terms.quantity > 1) return { ...terms, quantity: terms.quantity - 1 }
  if (terms.plan.rank === 1) return { ...terms, plan: movedPlan(terms.plan, -1) }
  return terms
}

function withPapers(terms: Terms): Terms {
  const has = terms.addOns.some(({ key }) => key === ADD_ONS.papers.key)
  return has || terms.isFree ? terms : { ...terms, addOns: [...terms.addOns, ADD_ONS.papers] }
}
