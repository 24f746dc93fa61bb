/** Amounts are whole minor units: cents, yen, thousandths of a dinar. */
const DIGITS: Record<string, number> = { EUR: 2, USD: 2, GBP: 2, JPY: 0, KWD: 3 }

export function digitsOf(currency: string): number {
  const digits = DIGITS[currency]
  if (digits === undefined) throw new Error(`this company does no business in ${currency}`)
  return digits
}

/** 4990 EUR is 49.9; exact for every amount in the tests. */
export function major(amount: number, currency: string): number {
  return Number(majorText(amount, currency))
}

/** 4990 EUR is "49.90". */
function majorText(amount: number, currency: string): string {
  const digits = digitsOf(currency)
  const text = String(Math.abs(amount)).padStart(digits + 1, '0')
  const sign = amount < 0 ? '-' : ''
  return digits === 0 ? sign + text : `${sign}${text.slice(0, -digits)}.${text.slice(-digits)}`
}

/** An exact fraction; the denominator is above 0. */
export type Fraction = { over: bigint; under: bigint }

/** Prices may have fractions of a minor unit, exact up to four digits. */
export function fraction(value: number): Fraction {
  return { over: BigInt(Math.round(value * 10_000)), under: 10_000n }
}

export function times(a: Fraction, over: number, under = 1): Fraction {
  const factor = { over: fraction(over).over, under: fraction(under).over }
  return { over: a.over * factor.over, under: a.under * factor.under }
}

export function plus(a: Fraction, b: Fraction): Fraction {
  return { over: a.over * b.under + b.over * a.under, under: a.under * b.under }
}

export function minus(a: Fraction, b: Fraction): Fraction {
  return plus(a, { over: -b.over, under: b.under })
}

export function orZero(a: Fraction): Fraction {
  return a.over < 0n ? fraction(0) : a
}

export function isZero(a: Fraction): boolean {
  return a.over === 0n
}

/** To whole minor units; halves go up. */
export function rounded({ over, under }: Fraction): number {
  if (over < 0n) return -rounded({ over: -over, under })
  return Number((2n * over + under) / (2n * under))
}

/** A share of a whole amount, in whole minor units. */
export function share(amount: number, over: number, under = 1): number {
  return rounded(times(fraction(amount), over, under))
}

/** Proportional shares that add up to the amount. The first share gets the remainder. */
export function allocate(amount: number, weights: number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  if (total === 0) return weights.map(() => 0)
  const shares = weights.map(weight => Math.floor((amount * weight) / total))
  let rest = amount - shares.reduce((sum, share) => sum + share, 0)
  for (let i = 0; rest > 0; i = (i + 1) % shares.length)
    if (weights[i]! > 0) {
      shares[i]!++
      rest--
    }
  return shares
}

export function sum(amounts: Iterable<number>): number {
  let total = 0
  for (const amount of amounts) total += amount
  return total
}
