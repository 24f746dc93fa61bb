import { h } from './dom.js'

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const dateOnly = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' })
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const plain = new Intl.NumberFormat(undefined, { maximumFractionDigits: 20 })
const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
]

export const NONE = '–'

/** Local time, with UTC for those who point at it. */
export function time(iso, { format = dateTime } = {}) {
  if (!iso) return NONE
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return String(iso)
  const utc = `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
  return h('time', { datetime: iso, title: utc }, format.format(at))
}

export function day(iso) {
  return time(iso, { format: dateOnly })
}

/** "3 minutes ago", with the exact time for those who point at it. */
export function ago(iso) {
  if (!iso) return NONE
  const seconds = (Date.parse(iso) - Date.now()) / 1000
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? UNITS.at(-1)
  const element = time(iso)
  element.title = `${element.textContent} (${element.title})`
  element.textContent = relative.format(Math.round(seconds / size), unit)
  return element
}

export function number(value) {
  return value === null || value === undefined ? NONE : plain.format(value)
}

/** `amount` in major units of the currency. */
export function money(amount, currency) {
  if (amount === null || amount === undefined) return NONE
  const exact = amount.rawJSON ?? amount
  try {
    return new Intl.NumberFormat(undefined, { style: 'currency', currency }).format(exact)
  } catch {
    return [plain.format(exact), currency].filter(Boolean).join(' ')
  }
}

export function signedMoney(amount, currency) {
  const text = money(amount === null ? null : Math.abs(amount), currency)
  if (!amount) return text
  return `${amount < 0 ? '−' : '+'}${text}`
}

export function percent(fraction) {
  if (fraction === null || fraction === undefined) return NONE
  return new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 }).format(fraction)
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`
}

/** payment_failed → Payment failed */
export function words(name) {
  const text = String(name ?? '').replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

export function text(value) {
  return value === null || value === undefined || value === '' ? NONE : String(value)
}
