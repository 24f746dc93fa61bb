/** An account: its figures over time, its summary and its timeline. */

import { canonicalJson } from '../json/json.ts'
import { type Movement, type MovementType, mainChange } from './movements.ts'
import { nextCharge } from './price.ts'
import { mergeEqual, type Segment } from './timeline.ts'
import type { Acquisition, Instant, InvoiceVersion, Refund, SubscriptionStatus, SubscriptionVersion } from './types.ts'

type Figures = {
  mrr: number
  committedMrr: number
  /** Rows of items in reports. A subscription without items has one. */
  itemRows: number
  items: number
  /** Items with a known monthly price, included or not. */
  pricedItems: number
  excludedItems: number
}

/** The figures of a segment that its account adds up. */
export type SegmentFigures = Figures & {
  subscriptionId: string
  from: Instant
  to: Instant | null
  currency: string | null
}

export type AccountState = Figures & {
  currency: string | null
  from: Instant
  to: Instant | null
  subscriptions: number
  activeSubscriptions: number
}

export function computeFigures(segment: Segment): SegmentFigures {
  const { subscriptionId, from, to, currency, mrr, committedMrr, items } = segment
  return {
    subscriptionId,
    from,
    to,
    currency,
    mrr,
    committedMrr,
    itemRows: items.length,
    items: items.filter(item => item.id !== null).length,
    pricedItems: items.filter(item => item.included || item.excludedMrr !== null).length,
    excludedItems: items.filter(item => item.reason !== null).length,
  }
}

/** `segments`: all segments of one account, in any order and currency. */
export function accountStates(segments: SegmentFigures[]): AccountState[] {
  return [...Map.groupBy(segments, segment => segment.currency)].flatMap(([currency, own]) =>
    currencyStates(currency, own),
  )
}

/**
 * Derives the states from `at` on. `segments`: those that end at `at` or later. `before`: the states right before `at`;
 * the result includes them with their new ends.
 */
export function continueStates(segments: SegmentFigures[], at: Instant, before: AccountState[]): AccountState[] {
  const clipped = segments
    .filter(({ to }) => to === null || to > at)
    .map(segment => (segment.from < at ? { ...segment, from: at } : segment))
  const states = Map.groupBy(accountStates(clipped), ({ currency }) => currency)
  for (const last of before) {
    const own = states.get(last.currency) ?? []
    const cut = { ...last, to: at }
    states.set(last.currency, own[0]?.from === at ? mergeEqual([cut, ...own]) : [cut, ...own])
  }
  return [...states.values()].flat()
}

function currencyStates(currency: string | null, segments: SegmentFigures[]): AccountState[] {
  const changes = new Map<Instant, { segment: SegmentFigures; sign: 1 | -1 }[]>()
  const note = (at: Instant, segment: SegmentFigures, sign: 1 | -1) =>
    changes.set(at, [...(changes.get(at) ?? []), { segment, sign }])
  for (const segment of segments) {
    note(segment.from, segment, 1)
    if (segment.to !== null) note(segment.to, segment, -1)
  }
  const instants = [...changes.keys()].sort((a, b) => a - b)
  const sum: AccountState = { ...ZERO_FIGURES, currency, from: 0, to: null }
  const states = instants.map((from, i): AccountState => {
    for (const { segment, sign } of changes.get(from)!) add(sum, segment, sign)
    return { ...sum, from, to: instants[i + 1] ?? null }
  })
  return mergeEqual(states).filter(state => state.subscriptions > 0)
}

const ZERO_FIGURES = {
  mrr: 0,
  committedMrr: 0,
  subscriptions: 0,
  activeSubscriptions: 0,
  itemRows: 0,
  items: 0,
  pricedItems: 0,
  excludedItems: 0,
}

function add(sum: AccountState, segment: SegmentFigures, sign: 1 | -1): void {
  sum.mrr += sign * segment.mrr
  sum.committedMrr += sign * segment.committedMrr
  sum.subscriptions += sign
  sum.activeSubscriptions += segment.mrr > 0 ? sign : 0
  sum.itemRows += sign * segment.itemRows
  sum.items += sign * segment.items
  sum.pricedItems += sign * segment.pricedItems
  sum.excludedItems += sign * segment.excludedItems
}

// The summary of an account in one currency.

type AccountSummary = {
  account: string
  customer: string | null
  customerName: string | null
  customerEmail: string | null
  mrr: number
  committedMrr: number
  subscriptions: number
  activeSubscriptions: number
  status: SubscriptionStatus
  planNames: string[]
  /** From its oldest subscription that has one; null: see the events of its profile. */
  acquisition: Acquisition | null
  customerSince: Instant
  nextBillingAt: Instant | null
}

/** An account has the best status of its subscriptions. */
const STATUS_PRIORITY: SubscriptionStatus[] = [
  'active',
  'past_due',
  'trialing',
  'paused',
  'unpaid',
  'incomplete',
  'incomplete_expired',
  'unknown',
  'canceled',
]

/** `segments`: the one valid at `asOf` of each subscription; at least one. */
export function summarizeAccount(segments: Segment[], asOf: Instant): AccountSummary {
  const oldestFirst = [...segments].sort(
    (a, b) => a.startedAt - b.startedAt || (a.subscriptionId < b.subscriptionId ? -1 : 1),
  )
  const newest = oldestFirst.at(-1)!
  const running = oldestFirst.filter(segment => segment.status !== 'canceled')
  const statuses = new Set(segments.map(segment => segment.status))
  return {
    account: newest.account,
    customer: newest.customer,
    customerName: oldestFirst.findLast(segment => segment.customerName)?.customerName ?? null,
    customerEmail: oldestFirst.findLast(segment => segment.customerEmail)?.customerEmail ?? null,
    mrr: segments.reduce((sum, segment) => sum + segment.mrr, 0),
    committedMrr: segments.reduce((sum, segment) => sum + segment.committedMrr, 0),
    subscriptions: segments.length,
    activeSubscriptions: segments.filter(segment => segment.mrr > 0).length,
    status: STATUS_PRIORITY.find(status => statuses.has(status))!,
    planNames: planNames(running.length > 0 ? running : oldestFirst),
    acquisition: oldestFirst.find(segment => segment.acquisition)?.acquisition ?? null,
    customerSince: oldestFirst[0]!.startedAt,
    nextBillingAt: earliest(segments.map(segment => nextCharge(segment.cycles, asOf)?.billsAt)),
  }
}

function planNames(segments: Segment[]): string[] {
  const names = segments.flatMap(segment => segment.items.map(planName)).filter(name => name !== null)
  return [...new Set(names)]
}

export function planName(item: Segment['items'][number]): string | null {
  return item.name ?? item.priceId ?? item.productId
}

function earliest(instants: (Instant | undefined)[]): Instant | null {
  const known = instants.filter(at => at !== undefined)
  return known.length > 0 ? Math.min(...known) : null
}

// The timeline of an account. Amounts are in minor units.

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

/** Billing systems send one change as several event types. Only the first type is listed. */
function distinctStatements<Version extends object>(statements: Statement<Version>[]): Statement<Version>[] {
  const known = new Map<string, Statement<Version>>()
  for (const statement of statements) {
    const text = canonicalJson({ ...statement.version, fact: null, before: null })
    const before = known.get(text)
    if (!before || statement.eventType < before.eventType) known.set(text, statement)
  }
  return [...known.values()]
}

const EMPTY_ENTRY = {
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
