import type { Shop } from '../deployment/shops.ts'
import type { Item } from '../ledger.ts'
import type { Random } from '../random.ts'
import { inboundRequest } from './inbound.ts'
import type { Sender } from './sender.ts'

const SUBSCRIPTIONS = 30
const DAY_MS = 86_400_000

/** Subscriptions that change price, pause at 0 and resume. Each change is sent until its outcome is certain. */
export function billingTraffic({ sender, random, shops }: { sender: Sender; random: Random; shops: Shop[] }) {
  const versions = new Map<string, number>()
  const base = Date.now() - 2 * DAY_MS

  return {
    async change(): Promise<void> {
      const shop = random.pick(shops)
      const id = `sub-${random.integer(1, SUBSCRIPTIONS)}`
      const key = `${shop.tenant}/${id}`
      const version = (versions.get(key) ?? 0) + 1
      versions.set(key, version)
      const isPaused = random.chance(0.1)
      const cents = random.integer(1, 500) * 100
      const marker = sender.marker()
      const item: Item = {
        marker,
        row: 'event',
        claim: `in-${marker}`,
        source: shop.billing.id,
        subscription: { id, version, cents: isPaused ? 0 : cents },
      }
      const payload = {
        marker,
        id,
        customer: `customer-${id}`,
        status: isPaused ? 'paused' : 'active',
        currency: 'EUR',
        started_at: new Date(base - 30 * DAY_MS).toISOString(),
        current_period_start: new Date(base).toISOString(),
        current_period_end: new Date(base + 30 * DAY_MS).toISOString(),
        updated_at: new Date(base + version * 1_000).toISOString(),
        items: [
          {
            id: `${id}-item`,
            price_id: 'price-1',
            name: 'Plan',
            quantity: 1,
            unit_amount: cents / 100,
            interval: 'month',
            interval_count: 1,
          },
        ],
      }
      const body = { inbound_event_id: item.claim, event_type: 'subscription.updated', payload }
      await sender.untilCertain(inboundRequest(shop, shop.billing, [item], body))
    },
  }
}
