// Paddle Billing's entities as in its notifications; amounts are strings in minor units.
import { DAY, iso } from '../calendar.ts'
import { netOf } from '../invoicing.ts'
import type { Coupon, Customer, Discount, Invoice, Item, Payment, Price, Subscription } from '../model.ts'
import { sum } from '../money.ts'

export function customerData({ id, name, email, createdAt }: Customer) {
  return {
    id,
    name,
    email,
    status: 'active',
    locale: 'en',
    marketing_consent: false,
    custom_data: null,
    import_meta: null,
    created_at: iso(createdAt),
  }
}

export function addressData({ id, country, createdAt }: Customer) {
  return {
    id: addressId(id),
    customer_id: id,
    country_code: country,
    status: 'active',
    created_at: iso(createdAt),
  }
}

function addressId(customer: string): string {
  return customer.replace('cus_', 'add_')
}

export function discountData({ id, name, percentOff, amountOff, currency, duration, months, createdAt }: Coupon) {
  return {
    id: discountId(id),
    status: 'active',
    description: name,
    enabled_for_checkout: true,
    code: null,
    type: percentOff === null ? 'flat' : 'percentage',
    mode: 'standard',
    amount: String(percentOff ?? amountOff),
    currency_code: currency,
    recur: duration !== 'once',
    maximum_recurring_intervals: months,
    usage_limit: null,
    restrict_to: null,
    expires_at: null,
    times_used: 0,
    discount_group_id: null,
    custom_data: null,
    import_meta: null,
    created_at: iso(createdAt),
  }
}

function discountId(coupon: string): string {
  return `dsc_${coupon.toLowerCase().replaceAll('-', '')}`
}

function priceData({ id, product, name, currency, unitAmount, interval, intervalCount }: Price) {
  return {
    id: id.replace('price_', 'pri_'),
    product_id: product.replace('prod_', 'pro_'),
    type: 'standard',
    name,
    description: name,
    tax_mode: 'external',
    billing_cycle: { interval, frequency: intervalCount },
    trial_period: null,
    unit_price: { amount: String(unitAmount), currency_code: currency },
    unit_price_overrides: [],
    quantity: { minimum: 1, maximum: 1000 },
    status: 'active',
    custom_data: null,
    import_meta: null,
  }
}

function itemData({ price, quantity, createdAt }: Item, subscription: Subscription, at: number) {
  const { trialStart, trialEnd, status, periodEnd } = subscription
  return {
    status: status === 'trialing' ? 'trialing' : 'active',
    quantity,
    recurring: true,
    created_at: iso(createdAt),
    updated_at: iso(at),
    previously_billed_at: iso(subscription.periodStart),
    next_billed_at: iso(periodEnd),
    trial_dates: trialEnd === null ? null : { starts_at: iso(trialStart!), ends_at: iso(trialEnd) },
    price: priceData(price),
    product: {
      id: price.product.replace('prod_', 'pro_'),
      name: price.name,
      type: 'standard',
      tax_category: 'standard',
      status: 'active',
    },
  }
}

export function subscriptionData(subscription: Subscription, at: number) {
  const { id, pause, items, discounts, acquisition, country, status } = subscription
  const isPaused = pause !== null && status !== 'canceled'
  const { interval, intervalCount } = items[0]!.price
  const metadata = {
    ...(acquisition && {
      utm_source: acquisition.source,
      utm_medium: acquisition.medium,
      utm_campaign: acquisition.campaign,
    }),
    ...(country && { country }),
  }
  return {
    id,
    status: isPaused ? 'paused' : status,
    customer_id: subscription.customer,
    address_id: addressId(subscription.customer),
    business_id: null,
    currency_code: subscription.currency,
    created_at: iso(subscription.createdAt),
    started_at: iso(subscription.startedAt),
    first_billed_at: status === 'trialing' ? null : iso(subscription.trialEnd ?? subscription.startedAt),
    next_billed_at: isPaused || status === 'canceled' || subscription.cancelAt ? null : iso(subscription.periodEnd),
    paused_at: isPaused ? iso(pause.since) : null,
    canceled_at: subscription.endedAt === null ? null : iso(subscription.endedAt),
    discount: discounts.length > 0 ? discountOf(discounts[0]!) : null,
    collection_mode: subscription.collection === 'send_invoice' ? 'manual' : 'automatic',
    billing_details: null,
    current_billing_period:
      isPaused || status === 'canceled'
        ? null
        : { starts_at: iso(subscription.periodStart), ends_at: iso(subscription.periodEnd) },
    billing_cycle: { interval, frequency: intervalCount },
    scheduled_change: scheduledChange(subscription, isPaused),
    items: items.map(item => itemData(item, subscription, at)),
    custom_data: Object.keys(metadata).length > 0 ? metadata : null,
    import_meta: null,
  }
}

function discountOf({ coupon, start, end }: Discount) {
  return { id: discountId(coupon.id), starts_at: iso(start), ends_at: end === null ? null : iso(end) }
}

function scheduledChange({ cancelAt, pause, status }: Subscription, isPaused: boolean) {
  if (status === 'canceled') return null
  if (isPaused && pause!.resumesAt !== null)
    return { action: 'resume', effective_at: iso(pause!.resumesAt), resume_at: null }
  return cancelAt === null ? null : { action: 'cancel', effective_at: iso(cancelAt), resume_at: null }
}

export function transactionData(invoice: Invoice, attempts: Payment[]) {
  const { lines, total, subtotal, discounted, tax, amountRemaining, taxRate, currency } = invoice
  const isLate = invoice.status === 'open' && (invoice.failure !== null || invoice.attempts > 0)
  const isSent = invoice.collection === 'send_invoice'
  return {
    id: transactionId(invoice.id),
    status: statusOf(invoice, isLate, isSent),
    customer_id: invoice.customer,
    address_id: addressId(invoice.customer),
    business_id: null,
    subscription_id: invoice.subscription,
    invoice_id: invoice.id.replace('in_', 'inv_'),
    invoice_number: invoice.number,
    origin: ORIGINS[invoice.reason],
    collection_mode: isSent ? 'manual' : 'automatic',
    discount_id: invoice.discounts.length > 0 ? discountId(invoice.discounts[0]!.coupon.id) : null,
    billing_details: isSent ? { payment_terms: { interval: 'day', frequency: daysOf(invoice) } } : null,
    billing_period:
      invoice.subscription === null ? null : { starts_at: iso(invoice.periodStart), ends_at: iso(invoice.periodEnd) },
    currency_code: currency,
    billed_at: iso(invoice.finalizedAt!),
    created_at: iso(invoice.createdAt),
    revised_at: null,
    items: lines.flatMap(({ item, quantity }) =>
      item ? [{ price_id: priceData(item.price).id, price: priceData(item.price), quantity, proration: null }] : [],
    ),
    details: {
      totals: {
        subtotal: String(subtotal),
        discount: String(discounted),
        tax: String(tax),
        total: String(total),
        credit: '0',
        credit_to_balance: '0',
        balance: String(amountRemaining),
        grand_total: String(total),
        fee: null,
        earnings: null,
        currency_code: currency,
      },
      tax_rates_used: taxRate ? [{ tax_rate: String(taxRate.percent / 100) }] : [],
      line_items: lines.map(line => ({
        id: line.id.replace('il_', 'txnitm_'),
        price_id: line.item ? priceData(line.item.price).id : null,
        quantity: line.quantity,
        tax_rate: String((taxRate?.percent ?? 0) / 100),
        totals: {
          subtotal: String(line.amount),
          discount: String(sum(line.discounts.map(discount => discount.amount))),
          tax: String(line.tax),
          total: String(netOf(line) + line.tax),
        },
      })),
    },
    payments: attempts.map(paymentData).reverse(),
    custom_data: null,
  }
}

function daysOf({ dueAt, finalizedAt }: Invoice): number {
  return Math.round((dueAt! - finalizedAt!) / DAY)
}

function statusOf({ status }: Invoice, isLate: boolean, isSent: boolean): string {
  if (status === 'paid') return 'completed'
  if (status === 'void') return 'canceled'
  return isLate ? 'past_due' : isSent ? 'billed' : 'ready'
}

const ORIGINS: Record<Invoice['reason'], string> = {
  subscription_create: 'web',
  subscription_cycle: 'subscription_recurring',
  subscription_update: 'subscription_update',
  manual: 'api',
}

export function transactionId(invoice: string): string {
  return invoice.replace(/^(in|ch)_/, (_, kind) => (kind === 'in' ? 'txn_' : 'txn_c'))
}

function paymentData({ id, amount, outcome, failure, at }: Payment) {
  const isPaid = outcome === 'succeeded'
  return {
    payment_attempt_id: id,
    stored_payment_method_id: null,
    payment_method_id: null,
    amount: String(amount),
    status: isPaid ? 'captured' : 'error',
    error_code: failure ? 'declined' : null,
    method_details: { type: 'card', card: null },
    created_at: iso(at),
    captured_at: isPaid ? iso(at) : null,
  }
}

export function chargeData(payment: Payment) {
  const { id, amount, currency, at } = payment
  const totals = { subtotal: String(amount), discount: '0', tax: '0', total: String(amount) }
  return {
    id: transactionId(id),
    status: 'completed',
    customer_id: payment.customer,
    address_id: addressId(payment.customer),
    business_id: null,
    subscription_id: null,
    invoice_id: null,
    invoice_number: null,
    origin: 'web',
    collection_mode: 'automatic',
    discount_id: null,
    billing_details: null,
    billing_period: null,
    currency_code: currency,
    billed_at: iso(at),
    created_at: iso(at),
    items: [],
    details: {
      totals: { ...totals, credit: '0', balance: '0', grand_total: String(amount), currency_code: currency },
      tax_rates_used: [],
      line_items: [],
    },
    payments: [paymentData(payment)],
    custom_data: null,
  }
}

export function adjustmentData(
  { id, payment, amount }: { id: string; payment: Payment; amount: number },
  action: 'refund' | 'chargeback',
  at: number,
) {
  const { currency } = payment
  return {
    id: id.replace(/^\w+?_/, action === 'refund' ? 'adj_r' : 'adj_c'),
    action,
    type: amount === payment.amount ? 'full' : 'partial',
    transaction_id: transactionId(payment.invoice ?? payment.id),
    subscription_id: payment.subscription,
    customer_id: payment.customer,
    reason: 'requested',
    credit_applied_to_balance: null,
    currency_code: currency,
    status: 'approved',
    items: [],
    totals: {
      subtotal: String(amount),
      tax: '0',
      total: String(amount),
      fee: '0',
      earnings: '0',
      currency_code: currency,
    },
    created_at: iso(at),
  }
}
