/** Currency conversion by daily rates. */

import { type Decimal, divideHalfUp, minorDigits, parseDecimal } from '../money.ts'
import type { Day } from '../time.ts'

/** Units of the currency per euro on a day. */
export type DailyRate = { currency: string; day: Day; rate: string }

const BASE = 'EUR'
const ONE: Decimal = { digits: 1n, scale: 0 }

/** One unit is worth `to` ÷ `from` units of the target. `day`: the day of the older of the two rates. */
export type Exchange = { from: Decimal; to: Decimal; day: Day | null }

/** Finds the rates of a day, else the last earlier ones. */
export function createExchange(rates: DailyRate[]) {
  const byCurrency = Map.groupBy(
    [...rates].sort((a, b) => (a.day < b.day ? -1 : 1)),
    rate => rate.currency,
  )
  const rateOf = (currency: string, day: Day): { rate: Decimal; day: Day | null } | null => {
    if (currency === BASE) return { rate: ONE, day: null }
    const found = byCurrency.get(currency)?.findLast(rate => rate.day <= day)
    return found ? { rate: parseDecimal(found.rate)!, day: found.day } : null
  }
  /** null: a rate is missing. */
  return (currency: string, target: string, day: Day): Exchange | null => {
    if (currency === target) return { from: ONE, to: ONE, day: null }
    const [from, to] = [rateOf(currency, day), rateOf(target, day)]
    if (!from || !to) return null
    const days = [from.day, to.day].filter(known => known !== null)
    return { from: from.rate, to: to.rate, day: days.sort()[0] ?? null }
  }
}

/** Converts minor units to minor units of the target, rounded half up. */
export function convertAmount(minor: number, currency: string, target: string, { from, to }: Exchange): number {
  const ten = (digits: number) => 10n ** BigInt(digits)
  const above = BigInt(minor) * to.digits * ten(from.scale) * ten(minorDigits(target))
  const below = from.digits * ten(to.scale) * ten(minorDigits(currency))
  return Number(divideHalfUp(above, below))
}

export function rateNumber({ from, to }: Exchange): number {
  const value = ({ digits, scale }: Decimal) => Number(digits) / 10 ** scale
  return Number((value(to) / value(from)).toPrecision(12))
}
