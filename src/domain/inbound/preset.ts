import type { JsonObject } from '../json/json.ts'
import type { SignedRequest, Verification } from './signatures.ts'
import type { CustomSignature } from './source-config.ts'

/** Request headers by lower-case name. */
export type Headers = Readonly<Record<string, string | undefined>>

export const PRESET_NAMES = [
  ...(['stripe', 'shopify', 'github', 'standard-webhooks', 'woocommerce', 'paddle', 'chargebee'] as const),
  ...(['recurly', 'lago', 'revenuecat', 'custom'] as const),
] as const
export type PresetName = (typeof PRESET_NAMES)[number]

/** `custom`: the source setting for the preset `custom`. */
export type PresetRequest = Omit<SignedRequest, 'header'> & {
  headers: Headers
  custom?: CustomSignature | null
}

/** How a provider signs its requests, and where they contain the event type and the event id. */
export type Preset = {
  name: PresetName
  /** Headers to store with the event, for `eventType` and `eventId`; never a signature. */
  keepHeaders: readonly string[]
  verify(request: PresetRequest): Verification
  /** The Authorization header contains the signing secret itself, not a Kontor token. */
  authorizes?: true
  /** The expected format, if the secret does not have it; null: valid. */
  checkSecret?(secret: string): string | null
  /** Null: the event is in Kontor's format. */
  eventType(headers: Headers, body: JsonObject): string | null
  eventId(headers: Headers, body: JsonObject): string | null
  /** Events of this provider have no id. */
  withoutIds?: true
  /**
   * Why the body cannot belong to the event type; null: it can. Shopify, WooCommerce and GitHub sign the body, but not
   * the header with the event type, so someone with a signed order could send it as `orders/delete`. Only bodies that
   * clearly contradict the type are rejected, because providers add types and fields.
   */
  contradiction?(headers: Headers, body: JsonObject): string | null
  /** The business object in the body. */
  subject(body: JsonObject): JsonObject
  /** The time of the event (ISO 8601 or Unix time), if it is not in `occurred_at`. */
  occurredAt?(body: JsonObject): unknown
  /** The buyer's user id, if `user_id` in the body belongs to another person. */
  userId?(body: JsonObject): string | null
  /** Whether the body is an unsigned connection test, which is answered and not stored. */
  isPing?(body: Buffer): boolean
}

export function readString(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null
}

/** The same for an id, which may be a number. */
export function readIdString(value: unknown): string | null {
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : readString(value)
}

export function wholeBody(body: JsonObject): JsonObject {
  return body
}
