import assert from 'node:assert/strict'
import type { TestServer } from '../../server.ts'
import { makeSource } from '../source.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
export type Body = any

/** A tenant of its own, whose sources receive provider documents. */
export async function providerTenant(server: TestServer, name: string) {
  const tenant = await server.anotherTenant(name)
  const get = async (path: string): Promise<Body> => {
    const { status, body } = await server.request(path, { key: tenant.privateKey })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  return {
    ...tenant,
    get,
    async send(preset: string, bodies: object[], headers: Record<string, string> = {}, settings: object = {}) {
      const source = await makeSource(server, { preset, tenant: tenant.id, ...settings })
      for (const [n, body] of bodies.entries()) {
        const numbered = Object.fromEntries(
          Object.entries(headers).map(([key, value]) => [key, value.replace('#', `${n}`)]),
        )
        const { status, body: answer } = await source.post(body, { headers: numbered })
        assert.equal(status, 200, JSON.stringify(answer))
      }
      await server.settled()
    },
    overview: (currency: string, asOf?: string) =>
      get(`/v1/subscriptions/overview?currency=${currency}${asOf ? `&as_of=${asOf}` : ''}`),
    /** MRR by customer. */
    async mrrs(currency: string, asOf?: string): Promise<Record<string, number>> {
      const { accounts } = await this.overview(currency, asOf)
      return Object.fromEntries(accounts.results.map((row: Body) => [row.customer, row.mrr]))
    },
    /** Reasons by subscription. */
    async reasons(currency: string, asOf?: string): Promise<Record<string, string>> {
      const { exclusions } = await this.overview(currency, asOf)
      return Object.fromEntries(exclusions.results.map((row: Body) => [row.subscription_id, row.reason_code]))
    },
  }
}

/** A Paddle event. */
export function paddleEvent(event_type: string, occurred_at: string, data: object) {
  return { event_id: `evt_${event_type}_${occurred_at}`, notification_id: 'ntf_1', event_type, occurred_at, data }
}

let chargebeeEvents = 0
/** A Chargebee event at Unix time `at`. */
export function chargebeeEvent(event_type: string, at: number, content: object) {
  return { id: `ev_${++chargebeeEvents}`, object: 'event', api_version: 'v2', occurred_at: at, event_type, content }
}

let revenuecatEvents = 0
/** A RevenueCat event at `at` (epoch milliseconds). */
export function revenuecatEvent(type: string, at: number, more: object) {
  const event = {
    ...{ id: `rc_${++revenuecatEvents}`, type, event_timestamp_ms: at, environment: 'PRODUCTION', store: 'APP_STORE' },
    ...{ period_type: 'NORMAL', product_id: 'com.app.monthly', price: 0, price_in_purchased_currency: 0 },
    ...{ transaction_id: `t_${revenuecatEvents}`, ...more },
  }
  return { api_version: '1.0', event }
}

let stripeEvents = 0
/** A Stripe event at Unix time `created`. */
export function stripeEvent(type: string, created: number, object: object, more: object = {}) {
  return { id: `evt_p${++stripeEvents}`, object: 'event', created, livemode: true, type, data: { object }, ...more }
}
