/** Chargebee (product catalogue 1 and 2): an event carries every object that it is about, amounts in minor units. */

import {
  type Fields,
  readDecimalText,
  readInteger,
  readList,
  readObject,
  readText,
} from '../../billing/fields.ts'
import type { CouponTerms } from '../../billing/types.ts'
import { knownCurrency, toMinor } from '../../money.ts'
import { type Adapter, flatPrice, majorOf, type ProviderEvent, type Told } from '../adapter.ts'

export const chargebee: Adapter = {
  recognizes: body =>
    body.object === 'event' && typeof body.event_type === 'string' && readObject(body.content) !== null,
  eventType: body => String(body.event_type),
  tell(event) {
    const content = readObject(event.body.content) ?? {}
    const told = [
      ...tellOf(content.customer, customer => customerOf(event, customer)),
      ...tellOf(content.subscription, subscription => subscriptionOf(event, subscription)),
      ...tellOf(content.invoice, invoice => invoiceOf(event, invoice, readObject(content.transaction))),
      ...tellOf(content.transaction, transaction => refundOf(event, transaction, content)),
      ...tellOf(content.coupon, coupon => couponOf(event, coupon)),
    ]
    const isBilling = /^(subscription|invoice|payment|refund|credit_note|transaction)_/.test(event.eventType)
    return told.length === 0 && isBilling ? null : told
  },
}

function tellOf(object: unknown, tell: (object: Fields) => Told | null): Told[] {
  const fields = readObject(object)
  const told = fields && readText(fields.id) ? tell(fields) : null
  return told ? [told] : []
}

/** `resource_version` tells the newer of two states of one second. */
function timeOf({ body }: ProviderEvent, object: Fields): Fields {
  const sequence = readInteger(object.resource_version, 0)
  return { updated_at: object.updated_at ?? body.occurred_at, ...(sequence !== null && { sequence }) }
}

function customerOf(event: ProviderEvent, customer: Fields): Told {
  const name = [readText(customer.first_name), readText(customer.last_name)].filter(Boolean).join(' ')
  const { id, email } = customer
  return {
    type: 'customer.updated',
    payload: { ...timeOf(event, customer), id, name: name || customer.company, email },
  }
}

function subscriptionOf(event: ProviderEvent, subscription: Fields): Told {
  const status = readText(subscription.status)
  const isEnded = status === 'cancelled' || status === 'transferred'
  const isDeleted = event.eventType === 'subscription_deleted' || subscription.deleted === true
  const coupons = readList(subscription.coupons).map(coupon => readObject(coupon) ?? {})
  return {
    type: isDeleted ? 'subscription.deleted' : 'subscription.updated',
    coupons: coupons.flatMap(coupon => readText(coupon.coupon_id) ?? []),
    payload: {
      ...timeOf(event, subscription),
      id: subscription.id,
      customer: subscription.customer_id,
      // its start lies ahead, and takes effect by itself
      status: status === 'future' ? 'active' : isEnded ? 'canceled' : status,
      currency: subscription.currency_code,
      started_at: subscription.started_at ?? subscription.start_date ?? subscription.created_at,
      trial_end: subscription.trial_end,
      current_period_start: subscription.current_term_start,
      current_period_end: subscription.current_term_end ?? subscription.next_billing_at,
      // scheduled while it runs, also within a trial; without a date at the end of the term
      cancel_at: isEnded
        ? null
        : (subscription.cancelled_at ?? (status === 'non_renewing' ? subscription.current_term_end : null)),
      canceled_at: isEnded ? subscription.cancelled_at : subscription.cancel_schedule_created_at,
      ended_at: isEnded ? subscription.cancelled_at : null,
      resumes_at: subscription.resume_date,
      cancellation_reason: reasonOf(subscription),
      collection_method: subscription.auto_collection === 'off' ? 'send_invoice' : 'charge_automatically',
      metadata: subscription.meta_data,
      items: itemsOf(subscription),
      discounts: [
        ...coupons.map(coupon => ({ coupon: coupon.coupon_id, ends_at: coupon.apply_till })),
        ...readList(subscription.discounts).map(entry => discountOf(readObject(entry) ?? {}, subscription)),
      ],
    },
  }
}

const UNPAID_REASONS = /^(not_paid|no_card|payment_failed)$/

function reasonOf({ cancel_reason, cancel_reason_code }: Fields): unknown {
  return UNPAID_REASONS.test(readText(cancel_reason) ?? '')
    ? 'payment_failed'
    : (cancel_reason_code ?? cancel_reason)
}

function itemsOf(subscription: Fields): Fields[] {
  const term = { interval: subscription.billing_period_unit, interval_count: subscription.billing_period }
  const amount = (minor: unknown) => majorOf(minor, subscription.currency_code)
  const given = readList(subscription.subscription_items).map(item => readObject(item) ?? {})
  if (given.length > 0)
    return given.map(item => ({
      ...term,
      price_id: item.item_price_id,
      name: item.item_price_id,
      quantity: item.quantity,
      ...(item.item_type === 'charge' && { type: 'one_time' }),
      ...(item.metered_quantity !== undefined && { usage_type: 'metered' }),
      ...priceOf(item, amount),
    }))
  // the first product catalogue: one plan, and add-ons
  const addons = readList(subscription.addons).map(addon => readObject(addon) ?? {})
  return [
    {
      ...{ ...term, price_id: subscription.plan_id, name: subscription.plan_id },
      ...{ quantity: subscription.plan_quantity, unit_amount: amount(subscription.plan_unit_price) },
    },
    ...addons.map(addon => ({
      ...{ ...term, price_id: addon.id, name: addon.id },
      ...{ quantity: addon.quantity, unit_amount: amount(addon.unit_price) },
    })),
  ]
}

/** With tiers, packages or units that are free, the price of all units together is what is told. */
function priceOf(item: Fields, amount: (minor: unknown) => string | undefined): Fields {
  const total = amount(item.amount)
  const quantity = Number(item.quantity ?? 1)
  const isPlain =
    item.unit_price !== undefined && Number(item.unit_price) * quantity === Number(item.amount ?? Number.NaN)
  if (isPlain || total === undefined) return { unit_amount: amount(item.unit_price) }
  return flatPrice(total)
}

const DURATIONS: Record<string, CouponTerms['duration']> = {
  one_time: 'once',
  forever: 'forever',
  limited_period: 'repeating',
}

function durationOf(value: unknown): CouponTerms['duration'] {
  return DURATIONS[readText(value) ?? ''] ?? 'unknown'
}

function discountOf(discount: Fields, subscription: Fields): Fields {
  return {
    ...(discount.type === 'percentage'
      ? { percent_off: discount.percentage }
      : { amount_off: majorOf(discount.amount, discount.currency_code ?? subscription.currency_code) }),
    duration: durationOf(discount.duration_type),
    ends_at: discount.apply_till,
  }
}

/** A coupon for some items only is not told in full here: its terms stay unknown. */
function couponOf(event: ProviderEvent, object: Fields): Told | null {
  const currency = knownCurrency(object.currency_code)
  const amountOff = currency && toMinor(majorOf(object.discount_amount, currency), currency)
  const percentOff =
    object.discount_type === 'percentage' ? readDecimalText(object.discount_percentage) : null
  const isWhole = object.apply_on === undefined || object.apply_on === 'invoice_amount'
  if (!isWhole || (percentOff === null && !amountOff)) return null
  const period = readInteger(object.period ?? object.duration_month, 1)
  const coupon: CouponTerms = {
    percentOff,
    amountsOff: percentOff === null && currency && amountOff ? { [currency]: amountOff } : {},
    duration: durationOf(object.duration_type),
    months: period && (object.period_unit === 'year' ? 12 * period : period),
    productIds: null,
  }
  return { term: { kind: 'coupon', id: readText(object.id)!, coupon }, at: timeOf(event, object).updated_at }
}

const STATUSES: Record<string, string> = {
  ...{
    paid: 'paid',
    posted: 'open',
    payment_due: 'open',
    not_paid: 'open',
    voided: 'void',
    pending: 'draft',
  },
}

function invoiceOf(event: ProviderEvent, invoice: Fields, transaction: Fields | null): Told {
  const amount = (minor: unknown) => majorOf(minor, invoice.currency_code)
  const status = STATUSES[readText(invoice.status) ?? '']
  const attempts = readList(invoice.linked_payments).map(payment => readObject(payment) ?? {})
  const failures = attempts.filter(attempt => attempt.txn_status === 'failure')
  const isFailed =
    status === 'open' && (event.eventType === 'payment_failed' || invoice.dunning_status != null)
  const paid = Number(invoice.amount_paid ?? 0)
  const remaining = Number(invoice.amount_due ?? 0)
  return {
    type:
      event.eventType === 'invoice_deleted'
        ? 'invoice.deleted'
        : isFailed
          ? 'invoice.payment_failed'
          : 'invoice.updated',
    payload: {
      ...timeOf(event, invoice),
      id: invoice.id,
      number: invoice.id,
      subscription: invoice.subscription_id,
      customer: invoice.customer_id,
      status,
      currency: invoice.currency_code,
      total: amount(invoice.total),
      tax: amount(invoice.tax),
      amount_due: amount(status === 'void' ? invoice.total : paid + remaining),
      amount_paid: amount(paid),
      amount_remaining: amount(remaining),
      attempt_count: failures.length,
      next_payment_attempt: invoice.next_retry_at,
      // what is collected by itself is due when it is made: that alone is no issue
      due_date: Number(invoice.net_term_days ?? 0) > 0 ? invoice.due_date : null,
      finalized_at: invoice.date,
      paid_at: invoice.paid_at,
      ...(isFailed && {
        failure_code: transaction?.error_code,
        failure_message: transaction?.error_text,
      }),
    },
  }
}

function refundOf(event: ProviderEvent, transaction: Fields, content: Fields): Told | null {
  if (transaction.type !== 'refund') return null
  const linked = readObject(readList(transaction.linked_credit_notes)[0])
  return {
    type: 'refund.updated',
    payload: {
      ...timeOf(event, transaction),
      id: transaction.id,
      invoice:
        readObject(content.credit_note)?.reference_invoice_id ??
        linked?.cn_reference_invoice_id ??
        readObject(content.invoice)?.id,
      customer: transaction.customer_id,
      amount: majorOf(transaction.amount, transaction.currency_code),
      currency: transaction.currency_code,
      created_at: transaction.date,
      status:
        transaction.status === 'success' ? 'succeeded' : transaction.status === 'failure' ? 'failed' : null,
    },
  }
}
