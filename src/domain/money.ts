/** Money: ISO 4217 codes and minor units, exact decimals, integers for every sum. */

import { trimEnd } from './trim.ts'

/**
 * Currency codes in use. Not from Intl, whose list and digits follow CLDR and change with the runtime: HUF, IDR and LBP have
 * no decimals there and two in ISO 4217. Codes that are not used for billing are left out: metals, units of account, test
 * codes and XXX.
 */
const IN_USE = `
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW
CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL
HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA
MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD
RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD
USN UYI UYU UYW UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG`

/** Withdrawn since 2021: a subscription's past may still be in them. */
const WITHDRAWN = 'ANG BGN CUC HRK SLL ZWL'

const DIGITS_OTHER_THAN_TWO: Record<string, number> = {
  ...digits(0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'),
  ...digits(3, 'BHD IQD JOD KWD LYD OMR TND'),
  ...digits(4, 'CLF UYW'),
}

const KNOWN = new Set(`${IN_USE} ${WITHDRAWN}`.trim().split(/\s+/))

/** The most a single amount may be, in minor units: thousands of them still add up below 2^53. */
export const MAX_MINOR = 10 ** 15

/** Exactly `digits` ÷ 10^`scale`. */
export type Decimal = { digits: bigint; scale: number }

function digits(count: number, codes: string): Record<string, number> {
  return Object.fromEntries(codes.split(' ').map(code => [code, count]))
}

/** For messages: completes "must be …". */
export const CURRENCY_FORMAT = 'a three-letter ISO 4217 currency code, for example EUR'

/** The code in capitals, or null for anything that is not a currency in use. */
export function knownCurrency(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const code = value.trim().toUpperCase()
  return KNOWN.has(code) ? code : null
}

export function minorDigits(currency: string): number {
  return DIGITS_OTHER_THAN_TWO[currency] ?? 2
}

const DECIMAL = /^([+-]?)(\d{0,40})(?:\.(\d{0,40}))?(?:[eE]([+-]?\d{1,3}))?$/
/** Beyond this a number is not a price, and writing it out would be costly. */
const MAX_EXPONENT = 40

/** Exact value of a JSON number or of decimal text; null for anything else. */
export function parseDecimal(value: unknown): Decimal | null {
  if (typeof value === 'bigint') return { digits: value, scale: 0 }
  if (typeof value === 'number' ? !Number.isFinite(value) : typeof value !== 'string') return null
  const match = DECIMAL.exec(String(value).trim())
  if (!match) return null
  const [, sign, whole = '', fraction = '', exponent = '0'] = match
  if (whole === '' && fraction === '') return null
  const shift = fraction.length - Number(exponent)
  if (Math.abs(shift) > MAX_EXPONENT) return null
  const magnitude = BigInt(whole + fraction)
  const signed = sign === '-' ? -magnitude : magnitude
  return shift < 0 ? { digits: signed * 10n ** BigInt(-shift), scale: 0 } : { digits: signed, scale: shift }
}

/** Negative, 0 or positive, as for sorting. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const difference = a.digits * 10n ** BigInt(b.scale) - b.digits * 10n ** BigInt(a.scale)
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

/** The exact sum. Without argument lists, whose length is limited: a webhook can contain any number of amounts. */
export function sumDecimals(amounts: Decimal[]): Decimal {
  const scale = amounts.reduce((most, amount) => Math.max(most, amount.scale), 0)
  const digits = amounts.reduce((sum, amount) => sum + amount.digits * 10n ** BigInt(scale - amount.scale), 0n)
  return { digits, scale }
}

export function multiplyDecimals(a: Decimal, b: Decimal): Decimal {
  return { digits: a.digits * b.digits, scale: a.scale + b.scale }
}

/** The shortest text of it: no exponent, no superfluous zeros. */
export function decimalText(decimal: Decimal): string {
  const negative = decimal.digits < 0n
  const magnitude = String(negative ? -decimal.digits : decimal.digits).padStart(decimal.scale + 1, '0')
  const point = magnitude.length - decimal.scale
  const fraction = trimEnd(magnitude.slice(point), digit => digit === '0')
  const text = fraction === '' ? magnitude.slice(0, point) : `${magnitude.slice(0, point)}.${fraction}`
  return negative && decimal.digits !== 0n ? `-${text}` : text
}

/** n ÷ d to the nearest integer, halves away from zero; d > 0. */
export function divideHalfUp(n: bigint, d: bigint): bigint {
  return n < 0n ? -((-n * 2n + d) / (d * 2n)) : (n * 2n + d) / (d * 2n)
}

/** An amount in major units ("49.90", 49.9) as whole minor units; null when it is not an amount. */
export function toMinor(amount: unknown, currency: string): number | null {
  const decimal = parseDecimal(amount)
  return decimal && decimalToMinor(decimal, currency)
}

export function decimalToMinor(decimal: Decimal, currency: string): number | null {
  const minor = Number(
    divideHalfUp(decimal.digits * 10n ** BigInt(minorDigits(currency)), 10n ** BigInt(decimal.scale)),
  )
  return Math.abs(minor) <= MAX_MINOR ? minor : null
}

/** Minor units as the JSON number in major units: 4990 EUR is 49.9. Exact up to 15 digits. */
export function toMajor(minor: number | bigint, currency: string): number {
  return Number(majorText(minor, currency))
}

/** The same as decimal text, for exports: 4990 EUR is "49.90". */
export function majorText(minor: number | bigint, currency: string): string {
  const places = minorDigits(currency)
  const negative = minor < 0
  const magnitude = String(BigInt(minor) * (negative ? -1n : 1n)).padStart(places + 1, '0')
  const point = magnitude.length - places
  const text = places === 0 ? magnitude : `${magnitude.slice(0, point)}.${magnitude.slice(point)}`
  return negative ? `-${text}` : text
}
