import { type Fields, fieldsOf, idOfReference, instant, listOf, text, whole } from '../../billing/fields.ts'
import type { InvoiceVersion } from '../../billing/types.ts'
import { failureOf, invoiceStatus } from '../../billing/vocabulary.ts'
import { knownCurrency } from '../../money.ts'
import { stripeMinor } from './amounts.ts'
import type { StripeSubject } from './subject.ts'

export function invoiceOf(id: string, { type, object, sourceAt }: StripeSubject): InvoiceVersion {
  const currency = knownCurrency(object.currency)
  const transitions = fieldsOf(object.status_transitions)
  const error = paymentError(object)
  return {
    id,
    sourceAt,
    number: text(object.number),
    subscriptionId: subscriptionIdOf(object),
    customer: idOfReference(object.customer),
    customerName: text(object.customer_name),
    customerEmail: text(object.customer_email),
    status: invoiceStatus(type, object.status ?? (object.paid === true ? 'paid' : null)),
    currency,
    total: stripeMinor(object.total, currency),
    tax: taxOf(object, currency),
    amountDue: stripeMinor(object.amount_due, currency),
    amountPaid: stripeMinor(object.amount_paid, currency),
    amountRemaining: stripeMinor(object.amount_remaining, currency),
    attemptCount: whole(object.attempt_count, 0) ?? 0,
    nextPaymentAttemptAt: instant(object.next_payment_attempt),
    dueAt: instant(object.due_date),
    finalizedAt: instant(transitions?.finalized_at) ?? instant(object.finalized_at),
    paidAt: instant(transitions?.paid_at),
    failure: failureOf(
      type,
      text(error?.decline_code) ?? text(error?.code) ?? text(error?.failure_code),
      text(error?.message) ?? text(error?.failure_message),
    ),
  }
}

/** Under `parent` since 2025, before that on the invoice; at last on a line. */
function subscriptionIdOf(invoice: Fields): string | null {
  const parent = fieldsOf(fieldsOf(invoice.parent)?.subscription_details)
  const own = idOfReference(parent?.subscription) ?? idOfReference(invoice.subscription)
  if (own) return own
  for (const entry of listOf(fieldsOf(invoice.lines)?.data)) {
    const line = fieldsOf(entry)
    const details = fieldsOf(fieldsOf(line?.parent)?.subscription_item_details)
    const named = idOfReference(details?.subscription) ?? idOfReference(line?.subscription)
    if (named) return named
  }
  return null
}

/** Only there when the payment was expanded: Stripe's invoice events name no reason by themselves. */
function paymentError(invoice: Fields): Fields | null {
  const intent = fieldsOf(invoice.payment_intent)
  const charge = fieldsOf(invoice.charge) ?? fieldsOf(intent?.latest_charge)
  return fieldsOf(intent?.last_payment_error) ?? (text(charge?.failure_code) ? charge : null)
}

function taxOf(invoice: Fields, currency: string | null): number | null {
  const whole = stripeMinor(invoice.tax, currency)
  if (whole !== null) return whole
  const taxes = [...listOf(invoice.total_taxes ?? invoice.total_tax_amounts)]
  if (taxes.length === 0) return null
  return taxes.reduce((sum: number, tax) => sum + (stripeMinor(fieldsOf(tax)?.amount, currency) ?? 0), 0)
}
