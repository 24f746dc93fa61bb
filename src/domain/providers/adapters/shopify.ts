/** Shopify's subscription contracts. Their webhooks contain the customer and the interval, but no products or prices. */

import { readObject, readText } from '../../billing/fields.ts'
import type { Adapter } from '../adapter.ts'

export const shopify: Adapter = {
  recognizes: () => false,
  eventType: () => '',
  read({ eventType, body }) {
    if (/^subscription_billing_attempts\//.test(eventType)) return null
    if (!/^subscription_contracts\//.test(eventType)) return []
    const id = readText(body.id) ?? readText(body.admin_graphql_api_id)
    if (id === null) return null
    const { interval, interval_count } = readObject(body.billing_policy) ?? {}
    return [
      {
        type: eventType === 'subscription_contracts/create' ? 'subscription.created' : 'subscription.updated',
        payload: {
          id,
          customer: body.customer_id,
          status: body.status === 'failed' ? 'past_due' : body.status,
          currency: body.currency_code,
          metadata: { interval, interval_count },
          // without a price it appears among the exclusions (missing_items)
          items: [],
        },
      },
    ]
  },
}
