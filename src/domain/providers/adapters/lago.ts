/** Lago. `object_type` names the field that contains the object. `lago_id` identifies it. Amounts are in minor units. */

import { type Fields, readInstant, readList, readObject, readText } from '../../billing/fields.ts'
import { DAY_MS } from '../../time.ts'
import { type Adapter, minorToMajor, type ProviderEvent, type ProviderFact } from '../adapter.ts'

export const lago: Adapter = {
  recognizes: body =>
    typeof body.webhook_type === 'string' &&
    typeof body.object_type === 'string' &&
    readObject(body[body.object_type]) !== null,
  eventType: body => String(body.webhook_type),
  read(event) {
    const object = readObject(event.body[readText(event.body.object_type) ?? '']) ?? {}
    const [subject] = event.eventType.split('.')
    if (subject === 'subscription') return object.lago_id ? [toSubscription(event, object)] : null
    if (subject === 'invoice') return object.lago_id ? [toInvoice(event, object)] : null
    if (subject === 'credit_note') return object.lago_id ? toRefunds(object) : null
    return subject === 'customer' ? [toCustomer(object)] : []
  },
}

/** The application's id of the customer, which Lago's API uses. */
function readCustomerId(object: Fields): unknown {
  const customer = readObject(object.customer)
  return object.external_customer_id ?? customer?.external_id ?? object.lago_customer_id ?? customer?.lago_id
}

function readCustomerFields(object: Fields): Fields {
  const customer = readObject(object.customer)
  return {
    customer: readCustomerId(object),
    customer_name: customer?.name ?? customer?.legal_name,
    customer_email: customer?.email,
  }
}

function toCustomer(customer: Fields): ProviderFact {
  const { external_id, lago_id, name, legal_name, email, updated_at } = customer
  return {
    type: 'customer.updated',
    payload: { id: external_id ?? lago_id, name: name ?? legal_name, email, updated_at },
  }
}

/** A subscription has no time of change. These events have a time of their own. */
const TIMES: Record<string, string> = {
  'subscription.started': 'started_at',
  'subscription.terminated': 'terminated_at',
  'subscription.canceled': 'canceled_at',
  'subscription.trial_ended': 'trial_ended_at',
}

function toSubscription({ eventType, occurredAt }: ProviderEvent, subscription: Fields): ProviderFact {
  const plan = readObject(subscription.plan) ?? {}
  const currency = plan.amount_currency ?? subscription.plan_amount_currency
  const cents = subscription.plan_amount_cents ?? plan.amount_cents
  const updatedAt = readInstant(subscription[TIMES[eventType] ?? '']) ?? occurredAt
  const trialEnd = computeTrialEnd(subscription, plan)
  const status = readText(subscription.status)
  const isInTrial = status === 'active' && trialEnd !== null && trialEnd > updatedAt
  return {
    type: eventType,
    payload: {
      ...readCustomerFields(subscription),
      id: subscription.lago_id,
      status: isInTrial ? 'trialing' : status,
      currency,
      started_at: subscription.started_at ?? subscription.subscription_at,
      trial_end: trialEnd,
      current_period_start: subscription.current_billing_period_started_at,
      current_period_end: subscription.current_billing_period_ending_at,
      cancel_at: subscription.ending_at,
      canceled_at: subscription.canceled_at ?? subscription.terminated_at,
      ended_at: subscription.terminated_at ?? subscription.canceled_at,
      updated_at: updatedAt,
      items: [
        {
          price_id: plan.code ?? subscription.plan_code,
          product_id: plan.lago_id,
          name: plan.name ?? subscription.plan_code,
          quantity: 1,
          unit_amount: minorToMajor(cents, currency),
          interval: plan.interval,
        },
      ],
    },
  }
}

/** The reported end of the trial, else its length counted from the start; null: no trial. */
function computeTrialEnd(subscription: Fields, plan: Fields): number | null {
  const startedAt = readInstant(subscription.started_at)
  const days = Number(plan.trial_period ?? 0)
  const ended = readInstant(subscription.trial_ended_at)
  if (ended !== null) return ended
  return startedAt !== null && days > 0 ? startedAt + Math.round(days * DAY_MS) : null
}

const STATUSES: Record<string, string> = {
  ...{ draft: 'draft', open: 'draft', generating: 'draft', pending: 'draft' },
  ...{ finalized: 'open', voided: 'void', closed: 'void', failed: 'draft' },
}

function toInvoice({ eventType, occurredAt }: ProviderEvent, invoice: Fields): ProviderFact {
  const amount = (cents: unknown) => minorToMajor(cents, invoice.currency)
  const given = STATUSES[readText(invoice.status) ?? ''] ?? readText(invoice.status)
  const isPaid = invoice.payment_status === 'succeeded' && given === 'open'
  const isFailed = given === 'open' && invoice.payment_status === 'failed'
  const subscription = readObject(readList(invoice.subscriptions)[0])?.lago_id
  const ofFees = readList(invoice.fees).map(fee => readObject(fee)?.lago_subscription_id)
  const updatedAt = invoice.updated_at ?? occurredAt
  const paid = invoice.total_paid_amount_cents ?? (isPaid ? invoice.total_amount_cents : 0)
  return {
    type: eventType === 'invoice.deleted' ? eventType : isFailed ? 'invoice.payment_failed' : 'invoice.updated',
    payload: {
      ...readCustomerFields(invoice),
      id: invoice.lago_id,
      number: invoice.number,
      subscription: subscription ?? ofFees.find(id => readText(id) !== null),
      status: isPaid ? 'paid' : given,
      currency: invoice.currency,
      total: amount(invoice.total_amount_cents),
      tax: amount(invoice.taxes_amount_cents),
      amount_due: amount(invoice.total_amount_cents),
      amount_paid: amount(isPaid ? invoice.total_amount_cents : paid),
      amount_remaining: isPaid ? 0 : amount(invoice.total_due_amount_cents),
      due_date: isFailed || invoice.payment_overdue === true ? invoice.payment_due_date : null,
      finalized_at: invoice.issuing_date ?? invoice.created_at,
      paid_at: isPaid ? updatedAt : null,
      updated_at: updatedAt,
    },
  }
}

/** Only the paid-out part of a credit note is a refund. */
function toRefunds(note: Fields): ProviderFact[] {
  if (!(Number(note.refund_amount_cents ?? 0) > 0)) return []
  return [
    {
      type: 'refund.updated',
      payload: {
        id: note.lago_id,
        invoice: note.lago_invoice_id,
        customer: readCustomerId(note),
        amount: minorToMajor(note.refund_amount_cents, note.currency),
        currency: note.currency,
        created_at: note.created_at,
        updated_at: note.updated_at,
        status: note.refund_status,
      },
    },
  ]
}
