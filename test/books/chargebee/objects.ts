// Chargebee's resources (product catalog 2) as in its events; amounts are in minor units.
import { DAY } from '../calendar.ts'
import { netOf, pricePerPeriod } from '../invoicing.ts'
import type { Coupon, Customer, Discount, Invoice, Item, Payment, Refund, Subscription } from '../model.ts'
import { rounded, sum } from '../money.ts'

export function customerData({ id, name, email, country, createdAt }: Customer) {
  const [first_name, ...rest] = name.split(' ')
  return {
    id,
    first_name,
    last_name: rest.join(' '),
    email,
    auto_collection: 'on',
    net_term_days: 0,
    created_at: createdAt,
    taxability: 'taxable',
    billing_address: { country, object: 'billing_address' },
    deleted: false,
  }
}

export function couponData({ id, name, percentOff, amountOff, currency, duration, months, createdAt }: Coupon) {
  return {
    id,
    name,
    discount_type: percentOff === null ? 'fixed_amount' : 'percentage',
    ...(percentOff === null
      ? { discount_amount: amountOff, currency_code: currency }
      : { discount_percentage: percentOff }),
    duration_type: { once: 'one_time', forever: 'forever', repeating: 'limited_period' }[duration],
    ...(months !== null && { period: months, period_unit: 'month' }),
    apply_on: 'invoice_amount',
    status: 'active',
    created_at: createdAt,
  }
}

function statusOf({ status, pause, cancelAt }: Subscription): string {
  if (status === 'canceled') return 'cancelled'
  if (pause) return 'paused'
  if (status === 'trialing') return 'in_trial'
  return cancelAt === null ? 'active' : 'non_renewing'
}

export function subscriptionData(subscription: Subscription) {
  const { items, pause, discounts, acquisition, country, trialEnd, cancelAt, endedAt } = subscription
  const { interval, intervalCount } = items[0]!.price
  const tiered = items.flatMap(({ price }) => (price.tiers ? [price] : []))
  return {
    id: subscription.id,
    customer_id: subscription.customer,
    status: statusOf(subscription),
    currency_code: subscription.currency,
    billing_period: intervalCount,
    billing_period_unit: interval,
    created_at: subscription.createdAt,
    started_at: subscription.startedAt,
    ...(trialEnd === null
      ? { activated_at: subscription.startedAt }
      : { trial_start: subscription.trialStart, trial_end: trialEnd }),
    current_term_start: subscription.periodStart,
    current_term_end: subscription.periodEnd,
    ...(endedAt === null && cancelAt === null && !pause && { next_billing_at: subscription.periodEnd }),
    ...(endedAt === null
      ? cancelAt !== null && { cancelled_at: cancelAt, cancel_schedule_created_at: subscription.canceledAt }
      : { cancelled_at: endedAt }),
    ...(subscription.cancelReason === 'payment_failed' && { cancel_reason: 'not_paid' }),
    ...(pause && {
      pause_date: pause.since,
      ...(pause.resumesAt !== null && { resume_date: pause.resumesAt }),
    }),
    auto_collection: subscription.collection === 'send_invoice' ? 'off' : 'on',
    due_invoices_count: 0,
    deleted: false,
    subscription_items: items.map(itemData),
    ...(tiered.length > 0 && {
      item_tiers: tiered.flatMap(({ id, tiers }) =>
        tiers!.tiers.map(({ upTo, unitAmount }, i) => ({
          item_price_id: id,
          starting_unit: i === 0 ? 1 : tiers!.tiers[i - 1]!.upTo! + 1,
          ...(upTo !== null && { ending_unit: upTo }),
          price: unitAmount,
          object: 'item_tier',
        })),
      ),
    }),
    ...(discounts.length > 0 && { coupons: discounts.map(appliedCoupon) }),
    meta_data: {
      ...(acquisition && {
        utm_source: acquisition.source,
        utm_medium: acquisition.medium,
        utm_campaign: acquisition.campaign,
      }),
      ...(country && { country }),
    },
  }
}

function appliedCoupon({ coupon, end }: Discount) {
  return {
    coupon_id: coupon.id,
    ...(end !== null && { apply_till: end }),
    applied_count: 1,
    object: 'coupon',
  }
}

/** Tiers are sent as the price of all seats together. */
function itemData({ price, quantity }: Item, index: number) {
  const isMetered = price.usage === 'metered'
  const amount = isMetered ? null : rounded(pricePerPeriod(price, quantity)!)
  return {
    item_price_id: price.id,
    item_type: index === 0 ? 'plan' : 'addon',
    ...(isMetered
      ? { metered_quantity: '0', usage_accumulation_reset_frequency: 'subscription_billing_frequency' }
      : { quantity }),
    ...(price.unitAmount !== null && { unit_price: price.unitAmount }),
    ...(amount !== null && { amount }),
    free_quantity: 0,
    object: 'subscription_item',
  }
}

export function invoiceData(invoice: Invoice, attempts: Payment[]) {
  const { status, collection, total, tax, taxRate, lines, failure } = invoice
  const isLate = failure !== null
  return {
    id: invoice.id,
    customer_id: invoice.customer,
    ...(invoice.subscription && { subscription_id: invoice.subscription }),
    recurring: invoice.subscription !== null,
    status: STATUSES[status] === 'due' ? (isLate ? 'not_paid' : 'payment_due') : STATUSES[status],
    price_type: 'tax_exclusive',
    date: invoice.finalizedAt,
    due_date: invoice.dueAt ?? invoice.finalizedAt,
    net_term_days: collection === 'send_invoice' ? Math.round((invoice.dueAt! - invoice.finalizedAt!) / DAY) : 0,
    currency_code: invoice.currency,
    total,
    tax,
    sub_total: invoice.subtotal,
    amount_paid: invoice.amountPaid,
    amount_due: status === 'open' ? invoice.amountRemaining : 0,
    amount_adjusted: 0,
    write_off_amount: 0,
    credits_applied: 0,
    ...(invoice.paidAt !== null && { paid_at: invoice.paidAt }),
    ...(invoice.voidedAt !== null && { voided_at: invoice.voidedAt }),
    ...(isLate && {
      dunning_status: invoice.nextAttemptAt === null ? 'stopped' : 'in_progress',
      ...(invoice.nextAttemptAt !== null && { next_retry_at: invoice.nextAttemptAt }),
    }),
    first_invoice: invoice.reason === 'subscription_create',
    term_finalized: true,
    is_gifted: false,
    generated_at: invoice.createdAt,
    line_items: lines.map(line => ({
      id: line.id,
      date_from: line.periodStart,
      date_to: line.periodEnd,
      unit_amount: Math.round(line.amount / (line.quantity || 1)),
      quantity: line.quantity,
      amount: line.amount,
      discount_amount: line.amount - netOf(line),
      tax_amount: line.tax,
      is_taxed: taxRate !== null,
      entity_type: line.item ? 'plan_item_price' : 'adhoc',
      ...(line.item && { entity_id: line.item.price.id, subscription_id: invoice.subscription }),
      description: line.description,
      object: 'line_item',
    })),
    discounts: discountsOf(invoice),
    taxes: taxRate ? [{ name: taxRate.name, amount: tax, object: 'tax' }] : [],
    linked_payments: attempts.map(payment => ({
      txn_id: payment.id,
      applied_amount: payment.amount,
      applied_at: payment.at,
      txn_status: payment.outcome === 'succeeded' ? 'success' : 'failure',
      txn_date: payment.at,
      txn_amount: payment.amount,
    })),
  }
}

const STATUSES: Record<Invoice['status'], string> = {
  draft: 'pending',
  open: 'due',
  paid: 'paid',
  uncollectible: 'not_paid',
  void: 'voided',
}

function discountsOf({ lines, discounts }: Invoice) {
  return discounts.map(({ id, coupon }) => ({
    amount: sum(
      lines.flatMap(line =>
        line.discounts.filter(applied => applied.discount.id === id).map(applied => applied.amount),
      ),
    ),
    description: coupon.name,
    entity_type: 'document_level_coupon',
    entity_id: coupon.id,
    object: 'discount',
  }))
}

export function transactionData(payment: Payment) {
  const { id, outcome, failure } = payment
  return {
    id,
    customer_id: payment.customer,
    ...(payment.subscription && { subscription_id: payment.subscription }),
    payment_method: 'card',
    gateway: 'chargebee',
    type: 'payment',
    date: payment.at,
    amount: payment.amount,
    currency_code: payment.currency,
    status: outcome === 'succeeded' ? 'success' : 'failure',
    ...(failure && { error_code: failure.code, error_text: failure.message }),
    linked_invoices: [{ invoice_id: payment.invoice, applied_amount: payment.amount, applied_at: payment.at }],
  }
}

export function refundData({ id, payment, amount, createdAt }: Refund) {
  return {
    id,
    customer_id: payment.customer,
    ...(payment.subscription && { subscription_id: payment.subscription }),
    payment_method: 'card',
    gateway: 'chargebee',
    type: 'refund',
    reference_transaction_id: payment.id,
    date: createdAt,
    amount,
    currency_code: payment.currency,
    status: 'success',
    linked_credit_notes: [{ cn_id: `CN-${id}`, applied_amount: amount, applied_at: createdAt }],
  }
}

export function creditNoteData({ id, payment, amount, createdAt }: Refund) {
  return {
    id: `CN-${id}`,
    customer_id: payment.customer,
    ...(payment.subscription && { subscription_id: payment.subscription }),
    reference_invoice_id: payment.invoice,
    type: 'refundable',
    reason_code: 'service_unsatisfactory',
    status: 'refunded',
    date: createdAt,
    currency_code: payment.currency,
    total: amount,
    amount_allocated: 0,
    amount_refunded: amount,
    amount_available: 0,
    refunded_at: createdAt,
  }
}
