import { type Amount, absolute, ExactNumber, isNegative, isZero } from './amount.ts'

/**
 * Formats numbers, money and times. All in one English locale, because the sentences around them are English, and in the
 * time zone of the tenant, because its days and months are.
 */
export const LOCALE = globalThis.navigator?.languages?.find(name => /^en\b/i.test(name)) ?? 'en-GB'

type Maybe<T> = T | null | undefined

export const NONE = '–'

const LONGEST = 20
const relativeFormat = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const numberFormat = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: LONGEST })
const percentFormat = new Intl.NumberFormat(LOCALE, { style: 'percent', maximumFractionDigits: 1 })
const changeFormat = new Intl.NumberFormat(LOCALE, {
  style: 'percent',
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
})
const moneyFormats = new Map<string, Intl.NumberFormat>()

export function number(value: Maybe<Amount>): string {
  return value === null || value === undefined ? NONE : formatAmount(numberFormat, value)
}

/** `amount` in major units, with as many decimals as the currency has: 0 for JPY, 3 for KWD. */
export function money(amount: Maybe<Amount>, currency: Maybe<string>): string {
  if (amount === null || amount === undefined) return NONE
  const format = moneyFormat(currency ?? '')
  return format ? formatAmount(format, amount) : [number(amount), currency].filter(Boolean).join(' ')
}

export function signedMoney(amount: Maybe<Amount>, currency: Maybe<string>): string {
  if (amount === null || amount === undefined || isZero(amount)) return money(amount, currency)
  return `${isNegative(amount) ? '−' : '+'}${money(absolute(amount), currency)}`
}

/** A fraction of 1. */
export function percent(fraction: Maybe<Amount>): string {
  return fraction === null || fraction === undefined ? NONE : formatAmount(percentFormat, fraction)
}

/** Always with one decimal, so that a column lines up. */
export function percentChange(fraction: number): string {
  return changeFormat.format(fraction)
}

export function plural(count: Amount, one: string, many = `${one}s`): string {
  return `${number(count)} ${Number(count) === 1 ? one : many}`
}

/** payment_failed → Payment failed */
export function words(name: Maybe<string>): string {
  const phrase = lowerWords(name)
  return phrase.charAt(0).toUpperCase() + phrase.slice(1)
}

/** payment_failed → payment failed, one_time_price → one-time price */
export function lowerWords(name: Maybe<string>): string {
  return String(name ?? '')
    .replace(/^one_time_/, 'one-time ')
    .replaceAll('_', ' ')
}

const ROUTES: Record<string, string> = {
  tracking: 'Event API',
  cdp: 'SDK',
  webhook: 'Webhook',
  automation: 'Automation',
  orders: 'Order record',
  billing: 'Billing',
}

/** How an event or a sale arrived: the API's name of it, in words. */
export function receivedVia(source: string): string {
  return ROUTES[source] ?? words(source)
}

/** Not for validation errors, which start with the name of a field. */
export function sentence(text: string): string {
  const start = text.charAt(0).toUpperCase() + text.slice(1)
  return /[.!?]$/.test(start) ? start : `${start}.`
}

/** Any received value as one line. */
export function text(value: unknown): string {
  if (value === null || value === undefined || value === '') return NONE
  return typeof value === 'object' && !(value instanceof ExactNumber) ? JSON.stringify(value) : String(value)
}

/** Indents JSON; other text is returned as it is. */
export function formatJson(body: string): string {
  try {
    JSON.parse(body)
    return indentJson(body)
  } catch {
    return body
  }
}

const JSON_TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g

/** One line per value. Works on the text, so that numbers keep all their digits. */
function indentJson(json: string): string {
  let depth = 0
  let out = ''
  let before = ''
  for (const [token] of json.matchAll(JSON_TOKENS)) {
    const isEnd = token === '}' || token === ']'
    const isBegun = before === '{' || before === '['
    if (isEnd) depth--
    if ((isBegun && !isEnd) || (isEnd && !isBegun) || before === ',') out += `\n${'  '.repeat(depth)}`
    out += token === ':' ? ': ' : token
    if (token === '{' || token === '[') depth++
    before = token
  }
  return out
}

/** The step of a plot. */
export type TimeUnit = 'hour' | 'day' | 'week' | 'month'

const STYLES = {
  dateTime: { dateStyle: 'medium', timeStyle: 'medium' },
  dateTimeOfYear: { day: 'numeric', month: 'short', hour: 'numeric', minute: '2-digit', second: '2-digit' },
  date: { dateStyle: 'medium' },
  hour: { hour: '2-digit', minute: '2-digit' },
  day: { day: 'numeric', month: 'short' },
  week: { day: 'numeric', month: 'short' },
  month: { month: 'short', year: 'numeric' },
  longDay: { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' },
  longHour: { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
  year: { year: 'numeric' },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>

let zone = 'UTC'
const formats = new Map<string, Intl.DateTimeFormat>()

/** Sets the time zone of all dates and times. */
export function setZone(name: string): void {
  zone = name
}

function formatTime(at: Date, style: keyof typeof STYLES, timeZone = zone): string {
  const key = `${timeZone} ${style}`
  const format = formats.get(key) ?? new Intl.DateTimeFormat(LOCALE, { ...STYLES[style], timeZone })
  formats.set(key, format)
  return format.format(at)
}

export function dateTime(at: Date): string {
  return formatTime(at, 'dateTime')
}

/** Without the year if it is the current one: most times in a list are recent. */
export function shortDateTime(at: Date): string {
  return formatTime(at, isOfThisYear(at) ? 'dateTimeOfYear' : 'dateTime')
}

function isOfThisYear(at: Date): boolean {
  return formatTime(at, 'year') === formatTime(new Date(), 'year')
}

export function date(at: Date): string {
  return formatTime(at, 'date')
}

/** The short format of an axis. A day of another year includes the year. */
export function shortTime(at: Date, unit: TimeUnit): string {
  const isDay = unit === 'day' || unit === 'week'
  const isOfAnotherYear = isDay && !isOfThisYear(at)
  return formatTime(at, isOfAnotherYear ? 'date' : unit)
}

/** The long format of a plot's legend. */
export function longTime(at: Date, unit: TimeUnit): string {
  if (unit === 'hour') return formatTime(at, 'longHour')
  if (unit === 'month') return formatTime(at, 'month')
  return unit === 'week' ? `Week of ${formatTime(at, 'date')}` : formatTime(at, 'longDay')
}

/** A day without a time zone: 2026-11-02 → 2 Nov 2026 */
export function day(text: string): string {
  return formatTime(new Date(`${text}T00:00:00Z`), 'date', 'UTC')
}

/** Both days included. null: since the beginning. */
export function dayRange(from: string | null, to: string): string {
  if (from === null) return 'All time'
  if (from === to) return day(from)
  const key = 'range'
  const format = formats.get(key) ?? new Intl.DateTimeFormat(LOCALE, { ...STYLES.date, timeZone: 'UTC' })
  formats.set(key, format)
  return format.formatRange(new Date(`${from}T00:00:00Z`), new Date(`${to}T00:00:00Z`))
}

const compactFormat = new Intl.NumberFormat(LOCALE, { notation: 'compact', maximumFractionDigits: 1 })

/** 12,345 → 12.3K */
export function compact(value: number): string {
  return compactFormat.format(value)
}

/** For axes: 12,345 → €12.3K */
export function compactMoney(currency: string): (value: number) => string {
  if (!/^[a-z]{3}$/i.test(currency)) return compact
  const format = new Intl.NumberFormat(LOCALE, {
    ...{ style: 'currency', currency, notation: 'compact' },
    ...{ minimumFractionDigits: 0, maximumFractionDigits: 1 },
  })
  return value => format.format(value)
}

export function utc(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

/** 3 minutes ago */
export function relative(at: Date, now: Date): string {
  const seconds = (at.getTime() - now.getTime()) / 1000
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1]
  return relativeFormat.format(Math.round(seconds / size), unit)
}

/** Intl keeps all digits of a number given as a string (browsers since 2023). */
function formatAmount(format: Intl.NumberFormat, amount: Amount): string {
  return format.format(String(amount) as `${number}`)
}

/** null if the code cannot be a currency. Then the code is written after the number. */
function moneyFormat(currency: string): Intl.NumberFormat | null {
  if (!/^[a-z]{3}$/i.test(currency)) return null
  const known = moneyFormats.get(currency)
  if (known) return known
  const format = new Intl.NumberFormat(LOCALE, { style: 'currency', currency })
  moneyFormats.set(currency, format)
  return format
}

export const DAY_MS = 86_400_000

/**
 * Invisible characters that change how the text around them is shown: controls, overrides of the writing direction,
 * zero-width marks. Joiners (U+200C, U+200D) are allowed, because languages and emoji need them; so is white space.
 */
const INVISIBLE =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g
const HAS_INVISIBLE = new RegExp(INVISIBLE.source)

/** Writes out invisible characters, so that 10‹U+202E›123 is not shown as 10321. */
export function visible(text: string): string {
  return HAS_INVISIBLE.test(text) ? text.replace(INVISIBLE, escapeCharacter) : text
}

function escapeCharacter(sign: string): string {
  return `‹U+${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}›`
}
