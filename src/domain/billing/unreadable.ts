/** Values of a billing object that are present and cannot be read. Reports warn about them, because they look like missing values. */

import { decimalToMinor, knownCurrency, multiplyDecimals, parseDecimal } from '../money.ts'
import {
  type Fields,
  isInvoiceStatus,
  isSubscriptionStatus,
  readDecimalText,
  readInstant,
  readInterval,
  readIntervalCount,
  readList,
  readObject,
  readQuantity,
  readTiers,
  readUsageType,
} from './fields.ts'
import { INTERVALS, type Interval, type Unreadable } from './types.ts'

type Checks = Record<string, (value: unknown) => boolean>

const MAX_VALUE = 60
/** Per object: one broken export format fails in every item. */
const MAX_UNREADABLE = 10

/** `prefix`: the path of `object`. An absent, null or empty value is not checked. */
function checkFields(object: Fields, prefix: string, checks: Checks): Unreadable[] {
  return Object.entries(checks).flatMap(([name, isReadable]) => {
    const value = object[name]
    if (value === undefined || value === null || value === '' || isReadable(value)) return []
    return [{ field: `${prefix}${name}`, value: shorten(value) }]
  })
}

function checkList(list: unknown, path: string, check: (entry: Fields, prefix: string) => Unreadable[]): Unreadable[] {
  return readList(list).flatMap((entry, i) => check(readObject(entry) ?? {}, `${path}[${i}].`))
}

function shorten(value: unknown): string {
  return (JSON.stringify(value) ?? '').slice(0, MAX_VALUE).toWellFormed()
}

const isAmount = (value: unknown) => parseDecimal(value) !== null
const isPrice = (value: unknown) => readDecimalText(value) !== null
const isTime = (value: unknown) => readInstant(value) !== null
const isCurrency = (value: unknown) => knownCurrency(value) !== null
const isQuantity = (value: unknown) => readQuantity(value) !== null
const isCount = (value: unknown) => readIntervalCount(value) !== null

function isInterval(value: unknown): boolean {
  if (readUsageType(value) === 'one_time') return true
  return INTERVALS.includes(readInterval(value, 1).interval as Interval)
}

const TIMES = ['started_at', 'trial_end', 'current_period_start', 'current_period_end', 'cancel_at', 'canceled_at']
const SUBSCRIPTION: Checks = {
  ...{ status: isSubscriptionStatus, currency: isCurrency, updated_at: isTime, ended_at: isTime, resumes_at: isTime },
  ...Object.fromEntries(TIMES.map(name => [name, isTime])),
  ...{ items: Array.isArray, discounts: Array.isArray },
}
const ITEM: Checks = {
  ...{ unit_amount: isPrice, quantity: isQuantity, interval: isInterval, interval_count: isCount },
  tax_percent: isPrice,
}
const DISCOUNT: Checks = { percent_off: isPrice, amount_off: isPrice, ends_at: isTime }
const AMOUNTS = { total: isAmount, amount_due: isAmount, amount_paid: isAmount, amount_remaining: isAmount }
const INVOICE: Checks = {
  ...{ status: isInvoiceStatus, currency: isCurrency, ...AMOUNTS, tax: isAmount },
  ...{ updated_at: isTime, finalized_at: isTime, paid_at: isTime, due_date: isTime },
}
const REFUND: Checks = { amount: isAmount, currency: isCurrency, updated_at: isTime, created_at: isTime }

function discountErrors(owner: Fields, prefix: string): Unreadable[] {
  return checkList(owner.discounts, `${prefix}discounts`, (entry, path) => checkFields(entry, path, DISCOUNT))
}

/** MRR excludes an amount that is too large for exact sums. */
function isTooLarge({ unit_amount, quantity = 1 }: Fields, currency: unknown): boolean {
  const [price, count] = [parseDecimal(unit_amount), parseDecimal(quantity)]
  if (!price || !count) return false
  const total = multiplyDecimals(price, count)
  return decimalToMinor(total, knownCurrency(currency) ?? 'EUR') === null
}

function itemErrors(item: Fields, prefix: string, currency: unknown): Unreadable[] {
  const isTiered = readList(item.tiers).length > 0
  const areTiersRead = readTiers(item.tiers, item.tiers_mode, (tier, name) => readDecimalText(tier[name])) !== null
  return [
    ...checkFields(item, prefix, ITEM),
    ...(isTooLarge(item, currency) ? [{ field: `${prefix}unit_amount`, value: shorten(item.unit_amount) }] : []),
    ...(isTiered && !areTiersRead ? [{ field: `${prefix}tiers`, value: shorten(item.tiers) }] : []),
    ...discountErrors(item, prefix),
  ]
}

/** Of a canonical payload. */
export function findUnreadable(kind: 'subscription' | 'invoice' | 'refund', object: Fields): Unreadable[] {
  const found =
    kind === 'subscription'
      ? [
          ...checkFields(object, '', SUBSCRIPTION),
          ...checkList(object.items, 'items', (item, prefix) => itemErrors(item, prefix, object.currency)),
          ...discountErrors(object, ''),
        ]
      : checkFields(object, '', kind === 'invoice' ? INVOICE : REFUND)
  return found.slice(0, MAX_UNREADABLE)
}

const STRIPE: Record<string, Checks> = {
  subscription: { status: isSubscriptionStatus, currency: isCurrency },
  invoice: { status: isInvoiceStatus, currency: isCurrency, ...AMOUNTS },
  refund: { amount: isAmount, currency: isCurrency },
  charge: { amount: isAmount, amount_refunded: isAmount, currency: isCurrency },
}
const STRIPE_PRICE: Checks = {
  ...{ unit_amount: isPrice, unit_amount_decimal: isPrice, amount: isPrice, amount_decimal: isPrice },
  ...{ interval: isInterval, interval_count: isCount },
}

function stripeItemErrors(item: Fields, prefix: string): Unreadable[] {
  const name = readObject(item.price) ? 'price' : 'plan'
  const price = readObject(item[name]) ?? {}
  const path = `${prefix}${name}.`
  return [
    ...checkFields(item, prefix, { quantity: isQuantity }),
    ...checkFields(price, path, STRIPE_PRICE),
    ...checkFields(readObject(price.recurring) ?? {}, `${path}recurring.`, STRIPE_PRICE),
  ]
}

/** Of a Stripe object. */
export function findStripeUnreadable(object: Fields): Unreadable[] {
  const checks = STRIPE[String(object.object)]
  if (!checks) return []
  const items = object.object === 'subscription' ? readObject(object.items)?.data : []
  return [...checkFields(object, '', checks), ...checkList(items, 'items.data', stripeItemErrors)].slice(
    0,
    MAX_UNREADABLE,
  )
}

/** The field of a billing change; omitted if everything can be read. */
export function withUnreadable(unreadable: Unreadable[]): { unreadable?: Unreadable[] } {
  return unreadable.length > 0 ? { unreadable } : {}
}

/** The warning on the event. */
export function unreadableText({ field, value }: Unreadable): string {
  return `\`${field}\` cannot be read: ${value}`
}
