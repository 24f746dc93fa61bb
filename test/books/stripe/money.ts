// Stripe's objects of the newest API version: invoices, the payments of them, and what goes back.
import type Stripe from 'stripe'
import { netOf } from '../invoicing.ts'
import type {
  CreditNote,
  Customer,
  Dispute,
  Invoice,
  Line,
  Payment,
  Refund,
  Subscription,
  TaxRate,
} from '../model.ts'
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
    discount_amounts: discounts.map(one => ({ amount: one.amount, discount: one.discount.id })),
    discountable: !isProration,
    discounts: discounts.map(one => one.discount.id),
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

export function invoicePaymentObject(payment: Payment): Stripe.InvoicePayment {
  const isPaid = payment.outcome === 'succeeded'
  return {
    id: payment.invoicePayment!,
    object: 'invoice_payment',
    amount_paid: isPaid ? payment.amount : null,
    amount_requested: payment.amount,
    created: payment.at,
    currency: payment.currency.toLowerCase(),
    invoice: payment.invoice!,
    is_default: true,
    livemode: payment.livemode,
    payment: { type: 'payment_intent', payment_intent: payment.intent },
    status: isPaid ? 'paid' : 'open',
    status_transitions: { canceled_at: null, paid_at: isPaid ? payment.at : null },
  }
}

export function intentObject(payment: Payment): Stripe.PaymentIntent {
  const { outcome, failure } = payment
  const isPaid = outcome === 'succeeded'
  return {
    id: payment.intent,
    object: 'payment_intent',
    allowed_payment_method_types: null,
    amount: payment.amount,
    amount_capturable: 0,
    amount_received: isPaid ? payment.amount : 0,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: null,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: 'automatic',
    client_secret: `${payment.intent}_secret_example`,
    confirmation_method: 'automatic',
    created: payment.at,
    currency: payment.currency.toLowerCase(),
    customer: payment.customer,
    customer_account: null,
    description: payment.description,
    excluded_payment_method_types: null,
    last_payment_error: failure && {
      code: failure.code,
      ...(failure.declineCode && { decline_code: failure.declineCode }),
      message: failure.message,
      type: 'card_error',
    },
    latest_charge: outcome === 'requires_action' ? null : payment.id,
    livemode: payment.livemode,
    managed_payments: null,
    metadata: {},
    next_action: null,
    on_behalf_of: null,
    payment_method: null,
    payment_method_configuration_details: null,
    payment_method_options: {},
    payment_method_types: ['card'],
    payment_record: null,
    processing: null,
    receipt_email: null,
    review: null,
    setup_future_usage: null,
    shipping: null,
    source: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: isPaid ? 'succeeded' : outcome === 'failed' ? 'requires_payment_method' : 'requires_action',
    transfer_data: null,
    transfer_group: null,
  }
}

export type ChargeState = { refunded: number; disputed: boolean }

export function chargeObject(payment: Payment, { refunded, disputed }: ChargeState): Stripe.Charge {
  const isPaid = payment.outcome === 'succeeded'
  return {
    id: payment.id,
    object: 'charge',
    amount: payment.amount,
    amount_captured: isPaid ? payment.amount : 0,
    amount_refunded: refunded,
    application: null,
    application_fee: null,
    application_fee_amount: null,
    balance_transaction: isPaid ? `txn_${payment.id}` : null,
    billing_details: { address: null, email: null, name: null, phone: null, tax_id: null },
    calculated_statement_descriptor: 'CONTOR EXAMPLE',
    captured: isPaid,
    created: payment.at,
    currency: payment.currency.toLowerCase(),
    customer: payment.customer,
    description: payment.description,
    disputed,
    failure_balance_transaction: null,
    failure_code: payment.failure?.code ?? null,
    failure_message: payment.failure?.message ?? null,
    fraud_details: {},
    livemode: payment.livemode,
    metadata: {},
    on_behalf_of: null,
    outcome: {
      advice_code: null,
      network_advice_code: null,
      network_decline_code: null,
      network_status: isPaid ? 'approved_by_network' : 'declined_by_network',
      reason: payment.failure?.declineCode ?? null,
      risk_level: 'normal',
      seller_message: isPaid ? 'Payment complete.' : 'The bank declined.',
      type: isPaid ? 'authorized' : 'issuer_declined',
    },
    paid: isPaid,
    payment_intent: payment.intent,
    payment_method: null,
    payment_method_details: null,
    receipt_email: null,
    receipt_number: null,
    receipt_url: null,
    refunded: refunded > 0 && refunded === payment.amount,
    review: null,
    shipping: null,
    source: null,
    source_transfer: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: isPaid ? 'succeeded' : 'failed',
    transfer_data: null,
    transfer_group: null,
  }
}

export function refundObject(refund: Refund): Stripe.Refund {
  const { payment, status } = refund
  return {
    id: refund.id,
    object: 'refund',
    amount: refund.amount,
    balance_transaction: `txn_${refund.id}`,
    charge: payment.id,
    created: refund.createdAt,
    currency: payment.currency.toLowerCase(),
    customer: payment.customer,
    customer_account: null,
    metadata: {},
    payment_intent: payment.intent,
    payment_method: null,
    reason: 'requested_by_customer',
    receipt_number: null,
    source_transfer_reversal: null,
    status,
    ...(status === 'failed' && { failure_reason: 'expired_or_canceled_card' }),
    transfer_reversal: null,
  }
}

export function creditNoteObject(note: CreditNote): Stripe.CreditNote {
  const { invoice, amount, how, refund } = note
  const { livemode } = invoice
  const isBefore = how === 'less_owed'
  return {
    id: note.id,
    object: 'credit_note',
    amount,
    amount_shipping: 0,
    created: note.createdAt,
    currency: invoice.currency.toLowerCase(),
    customer: invoice.customer,
    customer_account: null,
    customer_balance_transaction: how === 'balance' ? `cbtxn_${note.id}` : null,
    discount_amount: 0,
    discount_amounts: [],
    effective_at: note.createdAt,
    invoice: invoice.id,
    lines: list(
      [
        {
          id: `cnli_${note.id}`,
          object: 'credit_note_line_item',
          amount,
          description: 'Goodwill',
          discount_amount: 0,
          discount_amounts: [],
          livemode,
          metadata: {},
          pretax_credit_amounts: [],
          quantity: 1,
          tax_rates: [],
          taxes: [],
          type: 'custom_line_item',
          unit_amount: amount,
          unit_amount_decimal: decimal(amount),
        },
      ],
      `/v1/credit_notes/${note.id}/lines`,
    ),
    livemode,
    memo: null,
    metadata: {},
    number: note.number,
    out_of_band_amount: how === 'out_of_band' ? amount : null,
    pdf: `https://invoice.example/${note.id}.pdf`,
    post_payment_amount: isBefore ? 0 : amount,
    pre_payment_amount: isBefore ? amount : 0,
    pretax_credit_amounts: [],
    reason: 'order_change',
    refunds: refund ? [{ amount_refunded: amount, payment_record_refund: null, refund, type: 'refund' }] : [],
    shipping_cost: null,
    status: 'issued',
    subtotal: amount,
    subtotal_excluding_tax: amount,
    total: amount,
    total_excluding_tax: amount,
    total_taxes: [],
    type: isBefore ? 'pre_payment' : 'post_payment',
    voided_at: null,
  }
}

export function disputeObject(dispute: Dispute): Stripe.Dispute {
  const { payment } = dispute
  return {
    id: dispute.id,
    object: 'dispute',
    amount: dispute.amount,
    balance_transactions: [],
    charge: payment.id,
    created: dispute.createdAt,
    currency: payment.currency.toLowerCase(),
    enhanced_eligibility_types: [],
    evidence: NO_EVIDENCE,
    evidence_details: {
      due_by: dispute.createdAt + 9 * 86_400,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
      submission_method: 'not_submitted',
    },
    intended_submission_method: null,
    is_charge_refundable: false,
    livemode: payment.livemode,
    metadata: {},
    payment_intent: payment.intent,
    reason: 'product_not_received',
    status: dispute.status,
  }
}

const NO_EVIDENCE: Stripe.Dispute.Evidence = {
  access_activity_log: null,
  billing_address: null,
  cancellation_policy: null,
  cancellation_policy_disclosure: null,
  cancellation_rebuttal: null,
  customer_communication: null,
  customer_email_address: null,
  customer_name: null,
  customer_purchase_ip: null,
  customer_signature: null,
  duplicate_charge_documentation: null,
  duplicate_charge_explanation: null,
  duplicate_charge_id: null,
  enhanced_evidence: {},
  product_description: null,
  receipt: null,
  refund_policy: null,
  refund_policy_disclosure: null,
  refund_refusal_explanation: null,
  service_date: null,
  service_documentation: null,
  shipping_address: null,
  shipping_carrier: null,
  shipping_date: null,
  shipping_documentation: null,
  shipping_tracking_number: null,
  uncategorized_file: null,
  uncategorized_text: null,
}
