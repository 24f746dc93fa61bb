import { createHmac } from 'node:crypto'
import { LIMITED_EVENTS_PER_SECOND, type Shop, type Source } from '../deployment/shops.ts'
import type { Item } from '../ledger.ts'
import type { Random } from '../random.ts'
import { cdpEvent, listRejected } from './events.ts'
import type { Request, Sender } from './sender.ts'

export function inboundTraffic({ sender, random, shops }: { sender: Sender; random: Random; shops: Shop[] }) {
  const newItem = (source: Source): Item => {
    const marker = sender.marker()
    return { marker, row: 'event', claim: `in-${marker}`, source: source.id }
  }
  const createItems = (source: Source, count: number) => Array.from({ length: count }, () => newItem(source))

  return {
    /** One event of an unsigned or a signed source. */
    async webhook(): Promise<void> {
      const shop = random.pick(shops)
      const source = random.pick([shop.webhook, shop.automation])
      const item = newItem(source)
      await sender.untilCertain(inboundRequest(shop, source, [item], webhookEvent(item)))
    },
    async cdpBatch(): Promise<void> {
      const shop = random.pick(shops)
      const items = createItems(shop.cdp, random.integer(3, 20))
      if (random.chance(0.05)) items.push({ marker: sender.marker(), invalid: true, source: shop.cdp.id })
      const batch = items.map(item => cdpEvent(item, `visitor-${random.integer(1, 200)}`))
      await sender.untilCertain(inboundRequest(shop, shop.cdp, items, { batch }))
    },
    /** Twice the budget of one second at once: half of it is deferred and drains later. */
    async burst(): Promise<void> {
      const shop = random.pick(shops)
      const items = createItems(shop.limited, 2 * LIMITED_EVENTS_PER_SECOND)
      await sender.untilCertain(inboundRequest(shop, shop.limited, items, items.map(webhookEvent)))
    },
    async invalid(): Promise<void> {
      const shop = random.pick(shops)
      const item: Item = { ...newItem(shop.webhook), invalid: true }
      const request = inboundRequest(shop, shop.webhook, [item], webhookEvent(item))
      await sender.once({
        ...request,
        headers: { authorization: 'Bearer tok_of_another_source' },
        expects: [401],
      })
    },
  }
}

function webhookEvent({ marker, claim }: Item): object {
  return { inbound_event_id: claim, event_type: 'ticket.opened', payload: { id: `ticket-${marker}`, marker } }
}

export function inboundRequest(shop: Shop, source: Source, items: Item[], body: object): Request {
  return {
    shop,
    path: `/ingest/inbound/${source.id}`,
    // Signed without a timestamp, so that a wrong clock does not cause a rejection.
    headers: {
      authorization: `Bearer ${source.token}`,
      ...(source.secret && {
        'x-service-signature': `sha256=${createHmac('sha256', source.secret).update(JSON.stringify(body)).digest('hex')}`,
      }),
    },
    body,
    items,
    read: listRejected,
    expects: [200],
  }
}
