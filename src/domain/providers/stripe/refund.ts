import {
  type Fields,
  isEffectiveRefund,
  readId,
  readInstant,
  readList,
  readObject,
  readText,
} from '../../billing/fields.ts'
import type { Instant, Refund } from '../../billing/types.ts'
import { knownCurrency } from '../../money.ts'
import { stripeMinor } from './amounts.ts'
import { paymentIdOf } from './payment.ts'
import type { StripeSubject } from './subject.ts'

/** Refunds an event tells of: a refund itself, those that a charge lists, or else what was added to its total. */
export function refundsOf({ type, object, previous, sourceAt }: StripeSubject): Refund[] {
  if (object.object === 'refund') return [refundOf(type, object, {}, sourceAt)].filter(isNamed)
  if (type !== 'charge.refunded') return []
  const listed = readList(readObject(object.refunds)?.data).map(entry => readObject(entry) ?? {})
  if (listed.length > 0) {
    return listed.map(refund => refundOf('refund.updated', refund, object, sourceAt)).filter(isNamed)
  }
  const added = addedToTotal(object, previous, sourceAt)
  return added ? [added] : []
}

function paymentOf(paymentId: string | null): { paymentId?: string } {
  return paymentId === null ? {} : { paymentId }
}

function isNamed(refund: Refund): boolean {
  return refund.id !== ''
}

function refundOf(type: string, refund: Fields, charge: Fields, sourceAt: Instant): Refund {
  const currency = knownCurrency(refund.currency)
  return {
    id: readText(refund.id) ?? '',
    sourceAt,
    ...paymentOf(paymentIdOf(refund) ?? readId(charge.payment_intent) ?? readId(charge)),
    invoiceId: readId(charge.invoice) ?? readId(readObject(refund.charge)?.invoice),
    chargeId: readId(refund.charge) ?? readId(charge),
    customer: readId(refund.customer) ?? readId(charge.customer),
    amount: stripeMinor(refund.amount, currency),
    currency,
    createdAt: readInstant(refund.created) ?? sourceAt,
    counts: isEffectiveRefund(type, refund.status),
    fromChargeTotal: false,
  }
}

/** The total after a refund names it: two refunds of one charge never leave the same total. */
function addedToTotal(charge: Fields, previous: Fields, sourceAt: Instant): Refund | null {
  const currency = knownCurrency(charge.currency)
  const total = stripeMinor(charge.amount_refunded, currency)
  if (total === null) return null
  return {
    id: `${readText(charge.id)}:${total}`,
    sourceAt,
    ...paymentOf(readId(charge.payment_intent) ?? readText(charge.id)),
    invoiceId: readId(charge.invoice),
    chargeId: readText(charge.id),
    customer: readId(charge.customer),
    amount: Math.max(0, total - (stripeMinor(previous.amount_refunded, currency) ?? 0)),
    currency,
    createdAt: sourceAt,
    counts: true,
    fromChargeTotal: true,
  }
}

/** What a dispute takes, once it is lost, at the time that it was. */
export function disputeOf(id: string, { object, sourceAt }: StripeSubject): Refund {
  const currency = knownCurrency(object.currency)
  return {
    id,
    sourceAt,
    kind: 'dispute',
    ...paymentOf(paymentIdOf(object)),
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

/** What a credit note paid back outside of Stripe: what it refunds is a refund, what it credits stays with us. */
export function creditNoteOf(id: string, { type, object, sourceAt }: StripeSubject): Refund[] {
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
