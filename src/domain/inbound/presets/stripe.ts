import { type Preset, readString, wholeBody } from '../preset.ts'
import { verifyTimestamped } from '../signatures.ts'

export const stripe: Preset = {
  name: 'stripe',
  keepHeaders: [],
  verify: request => verifyTimestamped({ ...request, header: request.headers['stripe-signature'] }, 'stripe'),
  eventType: (_headers, body) => readString(body.type),
  eventId: (_headers, body) => readString(body.id),
  subject: wholeBody,
}
