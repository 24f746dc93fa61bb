import { isObject, type JsonObject } from '../json/json.ts'
import {
  base64Bytes,
  hexBytes,
  type SignedRequest,
  type Verification,
  verifyPlain,
  verifyTimestamped,
  verifyWithTime,
} from './signatures.ts'
import { githubContradiction, shopifyContradiction } from './unsigned-names.ts'

/** Request headers by lower-case name. */
export type Headers = Readonly<Record<string, string | undefined>>

/** What a provider does in its own way: how it signs, and where it says what happened and under which id. */
export type Preset = {
  name: PresetName
  /** Headers that must be kept with the event for `eventType` and `eventId`; never a signature. */
  keepHeaders: readonly string[]
  verify(request: PresetRequest): Verification
  /** What is wrong with a secret that is not used as it stands; null where it is good. */
  secretFault?(secret: string): string | null
  eventType(headers: Headers, body: JsonObject): string | null
  eventId(headers: Headers, body: JsonObject): string | null
  /** Where the type is not signed: why the body cannot be of it, or null. */
  contradiction?(headers: Headers, body: JsonObject): string | null
  /** The business object inside the body. */
  subject(body: JsonObject): JsonObject
}

export type PresetName = 'stripe' | 'shopify' | 'github' | 'standard-webhooks'

type PresetRequest = Omit<SignedRequest, 'header'> & { headers: Headers }

const stripe: Preset = {
  name: 'stripe',
  keepHeaders: [],
  verify: request => verifyTimestamped({ ...request, header: request.headers['stripe-signature'] }, 'stripe'),
  eventType: (_headers, body) => textOf(body.type),
  eventId: (_headers, body) => textOf(body.id),
  subject: body => body,
}

const shopify: Preset = {
  name: 'shopify',
  keepHeaders: [
    'x-shopify-topic',
    'x-shopify-webhook-id',
    'x-shopify-event-id',
    'x-shopify-shop-domain',
    'x-shopify-triggered-at',
  ],
  verify(request) {
    const header = request.headers['x-shopify-hmac-sha256']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    return verifyPlain({ ...request, header }, header, base64Bytes, 'shopify')
  },
  eventType: headers => textOf(headers['x-shopify-topic']),
  // the webhook id stays the same when a delivery is repeated
  eventId: headers => textOf(headers['x-shopify-webhook-id']) ?? textOf(headers['x-shopify-event-id']),
  contradiction: (headers, body) => shopifyContradiction(textOf(headers['x-shopify-topic']) ?? '', body),
  subject: body => body,
}

const github: Preset = {
  name: 'github',
  keepHeaders: ['x-github-event', 'x-github-delivery'],
  verify(request) {
    const header = request.headers['x-hub-signature-256']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    if (!header.startsWith('sha256=')) return { ok: false, code: 'signature_invalid' }
    return verifyPlain({ ...request, header }, header.slice(7), hexBytes, 'github')
  },
  eventType(headers, body) {
    const event = textOf(headers['x-github-event'])
    const action = textOf(body.action)
    return event && action ? `${event}.${action}` : event
  },
  eventId: headers => textOf(headers['x-github-delivery']),
  contradiction: (headers, body) => githubContradiction(textOf(headers['x-github-event']) ?? '', body),
  subject: body => body,
}

const standardWebhooks: Preset = {
  name: 'standard-webhooks',
  keepHeaders: ['webhook-id', 'webhook-timestamp'],
  secretFault(secret) {
    const text = secret.replace(/^whsec_/, '')
    const isEncoded = /^[A-Za-z0-9+/]+={0,2}$/.test(text) && standardKey(secret).length >= 16
    return isEncoded ? null : 'base64 of at least 16 bytes (128 bits), with or without whsec_ in front'
  },
  verify(request) {
    const id = request.headers['webhook-id']?.trim()
    const timestamp = request.headers['webhook-timestamp']?.trim()
    const header = request.headers['webhook-signature']?.trim()
    if (!id || !timestamp || !header) return { ok: false, code: 'signature_missing' }
    const given: Buffer[] = []
    for (const part of header.split(' ')) {
      const bytes = part.startsWith('v1,') ? base64Bytes(part.slice(3)) : null
      if (bytes) given.push(bytes)
    }
    const keys = request.secrets.map(standardKey)
    const prefix = `${id}.${timestamp}.`
    return verifyWithTime({ ...request, header }, { timestamp, prefix, keys, given, format: 'standard' })
  },
  eventType: (_headers, body) => textOf(body.type) ?? textOf(body.event_type),
  eventId: headers => textOf(headers['webhook-id']),
  subject: body => (isObject(body.data) ? body.data : body),
}

const presets = new Map<string, Preset>(
  [stripe, shopify, github, standardWebhooks].map(preset => [preset.name, preset]),
)

export const PRESET_NAMES: readonly PresetName[] = [stripe, shopify, github, standardWebhooks].map(
  p => p.name,
)

export function presetNamed(name: string | null): Preset | null {
  return name === null ? null : (presets.get(name) ?? null)
}

/** Standard Webhooks secrets are the key in base64, usually behind `whsec_`. */
function standardKey(secret: string): Buffer {
  return Buffer.from(secret.startsWith('whsec_') ? secret.slice(6) : secret, 'base64')
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null
}
