/**
 * The history of one subscription. It is derived again from all versions whenever one is added, so a late version corrects
 * the past. If no new version concerns the time before a checkpoint, the derivation continues from there.
 */

import { isDeepStrictEqual } from 'node:util'
import { DAY_MS } from '../time.ts'
import { type Cause, findCause } from './cause.ts'
import { orderSubscriptions } from './order.ts'
import { DEFAULT_POLICY, type Policy } from './policy.ts'
import {
  type ChargeCycle,
  type CountDecision,
  chargeCycles,
  createLinePricer,
  discountChanges,
  discountEnds,
  type ItemState,
  itemStates,
  type LinesAt,
  totalMrr,
} from './price.ts'
import { type KnownTerms, NO_TERMS, resolveTerms } from './terms.ts'
import type { Acquisition, Instant, Item, ReasonCode, SubscriptionStatus, SubscriptionVersion } from './types.ts'

/** A period in which nothing about the subscription changed. `to` is exclusive; null: open-ended. */
export type Segment = {
  subscriptionId: string
  from: Instant
  to: Instant | null
  /** The account the MRR belongs to: `ownAccount`, or the one that it is merged into. */
  account: string
  customer: string | null
  customerName: string | null
  customerEmail: string | null
  status: SubscriptionStatus
  currency: string | null
  mrr: number
  /** MRR, or 0 if a cancellation is scheduled. */
  committedMrr: number
  /** Never empty: a subscription without items has one entry with id null. */
  items: SegmentItem[]
  /** The past or future start of the subscription. */
  startedAt: Instant
  trialEnd: Instant | null
  currentPeriodStart: Instant | null
  currentPeriodEnd: Instant | null
  /** True while a cancellation is scheduled. `cancelsAt` is null if its date is unknown. */
  cancelling: boolean
  cancelsAt: Instant | null
  cancelRequestedAt: Instant | null
  cancellationReason: string | null
  collectionMethod: string | null
  acquisition: Acquisition | null
  /** From its metadata. */
  country?: string
  metadata?: Record<string, string>
  /** The collection of payments is paused during the trial. */
  collectionPaused?: true
  /** Test data of the provider. */
  testMode?: true
  /** Why MRR differs from the previous segment, and the event behind it. Omitted if it does not differ. */
  cause?: Cause
  eventId?: string
  cautions?: Caution[]
  cycles: ChargeCycle[]
}

/** The account that the billing system names: the customer, else the e-mail address, else the subscription. */
export function ownAccount({
  customer,
  customerEmail,
  subscriptionId,
}: Pick<Segment, 'customer' | 'customerEmail' | 'subscriptionId'>): string {
  return customer ?? customerEmail ?? subscriptionId
}

/** The account of a segment, and the one before merging: its row knows the person of its events. */
export function ownAndTarget(segment: Segment): string[] {
  return [...new Set([segment.account, ownAccount(segment)])]
}

/** `since`: start of the uninterrupted exclusion for this reason; null for included items. */
export type SegmentItem = ItemState & { since: Instant | null }

export type Caution = 'items_incomplete' | 'inclusive_tax_unknown' | 'tax_mode_unknown' | 'id_of_two_customers'

export type DerivedSubscription = {
  id: string
  segments: Segment[]
  /** When the source deleted it. Later versions have no effect. */
  deletedAt: Instant | null
  firstSourceAt: Instant
  lastSourceAt: Instant
  /** Where the next derivation can continue; null: deriving everything is fast enough. */
  checkpoint: Checkpoint | null
}

/** A checkpoint, and the last stored segment before it. */
type Continuation = { checkpoint: Checkpoint; before: Segment }

/** `versions`: all versions of one subscription, at least one, in order of arrival; repeats are allowed. */
export function deriveSubscription(
  versions: SubscriptionVersion[],
  terms: KnownTerms = NO_TERMS,
  policy: Policy = DEFAULT_POLICY,
  sizes: CheckpointSizes = CHECKPOINT_SIZES,
): DerivedSubscription {
  const ordered = prependPreviousState(orderSubscriptions(versions)).map(version => resolveTerms(version, terms))
  return buildTimeline(ordered, policy, null, sizes)
}

/**
 * Derives from the versions since a checkpoint, in order of arrival. Returns the segments from `before` on, as a derivation
 * from all versions would. Null: a version concerns an earlier time.
 */
export function continueSubscription(
  continuation: Continuation,
  versions: SubscriptionVersion[],
  terms: KnownTerms = NO_TERMS,
  policy: Policy = DEFAULT_POLICY,
  sizes: CheckpointSizes = CHECKPOINT_SIZES,
): DerivedSubscription | null {
  const ordered = orderSubscriptions(versions).map(version => resolveTerms(version, terms))
  return canContinue(ordered, continuation) ? buildTimeline(ordered, policy, continuation, sizes) : null
}

/** Whether the checkpoint's version is still the first one, and no other version concerns that time or an earlier one. */
function canContinue(ordered: SubscriptionVersion[], { checkpoint, before }: Continuation): boolean {
  const [first, ...rest] = ordered
  if (first?.sourceAt !== checkpoint.at || first.change === 'deleted') return false
  if (holdsFrom(first, false) !== checkpoint.at) return false
  if (rest.some(version => version.sourceAt <= checkpoint.at || holdsFrom(version, false) <= checkpoint.at))
    return false
  // a field that had no value before is also filled in for the past
  return FILLED_FIELDS.every(field => before[field] !== null || ordered.every(version => version[field] === null))
}

function buildTimeline(
  ordered: SubscriptionVersion[],
  policy: Policy,
  after: Continuation | null,
  sizes: CheckpointSizes,
): DerivedSubscription {
  const firstSourceAt = after?.checkpoint.firstSourceAt ?? ordered[0]!.sourceAt
  const deletion = ordered.findIndex(version => version.change === 'deleted')
  const given = deletion < 0 ? ordered : ordered.slice(0, deletion + 1)
  const known = fillGaps(given, firstSourceAt, after?.before)
  const spans = buildSpans(known, after === null, holdsFrom)
  const begin = after?.checkpoint.billingState ?? initialBillingState(isPausedAfterPaying(spans[0]!.version))
  const { states, billingStates } = buildStates(spans, begin, policy)
  const earlierEnds = after?.checkpoint.discountEnds ?? []
  const ends = new Set([...earlierEnds, ...spans.flatMap(announcedDiscountEnds)])
  const merged = mergeEqual(after ? [withoutDerivedFields(after), ...states] : states)
  const hadMrr = after?.checkpoint.hadMrr ?? false
  const segments = withCauses(withSince(merged, after?.before), spans, ends, after?.before, hadMrr)
  return {
    id: ordered[0]!.id,
    segments,
    deletedAt: deletion < 0 ? null : findEnd(known[deletion]!, false),
    firstSourceAt,
    lastSourceAt: ordered.at(-1)!.sourceAt,
    checkpoint: findCheckpoint(
      { given, known, spans, billingStates, earlierEnds, firstSourceAt, isFirst: after === null, segments, hadMrr },
      sizes,
    ),
  }
}

/** The first known event may contain previous values. They were valid until then. */
function prependPreviousState(ordered: SubscriptionVersion[]): SubscriptionVersion[] {
  const { before, ...first } = ordered[0]!
  return before ? [{ ...first, ...before }, ...ordered] : ordered
}

/** Versions without these fields take them from the nearest version that has them. */
const FILLED_FIELDS = ['customer', 'customerName', 'customerEmail', 'acquisition'] as const

/** Copies the customer and the acquisition source from the nearest version that has them. */
function fillGaps(
  versions: SubscriptionVersion[],
  firstSourceAt: Instant,
  before: Segment | undefined,
): SubscriptionVersion[] {
  const filled = versions.map(version => ({ ...version }))
  for (const field of FILLED_FIELDS) {
    const given = before?.[field] != null ? before : filled.find(version => version[field] !== null)
    let last = (given ?? filled[0]!)[field]
    for (const version of filled) {
      if (version[field] === null) Object.assign(version, { [field]: last })
      else last = version[field]
    }
  }
  for (const [i, version] of filled.entries()) {
    const last = filled[i - 1]
    if (version.itemsUnchanged && last)
      Object.assign(version, {
        items: last.items,
        discounts: last.discounts,
        currency: version.currency ?? last.currency,
      })
  }
  const end = filled.at(-1)!
  const previous = filled.at(-2)
  if (end.change === 'deleted' && end.items.length === 0 && previous) {
    // a deletion event may contain only the id: the items stay as they were
    Object.assign(end, { items: previous.items, discounts: previous.discounts })
    end.currency ??= previous.currency
    end.startedAt ??= previous.startedAt
  }
  for (const version of filled) version.startedAt ??= firstSourceAt
  return filled
}

/** With the billing state right before each span. */
function buildStates(
  spans: Span<SubscriptionVersion>[],
  begin: BillingState,
  policy: Policy,
): { states: Segment[]; billingStates: BillingState[] } {
  const states: Segment[] = []
  const billingStates = [begin]
  for (const span of spans) {
    const { states: own, billingState } = buildSpanStates(span, billingStates.at(-1)!, policy)
    states.push(...own)
    billingStates.push(billingState)
  }
  return { states, billingStates }
}

/** Ends of discounts that were still running when their version took effect. */
function announcedDiscountEnds({ version, from }: Span<SubscriptionVersion>): Instant[] {
  return discountEnds(version).filter(end => end >= from)
}

/** The segment before a checkpoint, cut at the checkpoint, without the fields that depend on its neighbors. */
function withoutDerivedFields({ checkpoint, before }: Continuation): Segment {
  const { cause: _cause, eventId: _event, cautions, ...segment } = before
  // this caution is added to all segments at the end
  const own = cautions?.filter(caution => caution !== 'id_of_two_customers') ?? []
  const { cycles, ...rest } = segment
  return {
    ...rest,
    to: checkpoint.at,
    items: segment.items.map(item => ({ ...item, since: null })),
    ...(own.length > 0 && { cautions: own }),
    cycles,
  }
}

/**
 * Adds the cause and the event to segments with another MRR than the previous one. A scheduled change has the event that
 * announced it. `before`: the stored first segment.
 */
function withCauses(
  segments: Segment[],
  spans: Span<SubscriptionVersion>[],
  discountEnds: Set<Instant>,
  before: Segment | undefined,
  hadMrr: boolean,
): Segment[] {
  let s = 0
  for (const [i, segment] of segments.entries()) {
    if (before && i === 0) {
      if (before.cause !== undefined) segment.cause = before.cause
      if (before.eventId !== undefined) segment.eventId = before.eventId
      continue
    }
    while (spans[s + 1] && spans[s + 1]!.from <= segment.from) s++
    const last = segments[i - 1]
    if ((last?.mrr ?? 0) === segment.mrr) continue
    segment.cause = findSegmentCause(segments, i, discountEnds, hadMrr)
    const { eventId } = spans[s]!.version
    if (eventId !== undefined) segment.eventId = eventId
  }
  return segments
}

/** The first MRR of a subscription is a new subscription, unless a trial, a pause or a discount ended. */
function findSegmentCause(segments: Segment[], i: number, discountEnds: Set<Instant>, hadMrr: boolean): Cause {
  const segment = segments[i]!
  const last = segments[i - 1]
  const cause = last ? findCause(last, segment, segment.from, discountEnds) : 'other'
  const isFirst = !hadMrr && segments.slice(0, i).every(({ mrr }) => mrr === 0)
  return cause === 'other' && isFirst ? 'new_subscription' : cause
}

function withSince(segments: Segment[], before: Segment | undefined): Segment[] {
  let last = new Map<string | null, SegmentItem>()
  for (const [i, segment] of segments.entries()) {
    for (const [n, item] of segment.items.entries()) {
      if (item.reason === null) continue
      const same = last.get(item.id)
      if (before && i === 0) item.since = before.items[n]!.since
      else item.since = same?.reason === item.reason ? same.since : segment.from
    }
    last = new Map(segment.items.map(item => [item.id, item]))
  }
  return segments
}

// The states of a subscription while one version is valid, including scheduled changes.

/**
 * The first version is valid from the start of the subscription, later ones from their own time. A version with an end in
 * the past is valid from that end.
 */
function holdsFrom(version: SubscriptionVersion, first: boolean): Instant {
  const earliest = first ? version.startedAt : findEnd(version, first)
  return earliest === null ? version.sourceAt : Math.min(earliest, version.sourceAt)
}

/**
 * When the subscription ended according to this version. If the first version is canceled and has no end, the scheduled
 * cancellation date or the date of the request is used, because no earlier version shows how long it ran.
 */
function findEnd(version: SubscriptionVersion, first: boolean): Instant | null {
  if (version.endedAt !== null) return version.endedAt
  if (version.change === 'deleted') return version.sourceAt
  if (!first || version.status !== 'canceled') return null
  const cancelAt = scheduledEnd(version)
  return cancelAt !== null && cancelAt <= version.sourceAt ? cancelAt : version.canceledAt
}

/** The states of one span after `before`, and the billing state at its end. */
function buildSpanStates(
  span: Span<SubscriptionVersion>,
  before: BillingState,
  policy: Policy,
): { states: Segment[]; billingState: BillingState } {
  const states: Segment[] = []
  const linesAt = createLinePricer(span.version)
  const starts = listStarts(span)
  let billingState = before
  for (let i = 0; i < starts.length; i++) {
    const at = starts[i]!
    const status = statusAt(span, at)
    const next = nextBillingState(billingState, status, at, policy)
    billingState = next.billingState
    const ends = next.countDecision === null ? graceEnd(billingState, policy) : null
    const until = starts[i + 1] ?? span.to
    if (ends !== null && ends > at && (until === null || ends < until)) starts.splice(i + 1, 0, ends)
    states.push(stateAt(span, { at, to: starts[i + 1] ?? span.to, status, countDecision: next.countDecision }, linesAt))
  }
  return { states, billingState }
}

/** Stripe also pauses a trial that ends without a payment method. */
function isPausedAfterPaying({ status, trialEnd, currentPeriodStart }: SubscriptionVersion): boolean {
  return status === 'paused' && (trialEnd === null || (currentPeriodStart ?? trialEnd) > trialEnd)
}

/** The start of the span and the times of scheduled changes within it. */
function listStarts(span: Span<SubscriptionVersion>): Instant[] {
  const { version, from, to } = span
  const changes = [
    version.startedAt,
    findEnd(version, span.first),
    scheduledEnd(version),
    span.first ? version.trialEnd : null,
    span.first ? version.canceledAt : null,
    version.resumesAt ?? null,
    ...discountChanges(version),
  ]
  const within = changes.filter(at => at !== null && at > from && (to === null || at < to)) as Instant[]
  return [...new Set([from, ...within])].sort((a, b) => a - b)
}

/** An `endedAt` in the future is a scheduled cancellation. */
function scheduledEnd(version: SubscriptionVersion): Instant | null {
  if (version.endedAt !== null && version.endedAt > version.sourceAt) return version.endedAt
  return version.cancelAt ?? (version.cancelAtPeriodEnd ? version.currentPeriodEnd : null)
}

function statusAt({ version, first }: Span<SubscriptionVersion>, at: Instant): SubscriptionStatus {
  const end = findEnd(version, first)
  const over = version.status === 'canceled' || version.change === 'deleted'
  if (end === null ? over : at >= end) return version.status === 'incomplete_expired' ? version.status : 'canceled'
  const cancelsAt = scheduledEnd(version)
  if (!over && cancelsAt !== null && at >= cancelsAt) return 'canceled'
  if (first && wasInTrial(version, over, at)) return 'trialing'
  if (version.status === 'paused' && version.resumesAt != null && at >= version.resumesAt) return 'active'
  return version.status === 'canceled' || (over && version.status === 'unknown') ? 'active' : version.status
}

/** Before its first version, a subscription that has left its trial was in trial until `trialEnd`. */
function wasInTrial(version: SubscriptionVersion, over: boolean, at: Instant): boolean {
  if (version.trialEnd === null || at >= version.trialEnd) return false
  const billed = version.status === 'active' || version.status === 'past_due'
  return over || (billed && version.trialEnd <= version.sourceAt)
}

type Moment = { at: Instant; to: Instant | null; status: SubscriptionStatus; countDecision: CountDecision | null }

function stateAt(
  span: Span<SubscriptionVersion>,
  { at, to, status, countDecision }: Moment,
  linesAt: LinesAt,
): Segment {
  const { version } = span
  const items = itemStates({ ...version, status, countDecision }, at, linesAt)
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
    account: ownAccount({ ...version, subscriptionId: version.id }),
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
    ...(version.metadata && { metadata: version.metadata }),
    ...(version.collectionPaused && status === 'trialing' && { collectionPaused: true as const }),
    ...(version.testMode && { testMode: true as const }),
    ...findCautions(version, items),
    cycles: version.testMode
      ? []
      : chargeCycles(version, status, at, earlier(cancelsAt, findEnd(version, span.first)), linesAt),
  }
}

/** Conditions that reports warn about. */
function findCautions(version: SubscriptionVersion, items: ItemState[]): { cautions?: Caution[] } {
  const counts = (mode: Item['taxMode']) => version.items.some((item, i) => item.taxMode === mode && items[i]!.mrr > 0)
  const cautions: Caution[] = [
    ...(version.itemsIncomplete ? ['items_incomplete' as const] : []),
    ...(counts('inclusive') ? ['inclusive_tax_unknown' as const] : []),
    ...(counts('unknown') ? ['tax_mode_unknown' as const] : []),
  ]
  return cautions.length > 0 && !version.testMode ? { cautions } : {}
}

function earlier(a: Instant | null, b: Instant | null): Instant | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}

// The policy decides whether a status counts. This depends on earlier statuses.

/** What the policy needs to know about earlier statuses. */
type BillingState = {
  /** Whether it counted when it was last neither paused nor in trial. */
  counted: boolean
  /** Start of the current uninterrupted past-due period. */
  pastDueSince: Instant | null
}

/** `isPausedAfterPaying`: the first known version is paused and may have been paid before. */
function initialBillingState(isPausedAfterPaying: boolean): BillingState {
  return { counted: isPausedAfterPaying, pastDueSince: null }
}

/** The billing state once the subscription has `status` from `at` on, and the policy's decision (null: the status decides). */
function nextBillingState(
  before: BillingState,
  status: SubscriptionStatus,
  at: Instant,
  policy: Policy,
): { billingState: BillingState; countDecision: CountDecision | null } {
  const { counted } = before
  switch (status) {
    case 'active':
      return { billingState: { counted: true, pastDueSince: null }, countDecision: null }
    case 'past_due': {
      const pastDueSince = before.pastDueSince ?? at
      const ends = graceEnd({ counted, pastDueSince }, policy)
      const isOver = ends !== null && at >= ends
      return { billingState: { counted: !isOver, pastDueSince }, countDecision: isOver ? 'past_due' : null }
    }
    case 'paused':
    case 'trialing': {
      const setting = status === 'paused' ? policy.pause : policy.trialOnPaying
      return {
        billingState: { counted, pastDueSince: null },
        countDecision: counted && setting === 'keep' ? 'counts' : null,
      }
    }
    default:
      return { billingState: { counted: false, pastDueSince: null }, countDecision: null }
  }
}

/** When a past-due subscription stops counting. */
function graceEnd({ pastDueSince }: BillingState, { pastDueGraceDays }: Policy): Instant | null {
  return pastDueSince === null || pastDueGraceDays === null ? null : pastDueSince + pastDueGraceDays * DAY_MS
}

// From versions to periods of validity; also used for invoices.

/** A version and its period of validity. `first`: it also describes the time before its own event. */
export type Span<V> = { version: V; first: boolean; from: Instant; to: Instant | null }

/**
 * Spans without gaps or overlaps. For an earlier time, a later version replaces what was known before. `isWhole`: `ordered`
 * begins with the very first version.
 */
export function buildSpans<V>(
  ordered: V[],
  isWhole: boolean,
  fromOf: (version: V, first: boolean) => Instant,
): Span<V>[] {
  const spans: Span<V>[] = []
  let limit: Instant | null = null
  for (let i = ordered.length - 1; i >= 0; i--) {
    const version = ordered[i]!
    const first = isWhole && i === 0
    const from = fromOf(version, first)
    if (limit !== null && from >= limit) continue
    spans.push({ version, first, from, to: limit })
    limit = from
  }
  return spans.reverse()
}

/** Merges equal neighbors. */
export function mergeEqual<S extends { from: Instant; to: Instant | null }>(segments: S[]): S[] {
  const result: S[] = []
  for (const segment of segments) {
    const last = result.at(-1)
    if (last && isDeepStrictEqual({ ...last, from: 0, to: 0 }, { ...segment, from: 0, to: 0 })) last.to = segment.to
    else result.push(segment)
  }
  return result
}

// Checkpoints: adding a version to a subscription with many versions does not derive all of them again.

export type Checkpoint = {
  /** The time of the version to continue with. No other version has this time, and no later one concerns it. */
  at: Instant
  firstSourceAt: Instant
  /** Right before `at`. */
  billingState: BillingState
  /** Whether the subscription had MRR before `at`. */
  hadMrr: boolean
  /** Ends at `at` or later that earlier versions announced. */
  discountEnds: Instant[]
}

type Derivation = {
  /** The ordered versions as received, and with gaps filled. */
  given: SubscriptionVersion[]
  known: SubscriptionVersion[]
  spans: Span<SubscriptionVersion>[]
  /** Right before each span. */
  billingStates: BillingState[]
  /** Discount ends that earlier versions announced. */
  earlierEnds: Instant[]
  firstSourceAt: Instant
  /** Whether the versions begin with the very first one. */
  isFirst: boolean
  segments: Segment[]
  /** Whether it had MRR before the first of them. */
  hadMrr: boolean
}

type CheckpointSizes = {
  /** Fewer versions are derived faster than a checkpoint is stored. */
  minVersions: number
  /** Versions after a checkpoint: most late versions are not older than that. */
  keepVersions: number
}
export const CHECKPOINT_SIZES: CheckpointSizes = { minVersions: 200, keepVersions: 50 }

const MAX_ENDS = 100

/** The latest possible checkpoint that leaves `keepVersions` versions after it; null: there is none, or none is needed. */
function findCheckpoint(
  derivation: Derivation,
  { minVersions: least, keepVersions: kept }: CheckpointSizes,
): Checkpoint | null {
  const { known, spans } = derivation
  if (known.length < (derivation.isFirst ? least : 2 * kept)) return null
  const places = new Map(known.map((version, place) => [version, place]))
  const firstFilled = Math.max(...FILLED_FIELDS.map(field => findFirstPlace(derivation, field)))
  for (let s = spans.length - kept; s > 0; s--) {
    const place = places.get(spans[s]!.version)!
    if (place <= firstFilled) return null
    if (places.get(spans[s - 1]!.version) === place - 1 && isOnlyVersionAt(known, place, spans[s]!))
      return checkpointAt(derivation, s)
  }
  return null
}

/** The first version with this field; -1: an earlier one, or none. */
function findFirstPlace({ given, known, isFirst }: Derivation, field: (typeof FILLED_FIELDS)[number]): number {
  return isFirst || known[0]![field] === null ? given.findIndex(version => version[field] !== null) : -1
}

/** It is valid from its own time on, and no other version has that time. */
function isOnlyVersionAt(
  known: SubscriptionVersion[],
  place: number,
  { version, from }: Span<SubscriptionVersion>,
): boolean {
  const { sourceAt, change } = version
  const [last, next] = [known[place - 1]!, known[place + 1]]
  return from === sourceAt && change !== 'deleted' && last.sourceAt < sourceAt && (!next || next.sourceAt > sourceAt)
}

function checkpointAt(derivation: Derivation, s: number): Checkpoint | null {
  const { spans, billingStates, earlierEnds, firstSourceAt, segments } = derivation
  const at = spans[s]!.from
  const hadMrr = derivation.hadMrr || segments.some(({ from, mrr }) => from < at && mrr > 0)
  const announced = spans.slice(0, s).flatMap(({ version }) => discountEnds(version))
  const ends = new Set([...earlierEnds, ...announced].filter(end => end >= at))
  if (ends.size > MAX_ENDS) return null
  return { at, firstSourceAt, billingState: billingStates[s]!, hadMrr, discountEnds: [...ends] }
}

// Periods in which nothing about an item's share of MRR changed.

export type ItemRange = {
  place: number
  from: Instant
  to: Instant | null
  currency: string | null
  itemId: string | null
  reason: ReasonCode | null
  excludedMrr: number | null
  /** Start of the exclusion; for an included item, start of the subscription. */
  since: Instant
  startedAt: Instant
}

export function itemRanges(segments: Segment[]): ItemRange[] {
  const rows = segments.flatMap(segment =>
    segment.items.map(
      (item, place): ItemRange => ({
        place,
        from: segment.from,
        to: segment.to,
        currency: segment.currency,
        itemId: item.id,
        reason: item.reason,
        excludedMrr: item.excludedMrr,
        since: item.since ?? segment.startedAt,
        startedAt: segment.startedAt,
      }),
    ),
  )
  return [...Map.groupBy(rows, row => row.place).values()].flatMap(mergeAdjacent)
}

/** Merges only ranges without a gap: a place can be empty for some time. */
function mergeAdjacent(rows: ItemRange[]): ItemRange[] {
  const runs: ItemRange[][] = []
  for (const row of rows) {
    const run = runs.at(-1)
    if (run && run.at(-1)!.to === row.from) run.push(row)
    else runs.push([row])
  }
  return runs.flatMap(mergeEqual)
}
