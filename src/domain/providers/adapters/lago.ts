/** Lago. `object_type` names the field that contains the object. `lago_id` identifies it. Amounts are in minor units. */

import { type Fields, readInstant, readList, readObject, readText } from '../../billing/fields.ts'
import { decimalText, parseDecimal } from '../../money.ts'
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
    if (subject === 'invoice') return object.lago_id ? [toInvoice(event, object), ...toCouponUse(event, object)] : null
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
      status: isInTrial ? 'trialing' : (status ?? subscription.status),
      currency,
      started_at: subscription.started_at ?? subscription.subscription_at,
      trial_end: trialEnd,
      current_period_start: subscription.current_billing_period_started_at,
      current_period_end: subscription.current_billing_period_ending_at,
      cancel_at: subscription.ending_at,
      canceled_at: subscription.canceled_at ?? subscription.terminated_at,
      ended_at: subscription.terminated_at ?? subscription.canceled_at,
      updated_at: updatedAt,
      items: withCommitment(
        [
          {
            price_id: plan.code ?? subscription.plan_code,
            product_id: plan.lago_id,
            name: plan.name ?? subscription.plan_code,
            quantity: 1,
            unit_amount: minorToMajor(cents, currency),
            interval: plan.interval,
          },
          ...readList(plan.fixed_charges).map(charge => toFixedCharge(readObject(charge) ?? {}, plan)),
        ],
        plan,
        currency,
      ),
      discounts: readList(subscription.applied_coupons).flatMap(coupon => toDiscount(readObject(coupon) ?? {})),
    },
  }
}

/** An add-on that is billed with the plan. Its properties are in major units. */
function toFixedCharge(charge: Fields, plan: Fields): Fields {
  const { amount, graduated_ranges, volume_ranges } = readObject(charge.properties) ?? {}
  const mode = readText(charge.charge_model)
  const ranges = readList(mode === 'graduated' ? graduated_ranges : volume_ranges).map(range => readObject(range) ?? {})
  return {
    price_id: charge.code ?? charge.add_on_code ?? charge.lago_id,
    name: charge.invoice_display_name ?? charge.add_on_code,
    quantity: charge.units,
    interval: plan.bill_fixed_charges_monthly === true ? 'monthly' : plan.interval,
    ...(mode === 'graduated' || mode === 'volume'
      ? {
          tiers_mode: mode,
          billing_scheme: 'tiered',
          tiers: ranges.map(({ to_value, per_unit_amount, flat_amount }) => ({
            ...{ up_to: to_value, unit_amount: per_unit_amount, flat_amount },
          })),
        }
      : { unit_amount: amount }),
  }
}

/**
 * A minimum commitment is charged even without usage. The part above the plan's own amounts is an item of its own. With
 * tiered charges that part is unknown.
 */
function withCommitment(items: Fields[], plan: Fields, currency: unknown): Fields[] {
  const cents = readObject(plan.minimum_commitment)?.amount_cents
  const commitment = parseDecimal(minorToMajor(cents, currency))
  if (cents === undefined || cents === null) return items
  const isSummable = items.every(({ unit_amount, interval }) => unit_amount !== undefined && interval === plan.interval)
  const sum = items.reduce((total, item) => total + Number(item.unit_amount) * Number(item.quantity ?? 1), 0)
  const rest = commitment && isSummable ? Number(decimalText(commitment)) - sum : Number.NaN
  if (rest <= 0) return items
  const price = { price_id: 'minimum_commitment', name: 'Minimum commitment', quantity: 1, interval: plan.interval }
  return [...items, { ...price, unit_amount: Number.isNaN(rest) ? null : rest.toFixed(6) }]
}

/** Without a date, a coupon that recurs for a number of periods has an unknown end. */
function toDiscount(coupon: Fields): Fields[] {
  if (coupon.status === 'terminated' || readInstant(coupon.terminated_at) !== null) return []
  const durations: Record<string, string> = { once: 'once', forever: 'forever', recurring: 'repeating' }
  const isPercentage = coupon.percentage_rate !== undefined && coupon.percentage_rate !== null
  return [
    {
      ...(isPercentage
        ? { percent_off: coupon.percentage_rate }
        : { amount_off: minorToMajor(coupon.amount_cents, coupon.amount_currency), currency: coupon.amount_currency }),
      duration: durations[readText(coupon.frequency) ?? ''] ?? 'unknown',
      ends_at: coupon.ends_at,
    },
  ]
}

/**
 * An invoice shows that a coupon was used, but not for how long it applies. The subscription has a discount with unknown
 * terms from the start of the invoiced period until the next invoice is due.
 */
function toCouponUse(event: ProviderEvent, invoice: Fields): ProviderFact[] {
  const customer = readText(readCustomerId(invoice))
  if (customer === null || !(Number(invoice.coupons_amount_cents ?? 0) > 0)) return []
  if (invoice.status === 'voided' || invoice.invoice_type === 'one_off') return []
  const fee = readList(invoice.fees)
    .map(entry => readObject(entry) ?? {})
    .find(({ from_date }) => readInstant(from_date) !== null)
  const issuedAt = readInstant(invoice.issuing_date) ?? event.occurredAt
  const from = readInstant(fee?.from_date) ?? issuedAt
  const to = readInstant(fee?.to_date) ?? from + 31 * DAY_MS
  return [
    {
      term: {
        ...{ kind: 'discount', id: `coupon of invoice ${invoice.lago_id}`, customer, ofCustomer: true },
        ...{ startsAt: from, endsAt: Math.max(from, issuedAt) + Math.max(to - from, DAY_MS) + DAY_MS },
      },
      at: invoice.updated_at ?? event.occurredAt,
    },
  ]
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
