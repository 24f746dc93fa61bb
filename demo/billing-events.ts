import type { Currency } from './catalog.ts'
import { type Arrival, fullName } from './people.ts'
import { type Agreement, buildLines, type Terms } from './subscriptions.ts'
import { isoTime } from './year.ts'

/** What the billing system posts to the inbound route. */
export type BillingEvent = {
  inbound_event_id: string
  event_type: string
  occurred_at: string
  payload: Record<string, unknown> & { id: string }
}

export type SubscriptionState = {
  status: 'active' | 'trialing' | 'past_due' | 'unpaid' | 'paused' | 'incomplete' | 'incomplete_expired' | 'canceled'
  terms: Terms
  periodStart: number
  periodEnd: number
  trialEnd: number | null
  cancelAtPeriodEnd: boolean
  canceledAt: number | null
  endedAt: number | null
  reason: string | null
}

export function subscriptionPayload(agreement: Agreement, state: SubscriptionState, at: number) {
  const { id, person, currency } = agreement
  return {
    id,
    customer: person.id,
    customer_name: fullName(person),
    customer_email: person.email,
    status: state.status,
    currency,
    started_at: isoTime(agreement.startedAt),
    ...(state.trialEnd !== null && { trial_end: isoTime(state.trialEnd) }),
    current_period_start: isoTime(state.periodStart),
    current_period_end: isoTime(state.periodEnd),
    cancel_at_period_end: state.cancelAtPeriodEnd,
    ...(state.canceledAt !== null && { canceled_at: isoTime(state.canceledAt) }),
    ...(state.endedAt !== null && { ended_at: isoTime(state.endedAt) }),
    ...(state.reason !== null && { cancellation_reason: state.reason }),
    collection_method: agreement.collectionMethod,
    updated_at: isoTime(at),
    ...(agreement.knowsAcquisition && { acquisition: buildAcquisition(person.arrival) }),
    items: buildItems(id, state.terms, currency),
    discounts: state.terms.discounts,
  }
}

function buildAcquisition({ utm, referrer, channel }: Arrival) {
  if (utm !== null) return utm
  if (referrer === null) return { source: channel }
  return { source: new URL(referrer).host.replace(/^www\./, ''), medium: 'referral' }
}

function buildItems(subscriptionId: string, terms: Terms, currency: Currency) {
  return buildLines(terms, currency).map((line, i) => ({
    id: `${subscriptionId}-item-${i + 1}`,
    price_id: `price-${line.key}-${currency.toLowerCase()}`,
    product_id: `plan-${line.key.replace(/-(monthly|quarterly|yearly)$/, '')}`,
    name: line.name,
    quantity: line.quantity,
    unit_amount: line.unitCents / 100,
    ...(line.usage !== 'one_time' && { interval: terms.term.interval, interval_count: terms.term.count }),
    usage_type: line.usage,
  }))
}

export type InvoiceState = {
  id: string
  number: string
  status: 'open' | 'paid' | 'uncollectible'
  netCents: number
  taxCents: number
  attempts: number
  nextAttemptAt: number | null
  /** What it pays for. */
  periodStart: number
  periodEnd: number
  finalizedAt: number
  dueAt: number | null
  paidAt: number | null
  failure: { code: string; message: string } | null
}

/** Coffee has the reduced rate; the dollar prices are for states without sales tax on it. */
const TAX_PER_CENT = { EUR: 7, USD: 0 }

export function taxOn(netCents: number, currency: Currency): number {
  return Math.round((netCents * TAX_PER_CENT[currency]) / 100)
}

export function invoicePayload(agreement: Agreement, invoice: InvoiceState, at: number) {
  const total = (invoice.netCents + invoice.taxCents) / 100
  const isPaid = invoice.status === 'paid'
  return {
    id: invoice.id,
    number: invoice.number,
    subscription: agreement.id,
    customer: agreement.person.id,
    customer_email: agreement.person.email,
    status: invoice.status,
    currency: agreement.currency,
    period_start: isoTime(invoice.periodStart),
    period_end: isoTime(invoice.periodEnd),
    total,
    tax: invoice.taxCents / 100,
    amount_due: total,
    amount_paid: isPaid ? total : 0,
    amount_remaining: isPaid ? 0 : total,
    attempt_count: invoice.attempts,
    ...(invoice.nextAttemptAt !== null && { next_payment_attempt: isoTime(invoice.nextAttemptAt) }),
    ...(invoice.dueAt !== null && { due_date: isoTime(invoice.dueAt) }),
    finalized_at: isoTime(invoice.finalizedAt),
    ...(invoice.paidAt !== null && { paid_at: isoTime(invoice.paidAt) }),
    ...(invoice.failure && { failure_code: invoice.failure.code, failure_message: invoice.failure.message }),
    updated_at: isoTime(at),
  }
}
