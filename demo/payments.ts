import { type InvoiceState, invoicePayload, taxOn } from './billing-events.ts'
import type { Random } from './random.ts'
import { emit, type Simulation } from './simulation.ts'
import { DAY_MS, HOUR_MS, isoTime, numbered } from './year.ts'

/** The outcome of a charge: `failedAt` is the first failure, `at` the final outcome. */
export type Outcome =
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
export function charge(simulation: Simulation, at: number, netCents: number): Outcome {
  if (netCents === 0) return { kind: 'paid', failedAt: null, at }
  const { random, agreement } = simulation
  const invoice = newInvoice(simulation, at, netCents)
  if (agreement.collectionMethod === 'send_invoice') return sendInvoice(simulation, invoice, random)
  finalize(simulation, invoice)
  const isFirst = simulation.invoices === 1
  if (isFirst || !random.chance(failureRate(simulation, at)))
    return settle(simulation, invoice, at + 2_000, null)
  return retry(simulation, invoice, random)
}

/** About 1 in 17, and more in the last week, so that there is always something that needs attention. */
function failureRate({ until }: Simulation, at: number): number {
  return at > until - 8 * DAY_MS ? 0.3 : 0.06
}

/** Charges the price difference for the rest of a period immediately. */
export function prorate(simulation: Simulation, at: number, netCents: number): void {
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
  const what =
    invoice.failure.code === 'authentication_required' ? 'payment_action_required' : 'payment_failed'
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
