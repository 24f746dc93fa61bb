// A seeded history of a subscription business. The same seed gives the same decisions, to the second.
import { DAY, instant, later } from './calendar.ts'
import { COUNTRIES, couponsOf, createCatalog } from './catalog.ts'
import { openCompany } from './company.ts'
import { EVERYTHING, type Features } from './features.ts'
import { live } from './life.ts'
import type { Fact } from './model.ts'
import { chance } from './random.ts'

export type Business = {
  seed: number
  from: number
  until: number
  currencies: string[]
  features: Features
  facts: Fact[]
}

type BusinessOptions = {
  seed: number
  months?: number
  accounts?: number
  from?: string
  currencies?: string[]
  features?: Partial<Features>
}

export function business(options: BusinessOptions): Business {
  const { seed, months = 12, accounts = 40, from: start = '2022-01-01' } = options
  const currencies = options.currencies ?? ['EUR', 'USD', 'JPY', 'KWD']
  const features = { ...EVERYTHING, ...options.features }
  const from = instant(start)
  const until = later(from, 'month', months)
  const coupons = couponsOf(currencies, from)
  const office = openCompany()
  if (features.coupons)
    office.plan(from, () => {
      for (const coupon of coupons) office.coupon(coupon)
    })
  office.runUntil(from)

  const histories = [office.facts()]
  for (let i = 1; i <= accounts; i++) {
    const random = chance(`${seed} ${i}`)
    const livemode = !(features.testMode && i % 15 === 0)
    const country = COUNTRIES[i % COUNTRIES.length]!
    const currency = preferred(country, currencies)
    histories.push(
      live({
        random,
        features,
        livemode,
        country,
        catalog: createCatalog(currency),
        other: createCatalog(currencies[(currencies.indexOf(currency) + 1) % currencies.length]!),
        coupons: livemode ? coupons : [],
        prefix: `${seed}x${i}n`,
        arrives: random.between(from + DAY, until - DAY),
        until,
        isLarge: features.largeSubscriptions && i % 25 === 1,
      }),
    )
  }
  return { seed, from, until, currencies, features, facts: inOrder(histories) }
}

function preferred(country: string, currencies: string[]): string {
  const own = { JP: 'JPY', KW: 'KWD', US: 'USD' }[country] ?? 'EUR'
  return currencies.includes(own) ? own : currencies[0]!
}

/** By time. Within a second, the facts of one customer stay together and in order. */
function inOrder(histories: Fact[][]): Fact[] {
  return histories
    .flat()
    .sort((a, b) => a.at - b.at)
    .map((fact, order) => ({ ...fact, order }))
}
