import { hash, randomBytes } from 'node:crypto'

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

export function newPublicId(prefix: 'key' | 'src' | 'dst'): string {
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
