import { type Preset, textOf, wholeBody } from '../preset.ts'
import { verifyTimestamped } from '../signatures.ts'

export const stripe: Preset = {
  name: 'stripe',
  keepHeaders: [],
  verify: request => verifyTimestamped({ ...request, header: request.headers['stripe-signature'] }, 'stripe'),
  eventType: (_headers, body) => textOf(body.type),
  eventId: (_headers, body) => textOf(body.id),
  subject: wholeBody,
}
