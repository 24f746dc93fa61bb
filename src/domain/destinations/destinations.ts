import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { HOUR_MS, MINUTE_MS } from '../time.ts'

/** What a destination can be sent. */
export const WHATS = ['events', 'conversions', 'records', 'movements', 'alerts'] as const
export type What = (typeof WHATS)[number]

export type Wanted = {
  what: readonly What[]
  /** Exact names or `prefix*`; none: all of them. Of events only. */
  eventTypes: readonly string[]
}

/** Whether a destination wants a message of this type (`event.page_view`, `order.updated`, …). */
export function isWanted({ what, eventTypes }: Wanted, message: { what: What; type: string }): boolean {
  if (!what.includes(message.what)) return false
  if (message.what !== 'events' || eventTypes.length === 0) return true
  const eventType = message.type.slice('event.'.length)
  return eventTypes.some(wanted =>
    wanted.endsWith('*') ? eventType.startsWith(wanted.slice(0, -1)) : eventType === wanted,
  )
}

/** After each attempt that failed. Ten attempts in two and a half days. */
const RETRY_AFTER_MS = [
  5_000,
  MINUTE_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
]
const MAX_RETRY_AFTER_MS = 24 * HOUR_MS
// A receiver that comes back is not met by all that waited in one instant.
const JITTER = 0.2

/**
 * How long to wait after so many attempts; null: it was the last one. What the receiver asked for is waited at least, up to a
 * day. `random`: from 0 to 1.
 */
export function retryDelayMs(
  attempts: number,
  { retryAfterMs = 0, random }: { retryAfterMs?: number | undefined; random: number },
): number | null {
  const delay = RETRY_AFTER_MS[attempts - 1]
  if (delay === undefined) return null
  return Math.max(Math.round(delay * (1 + JITTER * random)), Math.min(retryAfterMs, MAX_RETRY_AFTER_MS))
}

/** The header's value: seconds, or a date. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value) * 1_000
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

/** So long after the first of an unbroken row of failures a destination is disabled. */
export const DISABLED_AFTER_MS = 5 * 24 * HOUR_MS

/** How the id of a message stands in its body and in the header webhook-id. */
export function messageId(id: string): string {
  return `msg_${id}`
}

/**
 * What a destination's secret signs with: as Standard Webhooks say, what follows whsec_ is base64. Made once for many messages:
 * making it anew took half the time of a signature.
 */
export function signingKey(secret: string): KeyObject {
  return createSecretKey(secret.replace(/^whsec_/, ''), 'base64')
}

/** The headers of a delivery. While secrets are being rotated it is signed with each of them. */
export function signedHeaders(
  keys: readonly KeyObject[],
  { id, timestampS, body }: { id: string; timestampS: number; body: string },
): { 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string } {
  const content = `${id}.${timestampS}.${body}`
  const signatures = keys.map(key => `v1,${createHmac('sha256', key).update(content).digest('base64')}`)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': signatures.join(' '),
  }
}
