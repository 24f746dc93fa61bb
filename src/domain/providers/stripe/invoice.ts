import {
  type Fields,
  readFailure,
  readId,
  readInstant,
  readInteger,
  readInvoiceStatus,
  readList,
  readObject,
  readText,
} from '../../billing/fields.ts'
import type { InvoiceVersion } from '../../billing/types.ts'
import { knownCurrency } from '../../money.ts'
import { stripeMinor } from './amounts.ts'
import type { StripeSubject } from './subject.ts'

export function invoiceOf(id: string, { type, object, sourceAt }: StripeSubject): InvoiceVersion {
  const currency = knownCurrency(object.currency)
  const transitions = readObject(object.status_transitions)
  const error = paymentError(object)
  return {
    id,
    sourceAt,
    number: readText(object.number),
    subscriptionId: subscriptionIdOf(object),
    customer: readId(object.customer),
    customerName: readText(object.customer_name),
    customerEmail: readText(object.customer_email),
    status: readInvoiceStatus(type, object.status ?? (object.paid === true ? 'paid' : null)),
    currency,
    total: stripeMinor(object.total, currency),
    tax: taxOf(object, currency),
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
  }
}

/** Under `parent` since 2025, before that on the invoice; at last on a line. */
function subscriptionIdOf(invoice: Fields): string | null {
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

/** Only there when the payment was expanded: Stripe's invoice events name no reason by themselves. */
function paymentError(invoice: Fields): Fields | null {
  const intent = readObject(invoice.payment_intent)
  const charge = readObject(invoice.charge) ?? readObject(intent?.latest_charge)
  return readObject(intent?.last_payment_error) ?? (readText(charge?.failure_code) ? charge : null)
}

function taxOf(invoice: Fields, currency: string | null): number | null {
  const whole = stripeMinor(invoice.tax, currency)
  if (whole !== null) return whole
  const taxes = [...readList(invoice.total_taxes ?? invoice.total_tax_amounts)]
  if (taxes.length === 0) return null
  return taxes.reduce((sum: number, tax) => sum + (stripeMinor(readObject(tax)?.amount, currency) ?? 0), 0)
}
