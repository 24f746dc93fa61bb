// The history as canonical payloads: the complete object after each change, amounts in major units.
import type { Business } from './business.ts'
import { iso } from './calendar.ts'
import type { Features } from './features.ts'
import { pricePerPeriod } from './invoicing.ts'
import type { Customer, Discount, Fact, FactOf, Invoice, Item, Subscription } from './model.ts'
import { digitsOf, major, rounded } from './money.ts'

/** Features that canonical payloads cannot express. */
export const CANONICAL_FEATURES: Partial<Features> = {
  disputes: false,
  creditNotes: false,
  balances: false,
  charges: false,
  partialPayments: false,
  failedRefunds: false,
}

type CanonicalEvent = {
  inbound_event_id: string
  event_type: string
  occurred_at: string
  payload: Record<string, unknown>
}

export function canonicalEvents({ facts, seed }: Business): CanonicalEvent[] {
  const customers = new Map<string, Customer>()
  const subscriptions = new Map<string, Subscription>()
  const events: CanonicalEvent[] = []

  function emit(fact: Fact, type: string, payload: Record<string, unknown>): void {
    const id = `${seed}-${fact.order}-${events.length}`
    const sequence = fact.order
    events.push({
      inbound_event_id: id,
      event_type: type,
      occurred_at: iso(fact.at),
      payload: { ...payload, sequence, updated_at: iso(fact.at) },
    })
  }

  function sendSubscription(fact: Fact, what: string, subscription: Subscription): void {
    emit(
      fact,
      `subscription.${what}`,
      subscriptionPayload(subscription, customers.get(subscription.customer)!, fact.at),
    )
  }

  for (const fact of facts) {
    if (fact.kind === 'customer') {
      customers.set(fact.after.id, fact.after)
      const { before } = fact
      const ranOut = before?.discount?.end === fact.at && fact.after.discount === null
      if (before && before.discount !== fact.after.discount && !ranOut)
        for (const subscription of subscriptions.values())
          if (subscription.customer === fact.after.id && subscription.endedAt === null)
            sendSubscription(fact, 'updated', subscription)
    }
    if (fact.kind === 'subscription') {
      subscriptions.set(fact.after.id, fact.after)
      if (!happensByItself(fact, customers.get(fact.after.customer)!)) sendSubscription(fact, fact.what, fact.after)
    }
    if (fact.kind === 'invoice' && fact.what !== 'sent') emit(fact, `invoice.${fact.what}`, invoicePayload(fact.after))
    if (fact.kind === 'refund') {
      const { id, amount, payment } = fact.after
      emit(fact, 'refund.created', {
        id,
        invoice: payment.invoice,
        amount: major(amount, payment.currency),
        currency: payment.currency,
        created_at: iso(fact.at),
        ...(!payment.livemode && { livemode: false }),
      })
    }
  }
  return events
}

/** The end of a discount or of a pause with a date needs no payload. A customer's discount that replaces it does. */
function happensByItself(fact: FactOf<'subscription'>, { discount }: Customer): boolean {
  if (fact.cause === 'discount_end') return discount === null
  return fact.cause === 'resume' && fact.before?.pause?.resumesAt === fact.at
}

function subscriptionPayload(subscription: Subscription, customer: Customer, at: number) {
  const { discounts, tax, pause, status, livemode, country } = subscription
  const isResting = pause !== null && (pause.resumesAt ?? Infinity) > at
  const counting = discounts.length > 0 || !customer.discount ? discounts : [customer.discount]
  return {
    id: subscription.id,
    customer: customer.id,
    customer_name: customer.name,
    customer_email: customer.email,
    status: isResting && status !== 'canceled' ? 'paused' : status,
    currency: subscription.currency,
    started_at: iso(subscription.startedAt),
    trial_end: time(subscription.trialEnd),
    current_period_start: iso(subscription.periodStart),
    current_period_end: iso(subscription.periodEnd),
    cancel_at_period_end: subscription.cancelAtPeriodEnd,
    cancel_at: time(subscription.cancelAt),
    canceled_at: time(subscription.canceledAt),
    ended_at: time(subscription.endedAt),
    cancellation_reason: subscription.cancelReason,
    collection_method: subscription.collection,
    ...(isResting && pause.resumesAt !== null && { resumes_at: iso(pause.resumesAt) }),
    ...(tax && { tax_percent: tax.percent, tax_inclusive: tax.inclusive }),
    ...(subscription.acquisition && { acquisition: subscription.acquisition }),
    metadata: country ? { country } : {},
    items: subscription.items.map(itemPayload),
    discounts: counting.map(discountPayload),
    ...(!livemode && { livemode: false }),
  }
}

/** Tiers are sent as the price of all seats together. */
function itemPayload({ id, price, quantity }: Item) {
  const { currency, unitAmount, tiers } = price
  const digits = 10 ** digitsOf(currency)
  const amount = tiers ? rounded(pricePerPeriod(price, quantity)!) : unitAmount
  return {
    id,
    price_id: price.id,
    product_id: price.product,
    name: price.name,
    quantity: tiers ? 1 : quantity,
    unit_amount: amount === null ? null : amount / digits,
    interval: price.interval,
    interval_count: price.intervalCount,
    usage_type: price.usage,
  }
}

function discountPayload({ id, coupon, end }: Discount) {
  const { percentOff, amountOff, currency, duration } = coupon
  return {
    id,
    ...(percentOff === null ? { amount_off: major(amountOff!, currency!) } : { percent_off: percentOff }),
    duration,
    ends_at: time(end),
  }
}

function invoicePayload(invoice: Invoice) {
  const money = (amount: number) => major(amount, invoice.currency)
  return {
    id: invoice.id,
    number: invoice.number,
    subscription: invoice.subscription,
    customer: invoice.customer,
    status: invoice.status,
    currency: invoice.currency,
    total: money(invoice.total),
    tax: money(invoice.tax),
    amount_due: money(invoice.amountDue),
    amount_paid: money(invoice.amountPaid),
    amount_remaining: money(invoice.amountRemaining),
    attempt_count: invoice.attempts,
    next_payment_attempt: time(invoice.nextAttemptAt),
    due_date: time(invoice.dueAt),
    finalized_at: time(invoice.finalizedAt),
    paid_at: time(invoice.paidAt),
    failure_code: invoice.failure?.code ?? null,
    failure_message: invoice.failure?.message ?? null,
    ...(!invoice.livemode && { livemode: false }),
  }
}

function time(at: number | null): string | null {
  return at === null ? null : iso(at)
}
