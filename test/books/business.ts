// A seeded history of a subscription business: the same seed, the same decisions, to the second.
import { DAY, instant, later } from './calendar.ts'
import { COUNTRIES, catalogueOf, couponsOf } from './catalogue.ts'
import { openCompany } from './company.ts'
import { live } from './life.ts'
import type { Fact } from './model.ts'
import { chance } from './random.ts'

/** What may happen in a history. A provider that cannot express something has it turned off. */
export type Features = typeof EVERYTHING

const EVERYTHING = {
  trials: true,
  /** Trials that end in a pause, because there is no way to collect. */
  suspendedTrials: true,
  incomplete: true,
  seats: true,
  planChanges: true,
  /** From monthly to yearly and back: a new period begins. */
  termChanges: true,
  priceChanges: true,
  addOns: true,
  secondSubscriptions: true,
  coupons: true,
  onceCoupons: true,
  stackedCoupons: true,
  customerCoupons: true,
  inclusiveTax: true,
  exclusiveTax: true,
  pauses: true,
  resumesAt: true,
  scheduledCancellations: true,
  /** Ends on another day than the period's. */
  cancelDates: true,
  immediateCancellations: true,
  reactivations: true,
  dunning: true,
  actionRequired: true,
  unpaid: true,
  writeOffs: true,
  refunds: true,
  failedRefunds: true,
  disputes: true,
  creditNotes: true,
  balances: true,
  sentInvoices: true,
  partialPayments: true,
  charges: true,
  manualInvoices: true,
  tiers: true,
  metered: true,
  free: true,
  weekly: true,
  quarterly: true,
  fractions: true,
  testMode: true,
  largeSubscriptions: false,
  sameSecond: true,
}

export type Business = {
  seed: number
  from: number
  until: number
  currencies: string[]
  features: Features
  facts: Fact[]
}

export type BusinessOptions = {
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
        catalogue: catalogueOf(currency),
        other: catalogueOf(currencies[(currencies.indexOf(currency) + 1) % currencies.length]!),
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

/** By time; within a second one customer's facts stay together and in their order. */
function inOrder(histories: Fact[][]): Fact[] {
  return histories
    .flat()
    .sort((a, b) => a.at - b.at)
    .map((fact, order) => ({ ...fact, order }))
}
