/** Invoices laid out in time, and refunds: what was invoiced and collected, and what is still owed. */

import { compareRefunds, orderInvoices } from './precedence.ts'
import { mergeEqual, type Span, spansOf } from './spans.ts'
import type { Instant, InvoiceVersion, PaymentFailure, Refund } from './types.ts'

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
export function deriveInvoice(versions: InvoiceVersion[]): InvoiceState[] {
  const ordered = orderInvoices(versions)
  const finalizedBy = ordered.find(version => version.status !== 'draft')?.sourceAt ?? null
  const paidBy = ordered.find(version => version.status === 'paid')?.sourceAt ?? null
  const dated = ordered.map(version => withDates(version, finalizedBy, paidBy))
  let failure: PaymentFailure | null = null
  const states = spansOf(dated, holdsFrom).flatMap(span => {
    failure = span.version.failure ?? failure
    return statesOf(span, failure)
  })
  return mergeEqual(states)
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

/** When it counts as collected, with `amountPaid`. */
export function collectedAt(state: InvoiceState): Instant | null {
  return state.status === 'paid' ? state.paidAt : null
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
  }
}

/** Money that went back. What was read off a charge's total gives way to refunds of it known by name. */
export function countedRefunds(refunds: Refund[]): Refund[] {
  const named = new Set(refunds.filter(refund => !refund.fromChargeTotal).map(refund => refund.chargeId))
  return refunds.filter(refund => refund.counts && !(refund.fromChargeTotal && named.has(refund.chargeId)))
}
