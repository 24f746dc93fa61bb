import { createHmac, timingSafeEqual } from 'node:crypto'

/** How a request was signed; it is kept in the event's meta. */
export type SignatureFormat =
  | 't,v1'
  | 'sha256'
  | 'hex'
  | 'base64'
  | 'stripe'
  | 'shopify'
  | 'github'
  | 'standard'

export type Verification =
  | { ok: true; format: SignatureFormat }
  | { ok: false; code: 'signature_missing' | 'signature_invalid' | 'signature_expired' }

export type SignedRequest = {
  /** The signature header's value. */
  header: string | undefined
  /** The bytes as they came over the wire (after decompression): never re-serialised JSON. */
  body: Buffer
  /** During a rotation two secrets are good. */
  secrets: readonly string[]
  now: Date
}

const SIGNATURE_TOLERANCE_S = 300

const MISSING = { ok: false, code: 'signature_missing' } as const
const INVALID = { ok: false, code: 'signature_invalid' } as const
const EXPIRED = { ok: false, code: 'signature_expired' } as const

/**
 * `t=<unix>,v1=<hex>[,v1=<hex>]` over "<t>." + body, or, unless a timestamp is required, `sha256=<hex>`, bare hex or
 * base64 over the body. The HMAC key is the whole secret as shown.
 */
export function verifySignature(request: SignedRequest & { requireTimestamped: boolean }): Verification {
  const header = request.header?.trim()
  if (!header) return MISSING
  if (/^(?:t|v1)=/.test(header)) return verifyTimestamped(request, 't,v1')
  if (request.requireTimestamped) return INVALID
  if (header.startsWith('sha256=')) return verifyPlain(request, header.slice(7), hexBytes, 'sha256')
  return header.length === 64
    ? verifyPlain(request, header, hexBytes, 'hex')
    : verifyPlain(request, header, base64Bytes, 'base64')
}

/** `t=<unix>,v1=<hex>[,v1=<hex>]`; other schemes in the list (Stripe's v0) are passed over. */
export function verifyTimestamped(request: SignedRequest, format: SignatureFormat): Verification {
  if (!request.header?.trim()) return MISSING
  let timestamp: string | null = null
  const given: Buffer[] = []
  for (const part of request.header.split(',')) {
    const [name, value = ''] = part.trim().split('=', 2) as [string, string?]
    if (name === 't') {
      if (timestamp !== null) return INVALID
      timestamp = value
    } else if (name === 'v1') {
      const bytes = hexBytes(value)
      if (bytes) given.push(bytes)
    }
  }
  if (timestamp === null) return INVALID
  return verifyWithTime(request, {
    timestamp,
    prefix: `${timestamp}.`,
    keys: request.secrets.map(secret => Buffer.from(secret)),
    given,
    format,
  })
}

type TimedSignature = {
  timestamp: string
  /** What is signed before the body. */
  prefix: string
  keys: Buffer[]
  given: Buffer[]
  format: SignatureFormat
}

export function verifyWithTime(request: SignedRequest, signature: TimedSignature): Verification {
  if (!/^\d{1,12}$/.test(signature.timestamp)) return INVALID
  const valid = signature.keys.some(key => signs(key, [signature.prefix, request.body], signature.given))
  if (!valid) return INVALID
  // a timestamp from the future would keep a captured request good for as long as the sender likes
  const ageS = Math.abs(request.now.getTime() / 1000 - Number(signature.timestamp))
  return ageS > SIGNATURE_TOLERANCE_S ? EXPIRED : { ok: true, format: signature.format }
}

export function verifyPlain(
  request: SignedRequest,
  text: string,
  decode: (text: string) => Buffer | null,
  format: SignatureFormat,
): Verification {
  const given = decode(text)
  if (!given) return INVALID
  const valid = request.secrets.some(secret => signs(Buffer.from(secret), [request.body], [given]))
  return valid ? { ok: true, format } : INVALID
}

/** An empty key, as an undecodable secret would give, signs nothing: anybody has it. */
function signs(key: Buffer, content: (string | Buffer)[], given: readonly Buffer[]): boolean {
  if (key.length === 0 || given.length === 0) return false
  const hmac = createHmac('sha256', key)
  for (const part of content) hmac.update(part)
  const expected = hmac.digest()
  let found = false
  for (const candidate of given) found = timingSafeEqual(expected, candidate) || found
  return found
}

/** The 32 bytes of a SHA-256 in hex, or null. */
export function hexBytes(text: string): Buffer | null {
  return /^[0-9a-fA-F]{64}$/.test(text) ? Buffer.from(text, 'hex') : null
}

/** The 32 bytes of a SHA-256 in base64, or null; only the one canonical spelling of them. */
export function base64Bytes(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === 32 && bytes.toString('base64') === text ? bytes : null
}
