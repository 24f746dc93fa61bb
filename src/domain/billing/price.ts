/** Prices of a subscription's items: per billing period before and after discounts, per month (MRR), and as future charges. */

import {
  type Decimal,
  divideHalfUp,
  MAX_MINOR,
  minorDigits,
  multiplyDecimals,
  parseDecimal,
  sumDecimals,
} from '../money.ts'
import { addIntervals, findAnchor, termsBetween } from './calendar.ts'
import {
  type Discount,
  INTERVALS,
  type Instant,
  type Interval,
  type Item,
  type ReasonCode,
  type SubscriptionStatus,
  type SubscriptionVersion,
  type Tiers,
} from './types.ts'

/** n ÷ d, d > 0: minor units, not rounded yet. */
type Ratio = { n: bigint; d: bigint }

type PriceReason = Extract<
  ReasonCode,
  | 'missing_price'
  | 'one_time_price'
  | 'missing_interval'
  | 'unsupported_interval'
  | 'metered_usage'
  | 'tiered_price_unknown'
  | 'discount_terms_unknown'
>

/** One item, priced per billing period in minor units. Without a `reason`, `gross` and `net` are known. */
type Line = { item: Item; reason: PriceReason | null; gross: Ratio | null; net: Ratio | null }

/** Monthly factors in twelfths: year 1/12, month 1, week 52/12, day 365/12. */
const TWELFTHS: Record<Interval, bigint> = { year: 1n, month: 12n, week: 52n, day: 365n }

const ZERO: Ratio = { n: 0n, d: 1n }

function isInterval(value: string | null): value is Interval {
  return (INTERVALS as readonly (string | null)[]).includes(value)
}

/** Converts the amount of a billing period to an amount per month. */
function perMonth(amount: Ratio, item: Item): Ratio {
  return { n: amount.n * TWELFTHS[item.interval as Interval], d: amount.d * 12n * BigInt(item.intervalCount ?? 1) }
}

type Terms = {
  currency: string | null
  items: Item[]
  discounts: Discount[]
  /** Discounts of the customer. They apply while the subscription has none. */
  inherited?: Discount[]
}

/** The lines of a subscription at an instant. They change only where a discount starts or ends; each result is cached. */
export type LinesAt = (at: Instant) => Line[]

export function createLinePricer(terms: Terms): LinesAt {
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

/** Regular ends of discounts of the subscription, its items and its customer. */
export function discountEnds(terms: Terms): Instant[] {
  return allDiscounts(terms).flatMap(({ endsAt, isCut }) => (isCut ? [] : (endsAt ?? [])))
}

/** Starts and ends of discounts of the subscription, its items and its customer, in order. */
export function discountChanges(terms: Terms): Instant[] {
  const starts = (terms.inherited ?? []).map(({ startsAt }) => startsAt!)
  const ends = allDiscounts(terms).flatMap(({ endsAt }) => endsAt ?? [])
  return [...new Set([...ends, ...starts])].sort((a, b) => a - b)
}

/** One line per item, in the same order. */
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

/** A subscription's own discounts replace the customer's until the last of them has ended. */
function commonDiscounts({ discounts, inherited = [] }: Terms, at: Instant): Discount[] {
  const isOpen = ({ endsAt }: Discount) => endsAt === null || at < endsAt
  return discounts.some(isOpen) ? discounts : inherited.filter(({ startsAt }) => startsAt! <= at)
}

/** As in billing, discounts apply to the price including tax. The tax is removed afterwards. */
function withoutTax(line: Line): Line {
  if (line.item.inclusiveTax === undefined) return line
  const { digits, scale } = parseDecimal(line.item.inclusiveTax)!
  const whole = 100n * 10n ** BigInt(scale)
  const net = ({ n, d }: Ratio): Ratio => ({ n: n * whole, d: d * (whole + digits) })
  return { ...line, gross: line.gross && net(line.gross), net: line.net && net(line.net) }
}

function grossLine(item: Item, currency: string | null): Line {
  const unpriced = (reason: PriceReason): Line => ({ item, reason, gross: null, net: null })
  const price = item.unitAmount === null ? null : parseDecimal(item.unitAmount)
  const quantity = item.billedQuantity === null ? null : parseDecimal(item.billedQuantity)
  if ((!price && !item.tiered) || !quantity || !currency) return unpriced('missing_price')
  if (item.usageType === 'one_time') return unpriced('one_time_price')
  if (item.interval === null) return unpriced('missing_interval')
  if (!isInterval(item.interval) || item.intervalCount === null) return unpriced('unsupported_interval')
  if (item.usageType === 'metered') return unpriced('metered_usage')
  const amount = price
    ? multiplyDecimals(price, quantity)
    : item.tiers
      ? tieredAmount(item.tiers, item.billedQuantity!)
      : null
  if (amount === null) return unpriced('tiered_price_unknown')
  const gross = { n: amount.digits * 10n ** BigInt(minorDigits(currency)), d: 10n ** BigInt(amount.scale) }
  if (exceeds(gross) || exceeds(perMonth(gross, item))) return unpriced('missing_price')
  return { item, reason: null, gross, net: gross }
}

/** The price of a quantity; null: the tiers end before it. */
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
  return sumDecimals(
    parts
      .filter(({ units }) => units > 0)
      .flatMap(({ step, units }) => [
        multiplyDecimals(parseDecimal(step.unitAmount)!, parseDecimal(units)!),
        parseDecimal(step.flatAmount)!,
      ]),
  )
}

function exceeds(amount: Ratio): boolean {
  return amount.n > amount.d * BigInt(MAX_MINOR)
}

/** `once` reduces one invoice, not the price. An end takes effect at its instant. */
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
        line.reason = 'discount_terms_unknown'
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
  if (discount.productIds === null) return true
  return [item.productId, item.priceId].some(id => id !== null && discount.productIds!.includes(id))
}

function percentOff(amount: Ratio, percent: string): Ratio {
  const off = parseDecimal(percent)!
  const whole = 100n * 10n ** BigInt(off.scale)
  return off.digits >= whole ? ZERO : { n: amount.n * (whole - off.digits), d: amount.d * whole }
}

/**
 * Distributes an amount over items in proportion to their monthly price, in integer minor units. Shares are rounded down;
 * the remaining units go, one each, to the items with the largest remainder (the earlier item on a tie). The shares add up
 * to the amount exactly. An amount above the price is lost.
 */
function takeAmountOff(lines: Line[], amount: bigint): void {
  const weights = toWeights(lines.map(line => perMonth(line.net!, line.item)))
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

const MAX_DENOMINATOR = 1n << 256n

/**
 * Whole numbers in the proportion of the amounts, so that equal remainders are equal. After very many discounts the exact
 * numbers would be too large, and are cut to six decimals.
 */
function toWeights(amounts: Ratio[]): bigint[] {
  let common = 1n
  for (const { d } of amounts) if (common < MAX_DENOMINATOR) common *= d / gcd(common, d)
  const factor = common < MAX_DENOMINATOR ? common : 1_000_000n
  return amounts.map(({ n, d }) => (n * factor) / d)
}

function gcd(a: bigint, b: bigint): bigint {
  return b === 0n ? a : gcd(b, a % b)
}

// Monthly recurring revenue of one subscription at one instant, per item. policy.ts states the rules.

/** An item's share of MRR. `grossMrr` − `discountMrr` = `mrr` always. An excluded item has a reason and an `mrr` of 0. */
export type ItemState = {
  /** null: the entry of a subscription without items. */
  id: string | null
  priceId: string | null
  productId: string | null
  name: string | null
  quantity: number | null
  /** A decimal string in major units. */
  unitAmount: string | null
  interval: string | null
  intervalCount: number | null
  usageType: Item['usageType'] | null
  currentPeriodStart: Instant | null
  currentPeriodEnd: Instant | null
  grossMrr: number
  discountMrr: number
  mrr: number
  included: boolean
  reason: ReasonCode | null
  /** The gross MRR of an excluded item; null: it cannot be priced, or the item is included. */
  excludedMrr: number | null
}

/** The policy's decision. `counts`: the status alone would not count. `past_due`: the status would count, but the grace period is over. */
export type CountDecision = 'counts' | 'past_due'

type MrrTerms = Terms & {
  status: SubscriptionStatus
  /** The policy's decision; without it the status alone decides. */
  countDecision?: CountDecision | null
  startedAt: Instant | null
  testMode?: true | null
  billedElsewhere?: true | null
  itemsIncomplete?: true | null
}

/** Why a whole subscription does not count. The first reason that applies is returned. */
function subscriptionReason(terms: MrrTerms, at: Instant): ReasonCode | null {
  if (terms.testMode) return 'test_mode'
  if (terms.billedElsewhere) return 'billed_elsewhere'
  if (terms.currency === null) return 'missing_currency'
  if (terms.countDecision === 'past_due') return 'past_due'
  switch (terms.countDecision === 'counts' ? 'active' : terms.status) {
    case 'active':
    case 'past_due':
      break
    case 'unknown':
      return 'incomplete'
    default:
      return terms.status as Exclude<SubscriptionStatus, 'active' | 'past_due' | 'unknown'>
  }
  if (terms.startedAt !== null && at < terms.startedAt) return 'not_started'
  return terms.items.length === 0 ? 'missing_items' : null
}

export function itemStates(terms: MrrTerms, at: Instant, linesAt: LinesAt = createLinePricer(terms)): ItemState[] {
  const reason = subscriptionReason(terms, at)
  if (terms.items.length === 0) return [excludedItem(NO_ITEM, reason ?? 'missing_items', null)]
  const states = linesAt(at).map(line => itemState(line, reason))
  // the known items count; an additional entry reports the missing ones
  return terms.itemsIncomplete && reason === null
    ? [...states, excludedItem(NO_ITEM, 'items_incomplete', null)]
    : states
}

function itemState(line: Line, subscriptionReason: ReasonCode | null): ItemState {
  const gross = line.gross && monthly(line.gross, line.item)
  const reason = subscriptionReason ?? line.reason ?? (gross === 0 ? 'free' : null)
  if (reason !== null) return excludedItem(line.item, reason, gross)
  const mrr = monthly(line.net!, line.item)
  return {
    ...pickFacts(line.item),
    grossMrr: gross!,
    discountMrr: gross! - mrr,
    mrr,
    included: mrr > 0,
    reason: mrr > 0 ? null : 'fully_discounted',
    excludedMrr: mrr > 0 ? null : gross,
  }
}

/** Rounded half up, once, after discounts. */
function monthly(amount: Ratio, item: Item): number {
  const { n, d } = perMonth(amount, item)
  return Number(divideHalfUp(n, d))
}

type ItemFacts = Omit<ItemState, 'grossMrr' | 'discountMrr' | 'mrr' | 'included' | 'reason' | 'excludedMrr'>

const NO_ITEM: ItemFacts = {
  id: null,
  priceId: null,
  productId: null,
  name: null,
  quantity: null,
  unitAmount: null,
  interval: null,
  intervalCount: null,
  usageType: null,
  currentPeriodStart: null,
  currentPeriodEnd: null,
}

function pickFacts(item: ItemFacts): ItemFacts {
  return {
    id: item.id,
    priceId: item.priceId,
    productId: item.productId,
    name: item.name,
    quantity: item.quantity,
    unitAmount: item.unitAmount,
    interval: item.interval,
    intervalCount: item.intervalCount,
    usageType: item.usageType,
    currentPeriodStart: item.currentPeriodStart,
    currentPeriodEnd: item.currentPeriodEnd,
  }
}

function excludedItem(item: ItemFacts, reason: ReasonCode, excludedMrr: number | null): ItemState {
  return { ...pickFacts(item), grossMrr: 0, discountMrr: 0, mrr: 0, included: false, reason, excludedMrr }
}

export function totalMrr(items: ItemState[]): number {
  return items.reduce((sum, item) => sum + item.mrr, 0)
}

export function computeArr(mrr: number): number {
  return 12 * mrr
}

/** Average MRR per paying account, rounded half up to the minor unit; 0 without paying accounts. */
export function computeArpa(mrr: number, accounts: number): number {
  return accounts > 0 ? Number(divideHalfUp(BigInt(mrr), BigInt(accounts))) : 0
}

// Future charges of a subscription.

/**
 * Charges that recur together: on `anchorAt` + n × `intervalCount` × `interval` for integer n, from `firstAt` on and before
 * `endsAt`. Each is computed from the anchor, so a cycle on the 31st returns to the 31st after February.
 */
export type ChargeCycle = {
  interval: Interval
  intervalCount: number
  anchorAt: Instant
  firstAt: Instant
  endsAt: Instant | null
  /** The charge on `firstAt` ends a trial. */
  trialConversion: boolean
  includesMetered: boolean
  /** The amount of a charge before `until`, without tax and usage, in order; the last is open-ended. Amount null: unknown. */
  amounts: { until: Instant | null; amount: number | null }[]
}

export type Charge = { billsAt: Instant; amount: number | null; trialConversion: boolean; includesMetered: boolean }

/** Indexes of items that are charged together. */
type Group = { first: Instant; places: number[] }

/** Charges of a version that is valid, with `status`, from `at` on. */
export function chargeCycles(
  version: SubscriptionVersion,
  status: SubscriptionStatus,
  at: Instant,
  endsAt: Instant | null,
  linesAt: LinesAt,
): ChargeCycle[] {
  if (version.currency === null || !(status === 'active' || status === 'past_due' || status === 'trialing')) return []
  const groups = new Map<string, Group>()
  for (const [place, item] of version.items.entries()) {
    const first = firstCharge(version, item, status, at)
    if (first === null || (endsAt !== null && first >= endsAt)) continue
    const key = `${item.interval} ${item.intervalCount} ${first}`
    const group = groups.get(key)
    if (group) group.places.push(place)
    else groups.set(key, { first, places: [place] })
  }
  const ends = discountChanges(version).filter(end => endsAt === null || end < endsAt)
  return [...groups.values()]
    .map(group => ({ ...buildCycle(version, status, group), endsAt, amounts: computeAmounts(group, ends, linesAt) }))
    .filter(hasCharge)
}

function firstCharge(
  version: SubscriptionVersion,
  item: Item,
  status: SubscriptionStatus,
  at: Instant,
): Instant | null {
  if (!isInterval(item.interval) || item.intervalCount === null || item.usageType === 'one_time') return null
  const periodEnd = item.currentPeriodEnd ?? version.currentPeriodEnd
  if (status === 'trialing') return version.trialEnd ?? periodEnd
  if (version.startedAt !== null && version.startedAt > at) return version.startedAt
  if (periodEnd !== null) return periodEnd
  return version.startedAt && addIntervals(version.startedAt, item.interval, item.intervalCount)
}

function buildCycle(
  version: SubscriptionVersion,
  status: SubscriptionStatus,
  { first, places }: Group,
): Omit<ChargeCycle, 'endsAt' | 'amounts'> {
  const item = version.items[places[0]!]!
  const interval = item.interval as Interval
  const intervalCount = item.intervalCount!
  const trialConversion = status === 'trialing'
  const hints = [version.billingAnchor, item.currentPeriodStart, version.currentPeriodStart, version.startedAt]
  return {
    interval,
    intervalCount,
    anchorAt: trialConversion ? first : findAnchor(first, interval, intervalCount, hints),
    firstAt: first,
    trialConversion,
    includesMetered: places.some(place => version.items[place]!.usageType === 'metered'),
  }
}

function computeAmounts({ first, places }: Group, ends: Instant[], linesAt: LinesAt): ChargeCycle['amounts'] {
  const changes = ends.filter(end => end > first)
  return [first, ...changes].map((from, i) => {
    const lines = linesAt(from)
    return { until: changes[i] ?? null, amount: chargedAmount(places.map(place => lines[place]!)) }
  })
}

/** The sum of the known amounts; null: an amount is due and none is known. */
function chargedAmount(lines: Line[]): number | null {
  const licensed = lines.filter(line => line.reason !== 'metered_usage')
  const known = licensed.filter(line => line.net !== null)
  if (known.length === 0 && licensed.length > 0) return null
  return known.reduce((sum, line) => sum + Number(divideHalfUp(line.net!.n, line.net!.d)), 0)
}

function hasCharge(cycle: ChargeCycle): boolean {
  return cycle.includesMetered || cycle.amounts.some(({ amount }) => amount !== 0)
}

/** Charges in (after, until], in order. Cycles that fall on the same instant form one charge. */
export function chargesBetween(cycles: ChargeCycle[], after: Instant, until: Instant): Charge[] {
  const charges = new Map<Instant, Charge>()
  for (const cycle of cycles) {
    for (const charge of expandCycle(cycle, after, until)) {
      const met = charges.get(charge.billsAt)
      charges.set(charge.billsAt, met ? combineCharges(met, charge) : charge)
    }
  }
  return [...charges.values()].sort((a, b) => a.billsAt - b.billsAt)
}

function* expandCycle(cycle: ChargeCycle, after: Instant, until: Instant): Generator<Charge> {
  const last = cycle.endsAt === null ? until : Math.min(until, cycle.endsAt - 1)
  const from = Math.max(after + 1, cycle.firstAt)
  for (let n = termsBetween(cycle.anchorAt, from, cycle.interval, cycle.intervalCount); ; n++) {
    const billsAt = addIntervals(cycle.anchorAt, cycle.interval, n * cycle.intervalCount)
    if (billsAt > last) return
    if (billsAt < from) continue
    const amount = cycle.amounts.find(entry => entry.until === null || billsAt < entry.until)?.amount ?? null
    if (amount === 0 && !cycle.includesMetered) continue
    yield {
      billsAt,
      amount,
      trialConversion: cycle.trialConversion && billsAt === cycle.firstAt,
      includesMetered: cycle.includesMetered,
    }
  }
}

function combineCharges(a: Charge, b: Charge): Charge {
  return {
    billsAt: a.billsAt,
    amount: a.amount === null || b.amount === null ? (a.amount ?? b.amount) : a.amount + b.amount,
    trialConversion: a.trialConversion || b.trialConversion,
    includesMetered: a.includesMetered || b.includesMetered,
  }
}

/** The next expected charge within one interval. */
export function nextCharge(cycles: ChargeCycle[], after: Instant): Charge | null {
  const firsts = cycles.flatMap(cycle => {
    const from = Math.max(after, cycle.firstAt)
    const until = addIntervals(from, cycle.interval, cycle.intervalCount)
    return chargesBetween([cycle], after, until).slice(0, 1)
  })
  if (firsts.length === 0) return null
  const billsAt = Math.min(...firsts.map(charge => charge.billsAt))
  return firsts.filter(charge => charge.billsAt === billsAt).reduce(combineCharges)
}
