/** A number that a double cannot hold, with all its digits. Plots and comparisons use the nearest double. */
export class ExactNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
  valueOf(): number {
    return Number(this.text)
  }
  /** Serializes with all its digits. */
  toJSON(): unknown {
    return rawJson(this.text)
  }
}

/** A number in a response. Only this file and format.ts compute with amounts. */
export type Amount = number | ExactNumber

const NUMERAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i
/** A double keeps every decimal of up to 15 digits. */
const SAFE_DIGITS = 15
/** Sums with more places use doubles. */
const MAX_PLACES = 400

/** Parses a number: a double if that keeps its value, else an ExactNumber. */
export function toAmount(text: string): Amount {
  const double = Number(text)
  if (text.length <= SAFE_DIGITS) return double
  return isSame(parseDecimal(text), parseDecimal(String(double))) ? double : new ExactNumber(text)
}

/** Reads an amount from received data, where it may be a string; null if it is not a number. */
export function parseAmount(value: unknown): Amount | null {
  if (typeof value === 'number' || value instanceof ExactNumber) return value
  const text = typeof value === 'string' ? value.trim() : ''
  return NUMERAL.test(text) ? toAmount(text) : null
}

/** The nearest double, for plots and comparisons. */
export function toNumber(amount: Amount): number {
  return Number(amount)
}

export function isNegative(amount: Amount): boolean {
  return toNumber(amount) < 0
}

export function isZero(amount: Amount): boolean {
  return toNumber(amount) === 0
}

export function negate(amount: Amount): Amount {
  if (typeof amount === 'number') return amount === 0 ? 0 : -amount
  return new ExactNumber(isNegative(amount) ? amount.text.slice(1) : `-${amount.text}`)
}

export function absolute(amount: Amount): Amount {
  return isNegative(amount) ? negate(amount) : amount
}

/** Exact to the last digit: 0.1 + 0.2 is 0.3. */
export function sumAmounts(amounts: Amount[]): Amount {
  const decimals = amounts.map(amount => parseDecimal(String(amount)))
  const places = Math.max(0, ...decimals.map(decimal => decimal?.places ?? 0))
  const isTooLong = decimals.some(decimal => decimal === null || decimal.places < -MAX_PLACES)
  if (isTooLong || places > MAX_PLACES) return amounts.reduce<number>((sum, amount) => sum + toNumber(amount), 0)
  const units = decimals.reduce((sum, decimal) => sum + decimal!.units * 10n ** BigInt(places - decimal!.places), 0n)
  return toAmount(formatDecimal(units, places))
}

/** units × 10^−places */
type Decimal = { units: bigint; places: number }

function parseDecimal(text: string): Decimal | null {
  const parts = NUMERAL.exec(text)
  if (!parts) return null
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = parts
  let digits = `${whole}${fraction}`
  while (digits.endsWith('0')) digits = digits.slice(0, -1)
  const dropped = whole.length + fraction.length - digits.length
  return {
    units: BigInt(`${sign}${digits === '' ? '0' : digits}`),
    places: digits === '' ? 0 : fraction.length - dropped - Number(exponent),
  }
}

function isSame(a: Decimal | null, b: Decimal | null): boolean {
  return a !== null && b !== null && a.units === b.units && a.places === b.places
}

function formatDecimal(units: bigint, places: number): string {
  const digits = String(units < 0n ? -units : units).padStart(places + 1, '0')
  const whole = digits.slice(0, digits.length - places)
  return `${units < 0n ? '-' : ''}${whole}${places > 0 ? `.${digits.slice(-places)}` : ''}`
}

type RawJson = { rawJSON?(text: string): unknown }

function rawJson(text: string): unknown {
  return (JSON as RawJson).rawJSON?.(text) ?? Number(text)
}

type Revive = (name: string, value: unknown, context?: { source?: string }) => unknown
const parse = JSON.parse as (text: string, revive: Revive) => unknown

/** Parses JSON; a number that a double cannot hold becomes an ExactNumber. */
export function parseJson(text: string): unknown {
  return parse(text, (_name, value, context) =>
    typeof value === 'number' && context?.source !== undefined ? toAmount(context.source) : value,
  )
}
