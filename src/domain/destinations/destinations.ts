import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { Rule } from '../alerts/rules.ts'
import { HOUR_MS, MINUTE_MS } from '../time.ts'
import { isMailUrl } from './addresses.ts'

/** What a destination can receive. */
export const WHATS = ['events', 'conversions', 'records', 'movements', 'alerts', 'digests'] as const
export type What = (typeof WHATS)[number]

/** `webhook`: signed JSON. `slack`: an incoming webhook of Slack or a compatible service. `email`: a mailto: URL. */
export const DESTINATION_TYPES = ['webhook', 'slack', 'email'] as const
export type DestinationType = (typeof DESTINATION_TYPES)[number]

/** What people can read. The other messages are for programs. */
export const READABLE_WHATS: readonly What[] = ['alerts', 'digests']

/** The type of a destination whose type is not given. */
export function defaultType(url: string): DestinationType {
  return isMailUrl(url) ? 'email' : 'webhook'
}

export type Wanted = {
  what: readonly What[]
  /** Exact names or `prefix*`. Empty: all. Applies to events only. */
  eventTypes: readonly string[]
  /** Empty: all. Applies to alerts only. */
  alertRules: readonly Rule[]
}

/** Whether a destination wants a message of this type (`event.page_view`, `order.updated`, …). */
export function isWanted(
  { what, eventTypes, alertRules }: Wanted,
  message: { what: What; type: string; rule?: Rule },
): boolean {
  if (!what.includes(message.what)) return false
  if (message.rule !== undefined && alertRules.length > 0) return alertRules.includes(message.rule)
  if (message.what !== 'events' || eventTypes.length === 0) return true
  const eventType = message.type.slice('event.'.length)
  return eventTypes.some(wanted =>
    wanted.endsWith('*') ? eventType.startsWith(wanted.slice(0, -1)) : eventType === wanted,
  )
}

/** The delay after each failed attempt. Ten attempts in two and a half days. */
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
// Spreads the retries, so that a recovered receiver does not get all of them at once.
const JITTER = 0.2

/**
 * The delay after this many attempts. Null: it was the last one. The delay is at least what the receiver asked for, up to
 * one day. `random`: from 0 to 1.
 */
export function retryDelayMs(
  attempts: number,
  { retryAfterMs = 0, random }: { retryAfterMs?: number | undefined; random: number },
): number | null {
  const delay = RETRY_AFTER_MS[attempts - 1]
  if (delay === undefined) return null
  return Math.max(Math.round(delay * (1 + JITTER * random)), Math.min(retryAfterMs, MAX_RETRY_AFTER_MS))
}

/** Parses the header Retry-After: seconds or a date. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined
  if (/^\s*\d+\s*$/.test(value)) return Number(value) * 1_000
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

/** A destination is disabled this long after the first of consecutive failures. */
export const DISABLED_AFTER_MS = 5 * 24 * HOUR_MS

/** The id of a message in its body and in the header webhook-id. */
export function messageId(id: string): string {
  return `msg_${id}`
}

/**
 * The signing key of a secret. By Standard Webhooks, the text after whsec_ is base64. Create it once for many messages:
 * creating it took half the time of a signature.
 */
export function signingKey(secret: string): KeyObject {
  return createSecretKey(secret.replace(/^whsec_/, ''), 'base64')
}

/** The headers of a delivery. During a rotation of secrets it is signed with each of them. */
export function signedHeaders(
  keys: readonly KeyObject[],
  { id, timestampS, body }: { id: string; timestampS: number; body: string },
): { 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string } {
  const content = `${id}.${timestampS}.${body}`
  const signatures = keys.map(key => `v1,${createHmac('sha256', key).update(content).digest('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': String(timestampS), 'webhook-signature': signatures.join(' ') }
}
