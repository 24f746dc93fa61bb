/** The timeline of an account: what happened to it, with texts for people. Amounts are in minor units. */

import { canonicalJson } from '../json/json.ts'
import { type Movement, type MovementType, mainChange } from './account.ts'
import type { Cause } from './cause.ts'
import type { Instant, InvoiceVersion, Refund, SubscriptionVersion } from './types.ts'

export type TimelineEntry = {
  occurredAt: Instant
  eventType: string
  category: 'subscription' | 'invoice' | 'payment' | 'refund' | 'movement'
  subscriptionId: string | null
  movementType: MovementType | null
  mrrBefore: number | null
  mrrAfter: number | null
  amount: number | null
  invoiceId: string | null
  /** Of a movement. */
  cause: Cause | null
  /** The source event; for a movement, the event that caused it. */
  eventId: string | null
  description: string
}

type Source = { eventId: string; eventType: string }

/** One version of an object and its event. */
export type Statement<Version> = Source & { objectId: string; sourceAt: Instant; version: Version }

type AccountHistory = {
  currency: string
  subscriptions: Statement<SubscriptionVersion>[]
  invoices: Statement<InvoiceVersion>[]
  refunds: (Refund & Source)[]
  movements: Movement[]
}

/** Newest first. Of one instant, consequences come before their causes. */
export function accountTimeline(history: AccountHistory): TimelineEntry[] {
  const { currency, subscriptions, invoices, refunds, movements } = history
  const isOwn = (of: string | null) => of === null || of === currency
  const entries = [
    ...distinctStatements(subscriptions)
      .filter(({ version }) => isOwn(version.currency))
      .map(subscriptionEntry),
    ...distinctStatements(invoices, invoiceContent)
      .filter(({ version }) => isOwn(version.currency))
      .map(invoiceEntry),
    ...refunds.filter(refund => isOwn(refund.currency)).map(refundEntry),
    ...movements.map(movementEntry),
  ]
  return entries.sort(
    (a, b) =>
      b.occurredAt - a.occurredAt ||
      ORDER.indexOf(b.category) - ORDER.indexOf(a.category) ||
      compareText(entryText(a), entryText(b)),
  )
}

const ORDER: TimelineEntry['category'][] = ['subscription', 'invoice', 'payment', 'refund', 'movement']

function entryText(entry: TimelineEntry): string {
  return `${entry.subscriptionId} ${entry.invoiceId} ${entry.eventType} ${entry.description}`
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Billing systems send one change as several event types. Only the first type is listed. */
function distinctStatements<Version extends object>(
  statements: Statement<Version>[],
  contentOf: (version: Version) => object = version => version,
): Statement<Version>[] {
  const known = new Map<string, Statement<Version>>()
  for (const statement of statements) {
    const text = canonicalJson({ ...contentOf(statement.version), fact: null, before: null })
    const before = known.get(text)
    if (!before || compareStatements(statement, before) < 0) known.set(text, statement)
  }
  return [...known.values()]
}

function compareStatements<Version>(a: Statement<Version>, b: Statement<Version>): number {
  return a.sourceAt - b.sourceAt || compareText(a.eventType, b.eventType)
}

/** A webhook and an import contain the same state with different times. Only a failed payment can occur twice. */
function invoiceContent(version: InvoiceVersion): object {
  return version.failure === null ? { ...version, sourceAt: null } : version
}

const EMPTY_ENTRY = {
  subscriptionId: null,
  movementType: null,
  mrrBefore: null,
  mrrAfter: null,
  amount: null,
  invoiceId: null,
  cause: null,
}

function subscriptionEntry({ version, eventType, eventId }: Statement<SubscriptionVersion>): TimelineEntry {
  const name = { created: 'began', updated: 'changed', deleted: 'was deleted' }[version.change]
  return {
    ...EMPTY_ENTRY,
    occurredAt: version.sourceAt,
    eventType,
    category: 'subscription',
    subscriptionId: version.id,
    eventId,
    description: `Subscription ${version.id} ${name}: ${version.status.replaceAll('_', ' ')}.`,
  }
}

function invoiceEntry({ version, eventType, eventId }: Statement<InvoiceVersion>): TimelineEntry {
  const isPayment = version.status === 'paid' || version.failure !== null
  return {
    ...EMPTY_ENTRY,
    occurredAt: version.status === 'paid' ? (version.paidAt ?? version.sourceAt) : version.sourceAt,
    eventType,
    category: isPayment ? 'payment' : 'invoice',
    subscriptionId: version.subscriptionId,
    amount: invoiceAmount(version),
    invoiceId: version.id,
    eventId,
    description: `Invoice ${version.number ?? version.id} ${describeInvoice(version)}.`,
  }
}

/** The amount paid, the amount that could not be collected, or the total. */
function invoiceAmount(version: InvoiceVersion): number | null {
  const total = version.total ?? version.amountDue
  if (version.status === 'paid') return version.amountPaid ?? total
  return version.failure === null ? total : (version.amountRemaining ?? version.amountDue ?? total)
}

function describeInvoice({ status, failure }: InvoiceVersion): string {
  if (status === 'paid') return 'was paid'
  if (failure?.kind === 'action_required') return 'waits for the customer to confirm the payment'
  if (failure) return `could not be paid${failure.message ? `: ${failure.message.replace(/\.$/, '')}` : ''}`
  if (status === 'void') return 'was voided'
  return `is ${status}`
}

function refundEntry(refund: Refund & Source): TimelineEntry {
  return {
    ...EMPTY_ENTRY,
    occurredAt: refund.createdAt,
    eventType: refund.eventType,
    category: 'refund',
    amount: refund.amount,
    invoiceId: refund.invoiceId,
    eventId: refund.eventId,
    description: describeRefund(refund),
  }
}

function describeRefund({ kind, id, invoiceId }: Refund): string {
  const of = invoiceId ? ` of invoice ${invoiceId}` : ''
  if (kind === 'dispute') return `Dispute ${id}${of} was lost.`
  if (kind === 'credit_note') return `Credit note ${id}${of} was paid out.`
  return invoiceId ? `Refund${of}.` : `Refund ${id}.`
}

function movementEntry({ at, type, before, after, changes }: Movement): TimelineEntry {
  const [only, ...others] = changes
  return {
    ...EMPTY_ENTRY,
    occurredAt: at,
    eventType: `movement.${type}`,
    category: 'movement',
    subscriptionId: others.length === 0 ? (only?.subscriptionId ?? null) : null,
    movementType: type,
    mrrBefore: before,
    mrrAfter: after,
    cause: mainChange(changes)?.cause ?? 'other',
    eventId: mainChange(changes)?.eventId ?? null,
    description: `${MOVEMENT_TEXTS[type]} (${changes.map(change => change.subscriptionId).join(', ')}).`,
  }
}

const MOVEMENT_TEXTS: Record<MovementType, string> = {
  new: 'First MRR of the account',
  expansion: 'MRR increased',
  contraction: 'MRR decreased',
  churn: 'MRR fell to 0',
  reactivation: 'The account returned',
}
