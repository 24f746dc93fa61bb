import { isObject } from '../../json/json.ts'
import { type Preset, readString } from '../preset.ts'
import { base64Bytes, verifyWithTime } from '../signatures.ts'

export const standardWebhooks: Preset = {
  name: 'standard-webhooks',
  keepHeaders: ['webhook-id', 'webhook-timestamp'],
  checkSecret(secret) {
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
    const content = [`${id}.${timestamp}.`, request.body]
    return verifyWithTime(request, { timestamp, content, keys, given, format: 'standard' })
  },
  eventType: (_headers, body) => readString(body.type) ?? readString(body.event_type),
  eventId: headers => readString(headers['webhook-id']),
  subject: body => (isObject(body.data) ? body.data : body),
}

/** Standard Webhooks secrets are the key in base64, usually behind `whsec_`. */
function standardKey(secret: string): Buffer {
  return Buffer.from(secret.startsWith('whsec_') ? secret.slice(6) : secret, 'base64')
}
