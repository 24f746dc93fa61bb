import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type EventSale, foldSales, saleRank } from '../../src/domain/conversions/conversions.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { ensurePartitions } from '../../src/postgres/partitions.ts'
import { upsertEventSales } from '../../src/store/conversions/conversions.ts'
import { openedAdmin } from '../admin/opened.ts'

const { pool, admin } = await openedAdmin()
await ensurePartitions(pool, new Date())
const tenantId = Number((await admin.tenants.create({ name: 'acme' })).id.slice(4))

const uuid = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`

/** Few values, so that ties are frequent. */
const spokenFact = fc.record({
  amount: fc.constantFrom(null, '10', '20'),
  second: fc.integer({ min: 0, max: 2 }),
  isTrusted: fc.boolean(),
  visitor: fc.constantFrom(null, 'a', 'b'),
  node: fc.constantFrom(null, 1, 2),
})

function saleOf(
  { amount, second, isTrusted, visitor, node }: typeof spokenFact extends fc.Arbitrary<infer T> ? T : never,
  n: number,
): EventSale {
  const at = new Date(Date.UTC(2026, 0, 1, 0, 0, second))
  const rank = saleRank({ amount, occurredAt: at, eventId: uuid(n) })
  return {
    ...{ tenantId, saleKey: 'order:1', id: uuid(1), orderId: '1', eventId: uuid(n), occurredAt: at },
    ...{
      eventType: `type ${n}`,
      conversionType: 'purchase',
      source: 'track',
      sourceConfigId: null,
      objectId: null,
    },
    ...{ amount, currency: amount === null ? null : 'EUR' },
    ...{ priceEventId: uuid(n), priceAt: at, priceTrusted: isTrusted },
    ...{ visitor, visitorRank: visitor && rank, node, nodeRank: node && rank, severalVisitors: false },
  }
}

/** The events that determine the sale, its price and its person after these upserts, which are rolled back. */
async function spokenBy(upserts: EventSale[][]): Promise<unknown> {
  let spoken: unknown
  const undone = new Error('undone')
  await inTransaction(pool, async client => {
    for (const sales of upserts) await upsertEventSales(client, sales)
    const { rows } = await client.query(
      `select event_id, event_type, event_occurred_at, event_amount::text as amount, event_currency, price_event_id, price_at,
         price_trusted, event_visitor, event_visitor_rank, event_node, event_node_rank,
         several_visitors from conversions where tenant_id = $1`,
      [tenantId],
    )
    spoken = rows
    throw undone
  }).catch(error => assert.equal(error, undone))
  return spoken
}

test('a sale is determined by the same event whether events arrive one by one, in any order, or together', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(spokenFact, { minLength: 1, maxLength: 4 }), fc.boolean(), async (all, isReversed) => {
      const sales = all.map((given, i) => saleOf(given, i + 1))
      const inTurn = isReversed ? sales.toReversed() : sales
      assert.deepEqual(await spokenBy(inTurn.map(sale => [sale])), await spokenBy([[foldSales(sales)]]))
    }),
    { numRuns: 80 },
  )
})
