// Stripe's invoices of the newest API version.
import type Stripe from 'stripe'
import { netOf } from '../invoicing.ts'
import type { Customer, Invoice, Line, Subscription, TaxRate } from '../model.ts'
import { sum } from '../money.ts'
import { decimal, list, metadataOf, taxRateObject } from './objects.ts'

type TotalTax = Stripe.Invoice.TotalTax & Stripe.InvoiceLineItem.Tax & Stripe.CreditNote.TotalTax

function taxes(rate: TaxRate | null, amount: number, net: number): TotalTax[] {
  if (!rate) return []
  return [
    {
      amount,
      tax_behavior: rate.inclusive ? 'inclusive' : 'exclusive',
      tax_rate_details: { tax_rate: rate.id },
      taxability_reason: 'standard_rated',
      taxable_amount: rate.inclusive ? net - amount : net,
      type: 'tax_rate_details',
    },
  ]
}

export function lineObject(line: Line, invoice: Invoice): Stripe.InvoiceLineItem {
  const { item, amount, discounts } = line
  const isProration = line.kind === 'proration'
  return {
    id: line.id,
    object: 'line_item',
    amount,
    currency: invoice.currency.toLowerCase(),
    description: line.description,
    discount_amounts: discounts.map(applied => ({ amount: applied.amount, discount: applied.discount.id })),
    discountable: !isProration,
    discounts: discounts.map(applied => applied.discount.id),
    invoice: invoice.id,
    livemode: invoice.livemode,
    metadata: {},
    parent: item
      ? {
          invoice_item_details: null,
          subscription_item_details: {
            invoice_item: isProration ? `ii_${line.id}` : null,
            proration: isProration,
            proration_details: { credited_items: null },
            subscription: invoice.subscription,
            subscription_item: item.id,
          },
          type: 'subscription_item_details',
        }
      : {
          invoice_item_details: {
            invoice_item: `ii_${line.id}`,
            proration: false,
            proration_details: { credited_items: null },
            subscription: null,
          },
          subscription_item_details: null,
          type: 'invoice_item_details',
        },
    period: { start: line.periodStart, end: line.periodEnd },
    pretax_credit_amounts: [],
    pricing: {
      type: 'price_details',
      price_details: {
        price: item?.price.id ?? `price_once_${line.id}`,
        product: item?.price.product ?? 'prod_service',
      },
      unit_amount_decimal: item ? unitAmount(item.price.unitAmount) : decimal(amount / line.quantity),
    },
    quantity: line.quantity,
    quantity_decimal: decimal(line.quantity),
    subscription: invoice.subscription,
    subtotal: amount,
    taxes: taxes(invoice.taxRate, line.tax, netOf(line)),
  }
}

function unitAmount(amount: number | null): Stripe.Decimal | null {
  return amount === null ? null : decimal(amount)
}

export function totalDiscounts({ lines }: Invoice): { amount: number; discount: string }[] {
  const amounts = new Map<string, number>()
  for (const { discount, amount } of lines.flatMap(line => line.discounts))
    amounts.set(discount.id, (amounts.get(discount.id) ?? 0) + amount)
  return [...amounts].map(([discount, amount]) => ({ amount, discount }))
}

export function invoiceObject(
  invoice: Invoice,
  { customer, subscription }: { customer: Customer; subscription: Subscription | null },
): Stripe.Invoice {
  const { taxRate, total, tax, subtotal, status, subscription: parent } = invoice
  const net = sum(invoice.lines.map(netOf))
  const isInclusive = taxRate?.inclusive ?? false
  return {
    id: invoice.id,
    object: 'invoice',
    account_country: 'DE',
    account_name: 'Contor Example',
    account_tax_ids: null,
    amount_due: invoice.amountDue,
    amount_overpaid: 0,
    amount_paid: invoice.amountPaid,
    amount_remaining: invoice.amountRemaining,
    amount_shipping: 0,
    application: null,
    attempt_count: invoice.attempts,
    attempted: invoice.attempts > 0,
    auto_advance: status === 'draft' || invoice.nextAttemptAt !== null,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null, provider: null, status: null },
    automatically_finalizes_at: status === 'draft' ? invoice.createdAt + 3600 : null,
    billing_reason: invoice.reason,
    collection_method: invoice.collection,
    created: invoice.createdAt,
    currency: invoice.currency.toLowerCase(),
    custom_fields: null,
    customer: invoice.customer,
    customer_account: null,
    customer_address: null,
    customer_email: customer.email,
    customer_name: customer.name,
    customer_phone: null,
    customer_shipping: null,
    customer_tax_exempt: 'none',
    customer_tax_ids: [],
    default_payment_method: null,
    default_source: null,
    default_tax_rates: taxRate ? [taxRateObject(taxRate, invoice.livemode)] : [],
    description: null,
    discounts: invoice.discounts.map(({ id }) => id),
    due_date: invoice.dueAt,
    effective_at: invoice.finalizedAt,
    ending_balance: invoice.endingBalance,
    footer: null,
    from_invoice: null,
    hosted_invoice_url: invoice.finalizedAt === null ? null : `https://invoice.example/${invoice.id}`,
    invoice_pdf: null,
    issuer: { type: 'self' },
    last_finalization_error: null,
    latest_revision: null,
    lines: list(
      invoice.lines.map(line => lineObject(line, invoice)),
      `/v1/invoices/${invoice.id}/lines`,
    ),
    livemode: invoice.livemode,
    metadata: {},
    next_payment_attempt: invoice.nextAttemptAt,
    number: invoice.number,
    on_behalf_of: null,
    parent:
      parent === null
        ? null
        : {
            quote_details: null,
            subscription_details: {
              metadata: subscription ? metadataOf(subscription) : {},
              subscription: parent,
            },
            type: 'subscription_details',
          },
    payment_settings: { default_mandate: null, payment_method_options: null, payment_method_types: null },
    period_end: invoice.periodEnd,
    period_start: invoice.periodStart,
    post_payment_credit_notes_amount: invoice.creditedAfterPayment,
    pre_payment_credit_notes_amount: invoice.creditedBeforePayment,
    receipt_number: null,
    rendering: null,
    shipping_cost: null,
    shipping_details: null,
    starting_balance: invoice.startingBalance,
    statement_descriptor: null,
    status,
    status_transitions: {
      finalized_at: invoice.finalizedAt,
      marked_uncollectible_at: invoice.uncollectibleAt,
      paid_at: invoice.paidAt,
      voided_at: invoice.voidedAt,
    },
    subtotal,
    subtotal_excluding_tax: isInclusive ? subtotal - tax : subtotal,
    test_clock: null,
    total,
    total_discount_amounts: totalDiscounts(invoice),
    total_excluding_tax: total - tax,
    total_pretax_credit_amounts: [],
    total_taxes: taxes(taxRate, tax, net),
    webhooks_delivered_at: invoice.createdAt,
  }
}
