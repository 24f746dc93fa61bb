// The history as Paddle Billing notifies it: subscriptions, transactions, adjustments; amounts as text in minor units.
import type { Business } from './business.ts'
import { iso } from './calendar.ts'
import type { Features } from './features.ts'
import type { Fact, Invoice, Payment, Subscription } from './model.ts'
import {
  addressData,
  adjustmentData,
  chargeData,
  customerData,
  discountData,
  subscriptionData,
  transactionData,
} from './paddle/objects.ts'

/**
 * Features that Paddle cannot express: several discounts of a subscription, discounts of a customer, usage, tiers, and states
 * other than active, past due, paused and canceled. Subscriptions have no tax rate, so inclusive tax cannot be removed.
 */
export const PADDLE_FEATURES: Partial<Features> = {
  suspendedTrials: false,
  incomplete: false,
  stackedCoupons: false,
  customerCoupons: false,
  inclusiveTax: false,
  cancelDates: false,
  actionRequired: false,
  unpaid: false,
  writeOffs: false,
  failedRefunds: false,
  creditNotes: false,
  balances: false,
  partialPayments: false,
  tiers: false,
  metered: false,
  fractions: false,
  testMode: false,
  sameSecond: false,
}
export const PADDLE_CURRENCIES = ['EUR', 'USD', 'JPY']

type PaddleEvent = {
  event_id: string
  event_type: string
  occurred_at: string
  notification_id: string
  data: Record<string, unknown>
}

export function paddleEvents({ facts }: Business): PaddleEvent[] {
  const events: PaddleEvent[] = []
  const moments = new Map<string, number>()
  const attempts = new Map<string, Payment[]>()
  const paused = new Set<string>()
  /** Paddle bills nothing during a pause. This company would create an invoice that is never due. */
  const unbilled = new Set<string>()

  /** Microseconds define the order within a second. */
  function momentOf(id: string, at: number): string {
    const nth = moments.get(`${id} ${at}`) ?? 0
    moments.set(`${id} ${at}`, nth + 1)
    return iso(at).replace('.000Z', `.${String(nth).padStart(6, '0')}Z`)
  }

  function emit(fact: Fact, data: Record<string, unknown> & { id: string }, ...types: string[]): void {
    for (const type of types) {
      const occurred_at = momentOf(data.id, fact.at)
      const key = `${fact.order}${type.replaceAll('.', '')}`
      events.push({
        event_id: `evt_${key}`,
        event_type: type,
        occurred_at,
        notification_id: `ntf_${key}`,
        data: { ...data, updated_at: occurred_at },
      })
    }
  }

  for (const fact of facts) {
    if (fact.kind === 'coupon') emit(fact, discountData(fact.after), 'discount.created')
    if (fact.kind === 'customer') {
      emit(fact, customerData(fact.after), `customer.${fact.what}`)
      if (fact.what === 'created') emit(fact, addressData(fact.after), 'address.created')
    }
    if (fact.kind === 'subscription' && fact.what !== 'trial_will_end') {
      const { after, before, what } = fact
      if (after.pause) paused.add(after.id)
      else paused.delete(after.id)
      emit(fact, subscriptionData(after, fact.at), ...subscriptionTypes(after, before, what))
    }
    if (fact.kind === 'payment') {
      const { payment } = fact
      if (payment.invoice) attempts.set(payment.invoice, [...(attempts.get(payment.invoice) ?? []), payment])
      else emit(fact, chargeData(payment), 'transaction.created', 'transaction.paid', 'transaction.completed')
    }
    if (fact.kind === 'invoice') {
      const { after, what } = fact
      if (what === 'created' && paused.has(after.subscription ?? '')) unbilled.add(after.id)
      const types = transactionTypes(after, what)
      if (types.length > 0 && !unbilled.has(after.id))
        emit(fact, transactionData(after, attempts.get(after.id) ?? []), ...types)
    }
    if (fact.kind === 'refund') emit(fact, adjustmentData(fact.after, 'refund', fact.at), 'adjustment.created')
    if (fact.kind === 'dispute' && fact.after.status === 'lost')
      emit(fact, adjustmentData(fact.after, 'chargeback', fact.at), 'adjustment.created')
  }
  return events
}

function subscriptionTypes(after: Subscription, before: Subscription | null, what: string): string[] {
  if (what === 'deleted') return ['subscription.canceled']
  if (before === null)
    return ['subscription.created', after.status === 'trialing' ? 'subscription.trialing' : 'subscription.activated']
  const types = ['subscription.updated']
  if (before.status === 'trialing' && after.status === 'active') types.push('subscription.activated')
  if (before.status !== 'past_due' && after.status === 'past_due') types.push('subscription.past_due')
  if (before.pause === null && after.pause !== null) types.push('subscription.paused')
  if (before.pause !== null && after.pause === null) types.push('subscription.resumed')
  return types
}

function transactionTypes({ collection, subscription }: Invoice, what: string): string[] {
  if (what === 'finalized')
    return ['transaction.created', collection === 'send_invoice' ? 'transaction.billed' : 'transaction.ready']
  if (what === 'paid') return ['transaction.paid', 'transaction.completed']
  if (what === 'payment_failed')
    return ['transaction.payment_failed', ...(subscription ? ['transaction.past_due'] : [])]
  if (what === 'voided') return ['transaction.canceled']
  return what === 'overdue' ? ['transaction.past_due'] : []
}
