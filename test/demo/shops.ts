import fc from 'fast-check'
import { type Shop, shopYear } from '../../demo/shop.ts'
import { DAY_MS, type Year, yearOf } from '../../demo/year.ts'

export const END = Date.UTC(2025, 5, 1)

const anyYear = fc
  .record({ seed: fc.integer({ min: 1, max: 1_000_000 }), endDay: fc.integer({ min: 0, max: 800 }) })
  .map(({ seed, endDay }) => yearOf({ seed, scale: 1, end: END + endDay * DAY_MS }))

let shops: { shop: Shop; year: Year }[] | null = null

/** Holds the check against shops of any seed and any end; one takes a third of a second to make, so all checks share them. */
export function everyShop(check: (shop: Shop, year: Year) => void): void {
  shops ??= fc.sample(anyYear, 6).map(year => ({ year, shop: shopYear(year) }))
  for (const { shop, year } of shops) {
    try {
      check(shop, year)
    } catch (error) {
      throw new Error(`with seed ${year.seed} and end ${new Date(year.end).toISOString()}`, { cause: error })
    }
  }
}
