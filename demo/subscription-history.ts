import { addIntervals } from '../src/domain/billing/calendar.ts'
import type { BillingEvent } from './billing-events.ts'
import { charge, type Outcome, prorate } from './payments.ts'
import { ADD_ONS, movedPlan, periodCents, type Terms } from './plans.ts'
import { randomFor } from './random.ts'
import { beginPeriod, beginSimulation, change, end, type Simulation } from './simulation.ts'
import type { Agreement } from './subscriptions.ts'
import { DAY_MS, HOUR_MS, type Year } from './year.ts'

/** `endedAt` is null if the subscription continues after the year. */
export type SubscriptionHistory = { agreement: Agreement; events: BillingEvent[]; endedAt: number | null }

/** A subscription from its start to the end of the year. */
export function simulateSubscription(agreement: Agreement, year: Year): SubscriptionHistory {
  const simulation = beginSimulation(agreement, year.end, randomFor(year.label, 'life', agreement.id))
  let continues = begin(simulation)
  while (continues) continues = simulatePeriod(simulation)
  return { agreement, events: simulation.events, endedAt: simulation.state.endedAt }
}

/** Returns whether the subscription continues, like the functions below. */
function begin(simulation: Simulation): boolean {
  const { agreement, random, state, until } = simulation
  const { startedAt } = agreement
  if (state.trialEnd === null) {
    if (random.chance(0.012)) return neverPaid(simulation)
    change(simulation, startedAt, 'created')
    return bill(simulation, startedAt, true)
  }
  change(simulation, startedAt, 'created')
  const converts = random.chance(0.72)
  if (!converts) {
    requestCancellation(simulation, startedAt + random.int(3, 13) * DAY_MS, 'trial_not_converted')
    end(simulation, state.trialEnd, 'trial_not_converted')
    return false
  }
  if (state.trialEnd > until) return false
  beginPeriod(simulation, state.trialEnd, true)
  return bill(simulation, state.trialEnd, true)
}

function neverPaid(simulation: Simulation): boolean {
  const { startedAt } = simulation.agreement
  change(simulation, startedAt, 'created', { status: 'incomplete' })
  change(simulation, startedAt + 23 * HOUR_MS, 'updated', { status: 'incomplete_expired' })
  return false
}

function simulatePeriod(simulation: Simulation): boolean {
  const { state, until } = simulation
  const months = state.terms.term.interval === 'year' ? 12 : state.terms.term.count
  changeWithinPeriod(simulation, months)
  const at = state.periodEnd
  if (at > until) return false
  if (state.cancelAtPeriodEnd) {
    end(simulation, at, 'cancellation_requested')
    return false
  }
  const resumesAt = state.status === 'paused' ? addIntervals(at, 'month', 1) : at
  if (resumesAt > until) return false
  beginPeriod(simulation, resumesAt, resumesAt !== at)
  return bill(simulation, resumesAt, false)
}

function bill(simulation: Simulation, at: number, isFirst: boolean): boolean {
  const { agreement, random, state } = simulation
  const usage = isFirst ? 0 : usageCents(state.terms, agreement.currency, random.int(40, 300))
  const outcome = charge(simulation, at, periodCents(state.terms, agreement.currency, at, isFirst) + usage)
  applyOutcome(simulation, outcome)
  return outcome.kind !== 'lost'
}

function usageCents({ addOns }: Terms, currency: Agreement['currency'], units: number): number {
  return addOns
    .filter(({ usage }) => usage === 'metered')
    .reduce((sum, { perMonth }) => sum + units * perMonth[currency], 0)
}

/** A failed payment makes the subscription past due, and finally unpaid or canceled. */
function applyOutcome(simulation: Simulation, outcome: Outcome): void {
  if (outcome.kind === 'paid') return
  change(simulation, outcome.failedAt + 1000, 'updated', { status: 'past_due' })
  if (outcome.kind === 'recovered') change(simulation, outcome.at + 1000, 'updated', { status: 'active' })
  else if (outcome.ends) end(simulation, outcome.at + 1000, 'payment_failed')
  else change(simulation, outcome.at + 1000, 'updated', { status: 'unpaid' })
}

type Change = 'none' | 'cancels' | 'upgrades' | 'downgrades' | 'adds' | 'pauses'

/** Per thousand months. */
const RATES: [Change, number][] = [
  ['cancels', 32],
  ['upgrades', 28],
  ['downgrades', 14],
  ['adds', 20],
  ['pauses', 9],
]

/** At most one change per period, once its payment is settled. */
function changeWithinPeriod(simulation: Simulation, months: number): void {
  const { random, state } = simulation
  const quiet = RATES.reduce((rest, [, rate]) => rest * (1 - rate / 1000) ** months, 1) * 1000
  const scale = (1000 - quiet) / RATES.reduce((sum, [, rate]) => sum + rate, 0)
  const what = random.weighted<Change>([
    ['none', quiet],
    ...RATES.map(([kind, rate]): [Change, number] => [kind, rate * scale]),
  ])
  const room = state.periodEnd - state.periodStart - 14 * DAY_MS
  const at = state.periodStart + 12 * DAY_MS + Math.floor((random.next() * room) / 1000) * 1000
  if (state.status !== 'active') return
  if (what === 'cancels') requestCancellation(simulation, at, random.weighted(REASONS))
  if (what === 'pauses' && months === 1) change(simulation, at, 'updated', { status: 'paused' })
  if (what === 'upgrades') adjust(simulation, at, upgraded(state.terms))
  if (what === 'downgrades') adjust(simulation, at, downgraded(state.terms))
  if (what === 'adds') adjust(simulation, at, withFilterPapers(state.terms))
}

const REASONS: [string, number][] = [
  ['too_much_coffee', 30],
  ['too_expensive', 30],
  ['moved', 15],
  ['switched_service', 15],
  ['unused', 10],
]

function requestCancellation(simulation: Simulation, at: number, reason: string): void {
  change(simulation, at, 'updated', { cancelAtPeriodEnd: true, canceledAt: at, reason })
}

function adjust(simulation: Simulation, at: number, terms: Terms): void {
  const { state, agreement, until } = simulation
  if (terms === state.terms || at > until) return
  const price = (of: Terms) => periodCents(of, agreement.currency, at, false)
  const rest = (state.periodEnd - at) / (state.periodEnd - state.periodStart)
  const difference = Math.round((price(terms) - price(state.terms)) * rest)
  change(simulation, at, 'updated', { terms })
  prorate(simulation, at, difference)
}

function upgraded(terms: Terms): Terms {
  if (terms.isFree) return terms
  return terms.plan.rank === 0
    ? { ...terms, plan: movedPlan(terms.plan, 1) }
    : { ...terms, quantity: terms.quantity + 1 }
}

/** The smallest plan stays as it is. */
function downgraded(terms: Terms): Terms {
  if (terms.quantity > 1) return { ...terms, quantity: terms.quantity - 1 }
  if (terms.plan.rank === 1) return { ...terms, plan: movedPlan(terms.plan, -1) }
  return terms
}

function withFilterPapers(terms: Terms): Terms {
  const has = terms.addOns.some(({ key }) => key === ADD_ONS.papers.key)
  return has || terms.isFree ? terms : { ...terms, addOns: [...terms.addOns, ADD_ONS.papers] }
}
