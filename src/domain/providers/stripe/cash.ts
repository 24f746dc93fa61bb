import {
  type Fields,
  isEffectiveRefund,
  readFailure,
  readId,
  readInstant,
  readInteger,
  readInvoiceStatus,
  readList,
  readObject,
  readServices,
  readText,
} from '../../billing/fields.ts'
import type {
  CreditNote,
  Instant,
  InvoiceVersion,
  Payment,
  PaymentFailure,
  Refund,
  ServicePeriod,
} from '../../billing/types.ts'
import { knownCurrency } from '../../money.ts'
import { type StripeSubject, stripeMinor } from './objects.ts'

/** Payments in a charge, a payment intent or an `invoice_payment`. */
export function readPayments(id: string, subject: StripeSubject): Payment[] {
  switch (subject.object.object) {
    case 'charge':
      return [chargePayment(id, subject)]
    case 'payment_intent':
      return [intentPayment(id, subject)]
    case 'invoice_payment':
      return [invoicePayment(subject.object, subject.sourceAt)]
    default:
      return []
  }
}

/** Charges, refunds and disputes of one payment share this id. */
function readPaymentId(object: Fields): string | null {
  return readId(object.payment_intent) ?? readId(object.charge)
}

function chargePayment(id: string, { object, sourceAt }: StripeSubject): Payment {
  const currency = knownCurrency(object.currency)
  const isFailed = object.status === 'failed'
  const isPaid = (object.status ?? 'succeeded') === 'succeeded' && object.captured !== false
  // charges have no `invoice` field since 2025; before, null meant that there is no invoice
  const unlinkedAmount = 'invoice' in object ? null : stripeMinor(object.amount, currency)
  const at = readInstant(object.created) ?? sourceAt
  return {
    id: readId(object.payment_intent) ?? id,
    sourceAt,
    reportedBy: 'charge',
    invoiceId: readId(object.invoice),
    customer: readId(object.customer),
    status: isPaid ? 'succeeded' : isFailed ? 'failed' : null,
    amount: isPaid ? stripeMinor(object.amount_captured ?? object.amount, currency) : null,
    currency,
    at,
    failure: isFailed ? failure(readText(object.failure_code), readText(object.failure_message)) : null,
    ...(unlinkedAmount && { unlinkedAmount }),
  }
}

function intentPayment(id: string, { type, object, sourceAt }: StripeSubject): Payment {
  const currency = knownCurrency(object.currency)
  const isPaid = object.status === 'succeeded'
  const error = readObject(object.last_payment_error)
  const hasFailed = type.endsWith('.payment_failed') && error !== null
  const unlinkedAmount = 'invoice' in object ? null : stripeMinor(object.amount, currency)
  return {
    id,
    sourceAt,
    reportedBy: 'payment_intent',
    invoiceId: readId(object.invoice),
    customer: readId(object.customer),
    status: isPaid ? 'succeeded' : hasFailed ? 'failed' : null,
    amount: isPaid ? stripeMinor(object.amount_received ?? object.amount, currency) : null,
    currency,
    at: sourceAt,
    failure: hasFailed ? failure(readText(error.decline_code) ?? readText(error.code), readText(error.message)) : null,
    ...(unlinkedAmount && { unlinkedAmount }),
  }
}

function failure(code: string | null, message: string | null): PaymentFailure | null {
  return readFailure('charge.payment_failed', code, message)
}

/** Links an invoice to its payment, which may be pending. */
function invoicePayment(object: Fields, sourceAt: Instant, invoiceId = readId(object.invoice)): Payment {
  const currency = knownCurrency(object.currency)
  const payment = readObject(object.payment) ?? {}
  const paidAt = readInstant(readObject(object.status_transitions)?.paid_at)
  const isPaid = object.status === 'paid'
  return {
    id: readPaymentId(payment) ?? readId(payment.payment_record) ?? readText(object.id) ?? '',
    sourceAt,
    reportedBy: 'invoice_payment',
    invoiceId,
    customer: null,
    status: isPaid ? 'succeeded' : null,
    amount: isPaid ? stripeMinor(object.amount_paid, currency) : null,
    currency,
    at: paidAt ?? sourceAt,
    failure: null,
  }
}

/** The payments of an invoice: a list since 2025, before that a single intent or charge. */
export function readInvoicePayments(id: string, { object, sourceAt }: StripeSubject): Payment[] {
  const listed = readList(readObject(object.payments)?.data).map(entry =>
    invoicePayment(readObject(entry) ?? {}, sourceAt, id),
  )
  const single = readPaymentId(object)
  const link: Payment[] =
    single === null
      ? []
      : [
          {
            id: single,
            // the same in every event of the invoice, so it is stored once
            sourceAt: readInstant(object.created) ?? sourceAt,
            reportedBy: 'invoice',
            invoiceId: id,
            customer: readId(object.customer),
            status: null,
            amount: null,
            currency: null,
            at: readInstant(object.created) ?? sourceAt,
            failure: null,
          },
        ]
  return [...listed, ...link].filter(payment => payment.id !== '')
}

/** The refund itself, or the refunds that a charge lists and its refunded total. */
export function readRefunds({ type, object, sourceAt }: StripeSubject): Refund[] {
  if (object.object === 'refund') return [readRefund(type, object, {}, sourceAt)].filter(isNamed)
  if (object.object !== 'charge') return []
  const listed = readList(readObject(object.refunds)?.data).map(entry => readObject(entry) ?? {})
  const total = refundedTotal(object, sourceAt)
  return [
    ...listed.map(refund => readRefund('refund.updated', refund, object, sourceAt)).filter(isNamed),
    ...(total ? [total] : []),
  ]
}

function paymentReference(paymentId: string | null): { paymentId?: string } {
  return paymentId === null ? {} : { paymentId }
}

function isNamed(refund: Refund): boolean {
  return refund.id !== ''
}

function readRefund(type: string, refund: Fields, charge: Fields, sourceAt: Instant): Refund {
  const currency = knownCurrency(refund.currency)
  return {
    id: readText(refund.id) ?? '',
    sourceAt,
    ...paymentReference(readPaymentId(refund) ?? readId(charge.payment_intent) ?? readId(charge)),
    invoiceId: readId(charge.invoice) ?? readId(readObject(refund.charge)?.invoice),
    chargeId: readId(refund.charge) ?? readId(charge),
    customer: readId(refund.customer) ?? readId(charge.customer),
    amount: stripeMinor(refund.amount, currency),
    currency,
    createdAt: readInstant(refund.created) ?? sourceAt,
    counts: isEffectiveRefund(type, refund.status),
    ...(refund.status !== undefined && { status: readText(refund.status) }),
    fromChargeTotal: false,
  }
}

/** The id contains the new total, because two refunds of one charge never have the same total. */
function refundedTotal(charge: Fields, sourceAt: Instant): Refund | null {
  const currency = knownCurrency(charge.currency)
  const total = stripeMinor(charge.amount_refunded, currency)
  if (!total) return null
  return {
    id: `${readText(charge.id)}:${total}`,
    sourceAt,
    ...paymentReference(readId(charge.payment_intent) ?? readText(charge.id)),
    invoiceId: readId(charge.invoice),
    chargeId: readText(charge.id),
    customer: readId(charge.customer),
    amount: total,
    currency,
    createdAt: sourceAt,
    counts: true,
    fromChargeTotal: true,
  }
}

/** A dispute counts as a refund once it is lost. */
export function readDispute(id: string, { object, sourceAt }: StripeSubject): Refund {
  const currency = knownCurrency(object.currency)
  return {
    id,
    sourceAt,
    kind: 'dispute',
    ...paymentReference(readPaymentId(object)),
    invoiceId: null,
    chargeId: readId(object.charge),
    customer: null,
    amount: stripeMinor(object.amount, currency),
    currency,
    createdAt: sourceAt,
    counts: readText(object.status) === 'lost',
    fromChargeTotal: false,
  }
}

/** The amount of a credit note that was paid outside of Stripe. Its refunds have their own events; credits return no money. */
export function readCreditNote(id: string, { type, object, sourceAt }: StripeSubject): Refund[] {
  const currency = knownCurrency(object.currency)
  const amount = stripeMinor(object.out_of_band_amount, currency)
  if (!amount) return []
  return [
    {
      id,
      sourceAt,
      kind: 'credit_note',
      invoiceId: readId(object.invoice),
      chargeId: null,
      customer: readId(object.customer),
      amount,
      currency,
      createdAt: readInstant(object.created) ?? sourceAt,
      counts: readText(object.status) !== 'void' && !type.endsWith('.voided'),
      fromChargeTotal: false,
    },
  ]
}

/** The whole credit note without tax, however it was settled. */
export function readCredit(id: string, { type, object, sourceAt }: StripeSubject): CreditNote {
  const currency = knownCurrency(object.currency)
  const total = stripeMinor(object.total ?? object.amount, currency)
  return {
    id,
    sourceAt,
    invoiceId: readId(object.invoice),
    amount: stripeMinor(object.total_excluding_tax, currency) ?? (total && total - (readTax(object, currency) ?? 0)),
    currency,
    createdAt: readInstant(object.effective_at) ?? readInstant(object.created) ?? sourceAt,
    counts: readText(object.status) !== 'void' && !type.endsWith('.voided'),
  }
}

/** The lines without tax, after discounts. A one-off line has a period of no length. */
function readLines(invoice: Fields, currency: string | null): ServicePeriod[] {
  const sum = (list: unknown, isCounted = (_: Fields) => true) =>
    readList(list)
      .map(entry => readObject(entry) ?? {})
      .filter(isCounted)
      .reduce((total, entry) => total + (stripeMinor(entry.amount, currency) ?? 0), 0)
  return readList(readObject(invoice.lines)?.data).map(entry => {
    const line = readObject(entry) ?? {}
    const period = readObject(line.period)
    const tax = sum(line.taxes ?? line.tax_amounts, one => one.inclusive === true || one.tax_behavior === 'inclusive')
    return {
      amount: (stripeMinor(line.amount, currency) ?? 0) - sum(line.discount_amounts) - tax,
      from: readInstant(period?.start),
      to: readInstant(period?.end),
    }
  })
}

export function readInvoice(id: string, { type, object, sourceAt }: StripeSubject): InvoiceVersion {
  const currency = knownCurrency(object.currency)
  const transitions = readObject(object.status_transitions)
  const error = paymentError(object)
  return {
    id,
    sourceAt,
    number: readText(object.number),
    subscriptionId: readSubscriptionId(object),
    customer: readId(object.customer),
    customerName: readText(object.customer_name),
    customerEmail: readText(object.customer_email),
    status: readInvoiceStatus(type, object.status ?? (object.paid === true ? 'paid' : null)),
    currency,
    total: stripeMinor(object.total, currency),
    tax: readTax(object, currency),
    amountDue: stripeMinor(object.amount_due, currency),
    amountPaid: stripeMinor(object.amount_paid, currency),
    amountRemaining: stripeMinor(object.amount_remaining, currency),
    attemptCount: readInteger(object.attempt_count, 0) ?? 0,
    nextPaymentAttemptAt: readInstant(object.next_payment_attempt),
    dueAt: readInstant(object.due_date),
    finalizedAt: readInstant(transitions?.finalized_at) ?? readInstant(object.finalized_at),
    paidAt: readInstant(transitions?.paid_at),
    failure: readFailure(
      type,
      readText(error?.decline_code) ?? readText(error?.code) ?? readText(error?.failure_code),
      readText(error?.message) ?? readText(error?.failure_message),
    ),
    ...readServices(readLines(object, currency)),
  }
}

/** In `parent` since 2025, before that on the invoice, else on a line. */
function readSubscriptionId(invoice: Fields): string | null {
  const parent = readObject(readObject(invoice.parent)?.subscription_details)
  const own = readId(parent?.subscription) ?? readId(invoice.subscription)
  if (own) return own
  for (const entry of readList(readObject(invoice.lines)?.data)) {
    const line = readObject(entry)
    const details = readObject(readObject(line?.parent)?.subscription_item_details)
    const named = readId(details?.subscription) ?? readId(line?.subscription)
    if (named) return named
  }
  return null
}

/** Present only if the payment was expanded. Stripe's invoice events contain no reason. */
function paymentError(invoice: Fields): Fields | null {
  const intent = readObject(invoice.payment_intent)
  const charge = readObject(invoice.charge) ?? readObject(intent?.latest_charge)
  return readObject(intent?.last_payment_error) ?? (readText(charge?.failure_code) ? charge : null)
}

function readTax(invoice: Fields, currency: string | null): number | null {
  const whole = stripeMinor(invoice.tax, currency)
  if (whole !== null) return whole
  const taxes = [...readList(invoice.total_taxes ?? invoice.total_tax_amounts)]
  if (taxes.length === 0) return null
  return taxes.reduce((sum: number, tax) => sum + (stripeMinor(readObject(tax)?.amount, currency) ?? 0), 0)
}
