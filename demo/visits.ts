import { cdpCall, nativeEvent } from '../src/domain/samples.ts'
import { buildSku, PRODUCTS, type Product } from './catalog.ts'
import type { Order } from './orders.ts'
import { type Arrival, customerArrival, fullName, landingUrl, newVisitorArrival, type Person } from './people.ts'
import { type Random, randomFor } from './random.ts'
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
export function generateVisits(year: Year, people: Person[], orders: Order[], agreements: Agreement[]): Session[] {
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

type Step =
  | { kind: 'view'; path: string }
  | { kind: 'track'; event: string; properties: Record<string, unknown> }
  | { kind: 'identify'; person: Person }
  | { kind: 'convert'; order: Order }

/** One visit. The steps are spaced evenly before its end. */
type Session = {
  id: string
  visitor: string
  arrival: Arrival
  /** Set if the visitor is logged in. */
  person: Person | null
  endsAt: number
  steps: Step[]
}

/** One event and its route: CDP batches, or the native route. */
export type VisitEvent = { at: number; route: 'cdp' | 'native'; body: Record<string, unknown> }

const STEP_MS = 40_000

/** The site sends through a CDP. The checkout and one visit in fifty use the native route. */
export function buildVisitEvents(session: Session, index: number): VisitEvent[] {
  const isNative = index % 50 === 0
  return session.steps.map((step, i) => {
    const at = session.endsAt - (session.steps.length - 1 - i) * STEP_MS
    const native = isNative || step.kind === 'convert'
    const isLanding = i === 0
    const action = { session, step, id: `${session.id}-${numbered(i + 1, 2)}`, at, isLanding }
    return { at, route: native ? 'native' : 'cdp', body: native ? stepEvent(action) : stepCall(action) }
  })
}

/** One step of a session with the id and time of its event. */
type Action = { session: Session; step: Step; id: string; at: number; isLanding: boolean }

function stepEvent({ session, step, id, at, isLanding }: Action): Record<string, unknown> {
  const user = session.person ?? (step.kind === 'identify' ? step.person : null)
  const ids = { id, at: new Date(at), visitor: session.visitor, session: session.id, user: user?.id }
  switch (step.kind) {
    case 'view':
      return nativeEvent({ ...ids, type: 'page_view' }, buildPage(session, step.path, isLanding))
    case 'track':
      return nativeEvent({ ...ids, type: step.event }, step.properties)
    case 'identify':
      return nativeEvent({ ...ids, type: 'identify' }, { email: step.person.email })
    case 'convert': {
      const { totalCents, currency } = step.order
      const order = { order_id: step.order.id, amount: totalCents / 100, currency }
      return nativeEvent({ ...ids, type: 'convert' }, { page: 'https://shop.example/thanks', ...order })
    }
  }
}

function buildPage(session: Session, path: string, isLanding: boolean) {
  const { arrival } = session
  return {
    page: isLanding ? landingUrl(path, arrival) : `https://shop.example${path}`,
    referrer: isLanding ? (arrival.referrer ?? '') : 'https://shop.example/',
  }
}

const USER_AGENTS = [
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
  'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15',
  'Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
]
// Of ten visitors, five use a phone, four a computer and one a tablet.
const SHARES = [0, 2, 1, 0, 3, 0, 2, 1, 4, 2]

/** A visitor id is one browser on one device. */
function userAgentOf(visitor: string): string {
  let sum = 0
  for (const letter of visitor) sum = (sum * 31 + letter.charCodeAt(0)) % 65_521
  return USER_AGENTS[SHARES[sum % SHARES.length]!]!
}

function stepCall({ session, step, id, at, isLanding }: Action): Record<string, unknown> {
  const ids = { id, at: new Date(at), visitor: session.visitor, user: session.person?.id }
  const context = { sessionId: session.id, userAgent: userAgentOf(session.visitor) }
  if (step.kind === 'view') {
    const { page: url, referrer } = buildPage(session, step.path, isLanding)
    const page = { url, path: step.path, referrer }
    return cdpCall(ids, { type: 'page', properties: page, context: { ...context, page } })
  }
  if (step.kind === 'identify') {
    const { email, company } = step.person
    const traits = { email, name: fullName(step.person), ...(company !== null && { company }) }
    return cdpCall({ ...ids, user: step.person.id }, { type: 'identify', traits, context })
  }
  if (step.kind === 'track')
    return cdpCall(ids, { type: 'track', event: step.event, properties: step.properties, context })
  throw new Error('a sale uses the native route')
}
