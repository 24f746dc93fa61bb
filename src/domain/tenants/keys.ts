import { hash, randomBytes } from 'node:crypto'
import { MAX_EVENT_TYPE_LENGTH } from '../events/types.ts'
import { SourceConfig } from '../inbound/source-config.ts'
import { Nullable } from '../shapes.ts'
import { type Static, Type } from '../typebox.ts'
import type { ValidationError } from '../validation-error.ts'

export const SCOPES = [
  'products:read',
  'products:write',
  'contacts:read',
  'contacts:write',
  'orders:read',
  'orders:write',
  'events:read',
  'conversions:read',
  'subscriptions:read',
] as const
export type Scope = (typeof SCOPES)[number]

export const KEY_KINDS = ['private', 'tracking', 'admin'] as const
export type KeyKind = (typeof KEY_KINDS)[number]

const PREFIX: Record<KeyKind, string> = { private: 'private-', tracking: 'trk_', admin: 'adm_' }

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 32 // 62^32 ≈ 2^190
const CHECKSUM_LENGTH = 6

export function newKey(kind: KeyKind): string {
  return withChecksum(PREFIX[kind] + randomText(RANDOM_LENGTH))
}

export function newToken(): string {
  return withChecksum(`tok_${randomText(RANDOM_LENGTH)}`)
}

export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

export function newPublicId(prefix: 'key' | 'src' | 'dst' | 'usr' | 'ses'): string {
  return `${prefix}_${randomText(16)}`
}

/** Null for an invalid key. The checksum detects it without a query. */
export function kindOfKey(key: string): KeyKind | null {
  for (const kind of KEY_KINDS) {
    const prefix = PREFIX[kind]
    if (key.startsWith(prefix)) {
      const isWhole = key.length === prefix.length + RANDOM_LENGTH + CHECKSUM_LENGTH
      return isWhole && withChecksum(key.slice(0, -CHECKSUM_LENGTH)) === key ? kind : null
    }
  }
  return null
}

/** The stored form of a key or token. It has at least 160 random bits, so a plain hash is sufficient. */
export function hashOfSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer')
}

/** The last four characters, to distinguish secrets. Of a short secret they would reveal too much. */
export function hintOf(secret: string): string {
  return secret.length < 20 ? '…' : `…${secret.slice(-4)}`
}

function withChecksum(body: string): string {
  let sum = hash('sha256', body, 'buffer').readUIntBE(0, 6)
  let text = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text += ALPHABET[sum % 62]
    sum = Math.floor(sum / 62)
  }
  return body + text
}

function randomText(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // 248 = 4 × 62. Larger bytes would make some letters more likely.
      if (byte < 248 && text.length < length) text += ALPHABET[byte % 62]
    }
  }
  return text
}

/** Roles of admin keys. Each role includes the permissions of the previous ones. */
export const ROLES = ['viewer', 'operator', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** For descriptions of roles. */
export const ROLE_RIGHTS =
  'viewers can read; operators can also replay dead letters, send test events, and enable or disable sources and destinations; admins can do everything'

export function hasRole(role: Role, needed: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** A user with this value in the role claim gets this role, for one tenant (by id or name) or for all. */
export type RoleMapping = { value: string; role: Role; tenant: string | null }

/** Limits of a tracking key. The key is visible in every visitor's browser, so the limits bound the harm that a copy can do. */
export const KeyLimits = Type.Object({
  origins: Type.Array(Type.String({ maxLength: 300 }), {
    maxItems: 100,
    description: 'Origins of the pages that may use the key, for example https://shop.example; empty: all',
  }),
  event_types: Type.Array(Type.String({ minLength: 1, maxLength: MAX_EVENT_TYPE_LENGTH }), {
    maxItems: 1_000,
    description: 'Event types that the key may send; empty: all',
  }),
  rate_limit: Nullable(SourceConfig.properties.rate_limit),
})
export type KeyLimits = Static<typeof KeyLimits>

export const NO_LIMITS: KeyLimits = { origins: [], event_types: [], rate_limit: null }

/** Checks that the schema cannot express. */
export function validateLimits({ origins = [] }: Partial<KeyLimits>): ValidationError[] {
  return origins.flatMap((origin, index) =>
    isOrigin(origin)
      ? []
      : [{ pointer: `/origins/${index}`, message: 'must be an origin, for example https://shop.example' }],
  )
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text.toLowerCase()
}

/** A request without an Origin header is not from a browser, or is from the page's own host. */
export function allowsOrigin({ origins }: KeyLimits, origin: string | undefined): boolean {
  if (origins.length === 0 || origin === undefined) return true
  const sent = origin.toLowerCase()
  return origins.some(allowed => allowed.toLowerCase() === sent)
}
