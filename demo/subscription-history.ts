import { addIntervals } from '../src/domain/billing/calendar.ts'
import { webhookEvent } from '../src/domain/samples.ts'
import {
  type BillingEvent,
  type InvoiceState,
  invoicePayload,
  type SubscriptionState,
  subscriptionPayload,
  taxOn,
} from './billing-events.ts'
import { type Random, randomFor } from './random.ts'
import { ADD_ONS, type Agreement, movedPlan, periodCents, type Terms } from './subscriptions.ts'
import { DAY_MS, HOUR_MS, isoTime, numbered, type Year } from './year.ts'
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

/** The outcome of a charge: `failedAt` is the first failure, `at` the final outcome. */
type Outcome =
  | { kind: 'paid'; failedAt: null; at: number }
  | { kind: 'recovered'; failedAt: number; at: number }
  | { kind: 'lost'; failedAt: number; at: number; ends: boolean }

const FAILURES: [{ code: string; message: string }, number][] = [
  [{ code: 'card_declined', message: 'The card was declined.' }, 40],
  [{ code: 'insufficient_funds', message: 'The card has insufficient funds.' }, 35],
  [{ code: 'expired_card', message: 'The card has expired.' }, 15],
  [{ code: 'authentication_required', message: 'The bank asks the customer to confirm.' }, 10],
]

/** Days until the next attempt after the first and the second failure. */
const RETRY_DAYS = [3, 5]
const RECOVERY_CHANCES = [0.6, 0.5]

/** Creates the invoice of a period and simulates its payment. There is no invoice if nothing is due. */
function charge(simulation: Simulation, at: number, netCents: number): Outcome {
  if (netCents === 0) return { kind: 'paid', failedAt: null, at }
  const { random, agreement } = simulation
  const invoice = newInvoice(simulation, at, netCents)
  if (agreement.collectionMethod === 'send_invoice') return sendInvoice(simulation, invoice, random)
  finalize(simulation, invoice)
  const isFirst = simulation.invoices === 1
  if (isFirst || !random.chance(failureRate(simulation, at))) return settle(simulation, invoice, at + 2_000, null)
  return retry(simulation, invoice, random)
}

/** About 1 in 17, and more in the last week, so that there is always something that needs attention. */
function failureRate({ until }: Simulation, at: number): number {
  return at > until - 8 * DAY_MS ? 0.3 : 0.06
}

/** Charges the price difference for the rest of a period immediately. */
function prorate(simulation: Simulation, at: number, netCents: number): void {
  if (netCents <= 0) return
  const invoice = newInvoice(simulation, at, netCents)
  finalize(simulation, invoice)
  settle(simulation, invoice, at + 2_000, null)
}

function newInvoice(simulation: Simulation, at: number, netCents: number): InvoiceState {
  const { agreement } = simulation
  simulation.invoices++
  const number = numbered(simulation.invoices, 2)
  return {
    id: `${agreement.id.replace('-sub-', '-in-')}-${number}`,
    number: `${agreement.id.replace('-sub-', '').toUpperCase()}-${number}`,
    status: 'open',
    netCents,
    taxCents: taxOn(netCents, agreement.currency),
    attempts: 0,
    nextAttemptAt: null,
    periodStart: at,
    periodEnd: simulation.state.periodEnd,
    finalizedAt: at,
    dueAt: null,
    paidAt: null,
    failure: null,
  }
}

function report(simulation: Simulation, invoice: InvoiceState, at: number, what: string): void {
  emit(simulation, at, `invoice.${what}`, invoicePayload(simulation.agreement, invoice, at))
}

function finalize(simulation: Simulation, invoice: InvoiceState): void {
  report(simulation, invoice, invoice.finalizedAt, 'finalized')
}

function settle(simulation: Simulation, invoice: InvoiceState, at: number, failedAt: number | null): Outcome {
  Object.assign(invoice, { status: 'paid', paidAt: at, nextAttemptAt: null, attempts: invoice.attempts + 1 })
  report(simulation, invoice, at, 'paid')
  refund(simulation, invoice, at)
  return failedAt === null ? { kind: 'paid', failedAt, at } : { kind: 'recovered', failedAt, at }
}

/** Due in two weeks. Most customers pay on time. */
function sendInvoice(simulation: Simulation, invoice: InvoiceState, random: Random): Outcome {
  invoice.dueAt = invoice.finalizedAt + 14 * DAY_MS
  finalize(simulation, invoice)
  const days = random.chance(0.85) ? random.int(2, 13) : random.int(15, 27)
  return settle(simulation, invoice, invoice.finalizedAt + days * DAY_MS, null)
}

function retry(simulation: Simulation, invoice: InvoiceState, random: Random): Outcome {
  invoice.failure = random.weighted(FAILURES)
  const failedAt = invoice.finalizedAt + 60_000
  const what = invoice.failure.code === 'authentication_required' ? 'payment_action_required' : 'payment_failed'
  let at = failedAt
  for (const [round, days] of RETRY_DAYS.entries()) {
    const nextAttemptAt = at + days * DAY_MS
    Object.assign(invoice, { attempts: round + 1, nextAttemptAt })
    report(simulation, invoice, at, what)
    at = nextAttemptAt
    if (random.chance(RECOVERY_CHANCES[round]!)) return settle(simulation, invoice, at, failedAt)
  }
  Object.assign(invoice, { attempts: RETRY_DAYS.length + 1, nextAttemptAt: null })
  report(simulation, invoice, at, what)
  invoice.status = 'uncollectible'
  report(simulation, invoice, at + DAY_MS, 'marked_uncollectible')
  return { kind: 'lost', failedAt, at: at + DAY_MS, ends: random.chance(0.6) }
}

/** Some bags are lost or returned. */
function refund(simulation: Simulation, invoice: InvoiceState, paidAt: number): void {
  const { random, agreement } = simulation
  if (!random.chance(0.025)) return
  const at = paidAt + random.int(20, 200) * HOUR_MS
  const totalCents = invoice.netCents + invoice.taxCents
  const cents = random.chance(0.5) ? totalCents : Math.floor(totalCents / 2)
  const id = invoice.id.replace('-in-', '-re-')
  emit(simulation, at, 'refund.created', {
    id,
    invoice: invoice.id,
    customer: agreement.person.id,
    amount: cents / 100,
    currency: agreement.currency,
    created_at: isoTime(at),
    updated_at: isoTime(at),
  })
}

/** The state of a simulated subscription, and the events that its billing system has sent so far. */
type Simulation = {
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

function beginSimulation(agreement: Agreement, until: number, random: Random): Simulation {
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

function emit(simulation: Simulation, at: number, eventType: string, payload: BillingEvent['payload']): void {
  const { agreement, events, until } = simulation
  if (at > until) return
  const id = `${agreement.id}-evt-${numbered(events.length + 1, 3)}`
  events.push(webhookEvent(id, eventType, new Date(at), payload))
}

function change(
  simulation: Simulation,
  at: number,
  kind: 'created' | 'updated' | 'deleted',
  changes: Partial<SubscriptionState> = {},
): void {
  if (at > simulation.until) return
  Object.assign(simulation.state, changes)
  emit(simulation, at, `subscription.${kind}`, subscriptionPayload(simulation.agreement, simulation.state, at))
}

function end(simulation: Simulation, at: number, reason: string): void {
  const { state } = simulation
  change(simulation, at, 'deleted', {
    status: 'canceled',
    canceledAt: state.canceledAt ?? at,
    endedAt: at,
    reason: state.reason ?? reason,
  })
}

/** Starts a period at `at`: the next one of the cycle, or the first of a new cycle. */
function beginPeriod(simulation: Simulation, at: number, isNewCycle: boolean): void {
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
