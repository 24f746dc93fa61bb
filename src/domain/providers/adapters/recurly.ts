/** Recurly's webhooks contain ids but no objects. Kontor only counts them; send the objects as canonical events. */

import { readText } from '../../billing/fields.ts'
import type { Adapter } from '../adapter.ts'

const BILLING = /^(subscription|invoice|charge_invoice|credit_invoice|payment|transaction|refund)\b/

export const recurly: Adapter = {
  recognizes: body =>
    typeof body.object_type === 'string' && typeof body.event_type === 'string' && readText(body.site_id) !== null,
  eventType: body => `${body.object_type}.${body.event_type}`,
  read: ({ eventType }) => (BILLING.test(eventType) ? null : []),
}
