/** Money that came in, or did not: charges, payment intents and the payments of invoices. */

import { type Fields, fieldsOf, idOfReference, instant, listOf, text } from '../../billing/fields.ts'
import type { Instant, Payment, PaymentFailure } from '../../billing/types.ts'
import { failureOf } from '../../billing/vocabulary.ts'
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
  return idOfReference(object.payment_intent) ?? idOfReference(object.charge)
}

function chargePayment(id: string, { object, sourceAt }: StripeSubject): Payment {
  const currency = knownCurrency(object.currency)
  const isFailed = object.status === 'failed'
  const isPaid = (object.status ?? 'succeeded') === 'succeeded' && object.captured !== false
  // since 2025 a charge does not name its invoice; null before that: there is none
  const unlinkedAmount = 'invoice' in object ? null : stripeMinor(object.amount, currency)
  const at = instant(object.created) ?? sourceAt
  return {
    id: idOfReference(object.payment_intent) ?? id,
    sourceAt,
    told: 'charge',
    invoiceId: idOfReference(object.invoice),
    customer: idOfReference(object.customer),
    status: isPaid ? 'succeeded' : isFailed ? 'failed' : null,
    amount: isPaid ? stripeMinor(object.amount_captured ?? object.amount, currency) : null,
    currency,
    at,
    failure: isFailed ? failure(text(object.failure_code), text(object.failure_message)) : null,
    ...(unlinkedAmount && { unlinkedAmount }),
  }
}

function intentPayment(id: string, { type, object, sourceAt }: StripeSubject): Payment {
  const currency = knownCurrency(object.currency)
  const isPaid = object.status === 'succeeded'
  const error = fieldsOf(object.last_payment_error)
  const hasFailed = type.endsWith('.payment_failed') && error !== null
  return {
    id,
    sourceAt,
    told: 'payment_intent',
    invoiceId: idOfReference(object.invoice),
    customer: idOfReference(object.customer),
    status: isPaid ? 'succeeded' : hasFailed ? 'failed' : null,
    amount: isPaid ? stripeMinor(object.amount_received ?? object.amount, currency) : null,
    currency,
    at: sourceAt,
    failure: hasFailed ? failure(text(error.decline_code) ?? text(error.code), text(error.message)) : null,
  }
}

function failure(code: string | null, message: string | null): PaymentFailure | null {
  return failureOf('charge.payment_failed', code, message)
}

/** Links an invoice to what paid it, or is going to. */
function invoicePayment(
  object: Fields,
  sourceAt: Instant,
  invoiceId = idOfReference(object.invoice),
): Payment {
  const currency = knownCurrency(object.currency)
  const payment = fieldsOf(object.payment) ?? {}
  const paidAt = instant(fieldsOf(object.status_transitions)?.paid_at)
  const isPaid = object.status === 'paid'
  return {
    id: paymentIdOf(payment) ?? idOfReference(payment.payment_record) ?? text(object.id) ?? '',
    sourceAt,
    told: 'invoice_payment',
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
  const listed = listOf(fieldsOf(object.payments)?.data).map(entry =>
    invoicePayment(fieldsOf(entry) ?? {}, sourceAt, id),
  )
  const single = paymentIdOf(object)
  const link: Payment[] =
    single === null
      ? []
      : [
          {
            id: single,
            // the same in every event of the invoice: told once
            sourceAt: instant(object.created) ?? sourceAt,
            told: 'invoice',
            invoiceId: id,
            customer: idOfReference(object.customer),
            status: null,
            amount: null,
            currency: null,
            at: instant(object.created) ?? sourceAt,
            failure: null,
          },
        ]
  return [...listed, ...link].filter(payment => payment.id !== '')
}
