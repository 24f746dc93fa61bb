/** Reading fields of objects that others wrote: what is not of the right kind is null, nothing throws. */

import { type Decimal, decimalText, parseDecimal } from '../money.ts'
import { parseTimestamp } from '../time.ts'
import type { Acquisition, Discount, Instant, Item, Tiers } from './types.ts'

export type Fields = Record<string, unknown>

/** Seconds up to here (the year 5138), milliseconds beyond. */
const LATEST_UNIX_SECONDS = 1e11
const LATEST_MS = Date.UTC(9999, 11, 31)
/** Longer text is no name or id, and does not belong in an index. */
const MAX_TEXT = 500
const MAX_INTERVAL_COUNT = 1200
/** Of one owner. They are applied again with every event: how many there may be has to have an end. Stripe's is 20. */
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

const INTERVAL_WORDS = new Map<string, [string, number]>([
  ['daily', ['day', 1]],
  ['weekly', ['week', 1]],
  ['biweekly', ['week', 2]],
  ['monthly', ['month', 1]],
  ['quarter', ['month', 3]],
  ['quarterly', ['month', 3]],
  ['semiannual', ['month', 6]],
  ['semiannually', ['month', 6]],
  ['biannual', ['month', 6]],
  ['biannually', ['month', 6]],
  ['half_year', ['month', 6]],
  ['half_yearly', ['month', 6]],
  ['yearly', ['year', 1]],
  ['annual', ['year', 1]],
  ['annually', ['year', 1]],
  ['biennial', ['year', 2]],
  ['biennially', ['year', 2]],
])

/** How often, in day, week, month or year where the words can be brought to that: "quarterly" is every 3 months. */
export function termOf(interval: unknown, count: unknown): Pick<Item, 'interval' | 'intervalCount'> {
  const given = typeof interval === 'string' ? lowerText(interval) : null
  const words = given?.replace(/[-\s]+/g, '_') ?? ''
  const counted = /^(?:every_)?(?:(\d{1,4})_?)?(day|week|month|year)s?$/.exec(words)
  const [unit, times] = INTERVAL_WORDS.get(words) ?? [counted?.[2] ?? given, Number(counted?.[1] ?? 1)]
  const intervalCount = intervalCountOf(count)
  return { interval: unit, intervalCount: intervalCount && intervalCountOf(intervalCount * times) }
}

/** Tiers as they are given; null where they cannot be computed. `amount` reads a price as decimal text. */
export function tiersOf(tiers: unknown, mode: unknown, amount: AmountReader): Tiers | null {
  const word = lowerText(mode)
  if (word !== 'graduated' && word !== 'volume') return null
  const steps = listOf(tiers).map(entry => stepOf(fieldsOf(entry) ?? {}, amount))
  return steps.length > 0 && steps.every(step => step !== null) ? { mode: word, steps } : null
}

/** What of the two amounts that are given under these names is exact, as decimal text in major units. */
type AmountReader = (fields: Fields, name: 'unit_amount' | 'flat_amount') => string | null

function stepOf(tier: Fields, amount: AmountReader): Tiers['steps'][number] | null {
  const isOpen = tier.up_to === null || tier.up_to === undefined || tier.up_to === 'inf'
  const upTo = isOpen ? null : whole(tier.up_to, 1)
  const unitAmount = amount(tier, 'unit_amount')
  const flatAmount = amount(tier, 'flat_amount')
  if ((upTo === null && !isOpen) || (unitAmount === null && flatAmount === null)) return null
  return { upTo, unitAmount: unitAmount ?? '0', flatAmount: flatAmount ?? '0' }
}

/** Percents that a price holds, added up; null: none. */
export function percentSum(percents: (string | null)[]): string | null {
  const known = percents.flatMap(percent => (percent === null ? [] : [parseDecimal(percent)!]))
  const scale = Math.max(0, ...known.map(percent => percent.scale))
  const digits = known.reduce((sum, { digits, scale: own }) => sum + digits * 10n ** BigInt(scale - own), 0n)
  return digits > 0n ? decimalText({ digits, scale }) : null
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

/** The country that its metadata names. */
export function countryOf(metadata: unknown): { country?: string } {
  const country = countryName(text(fieldsOf(metadata)?.country))
  return country === null ? {} : { country }
}

/** Codes are written in capitals, whoever wrote them; names as they are. */
export function countryName(given: string | null | undefined): string | null {
  const name = given?.trim() ?? ''
  if (name === '') return null
  return /^[a-z]{2,3}$/i.test(name) ? name.toUpperCase() : name
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
  const bounded = (given: Discount[]) => (given.length <= MAX_DISCOUNTS ? given : [UNKNOWN_DISCOUNT])
  const named = withDistinctIds(items)
  return {
    items: named.map(item => ({ ...item, discounts: bounded(item.discounts) })),
    discounts: bounded(discounts),
  }
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
