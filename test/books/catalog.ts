// The company's products in every currency, with coupons and taxes.
import type { Coupon, Price, TaxRate, Tier } from './model.ts'

/** Minor units of one unit of account: 19 are 19.00 EUR, 20.90 USD, 2,850 JPY, 6.270 KWD. */
const SCALE: Record<string, number> = { EUR: 100, USD: 110, JPY: 150, KWD: 330 }

export type Catalog = ReturnType<typeof createCatalog>

export function createCatalog(currency: string) {
  const scale = SCALE[currency]
  if (!scale) throw new Error(`nothing is sold in ${currency}`)
  const code = currency.toLowerCase()
  const amount = (units: number) => Math.round(units * scale)

  const price = (key: string, name: string, unitAmount: number | null, changes: Partial<Price> = {}): Price => ({
    id: `price_${key}_${code}`,
    product: `prod_${changes.product ?? key.split('_')[0]}`,
    name,
    currency,
    interval: 'month',
    intervalCount: 1,
    usage: 'licensed',
    unitAmount,
    tiers: null,
    ...withoutProduct(changes),
  })
  const tiers = (mode: 'graduated' | 'volume', steps: [number | null, number, number][]) => ({
    mode,
    tiers: steps.map(([upTo, unit, flat]): Tier => ({ upTo, unitAmount: amount(unit), flatAmount: amount(flat) })),
  })
  const yearly = { interval: 'year' } as const

  return {
    currency,
    starter: price('starter_m', 'Starter', amount(19)),
    /** The same product after a price increase. */
    starterNow: price('starter_m2', 'Starter', amount(24)),
    team: price('team_m', 'Team monthly', amount(12.5)),
    teamYearly: price('teamyearly_y', 'Team yearly', amount(125), yearly),
    business: price('business_y', 'Business', amount(2_990), yearly),
    businessMonthly: price('businessmonthly_m', 'Business monthly', amount(279)),
    quarterly: price('press_q', 'Press review', amount(90), { intervalCount: 3 }),
    weekly: price('box_w', 'Weekly box', amount(25), { interval: 'week' }),
    /** With half a minor unit. */
    fine: price('fine_m', 'Fine print', amount(0.99) + 0.5),
    graduated: price('crew_m', 'Crew', null, {
      tiers: tiers('graduated', [
        [5, 10, 0],
        [20, 8, 0],
        [null, 6, 15],
      ]),
    }),
    volume: price('fleet_y', 'Fleet', null, {
      ...yearly,
      tiers: tiers('volume', [
        [10, 100, 0],
        [50, 80, 0],
        [null, 60, 500],
      ]),
    }),
    free: price('free_m', 'Free', 0),
    usage: price('calls_m', 'API calls', amount(0.01) + 0.5, { usage: 'metered' }),
    support: {
      month: price('support_m', 'Support', amount(15)),
      year: price('support_y', 'Support yearly', amount(150), yearly),
    },
    /** Parts of a large subscription. */
    module: (n: number) => price(`module${n}_m`, `Module ${n}`, amount(3 + (n % 7)), { product: `module${n}` }),
  }
}

function withoutProduct({ product: _, ...changes }: Partial<Price>): Partial<Price> {
  return changes
}

export function couponsOf(currencies: string[], createdAt: number): Coupon[] {
  const coupon = (id: string, terms: Partial<Coupon>): Coupon => ({
    id,
    name: id.replaceAll('-', ' '),
    percentOff: null,
    amountOff: null,
    currency: null,
    duration: 'forever',
    months: null,
    createdAt,
    promotionCode: null,
    livemode: true,
    ...terms,
  })
  const code = (id: string) => ({ id: `promo_${id.toLowerCase()}`, code: id })
  return [
    coupon('FRIENDS-10', { percentOff: 10 }),
    coupon('LAUNCH-25', {
      percentOff: 25,
      duration: 'repeating',
      months: 3,
      promotionCode: code('LAUNCH25'),
    }),
    coupon('THIRD-6', { percentOff: 33.33, duration: 'repeating', months: 6 }),
    coupon('YEAR-20', { percentOff: 20, duration: 'repeating', months: 12, promotionCode: code('YEAR20') }),
    coupon('MONTH-FREE', { percentOff: 100, duration: 'repeating', months: 1 }),
    coupon('HALF-ONCE', { percentOff: 50, duration: 'once' }),
    ...currencies.flatMap(currency => {
      const off = (units: number) => ({ amountOff: Math.round(units * SCALE[currency]!), currency })
      const code = currency.toLowerCase()
      return [
        coupon(`five-${code}`, { ...off(5) }),
        coupon(`ten-once-${code}`, { ...off(10), duration: 'once' }),
        coupon(`three-half-${code}`, { ...off(3), duration: 'repeating', months: 6 }),
      ]
    }),
  ]
}

export const COUNTRIES = ['DE', 'FR', 'US', 'JP', 'KW', 'AT']

const RATES: Record<string, { name: string; percent: number; inclusive: boolean }[]> = {
  DE: [
    { name: 'VAT', percent: 19, inclusive: false },
    { name: 'VAT', percent: 19, inclusive: true },
  ],
  AT: [{ name: 'VAT', percent: 20, inclusive: true }],
  FR: [{ name: 'TVA', percent: 20, inclusive: false }],
  US: [{ name: 'Sales tax', percent: 8.875, inclusive: false }],
  JP: [{ name: 'JCT', percent: 10, inclusive: true }],
}

export function taxesOf(country: string): TaxRate[] {
  return (RATES[country] ?? []).map(rate => ({
    ...rate,
    country,
    id: `txr_${country.toLowerCase()}${rate.inclusive ? 'in' : 'ex'}`,
  }))
}
