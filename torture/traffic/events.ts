import type { Shop } from '../deployment/shops.ts'
import type { Item } from '../ledger.ts'
import type { Random } from '../random.ts'
import type { Answer } from './client.ts'
import type { Request, Sender } from './sender.ts'

const HOUR_MS = 3_600_000

export function eventTraffic({
  sender,
  random,
  shops,
  keptMs,
}: {
  sender: Sender
  random: Random
  shops: Shop[]
  /** how long the installation keeps events */
  keptMs: number
}) {
  const newItem = (row: 'event' | 'conversion', claimed: boolean): Item => {
    const marker = sender.marker()
    return { marker, row, ...(claimed && { claim: `id-${marker}` }) }
  }
  const visitor = () => `visitor-${random.integer(1, 200)}`
  /** Mostly now; sometimes backdated by up to two days. */
  const occurred = () =>
    random.chance(0.2) ? { occurred_at: new Date(Date.now() - random.between(0, 48 * HOUR_MS)).toISOString() } : {}

  return {
    /** A native event. With an id, it is sent until its outcome is certain, otherwise once. */
    async track(): Promise<void> {
      const shop = random.pick(shops)
      const item = newItem(random.chance(0.15) ? 'conversion' : 'event', random.chance(0.5))
      const request = trackRequest(shop, item, { visitor: visitor(), ...occurred() })
      await (item.claim ? sender.untilCertain(request) : sender.once(request))
    },
    /** A CDP batch, sometimes with an invalid item. */
    async batch(): Promise<void> {
      const shop = random.pick(shops)
      const items = Array.from({ length: random.integer(5, 40) }, () => newItem('event', true))
      if (random.chance(0.05))
        items.splice(random.integer(0, items.length), 0, { marker: sender.marker(), invalid: true })
      await sender.untilCertain({
        shop,
        path: '/v1/batch',
        headers: { authorization: `Bearer ${shop.trackingKey}` },
        body: { batch: items.map(item => cdpEvent(item, visitor())) },
        items,
        read: listRejected,
        expects: [200],
      })
    },
    async invalid(): Promise<void> {
      const shop = random.pick(shops)
      const item: Item = { marker: sender.marker(), invalid: true }
      const request = trackRequest(shop, item, {})
      await sender.once({ ...request, body: { ...request.body, event_type: 7 }, expects: [400] })
    },
    /** Backdated events. Retention may drop only those beyond its limit. */
    async dated(occurredAt: Date): Promise<void> {
      const old = occurredAt.getTime() < Date.now() - keptMs
      for (const shop of shops) {
        const item: Item = { ...newItem('event', true), ...(old && { old }) }
        await sender.untilCertain(
          trackRequest(shop, item, { visitor: visitor(), occurred_at: occurredAt.toISOString() }),
        )
      }
    },
  }
}

function trackRequest(shop: Shop, item: Item, facts: object): Request {
  const { marker, claim, row } = item
  const isConversion = row === 'conversion'
  return {
    shop,
    path: '/v1/track/',
    headers: { authorization: `Bearer ${shop.trackingKey}` },
    body: {
      event_type: isConversion ? 'convert' : 'page_view',
      ...(claim && { event_id: claim }),
      ...facts,
      data: { marker, ...(isConversion && { order_id: marker, amount: 5, currency: 'EUR' }) },
    },
    items: [item],
    expects: [200],
  }
}

export function cdpEvent({ marker, claim, invalid }: Item, anonymousId: string): object {
  if (invalid) return { type: 'track', anonymousId, properties: { marker } }
  return { type: 'track', event: 'Product Viewed', messageId: claim, anonymousId, properties: { marker } }
}

export function listRejected({ body }: Answer) {
  const rejected = (body.rejected ?? []) as { index: number }[]
  return { rejected: rejected.map(({ index }) => index) }
}
