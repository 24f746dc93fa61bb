import { createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto'

/** The signature format, which is stored in the event's meta. */
export type SignatureFormat =
  | 't,v1'
  | 'sha256'
  | 'hex'
  | 'base64'
  | 'stripe'
  | 'shopify'
  | 'github'
  | 'standard'
  | 'woocommerce'
  | 'paddle'
  | 'chargebee'
  | 'recurly'
  | 'lago'
  | 'revenuecat'
  | 'custom'

export type Verification =
  | { ok: true; format: SignatureFormat }
  /** `detail`: replaces the general message. */
  | { ok: false; code: 'signature_missing' | 'signature_invalid' | 'signature_expired'; detail?: string }

/** A signing secret as displayed, and the HMAC key that it stands for. */
export type SigningSecret = { text: string; key: KeyObject }

/** Prepare a secret once for many requests: creating a key takes several times as long as a signature. */
export function signingSecret(text: string, keyBytes: (text: string) => Buffer = Buffer.from): SigningSecret {
  return { text, key: createSecretKey(keyBytes(text)) }
}

export type SignedRequest = {
  /** The signature header's value. */
  header: string | undefined
  /** The bytes as received, after decompression; never re-serialized JSON. */
  body: Buffer
  /** During a rotation two secrets are valid. */
  secrets: readonly SigningSecret[]
  now: Date
}

const SIGNATURE_TOLERANCE_S = 300

export const MISSING_SIGNATURE = { ok: false, code: 'signature_missing' } as const
export const INVALID_SIGNATURE = { ok: false, code: 'signature_invalid' } as const
const EXPIRED = { ok: false, code: 'signature_expired' } as const

/**
 * `t=<unix>,v1=<hex>[,v1=<hex>]` over "<t>." + body, or, unless a timestamp is required, `sha256=<hex>`, plain hex or
 * base64 over the body.
 */
export function verifySignature(request: SignedRequest & { requireTimestamped: boolean }): Verification {
  const header = request.header?.trim()
  if (!header) return MISSING_SIGNATURE
  if (/^(?:t|v1)=/.test(header)) return verifyTimestamped(request, 't,v1')
  if (request.requireTimestamped) return INVALID_SIGNATURE
  if (header.startsWith('sha256=')) return verifyPlain(request, header.slice(7), hexBytes, 'sha256')
  return header.length === 64
    ? verifyPlain(request, header, hexBytes, 'hex')
    : verifyPlain(request, header, base64Bytes, 'base64')
}

/** `t=<unix>,v1=<hex>[,v1=<hex>]`; other schemes in the list (Stripe's v0) are skipped. */
export function verifyTimestamped(request: SignedRequest, format: SignatureFormat): Verification {
  if (!request.header?.trim()) return MISSING_SIGNATURE
  let timestamp: string | null = null
  const given: Buffer[] = []
  for (const part of request.header.split(',')) {
    const [name, value = ''] = part.trim().split('=', 2) as [string, string?]
    if (name === 't') {
      if (timestamp !== null) return INVALID_SIGNATURE
      timestamp = value
    } else if (name === 'v1') {
      const bytes = hexBytes(value)
      if (bytes) given.push(bytes)
    }
  }
  if (timestamp === null) return INVALID_SIGNATURE
  return verifyWithTime(request, { timestamp, content: [`${timestamp}.`, request.body], given, format })
}

type TimedSignature = {
  /** Unix seconds, or milliseconds if it is too large for seconds. */
  timestamp: string
  /** The signed content. */
  content: (string | Buffer)[]
  given: Buffer[]
  format: SignatureFormat
  algorithm?: Algorithm
  toleranceS?: number
}

type Algorithm = 'sha256' | 'sha1' | 'sha512'

export function verifyWithTime(
  { now, secrets }: Pick<SignedRequest, 'now' | 'secrets'>,
  { timestamp, content, given, format, algorithm, toleranceS }: TimedSignature,
): Verification {
  if (!/^\d{1,13}$/.test(timestamp)) return INVALID_SIGNATURE
  if (!secrets.some(({ key }) => signs({ key, content, given, algorithm }))) return INVALID_SIGNATURE
  const seconds = timestamp.length > 11 ? Number(timestamp) / 1000 : Number(timestamp)
  // a timestamp in the future would make a captured request valid for longer than the tolerance
  const ageS = Math.abs(now.getTime() / 1000 - seconds)
  return ageS > (toleranceS ?? SIGNATURE_TOLERANCE_S) ? EXPIRED : { ok: true, format }
}

export function verifyPlain(
  request: Pick<SignedRequest, 'body' | 'secrets'>,
  text: string,
  decode: (text: string) => Buffer | null,
  format: SignatureFormat,
): Verification {
  const bytes = decode(text)
  if (!bytes) return INVALID_SIGNATURE
  const given = [bytes]
  const content = [request.body]
  const valid = request.secrets.some(({ key }) => signs({ key, content, given }))
  return valid ? { ok: true, format } : INVALID_SIGNATURE
}

/** For senders that send the secret itself. Hashes are compared because they have the same length. */
export function verifyCredential(
  shown: string | undefined,
  secrets: readonly SigningSecret[],
  format: SignatureFormat,
): Verification {
  if (shown === undefined) return MISSING_SIGNATURE
  const digest = hash('sha256', shown, 'buffer')
  let found = false
  for (const { text } of secrets) found = timingSafeEqual(hash('sha256', text, 'buffer'), digest) || found
  return found ? { ok: true, format } : INVALID_SIGNATURE
}

/** An empty key, from a secret that cannot be decoded, never matches: anyone could sign with it. */
export function signs({
  key,
  content,
  given,
  algorithm = 'sha256',
}: {
  key: KeyObject
  content: (string | Buffer)[]
  given: readonly Buffer[]
  algorithm?: Algorithm | undefined
}): boolean {
  if (key.symmetricKeySize === 0 || given.length === 0) return false
  const hmac = createHmac(algorithm, key)
  for (const part of content) hmac.update(part)
  const expected = hmac.digest()
  let found = false
  for (const candidate of given) found = timingSafeEqual(expected, candidate) || found
  return found
}

/** The 32 bytes of a SHA-256 in hex, or null. */
export function hexBytes(text: string): Buffer | null {
  return digestBytes(text, 'hex', 'sha256')
}

/** The 32 bytes of a SHA-256 in base64, or null. */
export function base64Bytes(text: string): Buffer | null {
  return digestBytes(text, 'base64', 'sha256')
}

const DIGEST_BYTES: Record<Algorithm, number> = { sha256: 32, sha1: 20, sha512: 64 }

/** The bytes of a digest, or null. Base64 must be in its canonical form. */
export function digestBytes(text: string, encoding: 'hex' | 'base64', algorithm: Algorithm): Buffer | null {
  const bytes = Buffer.from(text, encoding)
  if (bytes.length !== DIGEST_BYTES[algorithm]) return null
  const isSame = encoding === 'hex' ? text.length === 2 * bytes.length : bytes.toString('base64') === text
  return isSame ? bytes : null
}
