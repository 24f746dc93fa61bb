import type { Currency, Price } from './catalog.ts'

/** A billing period. */
export type Term = { key: 'monthly' | 'quarterly' | 'yearly'; interval: 'month' | 'year'; count: number }

export const TERMS = {
  monthly: { key: 'monthly', interval: 'month', count: 1 },
  quarterly: { key: 'quarterly', interval: 'month', count: 3 },
  yearly: { key: 'yearly', interval: 'year', count: 1 },
} as const satisfies Record<string, Term>

export type Plan = { key: string; name: string; rank: number; prices: Record<Term['key'], Price> }

/** From small to large. An upgrade moves to the next plan, a downgrade to the previous one. */
export const PLANS: readonly Plan[] = [
  plan('solo', 'Solo, 1 bag', 0, [1490, 1650], [4200, 4650], [15900, 17500]),
  plan('duo', 'Duo, 2 bags', 1, [2490, 2750], [6990, 7700], [26400, 29000]),
  plan('office', 'Office, 3 kg', 2, [8900, 9800], [25500, 28000], [94800, 104000]),
]

export type AddOn = {
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

export type Discount = {
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

export type Line = {
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
