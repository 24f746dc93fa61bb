import { isObject } from '../../json/json.ts'
import { type Preset, textOf, wholeBody } from '../preset.ts'
import { verifyCredential } from '../signatures.ts'

/** RevenueCat signs nothing: it sends the Authorization header that its dashboard was given. */
export const revenuecat: Preset = {
  name: 'revenuecat',
  keepHeaders: [],
  authorizes: true,
  verify: ({ headers, secrets }) => verifyCredential(headers.authorization?.trim(), secrets, 'revenuecat'),
  eventType: (_headers, body) => textOf(isObject(body.event) ? body.event.type : null),
  eventId: (_headers, body) => textOf(isObject(body.event) ? body.event.id : null),
  occurredAt: body => (isObject(body.event) ? body.event.event_timestamp_ms : null),
  subject: wholeBody,
  userId(body) {
    const id = textOf(isObject(body.event) ? body.event.app_user_id : null)
    return id?.startsWith('$RCAnonymousID:') ? null : id
  },
}
