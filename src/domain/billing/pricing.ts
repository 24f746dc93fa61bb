/** What the items of a subscription cost per billing period, exactly, before and after discounts. */

import { type Decimal, MAX_MINOR, minorDigits, parseDecimal } from '../money.ts'
import {
  type Discount,
  INTERVALS,
  type Instant,
  type Interval,
  type Item,
  type ReasonCode,
  type Tiers,
} from './types.ts'

/** n ÷ d, d > 0: minor units that have not been rounded yet. */
export type Ratio = { n: bigint; d: bigint }

type PriceFault = Extract<
  ReasonCode,
  | 'missing_price'
  | 'one_time_price'
  | 'missing_interval'
  | 'unsupported_interval'
  | 'metered_usage'
  | 'tiered_price_unknown'
  | 'discount_terms_unknown'
>

/** One item, priced per billing period in minor units. Without a fault, `gross` and `net` are known. */
export type Line = { item: Item; fault: PriceFault | null; gross: Ratio | null; net: Ratio | null }

/** Months of a year's price and so on, in twelfths: year 1/12, month 1, week 52/12, day 365/12. */
const TWELFTHS: Record<Interval, bigint> = { year: 1n, month: 12n, week: 52n, day: 365n }

const ZERO: Ratio = { n: 0n, d: 1n }

export function isInterval(value: string | null): value is Interval {
  return (INTERVALS as readonly (string | null)[]).includes(value)
}

/** A period's amount as an amount per month. */
export function perMonth(amount: Ratio, item: Item): Ratio {
  return {
    n: amount.n * TWELFTHS[item.interval as Interval],
    d: amount.d * 12n * BigInt(item.intervalCount ?? 1),
  }
}

export type Terms = {
  currency: string | null
  items: Item[]
  discounts: Discount[]
  /** The customer's, which count while there is none of its own. */
  inherited?: Discount[]
}

/** The lines of a subscription by instant. They change only where a discount begins or ends, and are worked out once each. */
export type LinesAt = (at: Instant) => Line[]

export function linesOf(terms: Terms): LinesAt {
  const ends = discountChanges(terms)
  const known = new Map<number, Line[]>()
  return at => {
    const ended = ends.findLastIndex(end => end <= at)
    const lines = known.get(ended) ?? priceLines(terms, at)
    known.set(ended, lines)
    return lines
  }
}

function allDiscounts({ discounts, items, inherited = [] }: Terms): Discount[] {
  return [...discounts, ...items.flatMap(item => item.discounts), ...inherited]
}

/** When discounts of the subscription, of its items or of the customer run out by themselves. */
export function discountEnds(terms: Terms): Instant[] {
  return allDiscounts(terms).flatMap(({ endsAt, isCut }) => (isCut ? [] : (endsAt ?? [])))
}

/** Every instant at which a discount of the subscription, of an item or of the customer begins or ends, in order. */
export function discountChanges(terms: Terms): Instant[] {
  const starts = (terms.inherited ?? []).map(({ startsAt }) => startsAt!)
  const ends = allDiscounts(terms).flatMap(({ endsAt }) => endsAt ?? [])
  return [...new Set([...ends, ...starts])].sort((a, b) => a - b)
}

/** One line an item, in their order. */
function priceLines(terms: Terms, at: Instant): Line[] {
  const lines = terms.items.map(item => grossLine(item, terms.currency))
  for (const line of lines) {
    const own = line.item.discounts.filter(discount => runs(discount, at))
    applyDiscounts([line], own)
  }
  applyDiscounts(
    lines,
    commonDiscounts(terms, at).filter(discount => runs(discount, at)),
  )
  return lines.map(withoutTax)
}

/** A subscription's own discounts take the place of the customer's; when the last has ended, that comes back. */
function commonDiscounts({ discounts, inherited = [] }: Terms, at: Instant): Discount[] {
  const isOpen = ({ endsAt }: Discount) => endsAt === null || at < endsAt
  return discounts.some(isOpen) ? discounts : inherited.filter(({ startsAt }) => startsAt! <= at)
}

/** A discount comes off the price with its tax; then the tax is taken out, as it is billed. */
function withoutTax(line: Line): Line {
  if (line.item.inclusiveTax === undefined) return line
  const { digits, scale } = parseDecimal(line.item.inclusiveTax)!
  const whole = 100n * 10n ** BigInt(scale)
  const net = ({ n, d }: Ratio): Ratio => ({ n: n * whole, d: d * (whole + digits) })
  return { ...line, gross: line.gross && net(line.gross), net: line.net && net(line.net) }
}

function grossLine(item: Item, currency: string | null): Line {
  const fault = (fault: PriceFault): Line => ({ item, fault, gross: null, net: null })
  const price = item.unitAmount === null ? null : parseDecimal(item.unitAmount)
  const quantity = item.billedQuantity === null ? null : parseDecimal(item.billedQuantity)
  if ((!price && !item.tiered) || !quantity || !currency) return fault('missing_price')
  if (item.usageType === 'one_time') return fault('one_time_price')
  if (item.interval === null) return fault('missing_interval')
  if (!isInterval(item.interval) || item.intervalCount === null) return fault('unsupported_interval')
  if (item.usageType === 'metered') return fault('metered_usage')
  const amount = price
    ? product(price, quantity)
    : item.tiers
      ? tieredAmount(item.tiers, item.billedQuantity!)
      : null
  if (amount === null) return fault('tiered_price_unknown')
  const gross = { n: amount.digits * 10n ** BigInt(minorDigits(currency)), d: 10n ** BigInt(amount.scale) }
  if (exceeds(gross) || exceeds(perMonth(gross, item))) return fault('missing_price')
  return { item, fault: null, gross, net: gross }
}

function product(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale }
}

/** What so many units come to; null where the tiers end before. */
function tieredAmount({ mode, steps }: Tiers, quantity: number): Decimal | null {
  const reached = steps.findIndex(({ upTo }) => upTo === null || quantity <= upTo)
  if (reached < 0) return null
  const parts =
    mode === 'volume'
      ? [{ step: steps[reached]!, units: quantity }]
      : steps.slice(0, reached + 1).map((step, i) => {
          const from = steps[i - 1]?.upTo ?? 0
          return { step, units: Math.max(0, Math.min(quantity, step.upTo ?? quantity) - from) }
        })
  const amounts = parts
    .filter(({ units }) => units > 0)
    .flatMap(({ step, units }) => [
      product(parseDecimal(step.unitAmount)!, parseDecimal(units)!),
      parseDecimal(step.flatAmount)!,
    ])
  const scale = Math.max(0, ...amounts.map(amount => amount.scale))
  return {
    digits: amounts.reduce((sum, amount) => sum + amount.digits * 10n ** BigInt(scale - amount.scale), 0n),
    scale,
  }
}

function exceeds(amount: Ratio): boolean {
  return amount.n > amount.d * BigInt(MAX_MINOR)
}

/** `once` is cash off one invoice, not a lower price; an end takes effect at its instant. */
function runs(discount: Discount, at: Instant): boolean {
  return discount.duration !== 'once' && (discount.endsAt === null || at < discount.endsAt)
}

function isKnown(discount: Discount): boolean {
  if (discount.percentOff === null && discount.amountOff === null) return false
  if (discount.duration === 'unknown') return false
  return discount.duration !== 'repeating' || discount.endsAt !== null
}

function applyDiscounts(lines: Line[], discounts: Discount[]): void {
  for (const discount of discounts) {
    const touched = lines.filter(line => line.net !== null && appliesTo(discount, line.item))
    if (!isKnown(discount)) {
      for (const line of touched) {
        line.fault = 'discount_terms_unknown'
        line.net = null
      }
    } else if (discount.percentOff !== null) {
      for (const line of touched) line.net = percentOff(line.net!, discount.percentOff)
    } else {
      takeAmountOff(touched, BigInt(discount.amountOff!))
    }
  }
}

function appliesTo(discount: Discount, item: Item): boolean {
  return discount.productIds === null || discount.productIds.includes(item.productId ?? '')
}

function percentOff(amount: Ratio, percent: string): Ratio {
  const off = parseDecimal(percent)!
  const whole = 100n * 10n ** BigInt(off.scale)
  return off.digits >= whole ? ZERO : { n: amount.n * (whole - off.digits), d: amount.d * whole }
}

/**
 * An amount off several items is spread over them in proportion to what they cost per month, in whole minor units:
 * every item gets its share rounded down, and what is left goes, a unit each, to those that lost most by it (the
 * earlier item where they tie). So the shares add up to the amount, to the cent. What exceeds the price is lost.
 */
function takeAmountOff(lines: Line[], amount: bigint): void {
  const weights = lines.map(line => weightOf(perMonth(line.net!, line.item)))
  const total = weights.reduce((sum, weight) => sum + weight, 0n)
  if (total === 0n) return
  const shares = weights.map(weight => (amount * weight) / total)
  const byRemainder = weights
    .map((weight, index) => ({ index, remainder: (amount * weight) % total }))
    .sort((a, b) => (a.remainder === b.remainder ? a.index - b.index : a.remainder > b.remainder ? -1 : 1))
  let left = Number(amount - shares.reduce((sum, share) => sum + share, 0n))
  for (const { index } of byRemainder) {
    if (left-- <= 0) break
    shares[index] = shares[index]! + 1n
  }
  lines.forEach((line, index) => {
    const rest = line.net!.n - shares[index]! * line.net!.d
    line.net = rest > 0n ? { n: rest, d: line.net!.d } : ZERO
  })
}

/** Fine enough to share by, and of a size that stays the same however many discounts went before. */
function weightOf(amount: Ratio): bigint {
  return (amount.n * 1_000_000n) / amount.d
}
