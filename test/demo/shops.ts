import fc from 'fast-check'
import { type Shop, shopYear } from '../../demo/shop.ts'
import { createYear, DAY_MS, type Year } from '../../demo/year.ts'

export const END = Date.UTC(2025, 5, 1)

const anyYear = fc
  .record({ seed: fc.integer({ min: 1, max: 1_000_000 }), endDay: fc.integer({ min: 0, max: 800 }) })
  .map(({ seed, endDay }) => createYear({ seed, scale: 1, end: END + endDay * DAY_MS }))

let shops: { shop: Shop; year: Year }[] | null = null

/** Runs a check on shops with different seeds and ends. Generating one takes a third of a second, so all checks share them. */
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
