import { addIntervals } from '../src/domain/billing/calendar.ts'
import type { Currency } from './catalog.ts'
import type { Person } from './people.ts'
import {
  ADD_ONS,
  type AddOn,
  type Discount,
  PLANS,
  type Plan,
  TERMS,
  type Term,
  type Terms,
} from './plans.ts'
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
  const startedAt =
    person.signedUpAt + (random.chance(0.6) ? random.int(10, 60) * 60_000 : random.int(1, 40) * DAY_MS)
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
