import { isObject } from '../../json/json.ts'
import { type Preset, readString, wholeBody } from '../preset.ts'
import { verifyCredential } from '../signatures.ts'

/** RevenueCat does not sign. It sends the Authorization header configured in its dashboard. */
export const revenuecat: Preset = {
  name: 'revenuecat',
  keepHeaders: [],
  authorizes: true,
  verify: ({ headers, secrets }) => verifyCredential(headers.authorization?.trim(), secrets, 'revenuecat'),
  eventType: (_headers, body) => readString(isObject(body.event) ? body.event.type : null),
  eventId: (_headers, body) => readString(isObject(body.event) ? body.event.id : null),
  occurredAt: body => (isObject(body.event) ? body.event.event_timestamp_ms : null),
  subject: wholeBody,
  userId(body) {
    const id = readString(isObject(body.event) ? body.event.app_user_id : null)
    return id?.startsWith('$RCAnonymousID:') ? null : id
  },
}
