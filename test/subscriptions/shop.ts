import type { TestServer, TestTenant } from '../server.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
export type Body = any

export type BillingEvent = { type: string; data: Record<string, unknown> }

export type Door = (event: BillingEvent, tenant: TestTenant) => Promise<void>

/** The ways for a canonical billing event to come in. */
export function doorsOf(server: TestServer): { track: Door; cdp: Door } {
  return {
    async track({ type, data }, tenant) {
      await post(server, '/v1/track', tenant.trackingKey, { event_type: type, data })
    },
    async cdp({ type, data }, tenant) {
      await post(server, '/v1/batch', tenant.trackingKey, {
        batch: [{ type: 'track', event: type, userId: 'billing', properties: data }],
      })
    },
  }
}

async function post(server: TestServer, path: string, key: string, body: unknown): Promise<void> {
  const answer = await server.request(path, { method: 'POST', key, body: JSON.stringify(body) })
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status} ${JSON.stringify(answer.body)}`)
}

/** Sends events one after the other, and returns when they have taken effect. */
export async function send(
  server: TestServer,
  events: BillingEvent[],
  { tenant = server.tenant, door = doorsOf(server).track }: { tenant?: TestTenant; door?: Door } = {},
): Promise<void> {
  for (const event of events) await door(event, tenant)
  await server.settled()
}

export type Ask = Record<string, string | number>

export function ask(
  server: TestServer,
  report: string,
  query: Ask,
  { tenant = server.tenant, headers = {} }: { tenant?: TestTenant; headers?: Record<string, string> } = {},
) {
  const text = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]))
  return server.request(`/v1/subscriptions/${report}?${text}`, { key: tenant.privateKey, headers })
}

/** A report that must be there. */
export async function reportOf(
  server: TestServer,
  report: string,
  query: Ask = {},
  tenant = server.tenant,
): Promise<Body> {
  const { status, body } = await ask(server, report, { currency: 'EUR', ...query }, { tenant })
  if (status !== 200) throw new Error(`${report} answered ${status} ${JSON.stringify(body)}`)
  return body
}

/** A subscription that is active since the beginning of 2026, with one item of 10 a month. */
export function subscription(id: string, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id,
    customer: `cus_${id}`,
    status: 'active',
    currency: 'EUR',
    started_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-01T00:00:00Z',
    items: [item(10)],
    ...changes,
  }
}

export function item(unit_amount: number | null, changes: Record<string, unknown> = {}): Record<string, unknown> {
  return { id: 'si_1', price_id: 'price_1', name: 'Plan', quantity: 1, unit_amount, interval: 'month', interval_count: 1, ...changes }
}

export function created(id: string, changes: Record<string, unknown> = {}): BillingEvent {
  return { type: 'subscription.created', data: subscription(id, changes) }
}

export function updated(id: string, changes: Record<string, unknown> = {}): BillingEvent {
  return { type: 'subscription.updated', data: subscription(id, changes) }
}

export function invoiceEvent(type: string, id: string, changes: Record<string, unknown> = {}): BillingEvent {
  return { type, data: { id, currency: 'EUR', ...changes } }
}
