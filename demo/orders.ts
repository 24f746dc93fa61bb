import { buildSku, type Currency, PRODUCTS, type Product, type RecordWrite } from './catalog.ts'
import { fullName, type Person } from './people.ts'
import { type Random, randomFor } from './random.ts'
import { busyMoment, DAY_MS, HOUR_MS, isoTime, numbered, type Year } from './year.ts'

type OrderLine = { product: Product; quantity: number; cents: number }

type OrderStatus = 'paid' | 'shipped' | 'returned' | 'canceled'

export type Order = {
  id: string
  person: Person
  placedAt: number
  currency: Currency
  lines: OrderLine[]
  discountCents: number
  shippingCents: number
  totalCents: number
  coupon: string | null
  /** The states of the order, starting with `paid`. */
  history: { status: OrderStatus; at: number; refundedCents: number }[]
}

const FREE_SHIPPING_FROM_CENTS = 4000
const SHIPPING_CENTS = { EUR: 490, USD: 790 }

/** Three orders per person on average. A third of the people never order, and some order every few weeks. */
export function generateOrders(person: Person, year: Year): Order[] {
  const random = randomFor(year.label, 'orders', person.id)
  const wanted = random.weighted([
    [0, 28],
    [1, 20],
    [2, 14],
    [4, 14],
    [8, 14],
    [14, 10],
  ])
  const weeks = (year.end - person.signedUpAt) / (7 * DAY_MS)
  const count = Math.min(wanted, 1 + Math.floor(weeks / 2))
  const moments = Array.from({ length: count }, (_, i) =>
    i === 0 && random.chance(0.6)
      ? Math.min(person.signedUpAt + random.int(5, 90) * 60_000, year.end - 1)
      : busyMoment(person.signedUpAt, year, random),
  )
  return moments
    .map(at => Math.max(at, person.signedUpAt))
    .sort((a, b) => a - b)
    .map((at, i) => orderAt(person, i + 1, at, year, random))
}

function orderAt(person: Person, number: number, placedAt: number, year: Year, random: Random): Order {
  const lines = linesFor(person.currency, random)
  const goods = lines.reduce((sum, line) => sum + line.cents, 0)
  const coupon = random.chance(0.12) ? random.pick(['WELCOME10', 'ROAST10']) : null
  const discountCents = coupon ? Math.round(goods / 10) : 0
  const shippingCents = goods - discountCents >= FREE_SHIPPING_FROM_CENTS ? 0 : SHIPPING_CENTS[person.currency]
  const totalCents = goods - discountCents + shippingCents
  return {
    id: `${person.id.replace('-cus-', '-ord-')}-${numbered(number, 2)}`,
    person,
    placedAt,
    currency: person.currency,
    lines,
    discountCents,
    shippingCents,
    totalCents,
    coupon,
    history: buildHistory(placedAt, totalCents, lines, random).filter(({ at }) => at <= year.end),
  }
}

function linesFor(currency: Currency, random: Random): OrderLine[] {
  const count = random.weighted([
    [1, 45],
    [2, 30],
    [3, 17],
    [4, 8],
  ])
  const chosen = new Set(Array.from({ length: count }, () => random.pick(PRODUCTS)))
  return [...chosen].map(product => {
    const quantity = product.category === 'coffee' ? random.int(1, 3) : 1
    return { product, quantity, cents: quantity * product.price[currency] }
  })
}

function buildHistory(placedAt: number, totalCents: number, lines: OrderLine[], random: Random): Order['history'] {
  const history: Order['history'] = [{ status: 'paid', at: placedAt, refundedCents: 0 }]
  if (random.chance(0.02)) {
    history.push({ status: 'canceled', at: placedAt + random.int(1, 9) * HOUR_MS, refundedCents: totalCents })
    return history
  }
  const shippedAt = placedAt + random.int(8, 60) * HOUR_MS
  history.push({ status: 'shipped', at: shippedAt, refundedCents: 0 })
  if (random.chance(0.05)) {
    // One line is returned. With a coupon, the customer paid less than its price.
    const back = Math.min(random.pick(lines).cents, totalCents)
    history.push({ status: 'returned', at: shippedAt + random.int(4, 20) * DAY_MS, refundedCents: back })
  }
  return history
}

/** The first and the latest version of an order. */
export function orderRecords(order: Order, year: Year): RecordWrite[] {
  const now = order.history.at(-1)!
  const states = now === order.history[0] ? [now] : [order.history[0]!, now]
  return states.map((state, i) => ({
    entityType: 'order',
    id: order.id,
    sourceUpdatedAt: isoTime(state.at),
    idempotencyKey: `${order.id}-${i + 1}`,
    data: {
      status: state.status,
      contactId: order.person.id,
      email: order.person.email,
      customer_name: fullName(order.person),
      created_at: isoTime(order.placedAt),
      currency: order.currency,
      lines: order.lines.map(({ product, quantity, cents }) => ({
        sku: buildSku(product, year),
        name: product.name,
        quantity,
        unit_price: product.price[order.currency] / 100,
        total: cents / 100,
      })),
      ...(order.coupon && { coupon: order.coupon, discount: order.discountCents / 100 }),
      shipping: order.shippingCents / 100,
      total: order.totalCents / 100,
      ...(state.refundedCents > 0 && { refunded: state.refundedCents / 100 }),
    },
  }))
}
