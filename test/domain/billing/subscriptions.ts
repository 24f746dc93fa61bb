import { readCanonical } from '../../../src/domain/billing/canonical.ts'
import { type DerivedSubscription, deriveSubscription, type Segment } from '../../../src/domain/billing/timeline.ts'
import type { Instant, SubscriptionVersion } from '../../../src/domain/billing/types.ts'

export const DAY = 86_400_000

export function at(iso: string): Instant {
  const ms = Date.parse(iso.length === 10 ? `${iso}T00:00:00Z` : iso)
  if (Number.isNaN(ms)) throw new Error(`not a time: ${iso}`)
  return ms
}

export type Payload = Record<string, unknown>

/** A monthly subscription of 2025 as a canonical payload; `changes` replaces fields. */
function payload(changes: Payload = {}): Payload {
  return {
    id: 'sub_1',
    customer: 'acme',
    status: 'active',
    currency: 'USD',
    started_at: '2025-01-01',
    updated_at: '2025-01-01',
    items: [item()],
    ...changes,
  }
}

export function item(changes: Payload = {}): Payload {
  return { id: 'si_1', unit_amount: 20, interval: 'month', interval_count: 1, ...changes }
}

export function version(changes: Payload = {}, eventType = 'subscription.updated'): SubscriptionVersion {
  const change = readCanonical(eventType, payload(changes), at('2025-06-01'))
  if (change?.kind !== 'subscription') throw new Error('not a subscription')
  return change.version
}

export function derive(...versions: SubscriptionVersion[]): DerivedSubscription {
  return deriveSubscription(versions)
}

export function segmentAt(segments: Segment[], instant: Instant): Segment | undefined {
  return segments.find(segment => segment.from <= instant && (segment.to === null || instant < segment.to))
}

export function mrrAt(segments: Segment[], instant: Instant): number {
  return segmentAt(segments, instant)?.mrr ?? 0
}

/** The MRR of a subscription on a day, in minor units. */
export function mrrOf(changes: Payload, day = '2025-03-01'): number {
  return mrrAt(derive(version(changes)).segments, at(day))
}

/** The reasons of a subscription's items on a day. */
export function reasonsOf(changes: Payload, day = '2025-03-01'): (string | null)[] {
  return segmentAt(derive(version(changes)).segments, at(day))!.items.map(entry => entry.reason)
}
