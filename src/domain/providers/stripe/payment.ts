import {
  type Fields,
  readFailure,
  readId,
  readInstant,
  readList,
  readObject,
  readText,
} from '../../billing/fields.ts'
import type { Instant, Payment, PaymentFailure } from '../../billing/types.ts'
import { knownCurrency } from '../../money.ts'
import { stripeMinor } from './amounts.ts'
import type { StripeSubject } from './subject.ts'

/** What a charge, a payment intent or an `invoice_payment` tells. */
export function paymentsOf(id: string, subject: StripeSubject): Payment[] {
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

/** The same money has one name in charges, refunds and disputes. */
export function paymentIdOf(object: Fields): string | null {
  return readId(object.payment_intent) ?? readId(object.charge)
}

function chargePayment(id: string, { object, sourceAt }: StripeSubject): Payment {
  const currency = knownCurrency(object.currency)
  const isFailed = object.status === 'failed'
  const isPaid = (object.status ?? 'succeeded') === 'succeeded' && object.captured !== false
  // since 2025 a charge does not name its invoice; null before that: there is none
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
    failure: hasFailed
      ? failure(readText(error.decline_code) ?? readText(error.code), readText(error.message))
      : null,
  }
}

function failure(code: string | null, message: string | null): PaymentFailure | null {
  return readFailure('charge.payment_failed', code, message)
}

/** Links an invoice to what paid it, or is going to. */
function invoicePayment(object: Fields, sourceAt: Instant, invoiceId = readId(object.invoice)): Payment {
  const currency = knownCurrency(object.currency)
  const payment = readObject(object.payment) ?? {}
  const paidAt = readInstant(readObject(object.status_transitions)?.paid_at)
  const isPaid = object.status === 'paid'
  return {
    id: paymentIdOf(payment) ?? readId(payment.payment_record) ?? readText(object.id) ?? '',
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

/** The payments that an invoice names: a list since 2025, before that the one intent or charge. */
export function paymentsNamedBy(id: string, { object, sourceAt }: StripeSubject): Payment[] {
  const listed = readList(readObject(object.payments)?.data).map(entry =>
    invoicePayment(readObject(entry) ?? {}, sourceAt, id),
  )
  const single = paymentIdOf(object)
  const link: Payment[] =
    single === null
      ? []
      : [
          {
            id: single,
            // the same in every event of the invoice: told once
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
