/** The raw body as sent or received, never parsed and serialized again. */
export type WebhookBody = string | Uint8Array | ArrayBuffer

export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

const SIGNATURE_HEADER = 'x-service-signature'
const ALGORITHM = { name: 'HMAC', hash: 'SHA-256' }

/** The value of x-service-signature for a request to Kontor. `timestamp` (default now): a Date, or Unix seconds. */
export async function signWebhook(request: {
  secret: string
  body: WebhookBody
  timestamp?: Date | number
}): Promise<string> {
  const { secret, body, timestamp = new Date() } = request
  const seconds = Math.floor(timestamp instanceof Date ? timestamp.getTime() / 1_000 : timestamp)
  const key = await hmacKey(toBytes(named(secret)), 'sign')
  const signature = await crypto.subtle.sign(ALGORITHM, key, signed(`${seconds}.`, body))
  const hex = Array.from(new Uint8Array(signature), byte => byte.toString(16).padStart(2, '0')).join('')
  return `t=${seconds},v1=${hex}`
}

/**
 * Whether a request was signed with the secret (or one of several, during a rotation) and its timestamp is within `toleranceS`
 * (default 300) of now. Supports Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`), which Kontor sends, and
 * `t=…,v1=…` in x-service-signature.
 */
export async function verifyWebhook(request: {
  secret: string | readonly string[]
  body: WebhookBody
  headers: WebhookHeaders
  toleranceS?: number
  /** The header with `t=…,v1=…`. Default: x-service-signature. */
  signatureHeader?: string
}): Promise<boolean> {
  const { secret, body, headers, toleranceS = 300, signatureHeader = SIGNATURE_HEADER } = request
  const secrets = [secret].flat().map(named)
  const claim = standardClaim(headers) ?? timestampedClaim(readHeader(headers, signatureHeader))
  if (!claim || !/^\d{1,12}$/.test(claim.timestamp)) return false
  const content = signed(claim.prefix, body)
  let isSigned = false
  for (const one of secrets) {
    const bytes = claim.isStandard ? decodedSecret(one) : toBytes(one)
    if (!bytes?.length) continue
    const key = await hmacKey(bytes, 'verify')
    for (const signature of claim.signatures) {
      // compares in constant time
      if (await crypto.subtle.verify(ALGORITHM, key, signature, content)) isSigned = true
    }
  }
  return isSigned && Math.abs(Date.now() / 1_000 - Number(claim.timestamp)) <= toleranceS
}

type Bytes = Uint8Array<ArrayBuffer>

type Claim = { isStandard: boolean; timestamp: string; prefix: string; signatures: Bytes[] }

function standardClaim(headers: WebhookHeaders): Claim | null {
  const id = readHeader(headers, 'webhook-id')
  const timestamp = readHeader(headers, 'webhook-timestamp')
  const value = readHeader(headers, 'webhook-signature')
  if (!id || !timestamp || !value) return null
  const signatures = value.split(' ').flatMap(part => (part.startsWith('v1,') ? (fromBase64(part.slice(3)) ?? []) : []))
  return { isStandard: true, timestamp, prefix: `${id}.${timestamp}.`, signatures }
}

function timestampedClaim(value: string | null): Claim | null {
  const parts = (value ?? '').split(',').map(part => part.trim().split('=', 2))
  const [timestamp, ...more] = parts.flatMap(([name, text]) => (name === 't' ? (text ?? '') : []))
  if (timestamp === undefined || more.length > 0) return null
  const signatures = parts.flatMap(([name, text]) => (name === 'v1' ? (fromHex(text ?? '') ?? []) : []))
  return { isStandard: false, timestamp, prefix: `${timestamp}.`, signatures }
}

function readHeader(headers: WebhookHeaders, name: string): string | null {
  if (typeof headers.get === 'function') return headers.get(name)?.trim() ?? null
  const wanted = name.toLowerCase()
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === wanted)?.[1]
  return found === undefined ? null : String(found).trim()
}

/** An unset environment variable must not be used as a secret. */
function named(secret: string): string {
  if (typeof secret !== 'string' || secret === '') throw new TypeError('secret must be a non-empty string.')
  return secret
}

/** For Standard Webhooks, the key is base64, usually with the prefix whsec_. Otherwise, the whole string is the key. */
function decodedSecret(secret: string): Bytes | null {
  return fromBase64(secret.startsWith('whsec_') ? secret.slice(6) : secret)
}

function hmacKey(bytes: Bytes, use: 'sign' | 'verify') {
  return crypto.subtle.importKey('raw', bytes, ALGORITHM, false, [use])
}

function signed(prefix: string, body: WebhookBody): Bytes {
  const [start, rest] = [toBytes(prefix), toBytes(body)]
  const all = new Uint8Array(start.length + rest.length)
  all.set(start)
  all.set(rest, start.length)
  return all
}

function toBytes(body: WebhookBody): Bytes {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  if (body instanceof Uint8Array) return Uint8Array.from(body)
  if (body instanceof ArrayBuffer) return new Uint8Array(body)
  throw new TypeError('body must be the raw body: a string, a Uint8Array or an ArrayBuffer.')
}

function fromHex(text: string): Bytes | null {
  if (!/^[0-9a-f]{64}$/i.test(text)) return null
  return Uint8Array.from(text.match(/../g)!, pair => Number.parseInt(pair, 16))
}

function fromBase64(text: string): Bytes | null {
  try {
    return Uint8Array.from(atob(text), character => character.charCodeAt(0))
  } catch {
    return null
  }
}
