import { type Preset, readString, wholeBody } from '../preset.ts'
import { verifyCredential } from '../signatures.ts'

/** Chargebee does not sign. It sends a user name and a password. */
export const chargebee: Preset = {
  name: 'chargebee',
  keepHeaders: [],
  authorizes: true,
  checkSecret: secret => (/^[^:]+:./.test(secret) ? null : 'a user name and a password, as user:password'),
  verify({ headers, secrets }) {
    const basic = /^basic +(\S+)$/i.exec(headers.authorization?.trim() ?? '')?.[1]
    const shown = basic && Buffer.from(basic, 'base64').toString()
    return verifyCredential(headers.authorization && (shown ?? ''), secrets, 'chargebee')
  },
  eventType: (_headers, body) => readString(body.event_type),
  eventId: (_headers, body) => readString(body.id),
  occurredAt: body => body.occurred_at,
  subject: wholeBody,
}
