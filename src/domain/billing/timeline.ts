/**
 * Everything known of one subscription, laid out in time: what it was, and what it was worth, from when to when.
 * Derived anew from all its versions whenever one is added, so a late one corrects the past it speaks of.
 */

import { type Cause, causeOf } from './causes.ts'
import { type ChargeCycle, chargeCycles } from './charges.ts'
import { type ItemState, itemStates, totalMrr } from './mrr.ts'
import { DEFAULT_POLICY, type Policy } from './policy.ts'
import { orderSubscriptions } from './precedence.ts'
import { discountChanges, discountEnds, type LinesAt, linesOf } from './pricing.ts'
import { mergeEqual, type Span, spansOf } from './spans.ts'
import { firstStanding, graceEnd, type Ruling, standingAt } from './standing.ts'
import { type KnownTerms, NO_TERMS, resolved } from './terms.ts'
import type { Acquisition, Instant, SubscriptionStatus, SubscriptionVersion } from './types.ts'

/** A stretch of time in which nothing about the subscription changed; `to` is exclusive, null: until further notice. */
export type Segment = {
  subscriptionId: string
  from: Instant
  to: Instant | null
  /** Whose MRR it is: the customer, else the e-mail, else the subscription itself. */
  account: string
  customer: string | null
  customerName: string | null
  customerEmail: string | null
  status: SubscriptionStatus
  currency: string | null
  mrr: number
  /** MRR less what is scheduled to cancel. */
  committedMrr: number
  /** Never empty: a subscription without items has one row with id null. */
  items: SegmentItem[]
  /** When the subscription began, or is going to. */
  startedAt: Instant
  trialEnd: Instant | null
  currentPeriodStart: Instant | null
  currentPeriodEnd: Instant | null
  /** Set while a cancellation is scheduled or its date unknown (`cancelsAt` null, `cancelling` true). */
  cancelling: boolean
  cancelsAt: Instant | null
  cancelRequestedAt: Instant | null
  cancellationReason: string | null
  collectionMethod: string | null
  acquisition: Acquisition | null
  /** As its metadata says. */
  country?: string
  /** A source's trial run, that is not money. */
  testMode?: true
  /** Why MRR is another than before, and the event behind it; left out where it is not. */
  cause?: Cause
  eventId?: string
  cautions?: Caution[]
  cycles: ChargeCycle[]
}

export type Caution = 'items_incomplete' | 'inclusive_tax_unknown' | 'id_of_two_customers'

/** `since`: from when the item has been excluded for this reason, without a break; null on included items. */
export type SegmentItem = ItemState & { since: Instant | null }

export type DerivedSubscription = {
  id: string
  segments: Segment[]
  /** From when on the source has deleted it; nothing revives it. */
  deletedAt: Instant | null
  firstSourceAt: Instant
  lastSourceAt: Instant
}

/** All versions of one subscription, at least one, in the order of their arrival and however often repeated. */
export function deriveSubscription(
  versions: SubscriptionVersion[],
  terms: KnownTerms = NO_TERMS,
  policy: Policy = DEFAULT_POLICY,
): DerivedSubscription {
  const ordered = withStateBefore(orderSubscriptions(versions)).map(version => resolved(version, terms))
  const deletion = ordered.findIndex(version => version.change === 'deleted')
  const known = completed(deletion < 0 ? ordered : ordered.slice(0, deletion + 1))
  const spans = spansOf(known, holdsFrom)
  const states = statesOf(spans, policy)
  return {
    id: ordered[0]!.id,
    segments: withCauses(withSince(mergeEqual(states)), spans),
    deletedAt: deletion < 0 ? null : endOf(known[deletion]!, false),
    firstSourceAt: ordered[0]!.sourceAt,
    lastSourceAt: ordered.at(-1)!.sourceAt,
  }
}

/** The first event that is known may say what its change replaced: that held until then. */
function withStateBefore(ordered: SubscriptionVersion[]): SubscriptionVersion[] {
  const { before, ...first } = ordered[0]!
  return before ? [{ ...first, ...before }, ...ordered] : ordered
}

/** Who the customer is and where they came from is taken from the nearest version that says so. */
function completed(versions: SubscriptionVersion[]): SubscriptionVersion[] {
  const filled = versions.map(version => ({ ...version }))
  for (const field of ['customer', 'customerName', 'customerEmail', 'acquisition'] as const) {
    let last: SubscriptionVersion = filled.find(version => version[field] !== null) ?? filled[0]!
    for (const version of filled) {
      if (version[field] === null) Object.assign(version, { [field]: last[field] })
      else last = version
    }
  }
  for (const [i, version] of filled.entries()) {
    const last = filled[i - 1]
    if (version.itemsUntold && last) Object.assign(version, { items: last.items, discounts: last.discounts })
  }
  const end = filled.at(-1)!
  const before = filled.at(-2)
  if (end.change === 'deleted' && end.items.length === 0 && before) {
    // a deletion that carries only the id says that it ended, not that it never had items
    Object.assign(end, { items: before.items, discounts: before.discounts })
    end.currency ??= before.currency
    end.startedAt ??= before.startedAt
  }
  const first = filled[0]!.sourceAt
  for (const version of filled) version.startedAt ??= first
  return filled
}

/**
 * The first version holds from the start of the subscription, later ones from their own time, an end that lies
 * before its version from that end on.
 */
function holdsFrom(version: SubscriptionVersion, first: boolean): Instant {
  const earliest = first ? version.startedAt : endOf(version, first)
  return earliest === null ? version.sourceAt : Math.min(earliest, version.sourceAt)
}

/**
 * When the subscription is over, as far as this version tells. On a first one that says only "canceled", the date
 * it was to cancel or the date of the request stands in: there is no earlier version to say how long it ran.
 */
function endOf(version: SubscriptionVersion, first: boolean): Instant | null {
  if (version.endedAt !== null) return version.endedAt
  if (version.change === 'deleted') return version.sourceAt
  if (!first || version.status !== 'canceled') return null
  const cancelAt = scheduledEnd(version)
  return cancelAt !== null && cancelAt <= version.sourceAt ? cancelAt : version.canceledAt
}

function statesOf(spans: Span<SubscriptionVersion>[], policy: Policy): Segment[] {
  const segments: Segment[] = []
  let standing = firstStanding(spans[0] !== undefined && isPausedAfterPaying(spans[0]))
  for (const span of spans) {
    const linesAt = linesOf(span.version)
    const starts = startsOf(span)
    for (let i = 0; i < starts.length; i++) {
      const at = starts[i]!
      const status = statusAt(span, at)
      const next = standingAt(standing, status, at, policy)
      standing = next.standing
      const ends = next.ruling === null ? graceEnd(standing, policy) : null
      const until = starts[i + 1] ?? span.to
      if (ends !== null && ends > at && (until === null || ends < until)) starts.splice(i + 1, 0, ends)
      segments.push(stateAt(span, { at, to: starts[i + 1] ?? span.to, status, ruling: next.ruling }, linesAt))
    }
  }
  return segments
}

/** A trial that ended without a way to pay is paused too. */
function isPausedAfterPaying({ version }: Span<SubscriptionVersion>): boolean {
  const { status, trialEnd, currentPeriodStart } = version
  return status === 'paused' && (trialEnd === null || (currentPeriodStart ?? trialEnd) > trialEnd)
}

/** When something takes effect by itself while a version holds, its beginning included. */
function startsOf(span: Span<SubscriptionVersion>): Instant[] {
  const { version, from, to } = span
  const changes = [
    version.startedAt,
    endOf(version, span.first),
    scheduledEnd(version),
    span.first ? version.trialEnd : null,
    span.first ? version.canceledAt : null,
    version.resumesAt ?? null,
    ...discountChanges(version),
  ]
  const within = changes.filter(at => at !== null && at > from && (to === null || at < to)) as Instant[]
  return [...new Set([from, ...within])].sort((a, b) => a - b)
}

/** An end that its source puts into the future is a cancellation that was scheduled. */
function scheduledEnd(version: SubscriptionVersion): Instant | null {
  if (version.endedAt !== null && version.endedAt > version.sourceAt) return version.endedAt
  return version.cancelAt ?? (version.cancelAtPeriodEnd ? version.currentPeriodEnd : null)
}

function statusAt({ version, first }: Span<SubscriptionVersion>, at: Instant): SubscriptionStatus {
  const end = endOf(version, first)
  const over = version.status === 'canceled' || version.change === 'deleted'
  if (end === null ? over : at >= end)
    return version.status === 'incomplete_expired' ? version.status : 'canceled'
  const cancelsAt = scheduledEnd(version)
  if (!over && cancelsAt !== null && at >= cancelsAt) return 'canceled'
  if (first && wasInTrial(version, over, at)) return 'trialing'
  if (version.status === 'paused' && version.resumesAt != null && at >= version.resumesAt) return 'active'
  return version.status === 'canceled' || (over && version.status === 'unknown') ? 'active' : version.status
}

/** Before its source spoke, a subscription that has left its trial since was in it until then. */
function wasInTrial(version: SubscriptionVersion, over: boolean, at: Instant): boolean {
  if (version.trialEnd === null || at >= version.trialEnd) return false
  const billed = version.status === 'active' || version.status === 'past_due'
  return over || (billed && version.trialEnd <= version.sourceAt)
}

type Moment = { at: Instant; to: Instant | null; status: SubscriptionStatus; ruling: Ruling | null }

function stateAt(
  span: Span<SubscriptionVersion>,
  { at, to, status, ruling }: Moment,
  linesAt: LinesAt,
): Segment {
  const { version } = span
  const items = itemStates({ ...version, status, ruling }, at, linesAt)
  const requestedBy = span.first ? version.canceledAt : null
  const planned = version.cancelAtPeriodEnd || scheduledEnd(version) !== null
  const isOver = status === 'canceled' || status === 'incomplete_expired'
  const isRunning = !isOver && !version.testMode
  const cancelling = isRunning && planned && (requestedBy === null || at >= requestedBy)
  const cancelsAt = cancelling ? scheduledEnd(version) : null
  const mrr = totalMrr(items)
  return {
    subscriptionId: version.id,
    from: at,
    to,
    account: version.customer ?? version.customerEmail ?? version.id,
    customer: version.customer,
    customerName: version.customerName,
    customerEmail: version.customerEmail,
    status,
    currency: version.currency,
    mrr,
    committedMrr: cancelling ? 0 : mrr,
    items: items.map(item => ({ ...item, since: null })),
    startedAt: version.startedAt ?? at,
    trialEnd: version.trialEnd,
    currentPeriodStart: version.currentPeriodStart,
    currentPeriodEnd: version.currentPeriodEnd,
    cancelling,
    cancelsAt,
    cancelRequestedAt: cancelling || isOver ? version.canceledAt : null,
    cancellationReason: cancelling || isOver ? version.cancellationReason : null,
    collectionMethod: version.collectionMethod,
    acquisition: version.acquisition,
    ...(version.country !== undefined && { country: version.country }),
    ...(version.testMode && { testMode: true as const }),
    ...cautionsOf(version),
    cycles: version.testMode
      ? []
      : chargeCycles(version, status, at, earlier(cancelsAt, endOf(version, span.first)), linesAt),
  }
}

/** What a report is to warn of. */
function cautionsOf(version: SubscriptionVersion): { cautions?: Caution[] } {
  const cautions: Caution[] = [
    ...(version.itemsIncomplete ? ['items_incomplete' as const] : []),
    ...(version.inclusiveTaxUnknown ? ['inclusive_tax_unknown' as const] : []),
  ]
  return cautions.length > 0 && !version.testMode ? { cautions } : {}
}

function earlier(a: Instant | null, b: Instant | null): Instant | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}

/** Where MRR changed: why, and by which event. What takes effect by itself is by the event that foretold it. */
function withCauses(segments: Segment[], spans: Span<SubscriptionVersion>[]): Segment[] {
  const ends = new Set(spans.flatMap(({ version }) => discountEnds(version)))
  let s = 0
  for (const [i, segment] of segments.entries()) {
    while (spans[s + 1] && spans[s + 1]!.from <= segment.from) s++
    const before = segments[i - 1]
    if ((before?.mrr ?? 0) === segment.mrr) continue
    segment.cause = before ? causeOf(before, segment, segment.from, ends) : 'other'
    const { eventId } = spans[s]!.version
    if (eventId !== undefined) segment.eventId = eventId
  }
  return segments
}

function withSince(segments: Segment[]): Segment[] {
  let before = new Map<string | null, SegmentItem>()
  for (const segment of segments) {
    for (const item of segment.items) {
      if (item.reason === null) continue
      const same = before.get(item.id)
      item.since = same?.reason === item.reason ? same.since : segment.from
    }
    before = new Map(segment.items.map(item => [item.id, item]))
  }
  return segments
}
