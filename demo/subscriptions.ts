import { addIntervals } from '../src/domain/billing/calendar.ts'
import type { Currency, Price } from './catalog.ts'
import type { Person } from './people.ts'
import { type Random, randomFor } from './random.ts'
import { DAY_MS, isoTime, type Year } from './year.ts'

/** The terms at the start of a subscription. */
export type Agreement = {
  id: string
  person: Person
  currency: Currency
  startedAt: number
  trialDays: number
  terms: Terms
  /** Whether the billing system reports the acquisition channel. */
  knowsAcquisition: boolean
  collectionMethod: 'charge_automatically' | 'send_invoice'
}

const SUBSCRIBER_SHARE = 0.64

/** A person's first subscription; null for those who only order. */
export function firstAgreement(person: Person, year: Year): Agreement | null {
  const random = randomFor(year.label, 'subscriber', person.id)
  if (!random.chance(SUBSCRIBER_SHARE)) return null
  const startedAt = person.signedUpAt + (random.chance(0.6) ? random.int(10, 60) * 60_000 : random.int(1, 40) * DAY_MS)
  return startedAt < year.end ? agreement(person, 1, startedAt, random) : null
}

/** A second subscription beside the first: a gift, or for the office. */
export function secondAgreement(first: Agreement, year: Year): Agreement | null {
  const random = randomFor(year.label, 'second', first.person.id)
  if (!random.chance(0.08)) return null
  const startedAt = first.startedAt + random.int(25, 160) * DAY_MS
  return startedAt < year.end ? { ...agreement(first.person, 2, startedAt, random), trialDays: 0 } : null
}

/** A new subscription after the first one ended: some customers return. */
export function returnAgreement(first: Agreement, endedAt: number, year: Year): Agreement | null {
  const random = randomFor(year.label, 'return', first.person.id)
  if (!random.chance(0.22)) return null
  const startedAt = endedAt + random.int(20, 110) * DAY_MS
  return startedAt < year.end ? { ...agreement(first.person, 3, startedAt, random), trialDays: 0 } : null
}

function agreement(person: Person, number: number, startedAt: number, random: Random): Agreement {
  const plan = planFor(person, random)
  const term = random.weighted<Term>([
    [TERMS.monthly, 66],
    [TERMS.quarterly, 14],
    [TERMS.yearly, 20],
  ])
  const isFree = random.chance(0.015)
  return {
    id: `${person.id.replace('-cus-', '-sub-')}-${number}`,
    person,
    currency: person.currency,
    startedAt,
    trialDays: random.chance(0.25) ? 14 : 0,
    terms: {
      plan,
      isFree,
      term,
      quantity: plan.key === 'office' ? random.int(1, 5) : random.chance(0.12) ? 2 : 1,
      addOns: addOnsFor(plan, random),
      discounts: isFree ? [] : discountsFor(startedAt, person.currency, random),
    },
    knowsAcquisition: !person.isOffline && random.chance(0.45),
    collectionMethod: plan.key === 'office' && random.chance(0.4) ? 'send_invoice' : 'charge_automatically',
  }
}

function planFor(person: Person, random: Random): Plan {
  if (person.company !== null && random.chance(0.6)) return PLANS[2]!
  return random.chance(0.62) ? PLANS[0]! : PLANS[1]!
}

function addOnsFor(plan: Plan, random: Random): AddOn[] {
  const addOns: AddOn[] = []
  if (random.chance(0.16)) addOns.push(ADD_ONS.papers)
  if (random.chance(0.1)) addOns.push(ADD_ONS.decaf)
  if (plan.key === 'office' && random.chance(0.25)) addOns.push(ADD_ONS.service)
  if (plan.key !== 'office' && random.chance(0.03)) addOns.push(ADD_ONS.starter)
  return addOns
}

function discountsFor(startedAt: number, currency: Currency, random: Random): Discount[] {
  const endsAt = isoTime(addIntervals(startedAt, 'month', 3))
  const kinds: [Discount[], number][] = [
    [[], 66],
    [[{ percent_off: 20, duration: 'repeating', ends_at: endsAt }], 12],
    [[{ percent_off: 25, duration: 'once' }], 10],
    [[{ percent_off: 15, duration: 'forever' }], 6],
    [[{ amount_off: currency === 'EUR' ? 3 : 3.5, duration: 'forever' }], 4],
    [[{ percent_off: 100, duration: 'forever' }], 1],
  ]
  return random.weighted(kinds)
}

/** A billing period. */
type Term = { key: 'monthly' | 'quarterly' | 'yearly'; interval: 'month' | 'year'; count: number }

const TERMS = {
  monthly: { key: 'monthly', interval: 'month', count: 1 },
  quarterly: { key: 'quarterly', interval: 'month', count: 3 },
  yearly: { key: 'yearly', interval: 'year', count: 1 },
} as const satisfies Record<string, Term>

type Plan = { key: string; name: string; rank: number; prices: Record<Term['key'], Price> }

/** From small to large. An upgrade moves to the next plan, a downgrade to the previous one. */
const PLANS: readonly Plan[] = [
  plan('solo', 'Solo, 1 bag', 0, [1490, 1650], [4200, 4650], [15900, 17500]),
  plan('duo', 'Duo, 2 bags', 1, [2490, 2750], [6990, 7700], [26400, 29000]),
  plan('office', 'Office, 3 kg', 2, [8900, 9800], [25500, 28000], [94800, 104000]),
]

type AddOn = {
  key: string
  name: string
  /** Minor units per month, or per unit of a metered add-on. */
  perMonth: Price
  usage: 'licensed' | 'metered' | 'one_time'
}

export const ADD_ONS = {
  decaf: { key: 'decaf', name: 'Decaf bag', perMonth: { EUR: 990, USD: 1090 }, usage: 'licensed' },
  papers: { key: 'papers', name: 'Filter papers', perMonth: { EUR: 350, USD: 390 }, usage: 'licensed' },
  service: { key: 'service', name: 'Machine cups, by use', perMonth: { EUR: 12, USD: 13 }, usage: 'metered' },
  starter: { key: 'starter', name: 'Starter kit', perMonth: { EUR: 2900, USD: 3200 }, usage: 'one_time' },
} as const satisfies Record<string, AddOn>

type Discount = {
  percent_off?: number
  amount_off?: number
  duration: 'forever' | 'repeating' | 'once'
  ends_at?: string
}

/** The terms of a subscription at one time. */
export type Terms = {
  plan: Plan
  /** For staff and partners. */
  isFree: boolean
  term: Term
  quantity: number
  addOns: AddOn[]
  discounts: Discount[]
}

type Line = {
  key: string
  name: string
  quantity: number
  unitCents: number
  usage: AddOn['usage']
}

export function buildLines(terms: Terms, currency: Currency): Line[] {
  const { plan, term, quantity } = terms
  const months = term.interval === 'year' ? 12 * term.count : term.count
  return [
    {
      key: `${plan.key}-${term.key}`,
      name: `${plan.name} (${term.key})`,
      quantity,
      unitCents: terms.isFree ? 0 : plan.prices[term.key][currency],
      usage: 'licensed',
    },
    ...terms.addOns.map(({ key, name, perMonth, usage }) => ({
      key: usage === 'licensed' ? `${key}-${term.key}` : key,
      name,
      quantity: 1,
      unitCents: usage === 'licensed' ? perMonth[currency] * months : perMonth[currency],
      usage,
    })),
  ]
}

/** The price of a period that starts at `at`, without tax and usage. In the first period, one-time discounts apply. */
export function periodCents(terms: Terms, currency: Currency, at: number, isFirst: boolean): number {
  const lines = buildLines(terms, currency).filter(
    ({ usage }) => usage === 'licensed' || (isFirst && usage === 'one_time'),
  )
  let rest = lines.map(({ quantity, unitCents }) => quantity * unitCents)
  for (const discount of terms.discounts) {
    if (!runsAt(discount, at, isFirst)) continue
    const percent = discount.percent_off
    if (percent !== undefined) rest = rest.map(cents => Math.round((cents * (100 - percent)) / 100))
    else rest = [Math.max(0, sum(rest) - Math.round((discount.amount_off ?? 0) * 100))]
  }
  return sum(rest)
}

function runsAt(discount: Discount, at: number, isFirst: boolean): boolean {
  if (discount.duration === 'once') return isFirst
  return discount.ends_at === undefined || at < Date.parse(discount.ends_at)
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** The next or previous plan, or the same one if there is none. */
export function movedPlan(plan: Plan, by: 1 | -1): Plan {
  return PLANS[plan.rank + by] ?? plan
}

type Pair = readonly [eur: number, usd: number]

function plan(key: string, name: string, rank: number, monthly: Pair, quarterly: Pair, yearly: Pair): Plan {
  const price = ([EUR, USD]: Pair): Price => ({ EUR, USD })
  return {
    key,
    name,
    rank,
    prices: { monthly: price(monthly), quarterly: price(quarterly), yearly: price(yearly) },
  }
}
