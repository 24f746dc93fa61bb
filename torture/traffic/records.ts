import type { Shop } from '../deployment/shops.ts'
import type { EntityType, Item } from '../ledger.ts'
import type { Random } from '../random.ts'
import type { Answer } from './client.ts'
import type { Request, Sender } from './sender.ts'

const TYPES: EntityType[] = ['product', 'contact', 'order']
const RECORDS = 40
const BASE = Date.UTC(2026, 0, 1)

/** Versions of one record are one second apart, independent of the clock. */
export const versionTime = (version: number) => new Date(BASE + version * 1_000).toISOString()

type Probe = (url: string) => Promise<boolean>

export function recordTraffic({ sender, random, shops }: { sender: Sender; random: Random; shops: Shop[] }) {
  const versions = new Map<string, number>()

  function nextVersion(shop: Shop, type: EntityType, id: string): number {
    const key = `${shop.tenant}/${type}/${id}`
    const version = (versions.get(key) ?? 0) + 1
    versions.set(key, version)
    return version
  }

  function newItem(shop: Shop, type: EntityType, id: string, options: { deleted: boolean; keyed: boolean }): Item {
    const { deleted, keyed } = options
    const marker = sender.marker()
    return {
      marker,
      ...(keyed && { claim: `key-${marker}` }),
      record: { type, id, version: nextVersion(shop, type, id), deleted },
    }
  }

  const randomId = (type: EntityType) => `${type}-${random.integer(1, RECORDS)}`

  return {
    /** One write or delete. With a key, it is sent until its outcome is certain, otherwise once. */
    async write(): Promise<void> {
      const shop = random.pick(shops)
      const type = random.pick(TYPES)
      const keyed = random.chance(0.5)
      const item = newItem(shop, type, randomId(type), { deleted: random.chance(0.12), keyed })
      const request = writeRequest(shop, item)
      await (keyed ? sender.untilCertain(request) : sender.once(request))
    },
    async batch(): Promise<void> {
      const shop = random.pick(shops)
      const type = random.pick(TYPES)
      const keyed = random.chance(0.6)
      const items = Array.from({ length: random.integer(3, 25) }, () =>
        newItem(shop, type, randomId(type), { deleted: false, keyed }),
      )
      const request = batchRequest(shop, type, items)
      await (keyed ? sender.untilCertain(request) : sender.once(request))
    },
    /** Never valid. */
    async invalid(): Promise<void> {
      const shop = random.pick(shops)
      const item: Item = {
        ...newItem(shop, 'contact', randomId('contact'), { deleted: false, keyed: false }),
        invalid: true,
      }
      const request = writeRequest(shop, item)
      await sender.once({
        ...request,
        body: { ...request.body, sourceUpdatedAt: 'yesterday' },
        expects: [400],
      })
    },
    /** Writes to all partitions; the returned function sends them again and returns true once all are applied. */
    probe(): Probe {
      const shop = shops[0]!
      const items = Array.from({ length: 64 }, (_, i) =>
        newItem(shop, 'contact', `probe-${i}`, { deleted: false, keyed: true }),
      )
      const request = batchRequest(shop, 'contact', items)
      const headers = { ...request.headers, prefer: 'wait=5' }
      return async url => {
        const answer = await sender.once({ ...request, headers }, { url, patienceMs: 10_000 })
        if (answer?.status !== 202) return false
        const results = answer.body.results as { status?: string }[]
        return results.every(({ status }) => status === 'applied' || status === 'superseded')
      }
    },
  }
}

function buildBody({ marker, claim, record }: Item): object {
  const { type, id, version, deleted } = record!
  const facts = { marker, version, ...(type === 'product' && { sku: id }), ...(type === 'order' && ORDER) }
  return {
    entityType: type,
    id,
    sourceUpdatedAt: versionTime(version),
    ...(claim !== undefined && { idempotencyKey: claim }),
    ...(!deleted && { data: facts }),
  }
}

const ORDER = { total: 10, currency: 'EUR', created_at: '2026-01-01T00:00:00Z' }

const authorised = (shop: Shop) => ({ authorization: `Bearer ${shop.privateKey}` })

function writeRequest(shop: Shop, item: Item): Request {
  const { idempotencyKey, ...body } = buildBody(item) as { idempotencyKey?: string }
  return {
    shop,
    path: `/v1/${item.record!.type}s`,
    method: item.record!.deleted ? 'DELETE' : 'POST',
    headers: { ...authorised(shop), ...(idempotencyKey && { 'x-idempotency-key': idempotencyKey }) },
    body,
    items: [item],
    read: ({ body }) => ({ operations: [(body.operationId as string) ?? null] }),
    expects: item.claim ? [202, 200] : [202],
  }
}

function batchRequest(shop: Shop, type: EntityType, items: Item[]): Request {
  return {
    shop,
    path: `/v1/${type}s/batch`,
    headers: authorised(shop),
    body: { records: items.map(buildBody) },
    items,
    read: listResults,
    expects: [202],
  }
}

function listResults({ body }: Answer) {
  const results = (body.results ?? []) as { accepted?: boolean; duplicate?: boolean; operationId?: string }[]
  return {
    operations: results.map(({ operationId }) => operationId ?? null),
    rejected: results.flatMap(({ accepted, duplicate }, i) => (accepted || duplicate ? [] : [i])),
  }
}
