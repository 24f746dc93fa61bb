/** Paddle Billing: subscriptions, transactions (its invoices), adjustments (its refunds), discounts, customers. */

import {
  type Fields,
  readDecimalText,
  readInstant,
  readInteger,
  readList,
  readObject,
  readText,
} from '../../billing/fields.ts'
import { taxPercent } from '../../billing/tax.ts'
import type { CouponTerms, TaxSplit } from '../../billing/types.ts'
import { type Decimal, decimalText, knownCurrency, parseDecimal, toMinor } from '../../money.ts'
import { DAY_MS } from '../../time.ts'
import { type Adapter, minorToMajor, type ProviderEvent, type ProviderFact } from '../adapter.ts'

export const paddle: Adapter = {
  recognizes: body =>
    typeof body.event_type === 'string' &&
    typeof body.event_id === 'string' &&
    typeof body.occurred_at === 'string' &&
    readObject(body.data) !== null,
  eventType: body => String(body.event_type),
  read(event) {
    const data = readObject(event.body.data) ?? {}
    const [subject] = event.eventType.split('.')
    if (subject === 'subscription') return [toSubscription(event, data)]
    if (subject === 'transaction') return [toInvoice(event, data), ...toTaxes(event, data)]
    if (subject === 'adjustment') {
      const refunds = toRefunds(event, data)
      return refunds && [...refunds, ...toCreditNotes(event, data)]
    }
    if (subject === 'discount') return toCoupons(event, data)
    return subject === 'customer' ? [{ type: 'customer.updated', payload: { ...data, ...readTime(event) } }] : []
  },
}

/** Paddle's times have microseconds, which order the events of one millisecond. */
function readTime({ body }: ProviderEvent): Fields {
  const fraction = /\.\d{3}(\d{3})/.exec(readText(body.occurred_at) ?? '')?.[1]
  return { updated_at: body.occurred_at, ...(fraction && { sequence: Number(fraction) }) }
}

function toSubscription(event: ProviderEvent, data: Fields): ProviderFact {
  const period = readObject(data.current_billing_period)
  const scheduled = readObject(data.scheduled_change)
  const scheduledFor = (action: string) => (scheduled?.action === action ? scheduled.effective_at : null)
  const items = readList(data.items).map(item => readObject(item) ?? {})
  const discount = readObject(data.discount)
  const coupon = readText(discount?.id)
  return {
    type: event.eventType,
    ...(coupon && { coupons: [coupon] }),
    payload: {
      ...readTime(event),
      id: data.id,
      customer: data.customer_id,
      status: data.status,
      currency: data.currency_code,
      started_at: data.started_at ?? data.created_at,
      trial_end: findLatest(items.map(item => readObject(item.trial_dates)?.ends_at)),
      current_period_start: period?.starts_at,
      current_period_end: period?.ends_at,
      cancel_at: scheduledFor('cancel'),
      resumes_at: scheduledFor('resume'),
      canceled_at: data.canceled_at,
      ended_at: data.status === 'canceled' ? data.canceled_at : null,
      collection_method: data.collection_mode === 'manual' ? 'send_invoice' : 'charge_automatically',
      metadata: data.custom_data,
      items: items.map(item => toItem(item, data)),
      discounts: coupon ? [{ coupon, starts_at: discount!.starts_at, ends_at: discount!.ends_at }] : [],
    },
  }
}

function toItem(item: Fields, subscription: Fields): Fields {
  const price = readObject(item.price) ?? {}
  const cycle = readObject(price.billing_cycle)
  const unit = readObject(price.unit_price)
  // which price applies depends on the country of the customer, and Paddle converts prices: only a transaction shows it
  const isOwn = isOnlyPrice(price, subscription.currency_code)
  return {
    // the item stays the same when its product gets a new price
    id: price.product_id,
    price_id: price.id,
    product_id: price.product_id,
    name: readText(readObject(item.product)?.name) ?? price.name ?? price.description,
    quantity: item.quantity,
    ...(isOwn ? { unit_amount: minorToMajor(unit?.amount, unit?.currency_code) } : { price_from_invoice: true }),
    interval: cycle?.interval,
    interval_count: cycle?.frequency,
    ...((item.recurring === false || cycle === null) && { type: 'one_time' }),
    ...(price.tax_mode === 'internal' && { tax_inclusive: true }),
    // the account's setting, or the customer's location, is not part of the subscription
    ...(price.tax_mode !== 'external' && { tax_mode: 'unknown' }),
  }
}

/** Whether the price has only one amount, in this currency. */
function isOnlyPrice(price: Fields, currency: unknown): boolean {
  const unit = readObject(price.unit_price)
  const overrides = readList(price.unit_price_overrides).map(entry => readObject(readObject(entry)?.unit_price))
  const isSame = (other: Fields | null) =>
    other?.currency_code === unit?.currency_code && other?.amount === unit?.amount
  return knownCurrency(unit?.currency_code) === knownCurrency(currency) && overrides.every(isSame)
}

function findLatest(instants: unknown[]): unknown {
  return instants.filter(at => readInstant(at) !== null).sort((a, b) => readInstant(b)! - readInstant(a)!)[0]
}

const STATUSES: Record<string, string> = {
  ...{ draft: 'draft', ready: 'draft', billed: 'open', past_due: 'open' },
  ...{ paid: 'paid', completed: 'paid', canceled: 'void' },
}

function toInvoice(event: ProviderEvent, data: Fields): ProviderFact {
  const totals = readObject(readObject(data.details)?.totals) ?? {}
  const amount = (minor: unknown) => minorToMajor(minor, data.currency_code)
  const payments = readList(data.payments).map(payment => readObject(payment) ?? {})
  const failures = payments.filter(payment => payment.status === 'error')
  const captured = findLatest(payments.map(payment => payment.captured_at))
  // a ready transaction waits for a checkout, unless it was billed: then it is being collected
  const isBilled = data.status === 'ready' && readInstant(data.billed_at) !== null
  const status = isBilled ? 'open' : (STATUSES[readText(data.status) ?? ''] ?? readText(data.status))
  const isPaid = status === 'paid'
  return {
    type: event.eventType === 'transaction.payment_failed' ? 'invoice.payment_failed' : 'invoice.updated',
    payload: {
      ...readTime(event),
      id: data.id,
      number: data.invoice_number,
      subscription: data.subscription_id,
      customer: data.customer_id,
      status,
      currency: data.currency_code,
      total: amount(totals.total),
      tax: amount(totals.tax),
      amount_due: amount(totals.grand_total ?? totals.total),
      amount_paid: isPaid ? amount(totals.grand_total ?? totals.total) : 0,
      amount_remaining: isPaid ? 0 : amount(totals.balance),
      attempt_count: failures.length,
      due_date: computeDueDate(event, data),
      finalized_at: data.billed_at ?? data.created_at,
      paid_at: isPaid ? (captured ?? event.body.occurred_at) : null,
      failure_code: isPaid ? null : failures[0]?.error_code,
      lines: toLines(data),
    },
  }
}

/** The tax of each price of a subscription's transaction; without lines, that of all prices together. */
function toTaxes(event: ProviderEvent, data: Fields): ProviderFact[] {
  const id = readText(data.subscription_id)
  const details = readObject(data.details)
  const lines = readList(details?.line_items).map(line => readObject(line) ?? {})
  const amount = (minor: unknown) => parseDecimal(minorToMajor(minor, data.currency_code))
  const netPrices = new Set(
    readList(data.items).flatMap(item => {
      const price = readObject(readObject(item)?.price)
      const isNet = price?.tax_mode === 'external' && isOnlyPrice(price, data.currency_code)
      return isNet ? (readText(price.id) ?? []) : []
    }),
  )
  const splits = lines.flatMap(line => {
    const price = readText(line.price_id)
    // a prorated line shows a part of the price
    return price === null || netPrices.has(price) || readObject(line.proration)
      ? []
      : [[price, toSplit(line, line.unit_totals, amount)] as const]
  })
  const totals = toSplit({}, details?.totals, amount)
  const all = lines.length > 0 ? splits : [['*', totals && { ...totals, isTotal: true as const }] as const]
  const taxes = Object.fromEntries(all.filter(([, split]) => split !== null)) as Record<string, TaxSplit>
  if (id === null || Object.keys(taxes).length === 0) return []
  return [{ term: { kind: 'tax', id, subscription: id, taxes }, at: event.body.occurred_at }]
}

/** null: nothing was charged, as in a trial. */
function toSplit(line: Fields, given: unknown, amount: (minor: unknown) => Decimal | null): TaxSplit | null {
  const totals = readObject(given) ?? {}
  const [net, discount, tax] = [amount(totals.subtotal), amount(totals.discount ?? 0), amount(totals.tax)]
  if (!net || !discount || net.digits <= 0n) return null
  const rate = parseDecimal(line.tax_rate)
  const charged = { digits: net.digits - discount.digits, scale: net.scale }
  const percent = rate ? taxPercent(rate, { digits: 1n, scale: 0 }) : taxPercent(tax, charged)
  return percent === null ? null : { percent, net: decimalText(net) }
}

/** A one-time price has no billing cycle and no service period. */
function toLines(data: Fields): Fields[] {
  const prices = readList(data.items).map(item => readObject(readObject(item)?.price) ?? {})
  return readList(readObject(data.details)?.line_items).map(entry => {
    const line = readObject(entry) ?? {}
    const totals = readObject(line.totals) ?? {}
    const isOneTime = prices.some(price => price.id === line.price_id && price.billing_cycle === null)
    const period = readObject(readObject(line.proration)?.billing_period) ?? readObject(data.billing_period)
    const net = Number(totals.total ?? 0) - Number(totals.tax ?? 0)
    return {
      amount: minorToMajor(net, data.currency_code),
      ...(!isOneTime && { period_start: period?.starts_at, period_end: period?.ends_at }),
    }
  })
}

/** For manual collection: the billing date plus the payment terms, at the latest when Paddle reports it past due. */
function computeDueDate({ eventType, occurredAt }: ProviderEvent, data: Fields): number | null {
  const terms = readObject(readObject(data.billing_details)?.payment_terms)
  const billedAt = readInstant(data.billed_at)
  const units: Record<string, number> = { day: 1, week: 7, month: 30, year: 365 }
  const days = units[readText(terms?.interval) ?? '']
  const frequency = readInteger(terms?.frequency, 0)
  if (data.collection_mode !== 'manual') return null
  const due = billedAt !== null && days && frequency !== null ? billedAt + frequency * days * DAY_MS : null
  return eventType === 'transaction.past_due' ? Math.min(due ?? occurredAt, occurredAt) : due
}

/** Only refunds and chargebacks return money to the customer. Credits reduce what the customer owes. */
function toRefunds(event: ProviderEvent, data: Fields): ProviderFact[] | null {
  const action = readText(data.action)
  if (action === 'credit' || action === 'credit_reverse' || action === 'chargeback_warning') return []
  if ((action !== 'refund' && action !== 'chargeback') || data.status === 'pending_approval')
    return data.status === 'pending_approval' ? [] : null
  return [
    {
      type: 'refund.updated',
      ...(action === 'chargeback' && { isDispute: true as const }),
      payload: {
        ...readTime(event),
        id: data.id,
        invoice: data.transaction_id,
        customer: data.customer_id,
        amount: minorToMajor(readObject(data.totals)?.total, data.currency_code),
        currency: data.currency_code,
        created_at: data.created_at,
        status: data.status === 'approved' ? 'succeeded' : 'canceled',
      },
    },
  ]
}

/** Paddle issues a credit note for every approved credit and refund. */
function toCreditNotes(event: ProviderEvent, data: Fields): ProviderFact[] {
  const isCredit = data.action === 'credit' || data.action === 'refund'
  if (!isCredit || data.status === 'pending_approval') return []
  const totals = readObject(data.totals)
  return [
    {
      type: 'credit_note.updated',
      payload: {
        ...readTime(event),
        id: data.id,
        invoice: data.transaction_id,
        amount: minorToMajor(totals?.total, data.currency_code),
        tax: minorToMajor(totals?.tax, data.currency_code),
        currency: data.currency_code,
        created_at: data.created_at,
        status: data.status === 'approved' ? 'issued' : 'void',
      },
    },
  ]
}

/** The subscription contains the end of the discount. A flat discount per seat is not supported. */
function toCoupons(event: ProviderEvent, data: Fields): ProviderFact[] {
  const id = readText(data.id)
  const currency = knownCurrency(data.currency_code)
  const amountOff = currency && data.type === 'flat' ? toMinor(minorToMajor(data.amount, currency), currency) : null
  const coupon: CouponTerms = {
    percentOff: data.type === 'percentage' ? readDecimalText(data.amount) : null,
    amountsOff: currency && amountOff !== null ? { [currency]: amountOff } : {},
    duration: data.recur !== true ? 'once' : data.maximum_recurring_intervals == null ? 'forever' : 'repeating',
    months: null,
    productIds: Array.isArray(data.restrict_to) ? data.restrict_to.flatMap(id => readText(id) ?? []) : null,
  }
  const isKnown = coupon.percentOff !== null || amountOff !== null
  return id && isKnown ? [{ term: { kind: 'coupon', id, coupon }, at: event.body.occurred_at }] : []
}

/** The sale of a completed transaction; null: another event. */
export function paddleSale(body: Fields): { id: unknown; amount: unknown; currency: unknown; data: Fields } | null {
  if (body.event_type !== 'transaction.completed' || !paddle.recognizes(body)) return null
  const data = readObject(body.data)!
  const totals = readObject(readObject(data.details)?.totals) ?? {}
  const amount = minorToMajor(totals.grand_total ?? totals.total, data.currency_code)
  return { id: data.id, amount, currency: data.currency_code, data }
}
