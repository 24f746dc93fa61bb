/** RevenueCat tells what happened in an app store, not what a subscription is: one event, one step of its life. */

import { type Fields, readInstant, readObject, readText } from '../../billing/fields.ts'
import { parseDecimal } from '../../money.ts'
import { DAY_MS } from '../../time.ts'
import type { Adapter, Told } from '../adapter.ts'

/** Known, and nothing to the ledger. A change of product takes effect with the renewal that follows. */
const SILENT = new Set([
  ...['TEST', 'TRANSFER', 'SUBSCRIBER_ALIAS', 'PRODUCT_CHANGE', 'TEMPORARY_ENTITLEMENT_GRANT'],
  ...['SUBSCRIPTION_PAUSED', 'INVOICE_ISSUANCE', 'VIRTUAL_CURRENCY_TRANSACTION', 'EXPERIMENT_ENROLLMENT'],
])

export const revenuecat: Adapter = {
  recognizes: body => typeof readObject(body.event)?.type === 'string',
  eventType: body => String(readObject(body.event)?.type),
  tell({ eventType, body }) {
    const event = readObject(body.event) ?? {}
    // what is bought in a store's sandbox is no money
    if (event.environment === 'SANDBOX' || SILENT.has(eventType)) return []
    const id = readText(event.original_transaction_id)
    if (id === null) return null
    const tell = TELLERS[eventType]
    return tell ? tell(id, event) : null
  },
}

const TELLERS: Record<string, (id: string, event: Fields) => Told[]> = {
  INITIAL_PURCHASE: (id, event) => [
    stepOf(id, event, { ...boughtOf(event), started_at: event.purchased_at_ms }),
    ...paidOf(event, id),
  ],
  RENEWAL: (id, event) => [stepOf(id, event, boughtOf(event)), ...paidOf(event, id)],
  NON_RENEWING_PURCHASE: (_id, event) => paidOf(event, null),
  CANCELLATION: canceled,
  UNCANCELLATION: (id, event) => [stepOf(id, event, { ...unchanged(event), status: 'active' })],
  SUBSCRIPTION_EXTENDED: (id, event) => [stepOf(id, event, { ...unchanged(event), status: 'active' })],
  BILLING_ISSUE: (id, event) => [stepOf(id, event, { ...unchanged(event), status: 'past_due' })],
  EXPIRATION: expired,
}

function stepOf(id: string, event: Fields, more: Fields): Told {
  return {
    type: 'subscription.updated',
    payload: {
      id,
      customer: event.original_app_user_id ?? event.app_user_id,
      customer_email: readObject(readObject(event.subscriber_attributes)?.$email)?.value,
      currency: event.currency,
      current_period_start: event.purchased_at_ms,
      current_period_end: event.expiration_at_ms,
      updated_at: event.event_timestamp_ms,
      metadata: { country: event.country_code },
      ...more,
    },
  }
}

/** Only purchases say what they cost; elsewhere the price is 0, and that of before holds. */
function unchanged({ period_type }: Fields): Fields {
  return { items_unchanged: true, ...(period_type === 'TRIAL' && { status: 'trialing' }) }
}

function boughtOf(event: Fields): Fields {
  const isTrial = event.period_type === 'TRIAL'
  return {
    status: isTrial ? 'trialing' : 'active',
    ...(isTrial && { trial_end: event.expiration_at_ms }),
    items: [
      {
        price_id: event.product_id,
        product_id: event.product_id,
        name: event.product_id,
        quantity: 1,
        // of a trial neither the price is told nor how long a period will be
        ...(!isTrial && { unit_amount: event.price_in_purchased_currency, ...termOf(event) }),
      },
    ],
  }
}

/** How long stores make a week, a month, a year: what a period costs is told, and how long it lasts only by its ends. */
const TERMS: [fromDays: number, toDays: number, interval: string, count: number][] = [
  [27, 32, 'month', 1],
  [58, 63, 'month', 2],
  [88, 93, 'month', 3],
  [180, 185, 'month', 6],
  [363, 367, 'year', 1],
]

function termOf({ purchased_at_ms, expiration_at_ms }: Fields): Fields {
  const from = readInstant(purchased_at_ms)
  const to = readInstant(expiration_at_ms)
  const days = from === null || to === null ? 0 : Math.round((to - from) / DAY_MS)
  if (days < 1) return {}
  const known = TERMS.find(([least, most]) => days >= least && days <= most)
  if (known) return { interval: known[2], interval_count: known[3] }
  return days % 7 === 0
    ? { interval: 'week', interval_count: days / 7 }
    : { interval: 'day', interval_count: days }
}

function paidOf(event: Fields, subscription: string | null): Told[] {
  const price = event.price_in_purchased_currency
  const id = readText(event.transaction_id)
  if (id === null || !((parseDecimal(price)?.digits ?? 0n) > 0n)) return []
  const { currency, purchased_at_ms: at } = event
  return [
    {
      type: 'invoice.paid',
      payload: {
        ...{ id, subscription, customer: event.original_app_user_id ?? event.app_user_id, currency },
        ...{ status: 'paid', total: price, amount_due: price, amount_paid: price },
        ...{ finalized_at: at, paid_at: at, updated_at: event.event_timestamp_ms },
      },
    },
  ]
}

/** It goes on until its period ends, unless the money went back: then it has ended. */
function canceled(id: string, event: Fields): Told[] {
  const at = event.event_timestamp_ms
  if (event.cancel_reason === 'BILLING_ERROR')
    return [stepOf(id, event, { ...unchanged(event), status: 'past_due' })]
  const price = parseDecimal(event.price_in_purchased_currency)
  const isRefund = event.cancel_reason === 'CUSTOMER_SUPPORT' || (price !== null && price.digits < 0n)
  if (!isRefund) {
    const ends = {
      cancel_at: event.expiration_at_ms,
      canceled_at: at,
      cancellation_reason: event.cancel_reason,
    }
    return [stepOf(id, event, { status: 'active', ...unchanged(event), ...ends })]
  }
  const ended = {
    status: 'canceled',
    canceled_at: at,
    ended_at: at,
    cancellation_reason: event.cancel_reason,
  }
  const refunded = price !== null && price.digits < 0n
  return [
    stepOf(id, event, { ...unchanged(event), ...ended }),
    ...(refunded
      ? [
          {
            type: 'refund.created',
            payload: {
              ...{
                id: `refund ${event.transaction_id}`,
                invoice: event.transaction_id,
                currency: event.currency,
              },
              ...{
                amount: String(event.price_in_purchased_currency).replace('-', ''),
                created_at: at,
                updated_at: at,
              },
            },
          },
        ]
      : []),
  ]
}

function expired(id: string, event: Fields): Told[] {
  const at = event.expiration_at_ms ?? event.event_timestamp_ms
  if (event.expiration_reason === 'SUBSCRIPTION_PAUSED')
    return [stepOf(id, event, { ...unchanged(event), status: 'paused', resumes_at: event.auto_resume_at_ms })]
  const reason = event.expiration_reason === 'BILLING_ERROR' ? 'payment_failed' : event.expiration_reason
  return [
    stepOf(id, event, {
      ...{
        ...unchanged(event),
        status: 'canceled',
        ended_at: at,
        canceled_at: at,
        cancellation_reason: reason,
      },
    }),
  ]
}
