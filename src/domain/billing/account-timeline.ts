/** Everything that happened to an account, as one list. Amounts in minor units. */

import { contentText } from './content.ts'
import { type Movement, type MovementType, mainChange } from './movements.ts'
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
  /** The event that said so; of a movement the one behind it. */
  eventId: string | null
  description: string
}

type Source = { eventId: string; eventType: string }

/** What an event told of an object. */
export type Statement<Version> = Source & { objectId: string; sourceAt: Instant; version: Version }

export type AccountHistory = {
  currency: string
  subscriptions: Statement<SubscriptionVersion>[]
  invoices: Statement<InvoiceVersion>[]
  refunds: (Refund & Source)[]
  movements: Movement[]
}

/** Newest first; of one instant, what follows comes above what it follows from. */
export function accountTimeline(history: AccountHistory): TimelineEntry[] {
  const { currency, subscriptions, invoices, refunds, movements } = history
  const isOwn = (of: string | null) => of === null || of === currency
  const entries = [
    ...distinctStatements(subscriptions)
      .filter(({ version }) => isOwn(version.currency))
      .map(subscriptionEntry),
    ...distinctStatements(invoices)
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

/** Billing systems send one thing under several names: the first of them stands for all. */
function distinctStatements<Version extends object>(statements: Statement<Version>[]): Statement<Version>[] {
  const known = new Map<string, Statement<Version>>()
  for (const statement of statements) {
    const text = contentText({ ...statement.version, fact: null, before: null })
    const before = known.get(text)
    if (!before || statement.eventType < before.eventType) known.set(text, statement)
  }
  return [...known.values()]
}

const NOTHING = {
  subscriptionId: null,
  movementType: null,
  mrrBefore: null,
  mrrAfter: null,
  amount: null,
  invoiceId: null,
}

function subscriptionEntry({ version, eventType, eventId }: Statement<SubscriptionVersion>): TimelineEntry {
  const name = { created: 'began', updated: 'changed', deleted: 'was deleted' }[version.change]
  return {
    ...NOTHING,
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
    ...NOTHING,
    occurredAt: version.status === 'paid' ? (version.paidAt ?? version.sourceAt) : version.sourceAt,
    eventType,
    category: isPayment ? 'payment' : 'invoice',
    subscriptionId: version.subscriptionId,
    amount: amountOf(version),
    invoiceId: version.id,
    eventId,
    description: `Invoice ${version.number ?? version.id} ${invoiceWords(version)}.`,
  }
}

/** What was paid, what could not be collected, or what the invoice is over. */
function amountOf(version: InvoiceVersion): number | null {
  const total = version.total ?? version.amountDue
  if (version.status === 'paid') return version.amountPaid ?? total
  return version.failure === null ? total : (version.amountRemaining ?? version.amountDue ?? total)
}

function invoiceWords({ status, failure }: InvoiceVersion): string {
  if (status === 'paid') return 'was paid'
  if (failure?.kind === 'action_required') return 'waits for the customer to confirm the payment'
  if (failure) return `could not be paid${failure.message ? `: ${failure.message.replace(/\.$/, '')}` : ''}`
  if (status === 'void') return 'was voided'
  return `is ${status}`
}

function refundEntry(refund: Refund & Source): TimelineEntry {
  return {
    ...NOTHING,
    occurredAt: refund.createdAt,
    eventType: refund.eventType,
    category: 'refund',
    amount: refund.amount,
    invoiceId: refund.invoiceId,
    eventId: refund.eventId,
    description: refundWords(refund),
  }
}

function refundWords({ kind, id, invoiceId }: Refund): string {
  const of = invoiceId ? ` of invoice ${invoiceId}` : ''
  if (kind === 'dispute') return `Dispute ${id}${of} was lost.`
  if (kind === 'credit_note') return `Credit note ${id}${of} was paid out.`
  return invoiceId ? `Refund${of}.` : `Refund ${id}.`
}

function movementEntry({ at, type, before, after, changes }: Movement): TimelineEntry {
  const [only, ...others] = changes
  return {
    ...NOTHING,
    occurredAt: at,
    eventType: `movement.${type}`,
    category: 'movement',
    subscriptionId: others.length === 0 ? (only?.subscriptionId ?? null) : null,
    movementType: type,
    mrrBefore: before,
    mrrAfter: after,
    eventId: mainChange(changes)?.eventId ?? null,
    description: `${MOVEMENT_WORDS[type]} (${changes.map(change => change.subscriptionId).join(', ')}).`,
  }
}

const MOVEMENT_WORDS: Record<MovementType, string> = {
  new: 'The account began to pay',
  expansion: 'MRR rose',
  contraction: 'MRR fell',
  churn: 'MRR fell to nothing',
  reactivation: 'The account came back',
}
