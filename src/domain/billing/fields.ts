/** Reading fields of objects that others wrote: what is not of the right kind is null, nothing throws. */

import { type Decimal, decimalText, parseDecimal } from '../money.ts'
import { parseTimestamp } from '../time.ts'
import type { Acquisition, Discount, Instant, Item } from './types.ts'

export type Fields = Record<string, unknown>

/** Seconds up to here (the year 5138), milliseconds beyond. */
const LATEST_UNIX_SECONDS = 1e11
const LATEST_MS = Date.UTC(9999, 11, 31)
/** Longer text is no name or id, and does not belong in an index. */
const MAX_TEXT = 500
const MAX_INTERVAL_COUNT = 1200
/** A subscription is laid out anew with every event: what one may hold has to have an end. Stripe's is 20 of each. */
const MAX_ITEMS = 250
const MAX_DISCOUNTS = 30

export function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

export function text(value: unknown): string | null {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  if (typeof value !== 'string') return null
  const trimmed = value.trim()
  // a pair of surrogates may have been cut apart
  return trimmed === '' ? null : trimmed.slice(0, MAX_TEXT).toWellFormed()
}

export function lowerText(value: unknown): string | null {
  return text(value)?.toLowerCase() ?? null
}

/** The id of something that may be given by id or as the object itself. */
export function idOfReference(value: unknown): string | null {
  return text(value) ?? text(fieldsOf(value)?.id)
}

/** ISO 8601 text, or Unix seconds (milliseconds when too large for seconds). */
export function instant(value: unknown): Instant | null {
  const unix = typeof value === 'string' && /^\d{9,13}$/.test(value) ? Number(value) : value
  if (typeof unix !== 'number') return parseTimestamp(value)?.getTime() ?? null
  if (!(unix > 0)) return null
  const ms = Math.round(unix <= LATEST_UNIX_SECONDS ? unix * 1000 : unix)
  return ms <= LATEST_MS ? ms : null
}

export function flag(value: unknown): boolean {
  return value === true || value === 'true' || value === 1
}

export function decimal(value: unknown): Decimal | null {
  const parsed = parseDecimal(value)
  return parsed && parsed.digits >= 0n ? parsed : null
}

export function decimalOrNull(value: unknown): string | null {
  const parsed = decimal(value)
  return parsed && decimalText(parsed)
}

/** A whole number of at least `least`; null for anything else. */
export function whole(value: unknown, least: number): number | null {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value.trim()) ? Number(value) : value
  return Number.isSafeInteger(number) && (number as number) >= least ? (number as number) : null
}

/** Left out means one; given but not a quantity means null. */
export function quantityOf(value: unknown): number | null {
  if (value === undefined || value === null) return 1
  const parsed = decimal(value)
  return parsed && Number(decimalText(parsed))
}

/** Left out means every one; null, 0, centuries and the like mean that nobody knows how often. */
export function intervalCountOf(value: unknown): number | null {
  const count = value === undefined ? 1 : whole(value, 1)
  return count !== null && count <= MAX_INTERVAL_COUNT ? count : null
}

export function usageTypeOf(...hints: unknown[]): Item['usageType'] {
  const words = hints.map(hint => lowerText(hint)?.replace(/[-\s]/g, '_'))
  if (words.includes('one_time') || words.includes('onetime')) return 'one_time'
  return words.includes('metered') ? 'metered' : 'licensed'
}

/** The subscription's own word on where it came from: `acquisition`, else UTM fields of its metadata. */
export function acquisitionOf(acquisition: unknown, metadata: unknown): Acquisition | null {
  const own = fieldsOf(acquisition)
  const ownSource = text(own?.source)
  if (ownSource) return { source: ownSource, medium: text(own?.medium), campaign: text(own?.campaign) }
  const utm = fieldsOf(metadata)
  const source = text(utm?.utm_source)
  return source ? { source, medium: text(utm?.utm_medium), campaign: text(utm?.utm_campaign) } : null
}

const UNKNOWN_DISCOUNT: Discount = {
  percentOff: null,
  amountOff: null,
  duration: 'unknown',
  endsAt: null,
  productIds: null,
}

/** Items and discounts as they count; of more discounts than anyone grants, the terms are held to be unknown. */
export function boundedTerms(
  items: GivenItem[],
  discounts: Discount[],
): { items: Item[]; discounts: Discount[] } {
  const named = withDistinctIds(items.slice(0, MAX_ITEMS))
  const given = named.reduce((sum, item) => sum + item.discounts.length, discounts.length)
  if (given <= MAX_DISCOUNTS) return { items: named, discounts }
  return { items: named.map(item => ({ ...item, discounts: [] })), discounts: [UNKNOWN_DISCOUNT] }
}

export type GivenItem = Omit<Item, 'id'> & { id: string | null }

/** Items that came without an id, or share one, are told apart by their place. */
function withDistinctIds(items: GivenItem[]): Item[] {
  const taken = new Set<string>()
  return items.map((item, index) => {
    const wanted = item.id ?? item.priceId ?? `item-${index + 1}`
    const id = taken.has(wanted) ? `${wanted}#${index + 1}` : wanted
    taken.add(id)
    return { ...item, id }
  })
}
