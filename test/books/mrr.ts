// The MRR of one subscription, by the policy in every report.
import type { Unit } from './calendar.ts'
import { pricePerPeriod } from './invoicing.ts'
import type { Discount, Item, Price, Subscription } from './model.ts'
import { type Fraction, fraction, isZero, minus, orZero, rounded, sum, times } from './money.ts'

/** Periods in a month. */
const PER_MONTH: Record<Unit, [number, number]> = {
  year: [1, 12],
  month: [1, 1],
  week: [52, 12],
  day: [365, 12],
}

type Reason =
  | 'test_mode'
  | 'canceled'
  | 'incomplete'
  | 'incomplete_expired'
  | 'unpaid'
  | 'trialing'
  | 'paused'
  | 'missing_price'
  | 'unsupported_interval'
  | 'metered_usage'
  | 'free'
  | 'fully_discounted'

export type ItemValue = {
  item: Item
  /** Before discounts; null: unknown. */
  gross: number | null
  mrr: number
  reason: Reason | null
}

export type Value = { mrr: number; committed: number; items: ItemValue[] }

/** `inherited` is the customer's discount. A paused subscription has no MRR, unless the policy keeps it. */
export function worthOf(
  subscription: Subscription,
  inherited: Discount | null,
  at: number,
  policy: { pause: 'churn' | 'keep' } = { pause: 'churn' },
): Value {
  const whole = reasonOf(subscription, at, policy)
  const own = subscription.discounts
  const running = (own.length > 0 || !inherited ? own : [inherited]).filter(discount => counts(discount, at))
  const items = subscription.items.map(item => {
    const value = itemValue(subscription, item, running)
    return whole ? { ...value, mrr: 0, reason: whole } : value
  })
  const mrr = sum(items.map(item => item.mrr))
  return { mrr, committed: subscription.cancelAt === null ? mrr : 0, items }
}

function reasonOf(
  { livemode, status, endedAt, pause, cancelAt }: Subscription,
  at: number,
  policy: { pause: 'churn' | 'keep' },
): Reason | null {
  if (!livemode) return 'test_mode'
  if (status === 'incomplete_expired') return status
  const isOver = status === 'canceled' || (endedAt ?? Infinity) <= at || (cancelAt ?? Infinity) <= at
  if (isOver) return 'canceled'
  if (status === 'incomplete' || status === 'unpaid' || status === 'trialing') return status
  const isResting = pause !== null && (pause.resumesAt ?? Infinity) > at
  if (policy.pause === 'churn' && (status === 'paused' || isResting)) return 'paused'
  return null
}

function counts({ coupon, end }: Discount, at: number): boolean {
  return coupon.duration !== 'once' && (end ?? Infinity) > at
}

function itemValue(subscription: Subscription, item: Item, discounts: Discount[]): ItemValue {
  const { price, quantity } = item
  const without = (reason: Reason, gross: number | null): ItemValue => ({ item, gross, mrr: 0, reason })
  const perMonth = monthsOf(price)
  if (price.usage === 'metered') return without('metered_usage', null)
  const whole = pricePerPeriod(price, quantity)
  if (whole === null) return without('missing_price', null)
  if (perMonth === null) return without('unsupported_interval', null)
  const monthly = (amount: Fraction) => rounded(times(untaxed(subscription, amount), ...perMonth))
  const gross = monthly(whole)
  if (isZero(whole)) return without('free', gross)
  const mrr = monthly(discounts.reduce((rest, discount) => reduced(subscription, rest, discount), whole))
  return mrr === 0 ? without('fully_discounted', gross) : { item, gross, mrr, reason: null }
}

function monthsOf({ interval, intervalCount }: Price): [number, number] | null {
  if (!Object.hasOwn(PER_MONTH, interval) || !intervalCount) return null
  const [over, under] = PER_MONTH[interval as Unit]
  return [over, under * intervalCount]
}

/** Removes inclusive tax from the price. Exclusive tax is not part of it. */
function untaxed({ tax }: Subscription, amount: Fraction): Fraction {
  return tax?.inclusive ? times(amount, 100, 100 + tax.percent) : amount
}

function reduced({ items }: Subscription, rest: Fraction, { coupon }: Discount): Fraction {
  if (coupon.percentOff !== null) return times(rest, 100 - coupon.percentOff, 100)
  const priced = items.filter(
    ({ price, quantity }) => price.usage === 'licensed' && !isZero(pricePerPeriod(price, quantity) ?? fraction(0)),
  )
  // No rule defines how an amount off is shared to the cent, so this company grants it only to a single item.
  if (priced.length > 1) throw new Error('an amount off is given to subscriptions with one price only')
  return orZero(minus(rest, fraction(coupon.amountOff!)))
}
