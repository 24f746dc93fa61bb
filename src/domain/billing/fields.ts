/** Reads fields of provider objects. A value of the wrong type becomes null; nothing throws. */

import { type Decimal, decimalText, parseDecimal, sumDecimals } from '../money.ts'
import { DAY_MS, parseTimestamp } from '../time.ts'
import type {
  Acquisition,
  Discount,
  Instant,
  InvoiceStatus,
  Item,
  PaymentFailure,
  ServicePeriod,
  SubscriptionStatus,
  SubscriptionVersion,
  Tiers,
} from './types.ts'

export type Fields = Record<string, unknown>

/** Unix time up to this value (the year 5138) is in seconds; above, in milliseconds. */
const LATEST_UNIX_SECONDS = 1e11
const LATEST_MS = Date.UTC(9999, 11, 31)
/** A longer string is not a name or id, and does not belong in an index. */
const MAX_TEXT = 500
const MAX_INTERVAL_COUNT = 1200
/** Per subscription or item. Every derivation applies all of them, so the number is bounded. Stripe allows 20. */
const MAX_DISCOUNTS = 30

export function readObject(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null
}

export function readList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

export function readText(value: unknown): string | null {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  if (typeof value !== 'string') return null
  const trimmed = value.trim()
  // the cut may have split a surrogate pair
  return trimmed === '' ? null : trimmed.slice(0, MAX_TEXT).toWellFormed()
}

export function readLowerText(value: unknown): string | null {
  return readText(value)?.toLowerCase() ?? null
}

/** The id of a reference that is either an id or the whole object. */
export function readId(value: unknown): string | null {
  return readText(value) ?? readText(readObject(value)?.id)
}

/** An ISO 8601 string, or Unix seconds (milliseconds if the value is too large for seconds). */
export function readInstant(value: unknown): Instant | null {
  const unix = typeof value === 'string' && /^\d{9,13}$/.test(value) ? Number(value) : value
  if (typeof unix !== 'number') return parseTimestamp(value)?.getTime() ?? null
  if (!(unix > 0)) return null
  const ms = Math.round(unix <= LATEST_UNIX_SECONDS ? unix * 1000 : unix)
  return ms <= LATEST_MS ? ms : null
}

export function readFlag(value: unknown): boolean {
  return value === true || value === 'true' || value === 1
}

function readDecimal(value: unknown): Decimal | null {
  const parsed = parseDecimal(value)
  return parsed && parsed.digits >= 0n ? parsed : null
}

export function readDecimalText(value: unknown): string | null {
  const parsed = readDecimal(value)
  return parsed && decimalText(parsed)
}

/** An integer of at least `least`; null for anything else. */
export function readInteger(value: unknown, least: number): number | null {
  const number = typeof value === 'string' && /^\d{1,15}$/.test(value.trim()) ? Number(value) : value
  return Number.isSafeInteger(number) && (number as number) >= least ? (number as number) : null
}

/** Absent means 1; present but not a number means null. */
export function readQuantity(value: unknown): number | null {
  if (value === undefined || value === null) return 1
  const parsed = readDecimal(value)
  return parsed && Number(decimalText(parsed))
}

/** Absent means 1; null, 0 and more than 1,200 mean unknown. */
export function readIntervalCount(value: unknown): number | null {
  const count = value === undefined ? 1 : readInteger(value, 1)
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

/** Converts an interval to days, weeks, months or years where possible: "quarterly" becomes 3 months. */
export function readInterval(interval: unknown, count: unknown): Pick<Item, 'interval' | 'intervalCount'> {
  const given = typeof interval === 'string' ? readLowerText(interval) : null
  const words = given?.replace(/[-\s]+/g, '_') ?? ''
  const counted = /^(?:every_)?(?:(\d{1,4})_?)?(day|week|month|year)s?$/.exec(words)
  const [unit, times] = INTERVAL_WORDS.get(words) ?? [counted?.[2] ?? given, Number(counted?.[1] ?? 1)]
  const intervalCount = readIntervalCount(count)
  return { interval: unit, intervalCount: intervalCount && readIntervalCount(intervalCount * times) }
}

/** null: the tiers cannot be computed. `amount` reads a price as a decimal string. */
export function readTiers(tiers: unknown, mode: unknown, amount: AmountReader): Tiers | null {
  const word = readLowerText(mode)
  if (word !== 'graduated' && word !== 'volume') return null
  const steps = readList(tiers).map(entry => readTier(readObject(entry) ?? {}, amount))
  return steps.length > 0 && steps.every(step => step !== null) ? { mode: word, steps } : null
}

/** Reads the amount of this name as a decimal string in major units. */
type AmountReader = (fields: Fields, name: 'unit_amount' | 'flat_amount') => string | null

function readTier(tier: Fields, amount: AmountReader): Tiers['steps'][number] | null {
  const isOpen = tier.up_to === null || tier.up_to === undefined || tier.up_to === 'inf'
  const upTo = isOpen ? null : readInteger(tier.up_to, 1)
  const unitAmount = amount(tier, 'unit_amount')
  const flatAmount = amount(tier, 'flat_amount')
  if ((upTo === null && !isOpen) || (unitAmount === null && flatAmount === null)) return null
  return { upTo, unitAmount: unitAmount ?? '0', flatAmount: flatAmount ?? '0' }
}

/** The sum of percentages included in a price; null: none. */
export function sumPercents(percents: (string | null)[]): string | null {
  const sum = sumDecimals(percents.flatMap(percent => (percent === null ? [] : [parseDecimal(percent)!])))
  return sum.digits > 0n ? decimalText(sum) : null
}

export function readUsageType(...hints: unknown[]): Item['usageType'] {
  const words = hints.map(hint => readLowerText(hint)?.replace(/[-\s]/g, '_'))
  if (words.includes('one_time') || words.includes('onetime')) return 'one_time'
  return words.includes('metered') ? 'metered' : 'licensed'
}

/** The acquisition source in the subscription itself: `acquisition`, else the UTM fields of its metadata. */
export function readAcquisition(acquisition: unknown, metadata: unknown): Acquisition | null {
  const own = readObject(acquisition)
  const ownSource = readText(own?.source)
  if (ownSource) return { source: ownSource, medium: readText(own?.medium), campaign: readText(own?.campaign) }
  const utm = readObject(metadata)
  const source = readText(utm?.utm_source)
  return source ? { source, medium: readText(utm?.utm_medium), campaign: readText(utm?.utm_campaign) } : null
}

const MAX_METADATA = 50
const MAX_METADATA_KEY = 40
const MAX_METADATA_VALUE = 100

/** Its metadata, and the country in it. Long values are no dimension of a report. */
export function readMetadata(given: unknown): { country?: string; metadata?: Record<string, string> } {
  const fields = readObject(given)
  const country = normalizeCountry(readText(fields?.country))
  const known = Object.entries(fields ?? {}).flatMap(([key, value]) => {
    const text = typeof value === 'boolean' ? String(value) : readText(value)
    const isShort = key.length <= MAX_METADATA_KEY && text !== null && text.length <= MAX_METADATA_VALUE
    return isShort ? [[key.toWellFormed(), text] as const] : []
  })
  const metadata = Object.fromEntries(known.sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, MAX_METADATA))
  return { ...(country !== null && { country }), ...(known.length > 0 && { metadata }) }
}

/** Country codes become upper case; names stay as they are. */
export function normalizeCountry(given: string | null | undefined): string | null {
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

/** Gives every item a unique id. More discounts than the limit become one discount with unknown terms. */
export function limitTerms(items: GivenItem[], discounts: Discount[]): { items: Item[]; discounts: Discount[] } {
  const bounded = (given: Discount[]) => (given.length <= MAX_DISCOUNTS ? given : [UNKNOWN_DISCOUNT])
  const named = assignItemIds(items)
  return { items: named.map(item => ({ ...item, discounts: bounded(item.discounts) })), discounts: bounded(discounts) }
}

export type GivenItem = Omit<Item, 'id'> & { id: string | null }

/** Items without an id, or with a repeated one, get an id from their position. */
function assignItemIds(items: GivenItem[]): Item[] {
  const taken = new Set<string>()
  return items.map((item, index) => {
    const wanted = item.id ?? item.priceId ?? `item-${index + 1}`
    const id = taken.has(wanted) ? `${wanted}#${index + 1}` : wanted
    taken.add(id)
    return { ...item, id }
  })
}

// Provider vocabulary mapped to Kontor's.

const SUBSCRIPTION_STATUSES = new Map<string, SubscriptionStatus>([
  ['active', 'active'],
  ['activated', 'active'],
  ['reactivated', 'active'],
  ['started', 'active'],
  ['resumed', 'active'],
  ['renewed', 'active'],
  ['live', 'active'],
  ['running', 'active'],
  ['non_renewing', 'active'],
  ['past_due', 'past_due'],
  ['pastdue', 'past_due'],
  ['overdue', 'past_due'],
  ['grace_period', 'past_due'],
  ['in_grace_period', 'past_due'],
  ['trialing', 'trialing'],
  ['trialling', 'trialing'],
  ['trial', 'trialing'],
  ['in_trial', 'trialing'],
  ['on_trial', 'trialing'],
  ['trial_started', 'trialing'],
  ['trial_will_end', 'trialing'],
  ['unpaid', 'unpaid'],
  ['incomplete', 'incomplete'],
  ['pending', 'incomplete'],
  ['incomplete_expired', 'incomplete_expired'],
  ['canceled', 'canceled'],
  ['cancelled', 'canceled'],
  ['ended', 'canceled'],
  ['expired', 'canceled'],
  ['terminated', 'canceled'],
  ['inactive', 'canceled'],
  ['paused', 'paused'],
  ['on_hold', 'paused'],
  ['suspended', 'paused'],
])

const INVOICE_STATUSES = new Map<string, InvoiceStatus>([
  ['draft', 'draft'],
  ['open', 'open'],
  ['paid', 'paid'],
  ['uncollectible', 'uncollectible'],
  ['void', 'void'],
  ['voided', 'void'],
])

/** The status implied by the event type, for invoices without `status`. */
const INVOICE_EVENTS = new Map<string, InvoiceStatus>([
  ...INVOICE_STATUSES,
  ['finalized', 'open'],
  ['sent', 'open'],
  ['payment_failed', 'open'],
  ['payment_action_required', 'open'],
  ['overdue', 'open'],
  ['marked_uncollectible', 'uncollectible'],
  ['payment_succeeded', 'paid'],
])

const ACTION_REQUIRED = /authentication|requires_action|action_required/

function toWord(value: unknown): string {
  return readLowerText(value)?.replace(/[-\s]/g, '_') ?? ''
}

function lastWord(eventType: string): string {
  return toWord(eventType.slice(eventType.lastIndexOf('.') + 1))
}

/** Without a status in the subscription, the event type implies one: `subscription.canceled`. Otherwise it is active. */
export function readSubscriptionStatus(eventType: string, value: unknown): SubscriptionStatus {
  const given = toWord(value)
  if (given !== '') return SUBSCRIPTION_STATUSES.get(given) ?? 'unknown'
  if (value !== undefined && value !== null && value !== '') return 'unknown'
  return SUBSCRIPTION_STATUSES.get(lastWord(eventType)) ?? 'active'
}

export function isSubscriptionStatus(value: unknown): boolean {
  return SUBSCRIPTION_STATUSES.has(toWord(value))
}

export function isInvoiceStatus(value: unknown): boolean {
  return INVOICE_STATUSES.has(toWord(value))
}

export function readChange(eventType: string): SubscriptionVersion['change'] {
  if (eventType.endsWith('.deleted')) return 'deleted'
  return eventType.endsWith('.created') ? 'created' : 'updated'
}

/** A discount without a duration runs until its end, or forever if it has none. */
export function readDuration(value: unknown, endsAt: Instant | null): Discount['duration'] {
  if (value === undefined || value === null) return endsAt === null ? 'forever' : 'repeating'
  const duration = toWord(value)
  return duration === 'forever' || duration === 'once' || duration === 'repeating' ? duration : 'unknown'
}

/** A deleted invoice counts as void. */
export function readInvoiceStatus(eventType: string, value: unknown): InvoiceStatus {
  if (eventType.endsWith('.deleted')) return 'void'
  const given = toWord(value)
  return (given ? INVOICE_STATUSES.get(given) : INVOICE_EVENTS.get(lastWord(eventType))) ?? 'unknown'
}

export function readFailure(eventType: string, code: string | null, message: string | null): PaymentFailure | null {
  if (eventType.endsWith('.payment_action_required') || ACTION_REQUIRED.test(code ?? '')) {
    return { kind: 'action_required', code, message }
  }
  const failed = eventType.endsWith('.payment_failed') || code !== null || message !== null
  return failed ? { kind: 'payment_failed', code, message } : null
}

/** A longer period is an error of the source: revenue is stored by month. */
const MAX_PERIOD_MS = 20 * 366 * DAY_MS
const MAX_SERVICES = 250

/** The lines of an invoice with equal periods merged. A period of no length, or one that ends before it starts, is unknown. */
export function readServices(lines: ServicePeriod[]): { services?: ServicePeriod[] } {
  const services = new Map<string, ServicePeriod>()
  for (const { amount, ...given } of lines) {
    const length = (given.to ?? 0) - (given.from ?? 0)
    const isKnown = given.from !== null && given.to !== null && length > 0 && length <= MAX_PERIOD_MS
    const { from, to } = isKnown ? given : { from: null, to: null }
    const key = `${from} ${to}`
    services.set(key, { amount: amount + (services.get(key)?.amount ?? 0), from, to })
  }
  const found = [...services.values()]
  return found.some(({ from }) => from !== null) && found.length <= MAX_SERVICES ? { services: found } : {}
}

export function isEffectiveRefund(eventType: string, status: unknown): boolean {
  const undone = /^(failed|cancell?ed|deleted)$/
  return !undone.test(lastWord(eventType)) && !undone.test(toWord(status))
}
