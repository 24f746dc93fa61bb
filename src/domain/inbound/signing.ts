import { createHmac, type Hmac } from 'node:crypto'
import type { PresetName } from './preset.ts'

export type Signing = {
  secret: string
  body: string
  at: Date
  /** The header of Kontor's own signature. */
  signatureHeader: string
  /** The delivery id, if the signature covers it. */
  id: string
}

type Sign = (signing: Signing) => Record<string, string>

const hmac = (secret: string | Buffer, ...parts: string[]): Hmac =>
  parts.reduce((mac, part) => mac.update(part), createHmac('sha256', secret))
const seconds = (at: Date) => String(Math.floor(at.getTime() / 1000))

/** The signature of each provider; null: only the source's settings describe it. */
const SIGNATURES: Record<PresetName, Sign | null> = {
  stripe: ({ secret, body, at }) => ({ 'stripe-signature': timestamped(secret, body, at) }),
  shopify: ({ secret, body }) => ({ 'x-shopify-hmac-sha256': hmac(secret, body).digest('base64') }),
  github: ({ secret, body }) => ({ 'x-hub-signature-256': `sha256=${hmac(secret, body).digest('hex')}` }),
  'standard-webhooks': ({ secret, body, at, id }) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
    const signature = hmac(key, `${id}.${seconds(at)}.`, body).digest('base64')
    return { 'webhook-id': id, 'webhook-timestamp': seconds(at), 'webhook-signature': `v1,${signature}` }
  },
  woocommerce: ({ secret, body }) => ({ 'x-wc-webhook-signature': hmac(secret, body).digest('base64') }),
  paddle: ({ secret, body, at }) => ({
    'paddle-signature': `ts=${seconds(at)};h1=${hmac(secret, `${seconds(at)}:`, body).digest('hex')}`,
  }),
  chargebee: ({ secret }) => ({ authorization: `Basic ${Buffer.from(secret).toString('base64')}` }),
  recurly: ({ secret, body, at }) => ({
    'recurly-signature': `${at.getTime()},${hmac(secret, `${at.getTime()}.`, body).digest('hex')}`,
  }),
  lago: ({ secret, body }) => ({ 'x-lago-signature': hmac(secret, body).digest('base64') }),
  revenuecat: ({ secret }) => ({ authorization: secret }),
  custom: null,
}

/** The signature headers of a sender with this secret; null: the preset does not define them. */
export function signedHeaders(preset: PresetName | null, signing: Signing): Record<string, string> | null {
  if (preset !== null) return SIGNATURES[preset]?.(signing) ?? null
  return { [signing.signatureHeader]: timestamped(signing.secret, signing.body, signing.at) }
}

function timestamped(secret: string, body: string, at: Date): string {
  return `t=${seconds(at)},v1=${hmac(secret, `${seconds(at)}.`, body).digest('hex')}`
}
