import { type Preset, readString, wholeBody } from '../preset.ts'
import { base64Bytes, verifyPlain } from '../signatures.ts'

/** Lago with HMAC signatures. Its default, a JWT, is not supported and therefore rejected. */
export const lago: Preset = {
  name: 'lago',
  keepHeaders: ['x-lago-unique-key'],
  verify(request) {
    const header = request.headers['x-lago-signature']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    return verifyPlain(request, header, base64Bytes, 'lago')
  },
  eventType: (_headers, body) => readString(body.webhook_type),
  eventId: headers => readString(headers['x-lago-unique-key']),
  subject: wholeBody,
}
