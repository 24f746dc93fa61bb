/** Amounts as Stripe writes them: whole numbers of its own minor units, which are not always ISO 4217's. */

import { type Decimal, decimalText, decimalToMinor, parseDecimal } from '../../money.ts'

/** https://docs.stripe.com/currencies: MGA has two digits in ISO 4217 and none here. */
const WITHOUT_DECIMALS = new Set('BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' '))
/** ISK and UGX have no minor unit, but Stripe still writes 5 of them as 500: they fall under the usual two. */
const WITH_THREE_DECIMALS = new Set('BHD JOD KWD OMR TND'.split(' '))

function stripeDigits(currency: string): number {
  if (WITHOUT_DECIMALS.has(currency)) return 0
  return WITH_THREE_DECIMALS.has(currency) ? 3 : 2
}

function majorDecimal(amount: unknown, currency: string): Decimal | null {
  const parsed = parseDecimal(amount)
  return parsed && { digits: parsed.digits, scale: parsed.scale + stripeDigits(currency) }
}

/** Whole ISO 4217 minor units. */
export function stripeMinor(amount: unknown, currency: string | null): number | null {
  const major = currency ? majorDecimal(amount, currency) : null
  return major && decimalToMinor(major, currency!)
}

/** Exact decimal text in major units, for prices finer than the minor unit. */
export function stripeMajorText(amount: unknown, currency: string | null): string | null {
  const major = currency ? majorDecimal(amount, currency) : null
  return major && major.digits >= 0n ? decimalText(major) : null
}
