import { buildSku, PRODUCTS, type Product } from './catalog.ts'
import { customerArrival, newVisitorArrival } from './channels.ts'
import type { Order } from './orders.ts'
import type { Person } from './people.ts'
import { type Random, randomFor } from './random.ts'
import type { Session, Step } from './sessions.ts'
import type { Agreement } from './subscriptions.ts'
import { busyMoment, numbered, type Year } from './year.ts'

const VISITS_PER_SCALE = 8_000
/** Share of browsers that block scripts: the order is known, but not the visit. */
const UNSEEN_SHARE = 0.15

const LANDINGS: [string, number][] = [
  ['/', 40],
  ['/subscribe', 25],
  ['/collections/filter', 12],
  ['/collections/espresso', 13],
  ['/journal/how-to-brew', 10],
]

/** Every visit of the year: those that lead to a sign-up, an order or a subscription, and all others. */
export function generateVisits(
  year: Year,
  people: Person[],
  orders: Order[],
  agreements: Agreement[],
): Session[] {
  const seen = (person: Person) => !person.isOffline
  const visitors = people.filter(seen)
  const sessions = [
    ...visitors.flatMap(person => firstVisits(person, year)),
    ...orders.filter(({ person }) => seen(person)).flatMap(order => orderVisit(order, year)),
    ...agreements.filter(({ person }) => seen(person)).map(agreement => subscribeVisit(agreement, year)),
  ]
  const others = Math.max(0, Math.round(VISITS_PER_SCALE * year.scale) - sessions.length)
  return [...sessions, ...browsingVisits(others, visitors, year)]
}

/** The first visit and the visit of the sign-up, which are often the same. */
function firstVisits(person: Person, year: Year): Session[] {
  const random = randomFor(year.label, 'visit', person.id)
  const { arrival, firstSeenAt, signedUpAt, visitors } = person
  const visitor = visitors[0]!
  const signUp: Step[] = [
    { kind: 'view', path: random.weighted(LANDINGS) },
    { kind: 'view', path: '/account/new' },
    { kind: 'identify', person },
  ]
  const id = `${person.id}-s`
  const isOneVisit = signedUpAt - firstSeenAt < 3_600_000
  if (isOneVisit) return [{ id, visitor, arrival, person: null, endsAt: signedUpAt, steps: signUp }]
  const browse: Step[] = [{ kind: 'view', path: random.weighted(LANDINGS) }, ...productViews(random)]
  return [
    { id: `${id}-1`, visitor, arrival, person: null, endsAt: firstSeenAt, steps: browse },
    {
      id: `${id}-2`,
      visitor,
      arrival: customerArrival(signedUpAt, random),
      person: null,
      endsAt: signedUpAt,
      steps: signUp,
    },
  ]
}

function orderVisit(order: Order, year: Year): Session[] {
  const random = randomFor(year.label, 'visit', order.id)
  if (random.chance(UNSEEN_SHARE)) return []
  const { person, placedAt } = order
  const steps: Step[] = [
    { kind: 'view', path: '/' },
    ...order.lines.flatMap(({ product }): Step[] => [
      { kind: 'view', path: productPath(product) },
      {
        kind: 'track',
        event: 'Product Added',
        properties: { sku: buildSku(product, year), name: product.name },
      },
    ]),
    { kind: 'view', path: '/checkout' },
    { kind: 'convert', order },
  ]
  return [
    {
      id: `${order.id}-s`,
      visitor: random.pick(person.visitors),
      arrival: customerArrival(placedAt, random),
      person,
      endsAt: placedAt,
      steps,
    },
  ]
}

function subscribeVisit(agreement: Agreement, year: Year): Session {
  const random = randomFor(year.label, 'visit', agreement.id)
  const { person, startedAt, terms } = agreement
  const properties = { subscription_id: agreement.id, plan: terms.plan.key, term: terms.term.key }
  return {
    id: `${agreement.id}-s`,
    visitor: random.pick(person.visitors),
    arrival: customerArrival(startedAt, random),
    person,
    endsAt: startedAt,
    steps: [
      { kind: 'view', path: '/subscribe' },
      { kind: 'view', path: `/subscribe/${terms.plan.key}` },
      { kind: 'track', event: 'Subscription Started', properties },
    ],
  }
}

/** Visits of unknown visitors and of customers who buy nothing. */
function browsingVisits(count: number, people: Person[], year: Year): Session[] {
  const random = randomFor(year.label, 'browsing')
  const sessions: Session[] = []
  for (let i = 0; i < count; i++) {
    const id = `${year.label}-s-${numbered(i + 1, 5)}`
    const person = random.chance(0.15) ? random.pick(people) : null
    const at = busyMoment(person?.signedUpAt ?? year.start, year, random)
    const endsAt = Math.max(at, person?.signedUpAt ?? at)
    // Three of ten visited before.
    const newVisitor = `${year.label}-w-${numbered(random.chance(0.7) ? i : random.int(0, i), 5)}`
    sessions.push({
      id,
      visitor: person ? random.pick(person.visitors) : newVisitor,
      arrival: person ? customerArrival(endsAt, random) : newVisitorArrival(endsAt, random),
      person,
      endsAt,
      steps: [{ kind: 'view', path: random.weighted(LANDINGS) }, ...productViews(random)],
    })
  }
  return sessions
}

function productViews(random: Random): Step[] {
  const pages = random.weighted([
    [0, 55],
    [1, 22],
    [2, 13],
    [4, 10],
  ])
  return Array.from({ length: pages }, () => ({ kind: 'view', path: productPath(random.pick(PRODUCTS)) }))
}

function productPath(product: Product): string {
  return `/products/${product.sku.toLowerCase()}`
}
