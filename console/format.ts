import { type Amount, absolute, ExactNumber, isNegative, isZero } from './amount.ts'

/** Formats numbers, money and times in the user's language and time zone. */

type Maybe<T> = T | null | undefined

export const NONE = '–'

const LONGEST = 20
const dateTimeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const dateFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const relativeFormat = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const numberFormat = new Intl.NumberFormat(undefined, { maximumFractionDigits: LONGEST })
const percentFormat = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 })
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

export function plural(count: Amount, one: string, many = `${one}s`): string {
  return `${number(count)} ${Number(count) === 1 ? one : many}`
}

/** payment_failed → Payment failed */
export function words(name: Maybe<string>): string {
  const phrase = lowerWords(name)
  return phrase.charAt(0).toUpperCase() + phrase.slice(1)
}

/** payment_failed → payment failed */
export function lowerWords(name: Maybe<string>): string {
  return String(name ?? '').replaceAll('_', ' ')
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

export function dateTime(at: Date): string {
  return dateTimeFormat.format(at)
}

export function date(at: Date): string {
  return dateFormat.format(at)
}

/** The step of a plot. */
export type TimeUnit = 'hour' | 'day' | 'month'

const shortFormats: Record<TimeUnit, Intl.DateTimeFormat> = {
  hour: new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' }),
  day: new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' }),
  // Months are dates without a zone, formatted in UTC.
  month: new Intl.DateTimeFormat(undefined, { month: 'short', year: 'numeric', timeZone: 'UTC' }),
}

/** The short format of an axis. A day of another year includes the year. */
export function shortTime(at: Date, unit: TimeUnit): string {
  const isOfAnotherYear = unit === 'day' && at.getFullYear() !== new Date().getFullYear()
  return (isOfAnotherYear ? dateFormat : shortFormats[unit]).format(at)
}

const compactFormat = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })

/** 12,345 → 12.3K */
export function compact(value: number): string {
  return compactFormat.format(value)
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
  const format = new Intl.NumberFormat(undefined, { style: 'currency', currency })
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
