/** Chargebee (product catalog 1 and 2). An event contains every object that it concerns, with amounts in minor units. */

import { type Fields, readDecimalText, readInteger, readList, readObject, readText } from '../../billing/fields.ts'
import { taxPercent } from '../../billing/tax.ts'
import type { CouponTerms } from '../../billing/types.ts'
import { compareDecimals, decimalText, knownCurrency, multiplyDecimals, parseDecimal, toMinor } from '../../money.ts'
import { type Adapter, flatPrice, minorToMajor, type ProviderEvent, type ProviderFact } from '../adapter.ts'

export const chargebee: Adapter = {
  recognizes: body =>
    body.object === 'event' && typeof body.event_type === 'string' && readObject(body.content) !== null,
  eventType: body => String(body.event_type),
  read(event) {
    const content = readObject(event.body.content) ?? {}
    const facts = [
      ...readObjectFact(content.customer, customer => toCustomer(event, customer)),
      ...readObjectFact(content.subscription, subscription => toSubscription(event, subscription)),
      ...readObjectFact(content.invoice, invoice => toInvoice(event, invoice, readObject(content.transaction))),
      ...readObjectFact(content.invoice, invoice => toTaxes(event, invoice)),
      ...readObjectFact(content.transaction, transaction => toRefund(event, transaction, content)),
      ...readObjectFact(content.credit_note, note => toCreditNote(event, note)),
      ...readObjectFact(content.coupon, coupon => toCoupon(event, coupon)),
    ]
    const isBilling = /^(subscription|invoice|payment|refund|credit_note|transaction)_/.test(event.eventType)
    return facts.length === 0 && isBilling ? null : facts
  },
}

function readObjectFact(object: unknown, read: (object: Fields) => ProviderFact | null): ProviderFact[] {
  const fields = readObject(object)
  const fact = fields && readText(fields.id) ? read(fields) : null
  return fact ? [fact] : []
}

/** `resource_version` orders states of the same second. */
function readTime({ body }: ProviderEvent, object: Fields): Fields {
  const sequence = readInteger(object.resource_version, 0)
  return { updated_at: object.updated_at ?? body.occurred_at, ...(sequence !== null && { sequence }) }
}

function toCustomer(event: ProviderEvent, customer: Fields): ProviderFact {
  const name = [readText(customer.first_name), readText(customer.last_name)].filter(Boolean).join(' ')
  const { id, email } = customer
  return {
    type: 'customer.updated',
    payload: { ...readTime(event, customer), id, name: name || customer.company, email },
  }
}

function toSubscription(event: ProviderEvent, subscription: Fields): ProviderFact {
  const status = readText(subscription.status)
  const isEnded = status === 'cancelled' || status === 'transferred'
  const isDeleted = event.eventType === 'subscription_deleted' || subscription.deleted === true
  const listed = readList(subscription.coupons).map(coupon => readObject(coupon) ?? {})
  // older versions of the API have a single coupon
  const single = readText(subscription.coupon)
  const coupons = listed.length > 0 || single === null ? listed : [{ coupon_id: single }]
  return {
    type: isDeleted ? 'subscription.deleted' : 'subscription.updated',
    coupons: coupons.flatMap((coupon: Fields) => readText(coupon.coupon_id) ?? []),
    payload: {
      ...readTime(event, subscription),
      id: subscription.id,
      customer: subscription.customer_id,
      // the start date makes it active
      status: status === 'future' ? 'active' : isEnded ? 'canceled' : (status ?? subscription.status),
      currency: subscription.currency_code,
      started_at: subscription.started_at ?? subscription.start_date ?? subscription.created_at,
      trial_end: subscription.trial_end,
      current_period_start: subscription.current_term_start,
      current_period_end: subscription.current_term_end ?? subscription.next_billing_at,
      // a scheduled cancellation, also during a trial; without a date it takes effect at the end of the term
      cancel_at: isEnded
        ? null
        : (subscription.cancelled_at ?? (status === 'non_renewing' ? subscription.current_term_end : null)),
      canceled_at: isEnded ? subscription.cancelled_at : subscription.cancel_schedule_created_at,
      ended_at: isEnded ? subscription.cancelled_at : null,
      resumes_at: subscription.resume_date,
      cancellation_reason: readReason(subscription),
      collection_method: subscription.auto_collection === 'off' ? 'send_invoice' : 'charge_automatically',
      metadata: subscription.meta_data,
      items: toItems(subscription),
      discounts: [
        ...coupons.map((coupon: Fields) => ({ coupon: coupon.coupon_id, ends_at: coupon.apply_till })),
        ...readList(subscription.discounts).map(entry => toDiscount(readObject(entry) ?? {}, subscription)),
      ],
    },
  }
}

const UNPAID_REASONS = /^(not_paid|no_card|payment_failed)$/

function readReason({ cancel_reason, cancel_reason_code }: Fields): unknown {
  return UNPAID_REASONS.test(readText(cancel_reason) ?? '') ? 'payment_failed' : (cancel_reason_code ?? cancel_reason)
}

function toItems(subscription: Fields): Fields[] {
  const term = { interval: subscription.billing_period_unit, interval_count: subscription.billing_period }
  const tax = (item: Fields) =>
    (item.price_type ?? subscription.price_type) === 'tax_inclusive'
      ? { tax_inclusive: true }
      : { tax_mode: 'exclusive' }
  const given = readList(subscription.subscription_items).map(item => readObject(item) ?? {})
  if (given.length > 0)
    return given.map(item => ({
      ...term,
      price_id: item.item_price_id,
      name: item.item_price_id,
      ...(item.item_type === 'charge' && { type: 'one_time' }),
      ...(item.metered_quantity !== undefined && { usage_type: 'metered' }),
      ...toPrice(item, subscription),
      ...tax(item),
    }))
  // product catalog 1: one plan and add-ons
  const plan = Object.fromEntries(
    Object.entries(subscription).flatMap(([name, value]) => (name.startsWith('plan_') ? [[name.slice(5), value]] : [])),
  )
  const addons = readList(subscription.addons).map(addon => readObject(addon) ?? {})
  return [plan, ...addons].map(item => ({
    ...{ ...term, price_id: item.id, name: item.id },
    ...toPrice(item, subscription),
    ...tax({}),
  }))
}

/**
 * With tiers, packages or free units, only the price of all units together is given. Fields that end in `_in_decimal` are in
 * major units and replace the others.
 */
function toPrice(item: Fields, { currency_code }: Fields): Fields {
  const read = (name: string) => item[`${name}_in_decimal`] ?? minorToMajor(item[name], currency_code)
  const quantity = item.quantity_in_decimal ?? item.quantity
  const free = parseDecimal(item.free_quantity_in_decimal ?? item.free_quantity ?? 0)
  const [unit, total, units] = [read('unit_price'), parseDecimal(read('amount')), parseDecimal(quantity ?? 1)]
  if (!total && read('amount') != null) return { quantity, unit_amount: read('amount') }
  const price = parseDecimal(unit)
  const product = price && units && multiplyDecimals(price, units)
  if (total)
    return product && compareDecimals(product, total) === 0
      ? { quantity, unit_amount: unit }
      : { quantity, ...flatPrice(decimalText(total)) }
  // without a total, free units have to be subtracted
  const paid =
    free && units && free.digits > 0n ? Math.max(0, Number(decimalText(units)) - Number(decimalText(free))) : quantity
  return { quantity: paid, unit_amount: unit }
}

const DURATIONS: Record<string, CouponTerms['duration']> = {
  one_time: 'once',
  forever: 'forever',
  limited_period: 'repeating',
}

function readDuration(value: unknown): CouponTerms['duration'] {
  return DURATIONS[readText(value) ?? ''] ?? 'unknown'
}

function toDiscount(discount: Fields, subscription: Fields): Fields {
  return {
    ...(discount.type === 'percentage'
      ? { percent_off: discount.percentage }
      : {
          amount_off: minorToMajor(discount.amount, discount.currency_code ?? subscription.currency_code),
          currency: discount.currency_code,
        }),
    duration: APPLY_ON.has(String(discount.apply_on ?? 'invoice_amount'))
      ? readDuration(discount.duration_type)
      : 'unknown',
    ends_at: discount.apply_till,
    ...(discount.apply_on === 'specific_item_price' && { applies_to: [discount.item_price_id] }),
  }
}

const APPLY_ON = new Set(['invoice_amount', 'specific_item_price'])

/** The prices that a coupon applies to; null: all; undefined: they are not listed. */
function readTargets(coupon: Fields, isPercentage: boolean): string[] | null | undefined {
  if (coupon.apply_on === undefined || coupon.apply_on === 'invoice_amount') return null
  if (coupon.apply_on !== 'each_specified_item' && coupon.apply_on !== 'specified_items_total') return undefined
  const given = readList(coupon.item_constraints).map(entry => readObject(entry) ?? {})
  // product catalog 1
  const constraints =
    given.length > 0
      ? given.map(({ constraint, item_price_ids }) => ({ constraint, ids: item_price_ids }))
      : [
          { constraint: coupon.plan_constraint, ids: coupon.plan_ids },
          { constraint: coupon.addon_constraint, ids: coupon.addon_ids },
        ]
  const isListed = constraints.every(({ constraint }) => constraint === 'specific' || constraint === 'none')
  if (!isListed) return undefined
  const ids = constraints.flatMap(({ constraint, ids }) => (constraint === 'specific' ? readList(ids) : []))
  const targets = ids.flatMap(id => readText(id) ?? [])
  // an amount is subtracted from each of several items
  return isPercentage || targets.length === 1 || coupon.apply_on === 'specified_items_total' ? targets : undefined
}

/** The terms of a coupon for items that the event does not list stay unknown. */
function toCoupon(event: ProviderEvent, object: Fields): ProviderFact | null {
  const currency = knownCurrency(object.currency_code)
  const amountOff = currency && toMinor(minorToMajor(object.discount_amount, currency), currency)
  const percentOff = object.discount_type === 'percentage' ? readDecimalText(object.discount_percentage) : null
  const productIds = readTargets(object, percentOff !== null)
  if (productIds === undefined || (percentOff === null && !amountOff)) return null
  const period = readInteger(object.period ?? object.duration_month, 1)
  const coupon: CouponTerms = {
    percentOff,
    amountsOff: percentOff === null && currency && amountOff ? { [currency]: amountOff } : {},
    duration: readDuration(object.duration_type),
    months: period && (object.period_unit === 'year' ? 12 * period : period),
    productIds,
  }
  return { term: { kind: 'coupon', id: readText(object.id)!, coupon }, at: readTime(event, object).updated_at }
}

const STATUSES: Record<string, string> = {
  ...{ paid: 'paid', posted: 'open', payment_due: 'open', not_paid: 'open', voided: 'void', pending: 'draft' },
}

function toInvoice(event: ProviderEvent, invoice: Fields, transaction: Fields | null): ProviderFact {
  const amount = (minor: unknown) => minorToMajor(minor, invoice.currency_code)
  const status = STATUSES[readText(invoice.status) ?? ''] ?? readText(invoice.status)
  const attempts = readList(invoice.linked_payments).map(payment => readObject(payment) ?? {})
  const failures = attempts.filter(attempt => attempt.txn_status === 'failure')
  const isFailed = status === 'open' && (event.eventType === 'payment_failed' || invoice.dunning_status != null)
  const paid = Number(invoice.amount_paid ?? 0)
  const remaining = Number(invoice.amount_due ?? 0)
  return {
    type:
      event.eventType === 'invoice_deleted'
        ? 'invoice.deleted'
        : isFailed
          ? 'invoice.payment_failed'
          : 'invoice.updated',
    payload: {
      ...readTime(event, invoice),
      id: invoice.id,
      number: invoice.id,
      subscription: invoice.subscription_id,
      customer: invoice.customer_id,
      status,
      currency: invoice.currency_code,
      total: amount(invoice.total),
      tax: amount(invoice.tax),
      amount_due: amount(status === 'void' ? invoice.total : paid + remaining),
      amount_paid: amount(paid),
      amount_remaining: amount(remaining),
      attempt_count: failures.length,
      next_payment_attempt: invoice.next_retry_at,
      // an invoice that is charged automatically is due immediately, which is no issue
      due_date: Number(invoice.net_term_days ?? 0) > 0 ? invoice.due_date : null,
      finalized_at: invoice.date,
      paid_at: invoice.paid_at,
      ...(isFailed && { failure_code: transaction?.error_code, failure_message: transaction?.error_text }),
      lines: readList(invoice.line_items).map(entry =>
        toLine(readObject(entry) ?? {}, invoice.price_type === 'tax_inclusive', amount),
      ),
    },
  }
}

/** Only invoices show whether prices include tax, for all prices alike, and the rate of each line. */
function toTaxes(event: ProviderEvent, invoice: Fields): ProviderFact | null {
  const id = readText(invoice.subscription_id)
  const inclusive = invoice.price_type === 'tax_inclusive'
  if (id === null || (!inclusive && invoice.price_type !== 'tax_exclusive')) return null
  const lines = inclusive ? readList(invoice.line_items).map(line => readObject(line) ?? {}) : []
  const rates = lines.flatMap(line => {
    const price = readText(line.entity_id)
    const isUntaxed = line.is_taxed === false || readDecimalText(line.tax_amount) === '0'
    const percent = readDecimalText(line.tax_rate) ?? (isUntaxed ? '0' : null)
    return price === null ? [] : [[price, { inclusive, percent }] as const]
  })
  const [tax, total] = [parseDecimal(invoice.tax), parseDecimal(invoice.total)]
  const net = tax && total && { digits: total.digits - tax.digits, scale: 0 }
  // a price that is not on the invoice also includes tax
  const percent = inclusive && rates.length === 0 ? taxPercent(tax, net) : null
  const taxes = { ...Object.fromEntries(rates), '*': { inclusive, percent } }
  return { term: { kind: 'tax', id, subscription: id, taxes }, at: readTime(event, invoice).updated_at }
}

/** A charge has a period of no length. */
function toLine(line: Fields, isInclusive: boolean, amount: (minor: unknown) => string | undefined): Fields {
  const tax = isInclusive ? Number(line.tax_amount ?? 0) : 0
  return {
    amount: amount(Number(line.amount ?? 0) - Number(line.discount_amount ?? 0) - tax),
    period_start: line.date_from,
    period_end: line.date_to,
  }
}

function toCreditNote(event: ProviderEvent, note: Fields): ProviderFact {
  return {
    type: event.eventType === 'credit_note_deleted' ? 'credit_note.deleted' : 'credit_note.updated',
    payload: {
      ...readTime(event, note),
      id: note.id,
      invoice: note.reference_invoice_id,
      amount: minorToMajor(note.total, note.currency_code),
      tax: minorToMajor(sumTaxes(note), note.currency_code),
      currency: note.currency_code,
      created_at: note.date,
      status: note.status,
    },
  }
}

function sumTaxes(note: Fields): number {
  return readList(note.taxes).reduce<number>((sum, tax) => sum + Number(readObject(tax)?.amount ?? 0), 0)
}

function toRefund(event: ProviderEvent, transaction: Fields, content: Fields): ProviderFact | null {
  if (transaction.type !== 'refund') return null
  const linked = readObject(readList(transaction.linked_credit_notes)[0])
  return {
    type: 'refund.updated',
    payload: {
      ...readTime(event, transaction),
      id: transaction.id,
      invoice:
        readObject(content.credit_note)?.reference_invoice_id ??
        linked?.cn_reference_invoice_id ??
        readObject(content.invoice)?.id,
      customer: transaction.customer_id,
      amount: minorToMajor(transaction.amount, transaction.currency_code),
      currency: transaction.currency_code,
      created_at: transaction.date,
      status: transaction.status === 'success' ? 'succeeded' : transaction.status === 'failure' ? 'failed' : null,
    },
  }
}
