// Random short histories of one subscription and of one charge, compared with a model that follows only the documented rules
// (docs/guides/subscriptions.md). Without a database, so that 100,000 histories take minutes:
//   node test/books/histories.ts --count 100000 --seed 1
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { markSuperseded, mergeRefund } from '../../src/domain/billing/cash.ts'
import { readBillingEvent } from '../../src/domain/billing/read.ts'
import { addTerm, currentTerms, indexTerms } from '../../src/domain/billing/terms.ts'
import { deriveSubscription } from '../../src/domain/billing/timeline.ts'
import type { Refund, SubscriptionVersion, Term } from '../../src/domain/billing/types.ts'

type Item = {
  id: string
  product: string
  minor: number
  quantity: number
  unit: keyof typeof PER_MONTH
  count: number
}
type Discount = {
  id: string
  percent: number | null
  minor: number | null
  duration: 'forever' | 'once' | 'repeating'
  end: number | null
  products: string[] | null
}
type State = { at: number; status: string; items: Item[]; discounts: Discount[]; taxPercent: number }

const START = Date.parse('2025-01-10T00:00:00Z') / 1000
const DAY = 86_400
const PER_MONTH = { day: [365n, 12n], week: [52n, 12n], month: [1n, 1n], year: [1n, 12n] } as const
const DIGITS: Record<string, number> = { USD: 2, JPY: 0, KWD: 3 }

/** A generator of the same numbers for the same seed. */
function randomOf(seed: number) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let n = Math.imul(state ^ (state >>> 15), state | 1)
    n ^= n + Math.imul(n ^ (n >>> 7), n | 61)
    return ((n ^ (n >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (n: number) => Math.floor(next() * n)
  const one = <T>(values: readonly T[]): T => values[below(values.length)]!
  const shuffled = <T>(values: T[]): T[] =>
    values
      .map(value => ({ value, at: next() }))
      .sort((a, b) => a.at - b.at)
      .map(({ value }) => value)
  return { below, one, shuffled, chance: (share: number) => next() < share }
}
type Random = ReturnType<typeof randomOf>

function randomStates(random: Random): State[] {
  const { below, one, chance } = random
  const times = [...new Set([0, ...Array.from({ length: below(4) }, () => 1 + below(300))])].sort((a, b) => a - b)
  const item = (n: number): Item => ({
    ...{
      id: `i${n}`,
      product: one(['a', 'b', 'c']),
      minor: one([0, 1, 999, 1000, below(50_000)]),
      quantity: one([1, 1, 3, 7, 0]),
    },
    ...{ unit: one(['day', 'week', 'month', 'month', 'year']), count: one([1, 1, 2, 3, 12]) },
  })
  const discount = (n: number, at: number): Discount => {
    const isPercent = chance(0.5)
    const duration = one(['forever', 'forever', 'once', 'repeating'] as const)
    return {
      ...{ id: `d${n}`, duration, end: duration === 'repeating' ? START + (at + below(200)) * DAY : null },
      ...{ percent: isPercent ? one([10, 33.3, 50, 100]) : null, minor: isPercent ? null : one([1, 100, 500, 20_000]) },
      products: chance(0.5) ? one([['a'], ['b', 'c'], ['z']]) : null,
    }
  }
  return times.map(day => ({
    at: START + day * DAY,
    status: one(['active', 'active', 'active', 'past_due', 'unpaid', 'paused', 'trialing', 'incomplete']),
    items: Array.from({ length: 1 + below(3) }, (_, n) => item(n)),
    discounts: Array.from({ length: below(3) }, (_, n) => discount(n, day)),
    taxPercent: one([0, 0, 19, 7.5]),
  }))
}

/** A fraction: minor units that are not rounded yet. */
type Fraction = readonly [n: bigint, d: bigint]
const times = ([a, b]: Fraction, [c, d]: Fraction): Fraction => [a * c, b * d]
const roundHalfUp = ([n, d]: Fraction) => Number((2n * n + d) / (2n * d))
const decimal = (value: number): Fraction => [BigInt(Math.round(value * 1000)), 1000n]
const monthly = (amount: Fraction, { unit, count }: Item): Fraction =>
  times(amount, [PER_MONTH[unit][0], PER_MONTH[unit][1] * BigInt(count)])

/** The MRR of a state, in minor units, by the documented rules. */
export function modelMrr({ status, items, discounts, taxPercent }: State, at: number): number {
  if (status !== 'active' && status !== 'past_due') return 0
  const net = items.map(({ minor, quantity }): Fraction => [BigInt(minor) * BigInt(quantity), 1n])
  for (const { percent, minor, duration, end, products } of discounts) {
    if (duration === 'once' || (end !== null && at >= end)) continue
    const touched = items.flatMap(({ product }, i) => (products === null || products.includes(product) ? [i] : []))
    if (percent !== null)
      for (const i of touched) net[i] = times(net[i]!, [decimal(100)[0] - decimal(percent)[0], decimal(100)[0]])
    else subtract(net, touched, items, BigInt(minor!))
  }
  const withTax: Fraction = [decimal(100)[0], decimal(100)[0] + decimal(taxPercent)[0]]
  return net.reduce((sum, amount, i) => sum + roundHalfUp(monthly(times(amount, withTax), items[i]!)), 0)
}

/** In proportion to monthly prices, in whole minor units; the largest remainders get one more; never below 0. */
function subtract(net: Fraction[], touched: number[], items: Item[], amount: bigint): void {
  const months = touched.map(i => monthly(net[i]!, items[i]!))
  const common = months.reduce((product, [, d]) => product * d, 1n)
  const weights = months.map(([n, d]) => (n * common) / d)
  const total = weights.reduce((sum, weight) => sum + weight, 0n)
  if (total === 0n) return
  const shares = weights.map(weight => (amount * weight) / total)
  const left = Number(amount - shares.reduce((sum, share) => sum + share, 0n))
  const order = weights
    .map((weight, k) => ({ k, rest: (amount * weight) % total }))
    .sort((x, y) => (y.rest > x.rest ? 1 : y.rest < x.rest ? -1 : x.k - y.k))
  for (const { k } of order.slice(0, left)) shares[k] = shares[k]! + 1n
  for (const [k, i] of touched.entries()) {
    const [n, d] = net[i]!
    const rest = n - shares[k]! * d
    net[i] = rest > 0n ? [rest, d] : [0n, 1n]
  }
}

type Received = { eventType: string; subject: object; at: number; preset: string | null }
const iso = (seconds: number | null) => (seconds === null ? null : new Date(seconds * 1000).toISOString())

function canonical({ at, status, items, discounts, taxPercent }: State, currency: string): Received {
  const major = (minor: number) => (minor / 10 ** DIGITS[currency]!).toFixed(DIGITS[currency])
  const subject = {
    ...{ id: 's', customer: 'c', status, currency, started_at: iso(START), updated_at: iso(at) },
    ...(taxPercent > 0 && { tax_inclusive: true, tax_percent: taxPercent }),
    items: items.map(({ id, product, minor, quantity, unit, count }) => ({
      ...{ id, product_id: product, quantity, unit_amount: major(minor), interval: unit, interval_count: count },
    })),
    discounts: discounts.map(({ percent, minor, duration, end, products }) => ({
      ...(percent !== null ? { percent_off: percent } : { amount_off: major(minor!) }),
      ...{ duration, ends_at: iso(end), ...(products && { applies_to: products }) },
    })),
  }
  return { eventType: 'subscription.updated', subject, at, preset: null }
}

function stripe({ at, status, items, discounts, taxPercent }: State, currency: string, isImported: boolean): Received {
  const object = {
    ...{ id: 's', object: 'subscription', customer: 'c', status, currency: currency.toLowerCase(), created: START },
    ...{
      start_date: START,
      livemode: true,
      default_tax_rates: taxPercent > 0 ? [{ inclusive: true, percentage: taxPercent }] : [],
    },
    items: {
      data: items.map(({ id, product, minor, quantity, unit, count }) => ({
        ...{ id, quantity },
        price: {
          id: `p${product}`,
          product,
          currency: currency.toLowerCase(),
          unit_amount: minor,
          recurring: { interval: unit, interval_count: count },
        },
      })),
    },
    discounts: discounts.map(({ id, percent, minor, duration, end, products }) => ({
      ...{ id: `${id}@${at}`, object: 'discount', start: at, end, subscription: 's', customer: 'c' },
      coupon: {
        ...{
          id: `${id}@${at}`,
          object: 'coupon',
          duration,
          percent_off: percent,
          amount_off: minor,
          currency: minor === null ? null : currency.toLowerCase(),
        },
        ...(products && { applies_to: { products } }),
      },
    })),
  }
  const eventType = 'customer.subscription.updated'
  // an import sends the object without an event
  const subject = isImported
    ? object
    : { id: `e${at}`, object: 'event', type: eventType, created: at, livemode: true, data: { object } }
  return { eventType, subject, at, preset: 'stripe' }
}

/** The subscription, its discount, and a transaction that shows the tax of each price. */
function paddle({ at, status, items, discounts: [discount], taxPercent }: State, currency_code: string): Received[] {
  const event = (type: string, data: object): Received => {
    const subject = {
      event_id: `${type}${at}`,
      event_type: type,
      occurred_at: iso(at),
      data: { currency_code, ...data },
    }
    return { eventType: type, subject, at, preset: 'paddle' }
  }
  const price = ({ product, minor, unit, count }: Item, n: number) => ({
    ...{ id: `pri_${at}_${n}`, product_id: product, tax_mode: taxPercent > 0 ? 'internal' : 'external' },
    unit_price: { amount: String(minor), currency_code },
    billing_cycle: { interval: unit, frequency: count },
  })
  const lines = items.map((item, n) => {
    const subtotal = roundHalfUp([BigInt(item.minor) * 1000n, 1000n + decimal(taxPercent / 100)[0]])
    const totals = {
      subtotal: String(subtotal),
      discount: '0',
      tax: String(item.minor - subtotal),
      total: String(item.minor),
    }
    return { price_id: price(item, n).id, tax_rate: String(taxPercent / 100), unit_totals: totals, totals }
  })
  return [
    event('subscription.updated', {
      ...{
        id: 's',
        customer_id: 'c',
        status,
        started_at: iso(START),
        created_at: iso(START),
        collection_mode: 'automatic',
      },
      items: items.map((item, n) => ({
        status: 'active',
        quantity: item.quantity,
        recurring: true,
        price: price(item, n),
      })),
      discount: discount ? { id: `${discount.id}@${at}`, starts_at: iso(at), ends_at: iso(discount.end) } : null,
    }),
    ...(discount
      ? [
          event('discount.created', {
            ...{ id: `${discount.id}@${at}`, recur: discount.duration !== 'once', restrict_to: discount.products },
            maximum_recurring_intervals: discount.duration === 'repeating' ? 3 : null,
            ...(discount.percent !== null
              ? { type: 'percentage', amount: String(discount.percent) }
              : { type: 'flat', amount: String(discount.minor) }),
          }),
        ]
      : []),
    ...(taxPercent > 0
      ? [
          event('transaction.completed', {
            ...{ id: `txn_${at}`, subscription_id: 's', customer_id: 'c', status: 'completed' },
            items: items.map((item, n) => ({ price: price(item, n), quantity: item.quantity })),
            details: { totals: { total: '0', tax: '0' }, line_items: lines },
          }),
        ]
      : []),
  ]
}

/** The subscription, its coupons, and an invoice that shows the tax of each price. */
function chargebee({ at, status, items, discounts, taxPercent }: State, currency_code: string): Received[] {
  const event = (event_type: string, content: Record<string, object>): Received => {
    const objects = Object.entries(content).map(([name, object]) => [
      name,
      { ...object, object: name, currency_code, updated_at: at, resource_version: at * 1000 },
    ])
    const subject = {
      id: event_type,
      object: 'event',
      event_type,
      occurred_at: at,
      content: Object.fromEntries(objects),
    }
    return { eventType: event_type, subject, at, preset: 'chargebee' }
  }
  const price_type = taxPercent > 0 ? 'tax_inclusive' : 'tax_exclusive'
  const names = items.map(({ product }, n) => `${product}-${n}`)
  const coupons = discounts.map(({ id, percent, minor, duration, products }) => ({
    id: `${id}@${at}`,
    duration_type: { once: 'one_time', forever: 'forever', repeating: 'limited_period' }[duration],
    ...(percent !== null
      ? { discount_type: 'percentage', discount_percentage: percent }
      : { discount_type: 'fixed_amount', discount_amount: minor }),
    ...(products === null
      ? { apply_on: 'invoice_amount' }
      : {
          apply_on: percent === null ? 'specified_items_total' : 'each_specified_item',
          item_constraints: [
            {
              ...{ item_type: 'plan', constraint: 'specific' },
              item_price_ids: [...names.filter((_, n) => products.includes(items[n]!.product)), 'other'],
            },
          ],
        }),
  }))
  return [
    event('subscription_changed', {
      subscription: {
        ...{ id: 's', customer_id: 'c', status: status === 'trialing' ? 'in_trial' : status, started_at: START },
        ...{ billing_period_unit: items[0]!.unit, billing_period: items[0]!.count, price_type },
        subscription_items: items.map(({ minor, quantity }, n) => ({
          ...{ item_price_id: names[n], item_type: 'plan', quantity, unit_price: minor },
          ...(n % 2 === 0 && { amount: minor * quantity }),
        })),
        coupons: discounts.map(({ id, end }) => ({
          coupon_id: `${id}@${at}`,
          ...(end !== null && { apply_till: end }),
        })),
      },
    }),
    ...coupons.map(coupon => event('coupon_created', { coupon })),
    ...(taxPercent > 0
      ? [
          event('invoice_generated', {
            invoice: {
              ...{ id: `inv_${at}`, subscription_id: 's', customer_id: 'c', status: 'paid', price_type, date: at },
              ...{ total: 0, tax: 0, amount_paid: 0, amount_due: 0 },
              line_items: names.map(entity_id => ({ entity_id, amount: 0, is_taxed: true, tax_rate: taxPercent })),
            },
          }),
        ]
      : []),
  ]
}

export const SHAPES = ['stripe', 'canonical', 'paddle', 'chargebee'] as const
type Shape = (typeof SHAPES)[number]

/** The states that a provider can express. */
function fit(states: State[], shape: Shape, random: Random): State[] {
  if (shape === 'stripe' || shape === 'canonical') return states
  // a transaction or an invoice shows the tax of all states
  const [{ taxPercent }] = states as [State]
  const own = { paddle: ['past_due', 'paused', 'trialing'], chargebee: ['paused', 'trialing'] }[shape]
  return states.map(state => {
    const { unit, count } = state.items[0]!
    return {
      ...{
        ...state,
        taxPercent,
        status: own.includes(state.status) ? state.status : random.one(['active', 'active', ...own]),
      },
      // one term for all items, and one discount
      ...(shape === 'chargebee' && { items: state.items.map(item => ({ ...item, unit, count })) }),
      ...(shape === 'paddle' && { discounts: state.discounts.slice(0, 1) }),
    }
  })
}

function receive(state: State, shape: Shape, currency: string, random: Random): Received[] {
  if (shape === 'stripe') return [stripe(state, currency, random.chance(0.4))]
  if (shape === 'canonical') return [canonical(state, currency)]
  return shape === 'paddle' ? paddle(state, currency) : chargebee(state, currency)
}

/** Of all states, those that are known. The first known one also holds before. */
function stateAt(known: State[], at: number): State | null {
  return known.findLast(state => state.at <= at) ?? (at >= START ? (known[0] ?? null) : null)
}

/** Differences of one history; empty: everything agrees. */
export function compareHistory(seed: number, given: Shape | null = null): string[] {
  const random = randomOf(seed)
  const all = randomStates(random)
  const currency = random.one(Object.keys(DIGITS))
  const isStripe = random.chance(0.6)
  const shape =
    given ?? (seed % 2 === 0 ? (isStripe ? 'stripe' : 'canonical') : seed % 4 === 1 ? 'paddle' : 'chargebee')
  const states = fit(all, shape, random)
  const groups = states.map(state => {
    const events = receive(state, shape, currency, random)
    return { state, events: random.chance(0.2) ? [...events, ...events] : events }
  })
  const whole = deriveFrom(random.shuffled(groups.flatMap(({ events }) => events)))
  const differences = compareMrr(`seed ${seed}, ${shape}`, whole, states)
  if (given !== null) return differences
  // A month is closed when some states are known. The others arrive one by one, and each restates the month.
  const arrived = random.shuffled(groups)
  const isKnown = 1 + random.below(arrived.length)
  const closedAt = START + random.below(300) * DAY
  let restated = 0
  let before: number | null = null
  for (let count = isKnown; count <= arrived.length; count++) {
    const part = arrived.slice(0, count)
    const known = part.map(({ state }) => state).sort((a, b) => a.at - b.at)
    const segments = deriveFrom(random.shuffled(part.flatMap(({ events }) => events)))
    differences.push(...compareMrr(`seed ${seed}, ${shape}, ${count} of ${arrived.length} states`, segments, known))
    const mrr = mrrAt(segments, closedAt)
    if (before !== null) restated += mrr - before
    before = mrr
  }
  const closed = modelAt(arrived.slice(0, isKnown), closedAt)
  if (closed + restated !== modelAt(groups, closedAt))
    differences.push(`seed ${seed}, ${shape}: restated by ${restated}`)
  return differences
}

function modelAt(groups: { state: State }[], at: number): number {
  const state = stateAt(
    groups.map(group => group.state).sort((a, b) => a.at - b.at),
    at,
  )
  return state ? modelMrr(state, at) : 0
}

type Segments = { from: number; mrr: number }[]

function mrrAt(segments: Segments, at: number): number {
  return segments.findLast(({ from }) => from <= at * 1000)?.mrr ?? 0
}

function deriveFrom(received: Received[]): Segments {
  const changes = received.flatMap(
    ({ eventType, subject, at, preset }) =>
      readBillingEvent({ eventType, subject, preset, headers: {}, occurredAt: new Date(at * 1000) } as never).changes,
  )
  const versions = changes.flatMap(change =>
    change.kind === 'subscription' ? [change.version as SubscriptionVersion] : [],
  )
  const terms = changes.flatMap(change =>
    change.kind === 'subscription' || change.kind === 'terms' ? (change.terms ?? []) : [],
  )
  const known = [...Map.groupBy(terms, ({ kind, id }) => `${kind} ${id}`).values()].flatMap(own =>
    currentTerms(own.reduce((all: Term[], term) => addTerm(all, term), [])),
  )
  return deriveSubscription(versions, indexTerms(known)).segments
}

/** `states`: the known ones, in order. */
function compareMrr(name: string, segments: Segments, states: State[]): string[] {
  const moments = [
    ...states.map(({ at }) => at),
    ...states.flatMap(({ discounts }) => discounts.flatMap(({ end }) => end ?? [])),
    START - 1,
    START + 400 * DAY,
  ]
  return moments.flatMap(moment =>
    [moment - 1, moment].flatMap(at => {
      const state = stateAt(states, at)
      const expected = state ? modelMrr(state, at) : 0
      const found = mrrAt(segments, at)
      return found === expected ? [] : [`${name}, ${iso(at)}: ${found}, expected ${expected}`]
    }),
  )
}

/** Refunds of one charge: the refunded total is a lower bound, whatever arrives, in any order. */
export function compareRefunds(seed: number): string[] {
  const random = randomOf(seed)
  const amounts = Array.from({ length: 1 + random.below(4) }, () => 1 + random.below(500))
  const base = { customer: 'c', currency: 'usd', payment_intent: 'pi' }
  const events = amounts.flatMap((amount, n) => {
    const created = START + n * 60
    const total = amounts.slice(0, n + 1).reduce((sum, one) => sum + one, 0)
    const refund = { ...base, id: `re${n}`, object: 'refund', charge: 'ch', amount, status: 'succeeded', created }
    const charge = {
      ...base,
      id: 'ch',
      object: 'charge',
      amount: 5000,
      amount_refunded: total,
      status: 'succeeded',
      created: START,
    }
    return [
      { kind: 'refund', amount, type: 'refund.created', object: refund, created },
      { kind: 'charge', amount: total, type: 'charge.refunded', object: charge, created: created + 1 },
    ]
  })
  const arrived = random.shuffled(events.filter(() => random.chance(0.7)))
  const refunds = arrived.flatMap(({ type, object, created }, n) => {
    const subject = { id: `e${n}`, object: 'event', type, created, livemode: true, data: { object } }
    const { changes } = readBillingEvent({
      eventType: type,
      subject,
      preset: 'stripe',
      headers: {},
      occurredAt: new Date(created * 1000),
    } as never)
    return changes.flatMap(change => (change.kind === 'cash' ? change.refunds : []))
  })
  const merged = [...Map.groupBy(refunds, ({ id }) => id).values()].map(own => own.reduce(mergeRefund))
  const found = markSuperseded(merged as Refund[]).reduce(
    (sum, { refund, superseded }) => sum + (superseded ? 0 : refund.amount!),
    0,
  )
  const named = arrived.reduce((sum, { kind, amount }) => sum + (kind === 'refund' ? amount : 0), 0)
  const total = Math.max(0, ...arrived.flatMap(({ kind, amount }) => (kind === 'charge' ? [amount] : [])))
  const expected = Math.max(named, total)
  return found === expected ? [] : [`seed ${seed}: refunded ${found}, expected ${expected}`]
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { values } = parseArgs({
    options: { count: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
  })
  const first = Number(values.seed)
  let failed = 0
  for (let seed = first; seed < first + Number(values.count); seed++) {
    const differences = [...compareHistory(seed), ...compareRefunds(seed)]
    if (differences.length > 0 && ++failed <= 10) console.log(differences.slice(0, 3).join('\n'))
  }
  console.log(`${values.count} histories from seed ${first}: ${failed} differ.`)
  process.exitCode = failed > 0 ? 1 : 0
}
