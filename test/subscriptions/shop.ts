import { DAY_MS } from '../../src/domain/time.ts'
import { makeSource } from '../inbound/source.ts'
import type { Answer, TestServer, TestTenant } from '../server.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
export type Body = any
type Fields = Record<string, unknown>

export type BillingEvent = { type: string; data: Fields }

/** Sends billing events through one kind of source. */
export type Sender = (events: BillingEvent[]) => Promise<void>

/** All kinds of sources that accept canonical billing events, for one tenant. */
export async function sendersOf(server: TestServer, tenant = server.tenant): Promise<Record<string, Sender>> {
  const webhook = await makeSource(server, { tenant: tenant.id })
  const automation = await makeSource(server, { tenant: tenant.id, type: 'automation' })
  const cdpSource = await makeSource(server, { tenant: tenant.id, type: 'cdp', billing: true })
  const batch = (events: BillingEvent[]) => ({
    batch: events.map(({ type, data }) => ({ type: 'track', event: type, properties: data })),
  })
  return {
    async webhook(events) {
      for (const { type, data } of events) accepted(await webhook.post({ event_type: type, payload: data }))
    },
    async automation(events) {
      for (const { type, data } of events) accepted(await automation.post({ event_type: type, payload: data }))
    },
    cdpSource: async events => accepted(await cdpSource.post(batch(events))),
  }
}

function accepted({ status, body }: Answer): void {
  if (status !== 200) throw new Error(`answered ${status} ${JSON.stringify(body)}`)
}

/** Sends events in order in one batch, and returns when they are processed. */
export async function send(server: TestServer, events: BillingEvent[], tenant = server.tenant): Promise<void> {
  const batch = events.map(({ type, data }) => ({ type: 'track', event: type, properties: data }))
  const source = feeds.get(tenant) ?? (await makeFeed(server, tenant))
  feeds.set(tenant, source)
  accepted(await source.post({ batch }))
  await server.settled()
}

type Feed = Awaited<ReturnType<typeof makeSource>>
const feeds = new WeakMap<TestTenant, Feed>()

/** Only inbound sources accept billing events. One of type cdp accepts batches. */
function makeFeed(server: TestServer, tenant: TestTenant): Promise<Feed> {
  const rate_limit = { events: 1_000_000, per_seconds: 1 }
  return makeSource(server, {
    tenant: tenant.id,
    type: 'cdp',
    billing: true,
    max_body_bytes: 8_388_608,
    rate_limit,
  })
}

export type ReportQuery = Record<string, string | number>

export function ask(
  server: TestServer,
  report: string,
  query: ReportQuery,
  { tenant = server.tenant, headers = {} }: { tenant?: TestTenant; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const text = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) text.set(key, String(value))
  return server.request(`/v1/subscriptions/${report}?${text}`, { key: tenant.privateKey, headers })
}

/** Reads a report and asserts status 200; in EUR by default. */
export async function reportOf(
  server: TestServer,
  report: string,
  query: ReportQuery = {},
  tenant = server.tenant,
): Promise<Body> {
  const { status, body } = await ask(server, report, { currency: 'EUR', ...query }, { tenant })
  if (status !== 200) throw new Error(`${report} answered ${status} ${JSON.stringify(body)}`)
  return body
}

/** The time this number of days from now; negative: before now. */
export function inDays(days: number): string {
  return new Date(Date.now() + days * DAY_MS).toISOString()
}

/** Active for 100 days, with one item of 10 a month. */
export function subscription(id: string, changes: Fields = {}): Fields {
  const startedAt = changes.started_at ?? inDays(-100)
  return {
    id,
    customer: `cus_${id}`,
    status: 'active',
    currency: 'EUR',
    started_at: startedAt,
    updated_at: startedAt,
    items: [item(10)],
    ...changes,
  }
}

export function item(unit_amount: unknown, changes: Fields = {}): Fields {
  return {
    id: 'si_1',
    price_id: 'price_1',
    name: 'Plan',
    quantity: 1,
    unit_amount,
    interval: 'month',
    interval_count: 1,
    ...changes,
  }
}

export function created(id: string, changes: Fields = {}): BillingEvent {
  return { type: 'subscription.created', data: subscription(id, changes) }
}

export function updated(id: string, changes: Fields = {}): BillingEvent {
  return { type: 'subscription.updated', data: subscription(id, changes) }
}

export function ended(id: string, at: string, changes: Fields = {}): BillingEvent {
  const end = { status: 'canceled', ended_at: at, updated_at: at }
  return { type: 'subscription.deleted', data: subscription(id, { ...end, ...changes }) }
}

export function invoice(type: string, id: string, changes: Fields = {}): BillingEvent {
  return { type: `invoice.${type}`, data: { id, currency: 'EUR', ...changes } }
}

/** The same order for the same seed. */
export function shuffled<T>(values: T[], seed: number): T[] {
  const result = [...values]
  let state = seed
  for (let i = result.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    const j = state % (i + 1)
    ;[result[i], result[j]] = [result[j]!, result[i]!]
  }
  return result
}
