import { addIntervals } from '../src/domain/billing/calendar.ts'
import { webhookEvent } from '../src/domain/samples.ts'
import { type BillingEvent, type SubscriptionState, subscriptionPayload } from './billing-events.ts'
import type { Random } from './random.ts'
import type { Agreement } from './subscriptions.ts'
import { DAY_MS, numbered } from './year.ts'

/** The state of a simulated subscription, and the events that its billing system has sent so far. */
export type Simulation = {
  agreement: Agreement
  random: Random
  /** The simulation ends here. */
  until: number
  state: SubscriptionState
  /** Periods are counted from here. */
  anchor: number
  periods: number
  invoices: number
  events: BillingEvent[]
}

export function beginSimulation(agreement: Agreement, until: number, random: Random): Simulation {
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

export function emit(
  simulation: Simulation,
  at: number,
  eventType: string,
  payload: BillingEvent['payload'],
): void {
  const { agreement, events, until } = simulation
  if (at > until) return
  const id = `${agreement.id}-evt-${numbered(events.length + 1, 3)}`
  events.push(webhookEvent(id, eventType, new Date(at), payload))
}

export function change(
  simulation: Simulation,
  at: number,
  kind: 'created' | 'updated' | 'deleted',
  changes: Partial<SubscriptionState> = {},
): void {
  if (at > simulation.until) return
  Object.assign(simulation.state, changes)
  emit(
    simulation,
    at,
    `subscription.${kind}`,
    subscriptionPayload(simulation.agreement, simulation.state, at),
  )
}

export function end(simulation: Simulation, at: number, reason: string): void {
  const { state } = simulation
  change(simulation, at, 'deleted', {
    status: 'canceled',
    canceledAt: state.canceledAt ?? at,
    endedAt: at,
    reason: state.reason ?? reason,
  })
}

/** Starts a period at `at`: the next one of the cycle, or the first of a new cycle. */
export function beginPeriod(simulation: Simulation, at: number, isNewCycle: boolean): void {
  if (at > simulation.until) return
  if (isNewCycle) {
    simulation.anchor = at
    simulation.periods = 0
  }
  simulation.periods++
  const { term } = simulation.state.terms
  const periodEnd = addIntervals(simulation.anchor, term.interval, term.count * simulation.periods)
  change(simulation, at, 'updated', { status: 'active', periodStart: at, periodEnd })
}
