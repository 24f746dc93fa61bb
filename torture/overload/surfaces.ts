import type { Shop } from '../deployment/shops.ts'
import { httpRequest } from './flood.ts'

export type Surface = { name: string; request: (url: string, shop: Shop) => Buffer }

const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` })
const times = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i))

const record = (i: number) => ({
  entityType: 'contact',
  id: `flood-${i}`,
  sourceUpdatedAt: '2026-01-01T00:00:00Z',
  data: { name: 'Ada Lovelace', note: 'x'.repeat(200) },
})
const event = (i: number) => ({
  ...{ type: 'track', event: 'flood', anonymousId: `visitor-${i}` },
  properties: { note: 'x'.repeat(200) },
})
const hook = (i: number) => ({ event_type: 'flood', payload: { id: i, note: 'x'.repeat(200) } })

/** Single requests and batches for every ingestion route. */
export const SURFACES: readonly Surface[] = [
  {
    name: 'record',
    request: (url, shop) => httpRequest('POST', url, '/v1/contacts', bearer(shop.privateKey), record(0)),
  },
  {
    name: 'record-batch',
    request: (url, shop) =>
      httpRequest('POST', url, '/v1/contacts/batch', bearer(shop.privateKey), {
        records: times(300, record),
      }),
  },
  {
    name: 'track',
    request: (url, shop) => {
      const body = { event_type: 'flood', visitor: 'visitor-1', data: { note: 'x'.repeat(200) } }
      return httpRequest('POST', url, '/v1/track/', bearer(shop.trackingKey), body)
    },
  },
  {
    name: 'cdp-batch',
    request: (url, shop) =>
      httpRequest('POST', url, '/v1/batch', bearer(shop.trackingKey), { batch: times(300, event) }),
  },
  {
    name: 'inbound',
    request: (url, shop) =>
      httpRequest('POST', url, `/ingest/inbound/${shop.webhook.id}`, bearer(shop.webhook.token), hook(1)),
  },
  {
    name: 'inbound-batch',
    request: (url, shop) =>
      httpRequest('POST', url, `/ingest/inbound/${shop.cdp.id}`, bearer(shop.cdp.token), {
        batch: times(300, event),
      }),
  },
]
