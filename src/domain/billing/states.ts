/** What a subscription is while one version of it holds, with what takes effect by itself meanwhile. */

import { chargeCycles } from './charges.ts'
import { itemStates, totalMrr } from './mrr.ts'
import type { Policy } from './policy.ts'
import { discountChanges, type LinesAt, linesOf } from './pricing.ts'
import type { Caution, Segment } from './segments.ts'
import type { Span } from './spans.ts'
import { graceEnd, type Ruling, type Standing, standingAt } from './standing.ts'
import type { Instant, SubscriptionStatus, SubscriptionVersion } from './types.ts'

/**
 * The first version holds from the start of the subscription, later ones from their own time, an end that lies
 * before its version from that end on.
 */
export function holdsFrom(version: SubscriptionVersion, first: boolean): Instant {
  const earliest = first ? version.startedAt : endOf(version, first)
  return earliest === null ? version.sourceAt : Math.min(earliest, version.sourceAt)
}

/**
 * When the subscription is over, as far as this version tells. On a first one that says only "canceled", the date
 * it was to cancel or the date of the request stands in: there is no earlier version to say how long it ran.
 */
export function endOf(version: SubscriptionVersion, first: boolean): Instant | null {
  if (version.endedAt !== null) return version.endedAt
  if (version.change === 'deleted') return version.sourceAt
  if (!first || version.status !== 'canceled') return null
  const cancelAt = scheduledEnd(version)
  return cancelAt !== null && cancelAt <= version.sourceAt ? cancelAt : version.canceledAt
}

/** The states of one span, the first of them after `before`; and how the subscription stands at its end. */
export function statesOf(
  span: Span<SubscriptionVersion>,
  before: Standing,
  policy: Policy,
): { states: Segment[]; standing: Standing } {
  const states: Segment[] = []
  const linesAt = linesOf(span.version)
  const starts = startsOf(span)
  let standing = before
  for (let i = 0; i < starts.length; i++) {
    const at = starts[i]!
    const status = statusAt(span, at)
    const next = standingAt(standing, status, at, policy)
    standing = next.standing
    const ends = next.ruling === null ? graceEnd(standing, policy) : null
    const until = starts[i + 1] ?? span.to
    if (ends !== null && ends > at && (until === null || ends < until)) starts.splice(i + 1, 0, ends)
    states.push(stateAt(span, { at, to: starts[i + 1] ?? span.to, status, ruling: next.ruling }, linesAt))
  }
  return { states, standing }
}

/** A trial that ended without a way to pay is paused too. */
export function isPausedAfterPaying({ status, trialEnd, currentPeriodStart }: SubscriptionVersion): boolean {
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
