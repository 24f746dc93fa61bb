/** WooCommerce Subscriptions. Orders, products and customers become records. */

import { type Fields, readList, readObject, readText } from '../../billing/fields.ts'
import { type Adapter, divideAmount, type ProviderFact } from '../adapter.ts'

export const woocommerce: Adapter = {
  // its objects have no envelope: the preset identifies them, and a header contains the topic
  recognizes: () => false,
  eventType: () => '',
  read({ eventType, body }) {
    if (!eventType.startsWith('subscription.')) return []
    return readText(body.id) ? [toSubscription(eventType, body)] : null
  },
}

const STATUSES: Record<string, string> = {
  ...{ 'pending-cancel': 'active', switched: 'canceled', trash: 'canceled', 'wc-active': 'active' },
}

/** Prefers the date in UTC to the one in the shop's time zone. A missing date is empty or 0. */
function readDate(body: Fields, name: string): string | null {
  const given = readText(body[`${name}_gmt`]) ?? readText(body[name])
  return given === null || given === '0' || given.startsWith('0000') ? null : given.replace(' ', 'T')
}

function toSubscription(type: string, body: Fields): ProviderFact {
  const status = readText(body.status)
  const billing = readObject(body.billing) ?? {}
  const names = [readText(billing.first_name), readText(billing.last_name)].filter(Boolean).join(' ')
  const mapped = status === null ? null : (STATUSES[status] ?? status)
  const end = readDate(body, 'end_date')
  const canceledAt = readDate(body, 'cancelled_date')
  const isEnded = mapped === 'canceled' || mapped === 'cancelled' || mapped === 'expired'
  const customer = readText(body.customer_id)
  return {
    type,
    payload: {
      id: body.id,
      // a guest has only an e-mail address
      customer: customer === '0' ? null : customer,
      customer_name: names || billing.company,
      customer_email: billing.email,
      status: mapped,
      currency: body.currency,
      started_at: readDate(body, 'start_date') ?? readDate(body, 'date_created'),
      trial_end: readDate(body, 'trial_end_date'),
      current_period_start: readDate(body, 'last_payment_date'),
      current_period_end: readDate(body, 'next_payment_date') ?? end,
      cancel_at: status === 'pending-cancel' ? end : null,
      canceled_at: canceledAt,
      ended_at: isEnded ? (end ?? canceledAt ?? readDate(body, 'date_modified')) : null,
      updated_at: readDate(body, 'date_modified'),
      collection_method: body.requires_manual_renewal === true ? 'send_invoice' : 'charge_automatically',
      items: readList(body.line_items).map(line => toItem(readObject(line) ?? {}, body)),
    },
  }
}

/** A line's `total` is the recurring charge: after recurring discounts, before tax. */
function toItem(line: Fields, body: Fields): Fields {
  return {
    id: line.id,
    price_id: Number(line.variation_id ?? 0) > 0 ? line.variation_id : line.product_id,
    product_id: line.product_id,
    name: line.name,
    quantity: line.quantity,
    unit_amount: divideAmount(line.total ?? line.subtotal, line.quantity),
    interval: body.billing_period,
    interval_count: body.billing_interval,
  }
}
