/** Invoices laid out in time, and refunds: what was invoiced and collected, and what is still owed. */

import { compareRefunds, orderInvoices } from './precedence.ts'
import { mergeEqual, type Span, spansOf } from './spans.ts'
import type { CashReturn, FailedAttempt, Instant, InvoiceVersion, PaymentFailure, Refund } from './types.ts'

/** What an invoice was from `from` on; `to` is exclusive, null: until further notice. */
export type InvoiceState = Omit<
  InvoiceVersion,
  'id' | 'sourceAt' | 'sequence' | 'total' | 'amountDue' | 'amountPaid' | 'amountRemaining'
> & {
  invoiceId: string
  from: Instant
  to: Instant | null
  /** 0 where the source gave nothing to go by. */
  total: number
  amountDue: number
  amountPaid: number
  amountRemaining: number
}

/** All versions of one invoice, at least one, in the order of their arrival and however often repeated. */
export function deriveInvoice(versions: InvoiceVersion[], attempts: FailedAttempt[] = []): InvoiceState[] {
  const ordered = withAttempts(orderInvoices(versions), attempts)
  const finalizedBy = ordered.find(version => version.status !== 'draft')?.sourceAt ?? null
  const paidBy = ordered.find(version => version.status === 'paid')?.sourceAt ?? null
  const dated = ordered.map(version => withDates(version, finalizedBy, paidBy))
  let failure: PaymentFailure | null = null
  const states = spansOf(dated, true, holdsFrom).flatMap(span => {
    failure = span.version.failure ?? failure
    return statesOf(span, failure)
  })
  return mergeEqual(states)
}

/** Payments and invoices tell of one failure within so long. */
const SAME_FAILURE_MS = 60_000

/** An attempt that failed says why, where the invoice only says that it did, and is evidence where it says nothing. */
function withAttempts(ordered: InvoiceVersion[], attempts: FailedAttempt[]): InvoiceVersion[] {
  if (attempts.length === 0) return ordered
  const explained = ordered.map(version => {
    const attempt = attempts.findLast(({ at }) => at <= version.sourceAt + SAME_FAILURE_MS)
    const isOpen =
      version.failure !== null && version.failure.code === null && version.failure.message === null
    return isOpen && attempt
      ? { ...version, failure: { ...attempt.failure, kind: version.failure!.kind } }
      : version
  })
  const own = attempts.flatMap(({ at, failure }) => {
    const held = explained.findLast(version => version.sourceAt <= at)
    return held?.status === 'open' ? [{ ...held, sourceAt: at, failure: held.failure ?? failure }] : []
  })
  return own.length > 0 ? orderInvoices([...own, ...explained]) : explained
}

function statesOf(span: Span<InvoiceVersion>, failure: PaymentFailure | null): InvoiceState[] {
  const { version, from, to } = span
  const { paidAt } = version
  if (paidAt === null || paidAt <= from) return [stateOf(version, failure, from, to)]
  // seen paid at once: until it was, it was owed
  const owed: InvoiceVersion = {
    ...version,
    status: 'open',
    paidAt: null,
    amountPaid: 0,
    amountRemaining: version.amountDue ?? version.total,
  }
  if (to !== null && paidAt >= to) return [stateOf(owed, failure, from, to)]
  return [stateOf(owed, failure, from, paidAt), stateOf(version, failure, paidAt, to)]
}

/** Where a source leaves out when an invoice was finalized or paid, the first word of it stands in. */
function withDates(
  version: InvoiceVersion,
  finalizedBy: Instant | null,
  paidBy: Instant | null,
): InvoiceVersion {
  const paidAt = version.status === 'paid' ? (version.paidAt ?? paidBy) : null
  const isFinal = version.status !== 'draft' && version.status !== 'unknown'
  const finalized = isFinal ? Math.min(finalizedBy ?? version.sourceAt, paidAt ?? version.sourceAt) : null
  return { ...version, paidAt, finalizedAt: version.finalizedAt ?? finalized }
}

/** The first version holds from when the invoice was finalized, later ones from their own time, paid from payment. */
function holdsFrom(version: InvoiceVersion, first: boolean): Instant {
  const earliest = first ? version.finalizedAt : version.paidAt
  return earliest === null ? version.sourceAt : Math.min(earliest, version.sourceAt)
}

function stateOf(
  version: InvoiceVersion,
  lastFailure: PaymentFailure | null,
  from: Instant,
  to: Instant | null,
): InvoiceState {
  const { id, sourceAt: _at, sequence: _n, ...facts } = version
  const total = version.total ?? version.amountDue ?? 0
  const amountDue = version.amountDue ?? total
  const amountPaid = version.amountPaid ?? (version.status === 'paid' ? amountDue : 0)
  const owed = version.status === 'open' || version.status === 'uncollectible'
  const failure = owed ? lastFailure : null
  const amountRemaining = version.amountRemaining ?? (owed ? Math.max(0, amountDue - amountPaid) : 0)
  return { ...facts, invoiceId: id, from, to, failure, total, amountDue, amountPaid, amountRemaining }
}

/** When it counts as invoiced, with `total`, tax included; null: it does not while this holds. */
export function invoicedAt(state: InvoiceState): Instant | null {
  const counts = state.status === 'open' || state.status === 'paid' || state.status === 'uncollectible'
  return counts ? state.finalizedAt : null
}

/** Whose an invoice is by the newest word on it, and when it was first and last spoken of. */
export type InvoiceSummary = Pick<
  InvoiceState,
  'subscriptionId' | 'customer' | 'customerName' | 'customerEmail' | 'currency'
> & { firstAt: Instant; lastAt: Instant }

/** The states of one invoice, in their order; at least one. */
export function summarizeInvoice(states: InvoiceState[]): InvoiceSummary {
  const newest = <Field extends keyof InvoiceState>(field: Field) =>
    states.findLast(state => state[field] !== null)?.[field] ?? null
  return {
    subscriptionId: newest('subscriptionId'),
    customer: newest('customer'),
    customerName: newest('customerName'),
    customerEmail: newest('customerEmail'),
    currency: newest('currency'),
    firstAt: states[0]!.from,
    lastAt: states.at(-1)!.from,
  }
}

/** Of two words on one refund the newer, whichever came first. */
export function mergeRefund(a: Refund, b: Refund): Refund {
  const [older, newer] = compareRefunds(a, b) <= 0 ? [a, b] : [b, a]
  return {
    ...newer,
    invoiceId: newer.invoiceId ?? older.invoiceId,
    chargeId: newer.chargeId ?? older.chargeId,
    // what a dispute took, it took when it was first told as lost
    ...(newer.kind === 'dispute' && older.counts && newer.counts && { createdAt: older.createdAt }),
  }
}

/** What was read off a charge's total gives way to refunds of it known by name. */
export function withSuperseded(refunds: Refund[]): CashReturn[] {
  const named = new Set(
    refunds.flatMap(refund => (refund.fromChargeTotal || refund.kind ? [] : [refund.chargeId])),
  )
  return refunds.map(refund => ({
    refund,
    superseded: refund.fromChargeTotal && named.has(refund.chargeId),
  }))
}
