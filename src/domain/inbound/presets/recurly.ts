import { type Preset, readString, wholeBody } from '../preset.ts'
import { hexBytes, verifyWithTime } from '../signatures.ts'

/** `<unix ms>,<hex>[,<hex>]` over "<unix ms>." + body; several signatures for a day after the secret was regenerated. */
export const recurly: Preset = {
  name: 'recurly',
  keepHeaders: [],
  verify(request) {
    const header = request.headers['recurly-signature']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    const [timestamp = '', ...signatures] = header.split(',').map(part => part.trim())
    return verifyWithTime(request, {
      timestamp,
      content: [`${timestamp}.`, request.body],
      keys: request.secrets.map(secret => Buffer.from(secret)),
      given: signatures.flatMap(text => hexBytes(text) ?? []),
      format: 'recurly',
    })
  },
  eventType(_headers, body) {
    const object = readString(body.object_type)
    const event = readString(body.event_type)
    return object && event && `${object}.${event}`
  },
  // `id` identifies the object: the event id adds the event type and time
  eventId(_headers, body) {
    const id = readString(body.id) ?? readString(body.uuid)
    const parts = [id, readString(body.object_type), readString(body.event_type), readString(body.event_time)]
    return id === null ? null : parts.filter(part => part !== null).join('/')
  },
  occurredAt: body => body.event_time,
  subject: wholeBody,
}
