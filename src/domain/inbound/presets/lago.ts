import { type Preset, textOf, wholeBody } from '../preset.ts'
import { base64Bytes, verifyPlain } from '../signatures.ts'

/** Lago signs with HMAC where the endpoint was made so; its default, a JWT, is not verified and so refused. */
export const lago: Preset = {
  name: 'lago',
  keepHeaders: ['x-lago-unique-key'],
  verify(request) {
    const header = request.headers['x-lago-signature']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    return verifyPlain(request, header, base64Bytes, 'lago')
  },
  eventType: (_headers, body) => textOf(body.webhook_type),
  eventId: headers => textOf(headers['x-lago-unique-key']),
  subject: wholeBody,
}
