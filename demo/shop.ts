import { webhookEvent } from '../src/domain/samples.ts'
import type { BillingEvent } from './billing-events.ts'
import { productRecords, type RecordDelete, type RecordWrite } from './catalog.ts'
import { generateOrders, type Order, orderRecords } from './orders.ts'
import { contactRecord, generatePeople, type Person } from './people.ts'
import { randomFor } from './random.ts'
import { type SubscriptionHistory, simulateSubscription } from './subscription-history.ts'
import { firstAgreement, returnAgreement, secondAgreement } from './subscriptions.ts'
import { buildVisitEvents, generateVisits, type VisitEvent } from './visits.ts'
import { isoTime, type Year } from './year.ts'

/** A year of a coffee roaster that sells orders and subscriptions, as the requests that it sends to Kontor. */
export type Shop = {
  products: RecordWrite[]
  discontinued: RecordDelete[]
  contacts: RecordWrite[]
  /** Oldest version first. */
  orders: RecordWrite[]
  /** Oldest first. */
  events: VisitEvent[]
  billing: BillingEvent[]
  counts: ShopCounts
}

export type ShopCounts = {
  products: number
  contacts: number
  orders: number
  visits: number
  events: number
  subscriptions: number
  invoices: number
  refunds: number
  billing_events: number
}

export function shopYear(year: Year): Shop {
  const people = generatePeople(year)
  const orders = people.flatMap(person => generateOrders(person, year))
  const subscriptions = people.flatMap(person => generateSubscriptions(person, year))
  const visits = generateVisits(
    year,
    people,
    orders,
    subscriptions.map(({ agreement }) => agreement),
  )
  const { writes: products, deletes: discontinued } = productRecords(year, randomFor(year.label, 'products'))
  const events = visits.flatMap(buildVisitEvents).sort((a, b) => a.at - b.at)
  const billing = [
    ...subscriptions.flatMap(({ events }) => events),
    ...orders.flatMap(order => returnEvents(order)),
    ...strayInvoices(people, year),
  ].sort((a, b) => (a.occurred_at < b.occurred_at ? -1 : a.occurred_at > b.occurred_at ? 1 : 0))
  const orderWrites = orders.flatMap(order => orderRecords(order, year)).sort(bySourceTime)
  return {
    products,
    discontinued,
    contacts: people.map(contactRecord),
    orders: orderWrites,
    events,
    billing,
    counts: {
      products: products.length - discontinued.length,
      contacts: people.length,
      orders: orders.length,
      visits: visits.length,
      events: events.length,
      subscriptions: subscriptions.length,
      invoices: new Set(listIds(billing, 'invoice.')).size,
      refunds: listIds(billing, 'refund.').length,
      billing_events: billing.length,
    },
  }
}

function generateSubscriptions(person: Person, year: Year): SubscriptionHistory[] {
  const first = firstAgreement(person, year)
  if (first === null) return []
  const history = simulateSubscription(first, year)
  const others = [
    secondAgreement(first, year),
    history.endedAt === null ? null : returnAgreement(first, history.endedAt, year),
  ]
  return [
    history,
    ...others.filter(agreement => agreement !== null).map(agreement => simulateSubscription(agreement, year)),
  ]
}

/** Sent by the warehouse when a parcel is returned. */
function returnEvents({ id, history, person, currency }: Order): BillingEvent[] {
  return history
    .filter(({ status }) => status === 'returned')
    .map(({ at, refundedCents }) => {
      const payload = { id, contact_id: person.id, refunded: refundedCents / 100, currency }
      return webhookEvent(`${id}-returned`, 'order.returned', new Date(at), payload)
    })
}

/** Invoices without a known subscription: from an earlier system and from a trade fair. Reports show them as coverage. */
function strayInvoices(people: Person[], { label, start }: Year): BillingEvent[] {
  const customer = people[0]!
  const paid = (id: string, at: number, total: number, subscription: string | null): BillingEvent =>
    webhookEvent(`${id}-paid`, 'invoice.paid', new Date(at), {
      ...{ id, number: id.toUpperCase(), customer: customer.id, status: 'paid', currency: 'EUR' },
      ...(subscription && { subscription }),
      ...{ total, tax: 0, amount_due: total, amount_paid: total, amount_remaining: 0, attempt_count: 1 },
      ...{ finalized_at: isoTime(at), paid_at: isoTime(at), updated_at: isoTime(at) },
    })
  const at = Math.max(start, customer.signedUpAt)
  return [
    paid(`${label}-in-old-01`, at, 18, `${label}-sub-of-the-old-system`),
    paid(`${label}-in-fair-01`, at, 240, null),
  ]
}

function listIds(events: BillingEvent[], prefix: string): string[] {
  return events.filter(({ event_type }) => event_type.startsWith(prefix)).map(({ payload }) => payload.id)
}

function bySourceTime(a: RecordWrite, b: RecordWrite): number {
  return a.sourceUpdatedAt < b.sourceUpdatedAt ? -1 : a.sourceUpdatedAt > b.sourceUpdatedAt ? 1 : 0
}
