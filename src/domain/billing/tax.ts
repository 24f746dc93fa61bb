/** Tax that a price includes, and prices, according to invoices. Some providers do not report them with the subscription. */

import { type Decimal, decimalText, divideHalfUp, minorDigits } from '../money.ts'
import { DAY_MS } from '../time.ts'
import type { Instant, Item, SubscriptionVersion, TaxSplit, Term } from './types.ts'

/** Finer than any tax rate. */
const PERCENT_DIGITS = 8

/** tax ÷ net in percent, as a decimal string; null: one of them is not an amount, or the net amount is 0. */
export function taxPercent(tax: Decimal | null, net: Decimal | null): string | null {
  if (!tax || !net || net.digits <= 0n || tax.digits < 0n) return null
  const n = tax.digits * 100n * 10n ** BigInt(net.scale + PERCENT_DIGITS)
  return decimalText({ digits: divideHalfUp(n, net.digits * 10n ** BigInt(tax.scale)), scale: PERCENT_DIGITS })
}

/** The items of a version with the tax that invoices show. `terms`: of its subscription, oldest first. */
export function withTaxes(version: SubscriptionVersion, terms: Term[]): Item[] {
  if (terms.length === 0) return version.items
  return version.items.map(item => {
    const { taxMode, priceFromInvoice } = item
    const split = taxMode || priceFromInvoice ? findSplit(item, terms, version.sourceAt) : undefined
    if (priceFromInvoice)
      return split?.net === undefined || split.isTotal ? item : withoutTax({ ...item, unitAmount: split.net })
    const isInclusive = split && includesTax(item, split, version)
    if (!split || isInclusive === undefined) return item
    if (isInclusive && split.percent === null) return { ...item, taxMode: 'inclusive' }
    return { ...withoutTax(item), ...(isInclusive && Number(split.percent) > 0 && { inclusiveTax: split.percent! }) }
  })
}

function withoutTax({ taxMode: _, ...item }: Item): Item {
  return item
}

/**
 * The latest split before the version, else the first one. An invoice may be older or newer than its event by minutes. One that does
 * not list the price shows only that it includes tax: the rate is then that of another invoice.
 */
function findSplit(item: Item, terms: Term[], at: Instant): TaxSplit | undefined {
  const splits = terms.flatMap(({ sourceAt, taxes = {} }) => {
    const split = (item.priceId === null ? undefined : taxes[item.priceId]) ?? taxes['*']
    return split ? [{ sourceAt, split }] : []
  })
  const latest = (of: typeof splits) => (of.findLast(({ sourceAt }) => sourceAt <= at + DAY_MS) ?? of[0])?.split
  const found = latest(splits)
  if (found?.inclusive !== true || found.percent !== null) return found
  return latest(splits.filter(({ split }) => split.inclusive === true && split.percent !== null)) ?? found
}

/** A price that equals the net price excludes tax; one that is higher by the tax includes it. undefined: neither. */
function includesTax(
  { taxMode, unitAmount }: Item,
  { inclusive, net, isTotal, percent }: TaxSplit,
  { items, currency }: SubscriptionVersion,
): boolean | undefined {
  if (taxMode === 'inclusive') return true
  if (inclusive !== undefined) return inclusive
  if (percent === null || net === undefined || currency === null) return undefined
  const total = items.reduce((sum, item) => sum + Number(item.unitAmount) * (item.billedQuantity ?? Number.NaN), 0)
  const price = isTotal ? total : Number(unitAmount ?? Number.NaN)
  const unit = 10 ** -minorDigits(currency)
  if (Number(percent) === 0 || Math.abs(price - Number(net)) < unit / 2) return false
  // the provider rounded the net price
  return Math.abs(price / (1 + Number(percent) / 100) - Number(net)) <= unit ? true : undefined
}
