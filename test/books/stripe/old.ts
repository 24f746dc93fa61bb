// The same objects in an API version before 2025-03-31: discounts and coupons inline, periods on the
// subscription, payments on the invoice, prices and taxes flat on a line.
import { netOf } from '../invoicing.ts'
import type { Coupon, CreditNote, Customer, Discount, Invoice, Line, Payment, Subscription } from '../model.ts'
import { invoiceObject, totalDiscounts } from './invoices.ts'
import {
  couponObject,
  customerObject,
  list,
  metadataOf,
  planObject,
  priceObject,
  promotionCodeObject,
  subscriptionObject,
  taxRateObject,
} from './objects.ts'
import { type ChargeState, chargeObject, creditNoteObject, intentObject } from './payments.ts'

export type Fields = Record<string, unknown>

function without(object: object, ...names: string[]): Fields {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}

export function oldDiscount(discount: Discount): Fields {
  return {
    id: discount.id,
    object: 'discount',
    checkout_session: null,
    coupon: couponObject(discount.coupon),
    customer: discount.customer,
    end: discount.end,
    invoice: null,
    invoice_item: null,
    promotion_code: discount.coupon.promotionCode?.id ?? null,
    start: discount.start,
    subscription: discount.subscription,
    subscription_item: null,
  }
}

export function oldPromotionCode(coupon: Coupon): Fields {
  return {
    ...without(promotionCodeObject(coupon), 'promotion', 'customer_account'),
    coupon: couponObject(coupon),
  }
}

export function oldCustomer(customer: Customer): Fields {
  const { discount } = customer
  return {
    ...without(customerObject(customer), 'customer_account'),
    discount: discount ? oldDiscount(discount) : null,
  }
}

/** One discount is inline; additional ones are only ids. */
export function oldSubscription(subscription: Subscription): Fields {
  const newest = subscriptionObject(subscription)
  const { discounts, items, livemode } = subscription
  const only = items.length === 1 ? items[0]! : null
  return {
    ...without(newest, 'billing_mode', 'billing_schedules', 'customer_account', 'managed_payments'),
    items: {
      ...newest.items,
      data: newest.items.data.map(item => without(item, 'current_period_start', 'current_period_end', 'current_trial')),
    },
    current_period_start: subscription.periodStart,
    current_period_end: subscription.periodEnd,
    discount: discounts.length > 0 ? oldDiscount(discounts[0]!) : null,
    plan: only ? planObject(only.price, livemode) : null,
    quantity: only && only.price.usage === 'licensed' ? only.quantity : null,
  }
}

function oldLine(line: Line, invoice: Invoice): Fields {
  const { item } = line
  const { taxRate, livemode } = invoice
  const isInclusive = taxRate?.inclusive ?? false
  return {
    id: line.id,
    object: 'line_item',
    amount: line.amount,
    amount_excluding_tax: isInclusive ? line.amount - line.tax : line.amount,
    currency: invoice.currency.toLowerCase(),
    description: line.description,
    discount_amounts: line.discounts.map(applied => ({
      amount: applied.amount,
      discount: applied.discount.id,
    })),
    discountable: line.kind !== 'proration',
    discounts: line.discounts.map(applied => applied.discount.id),
    invoice: invoice.id,
    ...(item === null || line.kind === 'proration' ? { invoice_item: `ii_${line.id}` } : {}),
    livemode,
    metadata: {},
    period: { start: line.periodStart, end: line.periodEnd },
    plan: item ? planObject(item.price, livemode) : null,
    price: item ? priceObject(item.price, livemode) : null,
    proration: line.kind === 'proration',
    proration_details: { credited_items: null },
    quantity: line.quantity,
    subscription: invoice.subscription,
    ...(item && { subscription_item: item.id }),
    tax_amounts: taxAmounts(invoice, line.tax, netOf(line)),
    tax_rates: taxRate ? [taxRateObject(taxRate, livemode)] : [],
    type: item && line.kind !== 'proration' ? 'subscription' : 'invoiceitem',
    unit_amount_excluding_tax: null,
  }
}

function taxAmounts({ taxRate }: Invoice, amount: number, net: number): Fields[] {
  if (!taxRate) return []
  const { inclusive } = taxRate
  const taxable_amount = inclusive ? net - amount : net
  return [{ amount, inclusive, tax_rate: taxRate.id, taxability_reason: 'standard_rated', taxable_amount }]
}

export function oldInvoice(
  invoice: Invoice,
  parties: { customer: Customer; subscription: Subscription | null },
  payment: Payment | null,
): Fields {
  const { subscription: parent, discounts, tax, taxRate, total, lines } = invoice
  const net = total - (taxRate && !taxRate.inclusive ? tax : 0)
  return {
    ...without(
      invoiceObject(invoice, parties),
      'parent',
      'total_taxes',
      'amount_overpaid',
      'customer_account',
      'total_pretax_credit_amounts',
    ),
    application_fee_amount: null,
    charge: payment?.id ?? null,
    discount: discounts.length > 0 ? oldDiscount(discounts[0]!) : null,
    lines: list(
      lines.map(line => oldLine(line, invoice)),
      `/v1/invoices/${invoice.id}/lines`,
    ),
    paid: invoice.status === 'paid',
    paid_out_of_band: false,
    payment_intent: payment?.intent ?? null,
    quote: null,
    subscription: parent,
    ...(parent !== null && {
      subscription_details: { metadata: parties.subscription ? metadataOf(parties.subscription) : {} },
    }),
    tax: taxRate ? tax : null,
    total_discount_amounts: totalDiscounts(invoice),
    total_tax_amounts: taxAmounts(invoice, tax, net),
    transfer_data: null,
  }
}

export function oldIntent(payment: Payment): Fields {
  return {
    ...without(
      intentObject(payment),
      'allowed_payment_method_types',
      'customer_account',
      'excluded_payment_method_types',
      'managed_payments',
      'payment_record',
    ),
    invoice: payment.invoice,
  }
}

export function oldCharge(payment: Payment, state: ChargeState): Fields {
  return {
    ...chargeObject(payment, state),
    destination: null,
    dispute: null,
    invoice: payment.invoice,
    order: null,
  }
}

export function oldCreditNote(note: CreditNote): Fields {
  return {
    ...without(
      creditNoteObject(note),
      'refunds',
      'total_taxes',
      'customer_account',
      'post_payment_amount',
      'pre_payment_amount',
    ),
    refund: note.refund,
    tax_amounts: [],
  }
}
