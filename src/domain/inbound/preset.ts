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

/** `custom`: the setting of that name, for the preset of that name. */
export type PresetRequest = Omit<SignedRequest, 'header'> & {
  headers: Headers
  custom?: CustomSignature | null
}

/** What a provider does in its own way: how it signs, and where it says what happened and under which id. */
export type Preset = {
  name: PresetName
  /** Headers that must be kept with the event for `eventType` and `eventId`; never a signature. */
  keepHeaders: readonly string[]
  verify(request: PresetRequest): Verification
  /** The Authorization header holds the signing secret itself, not a token of ours. */
  authorizes?: true
  /** What is wrong with a secret that is not used as it stands; null where it is good. */
  secretFault?(secret: string): string | null
  /** Null: the event is in our own shape. */
  eventType(headers: Headers, body: JsonObject): string | null
  eventId(headers: Headers, body: JsonObject): string | null
  /** Its events have no id of their own. */
  withoutIds?: true
  /** Where the type is not signed: why the body cannot be of it, or null. */
  contradiction?(headers: Headers, body: JsonObject): string | null
  /** The business object inside the body. */
  subject(body: JsonObject): JsonObject
  /** When it happened, as ISO 8601 or Unix time, where that stands elsewhere than in `occurred_at`. */
  occurredAt?(body: JsonObject): unknown
  /** The buyer's user id, where `user_id` in the body is somebody else's. */
  userId?(body: JsonObject): string | null
  /** An unsigned request that only asks whether somebody is there. It is answered, and that is all. */
  isPing?(body: Buffer): boolean
}

export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null
}

/** The same of an id, which may be a number. */
export function idText(value: unknown): string | null {
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : textOf(value)
}

export function wholeBody(body: JsonObject): JsonObject {
  return body
}
