/** RevenueCat's events describe a change in an app store, not the state of the subscription. */

import { addIntervals } from '../../billing/calendar.ts'
import { type Fields, readInstant, readObject, readText } from '../../billing/fields.ts'
import { type Decimal, decimalText, multiplyDecimals, parseDecimal } from '../../money.ts'
import { DAY_MS } from '../../time.ts'
import type { Adapter, ProviderFact } from '../adapter.ts'

/** Events that do not affect the ledger. A change of product takes effect with the next renewal. */
const IGNORED_TYPES = new Set([
  ...['TEST', 'TRANSFER', 'SUBSCRIBER_ALIAS', 'PRODUCT_CHANGE', 'TEMPORARY_ENTITLEMENT_GRANT'],
  ...['SUBSCRIPTION_PAUSED', 'INVOICE_ISSUANCE', 'VIRTUAL_CURRENCY_TRANSACTION', 'EXPERIMENT_ENROLLMENT'],
])

export const revenuecat: Adapter = {
  recognizes: body => typeof readObject(body.event)?.type === 'string',
  eventType: body => String(readObject(body.event)?.type),
  read({ eventType, body }) {
    const event = readObject(body.event) ?? {}
    // sandbox purchases involve no money
    if (event.environment === 'SANDBOX' || IGNORED_TYPES.has(eventType)) return []
    const id = readText(event.original_transaction_id)
    if (id === null) return null
    const facts = READERS[eventType]?.(id, event) ?? null
    return OTHER_SYSTEMS.has(String(event.store)) ? facts && withoutMoney(facts) : facts
  },
}

/** Stores with webhooks of their own. RevenueCat repeats what they report. */
const OTHER_SYSTEMS = new Set(['STRIPE', 'PADDLE'])

/** The subscription is listed as excluded. */
function withoutMoney(facts: ProviderFact[]): ProviderFact[] {
  return facts.flatMap(fact =>
    'payload' in fact && fact.type.startsWith('subscription.')
      ? [{ ...fact, payload: { ...fact.payload, billed_elsewhere: true } }]
      : [],
  )
}

const READERS: Record<string, (id: string, event: Fields) => ProviderFact[]> = {
  INITIAL_PURCHASE: (id, event) => [
    toSubscription(id, event, { ...toPurchase(event), started_at: event.purchased_at_ms }),
    ...toInvoices(event, id),
  ],
  RENEWAL: (id, event) => [toSubscription(id, event, toPurchase(event)), ...toInvoices(event, id)],
  NON_RENEWING_PURCHASE: (_id, event) => toInvoices(event, null),
  CANCELLATION: toCancellation,
  UNCANCELLATION: (id, event) => [toSubscription(id, event, { status: 'active', ...unchanged(event) })],
  SUBSCRIPTION_EXTENDED: (id, event) => [toSubscription(id, event, { status: 'active', ...unchanged(event) })],
  BILLING_ISSUE: (id, event) => [toSubscription(id, event, { ...unchanged(event), status: 'past_due' })],
  EXPIRATION: toExpiration,
}

function toSubscription(id: string, event: Fields, more: Fields): ProviderFact {
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

/** Only purchases contain a price. In other events it is 0, and the previous price stays valid. */
function unchanged({ period_type, expiration_at_ms }: Fields): Fields {
  const isTrial = period_type === 'TRIAL'
  return { items_unchanged: true, ...(isTrial && { status: 'trialing', trial_end: expiration_at_ms }) }
}

function toPurchase(event: Fields): Fields {
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
        // a trial contains neither the price nor the length of later periods
        ...(!isTrial && { ...toNetPrice(event), ...toBillingInterval(event) }),
      },
    ],
  }
}

/** The share of tax in the price, from 0 to 1; null: unknown. */
function readTaxShare({ tax_percentage }: Fields): Decimal | null {
  const share = parseDecimal(tax_percentage)
  return share && share.digits >= 0n && share.digits < 10n ** BigInt(share.scale) ? share : null
}

function multiply(price: unknown, share: Decimal): string | undefined {
  const amount = parseDecimal(price)
  return amount ? decimalText(multiplyDecimals(amount, share)) : undefined
}

/** Prices in app stores include tax. */
function toNetPrice(event: Fields): Fields {
  const { price_in_purchased_currency: price, tax_percentage } = event
  const share = readTaxShare(event)
  const net = share && multiply(price, { ...share, digits: 10n ** BigInt(share.scale) - share.digits })
  if (net != null) return { unit_amount: net }
  // a share above 1 is not a percentage of the net price either
  const isText = parseDecimal(tax_percentage) === null
  return { unit_amount: price, tax_inclusive: true, ...(isText && { tax_percent: tax_percentage }) }
}

/** Events contain the start and end of a period, but not its interval. */
const TERMS: [fromDays: number, toDays: number, interval: string, count: number][] = [
  [28, 32, 'month', 1],
  [58, 63, 'month', 2],
  [88, 93, 'month', 3],
  [180, 185, 'month', 6],
  [363, 367, 'year', 1],
]

function toBillingInterval({ purchased_at_ms, expiration_at_ms }: Fields): Fields {
  const from = readInstant(purchased_at_ms)
  const to = readInstant(expiration_at_ms)
  const days = from === null || to === null ? 0 : Math.round((to - from) / DAY_MS)
  if (days < 1) return {}
  const known = TERMS.find(([least, most]) => days >= least && days <= most)
  // a month has 28 days only in February; Google Play also sells periods of four weeks
  const isFourWeeks = days === 28 && Math.abs(addIntervals(from!, 'month', 1) - to!) > DAY_MS
  if (known && !isFourWeeks) return { interval: known[2], interval_count: known[3] }
  return days % 7 === 0 ? { interval: 'week', interval_count: days / 7 } : { interval: 'day', interval_count: days }
}

function toInvoices(event: Fields, subscription: string | null): ProviderFact[] {
  const price = event.price_in_purchased_currency
  const id = readText(event.transaction_id)
  if (id === null || !((parseDecimal(price)?.digits ?? 0n) > 0n)) return []
  const { currency, purchased_at_ms: at } = event
  const share = readTaxShare(event)
  return [
    {
      type: 'invoice.paid',
      payload: {
        ...{ id, subscription, customer: event.original_app_user_id ?? event.app_user_id, currency },
        ...{ status: 'paid', total: price, amount_due: price, amount_paid: price },
        ...(share && { tax: multiply(price, share) }),
        ...{ finalized_at: at, paid_at: at, updated_at: event.event_timestamp_ms },
      },
    },
  ]
}

/** The subscription continues to the end of its period, unless it was refunded: then it has ended. */
function toCancellation(id: string, event: Fields): ProviderFact[] {
  const at = event.event_timestamp_ms
  if (event.cancel_reason === 'BILLING_ERROR')
    return [toSubscription(id, event, { ...unchanged(event), status: 'past_due' })]
  const price = parseDecimal(event.price_in_purchased_currency)
  const isRefund = event.cancel_reason === 'CUSTOMER_SUPPORT' || (price !== null && price.digits < 0n)
  if (!isRefund) {
    const ends = { cancel_at: event.expiration_at_ms, canceled_at: at, cancellation_reason: event.cancel_reason }
    return [toSubscription(id, event, { status: 'active', ...unchanged(event), ...ends })]
  }
  const ended = { status: 'canceled', canceled_at: at, ended_at: at, cancellation_reason: event.cancel_reason }
  const refunded = price !== null && price.digits < 0n
  return [
    toSubscription(id, event, { ...unchanged(event), ...ended }),
    ...(refunded
      ? [
          {
            type: 'refund.created',
            payload: {
              ...{ id: `refund ${event.transaction_id}`, invoice: event.transaction_id, currency: event.currency },
              ...{ amount: String(event.price_in_purchased_currency).replace('-', ''), created_at: at, updated_at: at },
            },
          },
        ]
      : []),
  ]
}

function toExpiration(id: string, event: Fields): ProviderFact[] {
  const at = event.expiration_at_ms ?? event.event_timestamp_ms
  if (event.expiration_reason === 'SUBSCRIPTION_PAUSED')
    return [toSubscription(id, event, { ...unchanged(event), status: 'paused', resumes_at: event.auto_resume_at_ms })]
  const reason = event.expiration_reason === 'BILLING_ERROR' ? 'payment_failed' : event.expiration_reason
  return [
    toSubscription(id, event, {
      ...{ ...unchanged(event), status: 'canceled', ended_at: at, canceled_at: at, cancellation_reason: reason },
    }),
  ]
}
