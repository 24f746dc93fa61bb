/** Cash: payments, refunds and disputes as rows that add up to what was collected, and the states of invoices. */

import { compareRefunds, orderInvoices } from './order.ts'
import { buildSpans, mergeEqual, type Span } from './timeline.ts'
import type { CashReturn, FailedAttempt, Instant, InvoiceVersion, Payment, PaymentFailure, Refund } from './types.ts'

/** All reports of one payment, merged. */
export type PaymentRecord = {
  id: string
  invoiceId: string | null
  customer: string | null
  /** null: no successful payment is known. */
  paidAt: Instant | null
  amount: number
  currency: string | null
  /** Failed attempts, in order. */
  failures: FailedAttempt[]
  /** The amount and time by which to find the invoice of a payment that names none. */
  unlinked?: { amount: number; at: Instant; reportedAt: Instant }
}

export type CashRow = {
  kind: 'payment' | 'refund' | 'dispute'
  id: string
  at: Instant
  /** When it was undone: a refund that failed later. */
  to: Instant | null
  currency: string
  amount: number
  /** Belongs to a subscription invoice; everything else is one-off. */
  recurring: boolean
}

/** A charge has the most reliable time, an invoice payment the most reliable amount. */
const BY_TIME: Payment['reportedBy'][] = ['charge', 'invoice_payment', 'payment_intent', 'invoice']
const BY_AMOUNT: Payment['reportedBy'][] = ['invoice_payment', 'charge', 'payment_intent', 'invoice']

/** `reports`: all reports of one payment, at least one, in order of arrival. */
export function mergePayments(reports: Payment[]): PaymentRecord {
  const inOrder = [...reports].sort((a, b) => a.sourceAt - b.sourceAt)
  const paid = inOrder.filter(({ status, amount }) => status === 'succeeded' && amount !== null && amount > 0)
  const first = (order: Payment['reportedBy'][]) =>
    order.map(source => paid.findLast(payment => payment.reportedBy === source)).find(payment => payment !== undefined)
  const open = inOrder.findLast(payment => payment.unlinkedAmount !== undefined)
  const newest = (field: 'invoiceId' | 'customer' | 'currency') =>
    inOrder.findLast(payment => payment[field] !== null)?.[field] ?? null
  return {
    id: reports[0]!.id,
    invoiceId: newest('invoiceId'),
    customer: newest('customer'),
    paidAt: first(BY_TIME)?.at ?? null,
    amount: first(BY_AMOUNT)?.amount ?? 0,
    currency: newest('currency'),
    failures: inOrder.flatMap(({ at, failure }) => (failure ? [{ at, failure }] : [])),
    ...(open &&
      newest('invoiceId') === null && {
        unlinked: { amount: open.unlinkedAmount!, at: open.at, reportedAt: open.sourceAt },
      }),
  }
}

/** The money of one invoice, or of a payment without an invoice (`states` empty). */
type CashFacts = { states: InvoiceState[]; payments: PaymentRecord[]; returns: CashReturn[] }

export function cashRows({ states, payments, returns }: CashFacts): CashRow[] {
  const recurring = states.some(state => state.subscriptionId !== null)
  const came = [...paymentRows(payments, recurring), ...impliedRows(states, payments, recurring)]
  // a refund without a known payment reduces nothing
  if (came.length === 0 && states.length === 0) return []
  return [...came, ...returns.flatMap(entry => returnRow(entry, recurring))]
}

function paymentRows(payments: PaymentRecord[], recurring: boolean): CashRow[] {
  return payments.flatMap(({ id, paidAt, amount, currency }) =>
    paidAt === null || currency === null
      ? []
      : [{ kind: 'payment' as const, id, at: paidAt, to: null, currency, amount, recurring }],
  )
}

/** Payments implied by `amountPaid` of the invoice beyond the known ones: one row per increase. */
function impliedRows(states: InvoiceState[], payments: PaymentRecord[], recurring: boolean): CashRow[] {
  let known = payments.reduce((sum, { paidAt, amount }) => sum + (paidAt === null ? 0 : amount), 0)
  return states.flatMap(({ invoiceId, amountPaid, currency, paidAt, from, status }) => {
    if (currency === null || amountPaid <= known) return []
    const amount = amountPaid - known
    known = amountPaid
    const at = status === 'paid' ? (paidAt ?? from) : from
    return [{ kind: 'payment' as const, id: `${invoiceId}:${amountPaid}`, at, to: null, currency, amount, recurring }]
  })
}

function returnRow(entry: CashReturn, recurring: boolean): CashRow[] {
  const { refund, superseded } = entry
  const { id, currency, amount, createdAt, counts, sourceAt, kind } = refund
  if (superseded || currency === null || !amount) return []
  const isDispute = kind === 'dispute'
  // a failed refund counted until it failed; a dispute counts once it is lost
  if (!counts && (isDispute || sourceAt <= createdAt)) return []
  return [
    {
      kind: isDispute ? 'dispute' : 'refund',
      id,
      at: createdAt,
      to: counts ? null : sourceAt,
      currency,
      amount,
      recurring,
    },
  ]
}

// Invoices over time, and refunds.

/** The state of an invoice from `from` on. `to` is exclusive; null: open-ended. */
export type InvoiceState = Omit<
  InvoiceVersion,
  'id' | 'sourceAt' | 'sequence' | 'total' | 'amountDue' | 'amountPaid' | 'amountRemaining'
> & {
  invoiceId: string
  from: Instant
  to: Instant | null
  /** 0 if the source gave no amount. */
  total: number
  amountDue: number
  amountPaid: number
  amountRemaining: number
}

/** `versions`: all versions of one invoice, at least one, in order of arrival; repeats are allowed. */
export function deriveInvoice(versions: InvoiceVersion[], attempts: FailedAttempt[] = []): InvoiceState[] {
  const ordered = withAttempts(orderInvoices(versions), attempts)
  const finalizedBy = ordered.find(version => version.status !== 'draft')?.sourceAt ?? null
  const paidBy = ordered.find(version => version.status === 'paid')?.sourceAt ?? null
  const dated = ordered.map(version => withDates(version, finalizedBy, paidBy))
  let failure: PaymentFailure | null = null
  const states = buildSpans(dated, true, holdsFrom).flatMap(span => {
    failure = span.version.failure ?? failure
    return spanStates(span, failure)
  })
  return mergeEqual(states)
}

/** Events of a payment and of its invoice that are closer than this report the same failure. */
const SAME_FAILURE_MS = 60_000

/** A failed attempt adds the reason to the failure of an invoice, or adds the failure itself if the invoice has none. */
function withAttempts(ordered: InvoiceVersion[], attempts: FailedAttempt[]): InvoiceVersion[] {
  if (attempts.length === 0) return ordered
  const explained = ordered.map(version => {
    const attempt = attempts.findLast(({ at }) => at <= version.sourceAt + SAME_FAILURE_MS)
    const isOpen = version.failure !== null && version.failure.code === null && version.failure.message === null
    return isOpen && attempt ? { ...version, failure: { ...attempt.failure, kind: version.failure!.kind } } : version
  })
  const own = attempts.flatMap(({ at, failure }) => {
    const held = explained.findLast(version => version.sourceAt <= at)
    return held?.status === 'open' ? [{ ...held, sourceAt: at, failure: held.failure ?? failure }] : []
  })
  return own.length > 0 ? orderInvoices([...own, ...explained]) : explained
}

function spanStates(span: Span<InvoiceVersion>, failure: PaymentFailure | null): InvoiceState[] {
  const { version, from, to } = span
  const { paidAt } = version
  if (paidAt === null || paidAt <= from) return [buildState(version, failure, from, to)]
  // the first known version is paid: before `paidAt` the invoice was open
  const owed: InvoiceVersion = {
    ...version,
    status: 'open',
    paidAt: null,
    amountPaid: 0,
    amountRemaining: version.amountDue ?? version.total,
  }
  if (to !== null && paidAt >= to) return [buildState(owed, failure, from, to)]
  return [buildState(owed, failure, from, paidAt), buildState(version, failure, paidAt, to)]
}

/** Without a finalized or paid date, the first version with that status supplies it. */
function withDates(version: InvoiceVersion, finalizedBy: Instant | null, paidBy: Instant | null): InvoiceVersion {
  const paidAt = version.status === 'paid' ? (version.paidAt ?? paidBy) : null
  const isFinal = version.status !== 'draft' && version.status !== 'unknown'
  const finalized = isFinal ? Math.min(finalizedBy ?? version.sourceAt, paidAt ?? version.sourceAt) : null
  return { ...version, paidAt, finalizedAt: version.finalizedAt ?? finalized }
}

/** The first version is valid from finalization, later ones from their own time, paid ones from the payment. */
function holdsFrom(version: InvoiceVersion, first: boolean): Instant {
  const earliest = first ? version.finalizedAt : version.paidAt
  return earliest === null ? version.sourceAt : Math.min(earliest, version.sourceAt)
}

function buildState(
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

/** When it counts as invoiced, with `total` including tax; null: it does not count in this state. */
export function invoicedAt(state: InvoiceState): Instant | null {
  const counts = state.status === 'open' || state.status === 'paid' || state.status === 'uncollectible'
  return counts ? state.finalizedAt : null
}

/** The newest owner of an invoice, and the times of its first and last state. */
export type InvoiceSummary = Pick<
  InvoiceState,
  'subscriptionId' | 'customer' | 'customerName' | 'customerEmail' | 'currency'
> & { firstAt: Instant; lastAt: Instant }

/** `states`: of one invoice, in order, at least one. */
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

/** Merges two versions of a refund; the newer one wins, regardless of arrival. */
export function mergeRefund(a: Refund, b: Refund): Refund {
  const [older, newer] = compareRefunds(a, b) <= 0 ? [a, b] : [b, a]
  return {
    ...newer,
    invoiceId: newer.invoiceId ?? older.invoiceId,
    chargeId: newer.chargeId ?? older.chargeId,
    // a dispute counts from the first event that reports it as lost
    ...(newer.kind === 'dispute' && older.counts && newer.counts && { createdAt: older.createdAt }),
  }
}

/**
 * The refunded total of a charge is a lower bound. Of each total only the part counts that neither refunds with their own
 * ids nor earlier totals explain.
 */
export function markSuperseded<Entry extends Refund>(refunds: Entry[]): { refund: Entry; superseded: boolean }[] {
  const unexplained = new Map<Entry, number>()
  const charges = Map.groupBy(
    refunds.filter(refund => refund.kind === undefined && refund.chargeId !== null),
    refund => refund.chargeId,
  )
  for (const own of charges.values()) {
    const named = own.filter(refund => !refund.fromChargeTotal)
    let added = 0
    for (const total of own.filter(refund => refund.fromChargeTotal).sort(compareRefunds)) {
      const explained = named
        .filter(refund => isPartOf(refund, total))
        .reduce((sum, { amount }) => sum + (amount ?? 0), 0)
      const rest = Math.max(0, (total.amount ?? 0) - explained - added)
      added += rest
      unexplained.set(total, rest)
    }
  }
  return refunds.map(refund => {
    if (!refund.fromChargeTotal) return { refund, superseded: false }
    const amount = unexplained.get(refund) ?? refund.amount
    return { refund: { ...refund, amount }, superseded: amount === 0 }
  })
}

/** Whether the total may include the refund: it had not failed yet. */
function isPartOf({ counts, sourceAt }: Refund, total: Refund): boolean {
  return counts || sourceAt >= total.sourceAt
}
