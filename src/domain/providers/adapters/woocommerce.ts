/** WooCommerce Subscriptions; orders and the rest become records. */

import { type Fields, readList, readObject, readText } from '../../billing/fields.ts'
import { type Adapter, type Told, unitOf } from '../adapter.ts'

export const woocommerce: Adapter = {
  // its objects have no envelope: the preset tells them, and the topic stands in a header
  recognizes: () => false,
  eventType: () => '',
  tell({ eventType, body }) {
    if (!eventType.startsWith('subscription.')) return []
    return readText(body.id) ? [subscriptionOf(eventType, body)] : null
  },
}

const STATUSES: Record<string, string> = {
  ...{ 'pending-cancel': 'active', switched: 'canceled', trash: 'canceled', 'wc-active': 'active' },
}

/** Dates are given twice, the second time in UTC; what has none is empty, or 0. */
function dateIn(body: Fields, name: string): string | null {
  const given = readText(body[`${name}_gmt`]) ?? readText(body[name])
  return given === null || given === '0' || given.startsWith('0000') ? null : given.replace(' ', 'T')
}

function subscriptionOf(type: string, body: Fields): Told {
  const status = readText(body.status)
  const billing = readObject(body.billing) ?? {}
  const names = [readText(billing.first_name), readText(billing.last_name)].filter(Boolean).join(' ')
  const mapped = status === null ? null : (STATUSES[status] ?? status)
  const end = dateIn(body, 'end_date')
  const canceledAt = dateIn(body, 'cancelled_date')
  const isEnded = mapped === 'canceled' || mapped === 'cancelled' || mapped === 'expired'
  const customer = readText(body.customer_id)
  return {
    type,
    payload: {
      id: body.id,
      // a guest is known by the e-mail only
      customer: customer === '0' ? null : customer,
      customer_name: names || billing.company,
      customer_email: billing.email,
      status: mapped,
      currency: body.currency,
      started_at: dateIn(body, 'start_date') ?? dateIn(body, 'date_created'),
      trial_end: dateIn(body, 'trial_end_date'),
      current_period_start: dateIn(body, 'last_payment_date'),
      current_period_end: dateIn(body, 'next_payment_date') ?? end,
      cancel_at: status === 'pending-cancel' ? end : null,
      canceled_at: canceledAt,
      ended_at: isEnded ? (end ?? canceledAt ?? dateIn(body, 'date_modified')) : null,
      updated_at: dateIn(body, 'date_modified'),
      collection_method: body.requires_manual_renewal === true ? 'send_invoice' : 'charge_automatically',
      items: readList(body.line_items).map(line => itemOf(readObject(line) ?? {}, body)),
    },
  }
}

/** A line's `total` is what is charged each time: after discounts that recur, before tax. */
function itemOf(line: Fields, body: Fields): Fields {
  return {
    id: line.id,
    price_id: Number(line.variation_id ?? 0) > 0 ? line.variation_id : line.product_id,
    product_id: line.product_id,
    name: line.name,
    quantity: line.quantity,
    unit_amount: unitOf(line.total ?? line.subtotal, line.quantity),
    interval: body.billing_period,
    interval_count: body.billing_interval,
  }
}
