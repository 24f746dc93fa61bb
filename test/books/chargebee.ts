// The history as events of Chargebee (product catalog 2): each event contains all its objects; amounts in minor units.
import type { Business } from './business.ts'
import {
  couponData,
  creditNoteData,
  customerData,
  invoiceData,
  refundData,
  subscriptionData,
  transactionData,
} from './chargebee/objects.ts'
import type { Features } from './features.ts'
import type { Customer, Fact, FactOf, Invoice, Payment, Subscription } from './model.ts'

/**
 * Features that these events cannot express: states between active and cancelled other than a pause, coupons of a customer,
 * tax rates of a subscription, prices with fractions, charges without an invoice.
 */
export const CHARGEBEE_FEATURES: Partial<Features> = {
  suspendedTrials: false,
  incomplete: false,
  customerCoupons: false,
  inclusiveTax: false,
  actionRequired: false,
  unpaid: false,
  writeOffs: false,
  failedRefunds: false,
  disputes: false,
  creditNotes: false,
  balances: false,
  charges: false,
  fractions: false,
  testMode: false,
}
export const CHARGEBEE_CURRENCIES = ['EUR', 'USD', 'JPY']

type ChargebeeEvent = {
  id: string
  occurred_at: number
  source: 'api' | 'scheduled_job'
  object: 'event'
  api_version: 'v2'
  event_type: string
  webhook_status: 'not_configured' | 'scheduled'
  content: Record<string, object>
}

export function chargebeeEvents({ facts }: Business): ChargebeeEvent[] {
  const customers = new Map<string, Customer>()
  const subscriptions = new Map<string, Subscription>()
  const invoices = new Map<string, Invoice>()
  const payments = new Map<string, Payment[]>()
  const events: ChargebeeEvent[] = []

  function emit(fact: Fact, type: string, content: Record<string, object | null>): void {
    // Ascending milliseconds, which identify the newer of two states.
    const resource_version = fact.at * 1000 + (fact.order % 1000)
    const objects = Object.entries(content).flatMap(([name, object]) =>
      object ? [[name, { ...object, resource_version, updated_at: fact.at, object: name }]] : [],
    )
    events.push({
      id: `ev_${fact.order}_${type}`,
      occurred_at: fact.at,
      source: 'api',
      object: 'event',
      api_version: 'v2',
      event_type: type,
      webhook_status: 'scheduled',
      content: Object.fromEntries(objects) as Record<string, object>,
    })
  }

  const customerOf = (id: string) => customerData(customers.get(id)!)
  const subscriptionOf = (id: string | null) => (id === null ? null : subscriptionData(subscriptions.get(id)!))
  const invoiceOf = (invoice: Invoice) => invoiceData(invoice, payments.get(invoice.id) ?? [])

  function sendInvoice(fact: FactOf<'invoice'>): void {
    const { after, what } = fact
    invoices.set(after.id, after)
    if (after.status === 'draft') return
    const types = {
      finalized: 'invoice_generated',
      payment_failed: 'payment_failed',
      paid: 'payment_succeeded',
      updated: fact.before!.amountPaid === after.amountPaid ? 'invoice_updated' : 'payment_succeeded',
      voided: 'invoice_updated',
      overdue: 'invoice_updated',
    } as Record<string, string>
    const type = after.amountDue === 0 && what === 'paid' ? 'invoice_updated' : types[what]
    if (!type) return
    const transaction = type.startsWith('payment_') ? payments.get(after.id)?.at(-1) : null
    emit(fact, type, {
      ...(transaction && { transaction: transactionData(transaction) }),
      invoice: invoiceOf(after),
      customer: customerOf(after.customer),
      subscription:
        after.subscription && subscriptions.has(after.subscription) ? subscriptionOf(after.subscription) : null,
    })
  }

  for (const fact of facts) {
    if (fact.kind === 'coupon') emit(fact, 'coupon_created', { coupon: couponData(fact.after) })
    if (fact.kind === 'customer') {
      customers.set(fact.after.id, fact.after)
      emit(fact, fact.what === 'created' ? 'customer_created' : 'customer_changed', {
        customer: customerData(fact.after),
      })
    }
    if (fact.kind === 'subscription') {
      subscriptions.set(fact.after.id, fact.after)
      const { customer, id } = fact.after
      emit(fact, subscriptionType(fact), { subscription: subscriptionOf(id), customer: customerOf(customer) })
    }
    if (fact.kind === 'payment' && fact.payment.invoice) {
      const { invoice } = fact.payment
      payments.set(invoice, [...(payments.get(invoice) ?? []), fact.payment])
    }
    if (fact.kind === 'invoice') sendInvoice(fact)
    if (fact.kind === 'refund') {
      const { payment } = fact.after
      emit(fact, 'payment_refunded', {
        transaction: refundData(fact.after),
        invoice: invoiceOf(invoices.get(payment.invoice!)!),
        credit_note: creditNoteData(fact.after),
        customer: customerOf(payment.customer),
        subscription: subscriptionOf(payment.subscription),
      })
    }
  }
  return events
}

function subscriptionType({ what, before, after }: FactOf<'subscription'>): string {
  if (what === 'created') return 'subscription_created'
  if (what === 'deleted') return 'subscription_cancelled'
  if (what === 'trial_will_end') return 'subscription_trial_end_reminder'
  if (before!.status === 'trialing' && after.status === 'active') return 'subscription_activated'
  if (before!.pause === null && after.pause !== null) return 'subscription_paused'
  if (before!.pause !== null && after.pause === null) return 'subscription_resumed'
  if (before!.cancelAt === null && after.cancelAt !== null) return 'subscription_cancellation_scheduled'
  if (before!.cancelAt !== null && after.cancelAt === null) return 'subscription_scheduled_cancellation_removed'
  return before!.periodEnd !== after.periodEnd && before!.items === after.items
    ? 'subscription_renewed'
    : 'subscription_changed'
}
