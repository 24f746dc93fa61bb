import { type Preset, readString, wholeBody } from '../preset.ts'
import { hexBytes, verifyWithTime } from '../signatures.ts'

/** Paddle Billing: `ts=<unix>;h1=<hex>[;h1=<hex>]` over "<ts>:" + body; two while the secret is being rotated. */
export const paddle: Preset = {
  name: 'paddle',
  keepHeaders: [],
  verify(request) {
    const header = request.headers['paddle-signature']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    const parts = header.split(';').map(part => part.trim().split('=', 2) as [string, string?])
    const timestamps = parts.flatMap(([name, value = '']) => (name === 'ts' ? [value] : []))
    if (timestamps.length !== 1) return { ok: false, code: 'signature_invalid' }
    return verifyWithTime(request, {
      timestamp: timestamps[0]!,
      content: [`${timestamps[0]}:`, request.body],
      keys: request.secrets.map(secret => Buffer.from(secret)),
      given: parts.flatMap(([name, value = '']) => (name === 'h1' ? (hexBytes(value) ?? []) : [])),
      format: 'paddle',
    })
  },
  eventType: (_headers, body) => readString(body.event_type),
  // not the notification id: every destination and every replay has its own
  eventId: (_headers, body) => readString(body.event_id),
  subject: wholeBody,
}
