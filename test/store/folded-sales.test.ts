import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type EventSale, foldSales } from '../../src/domain/conversions/conversions.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { ensurePartitions } from '../../src/postgres/partitions.ts'
import { upsertEventSales } from '../../src/store/conversions/conversions.ts'
import { openedAdmin } from '../admin/opened.ts'
import { runs } from '../long.ts'

const { pool, admin } = await openedAdmin()
await ensurePartitions(pool, new Date())
const tenantId = Number((await admin.tenants.create({ name: 'acme' })).id.slice(4))

const uuid = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`

/** Few values, so that ties are frequent. */
const reported = fc.record({
  amount: fc.constantFrom(null, '10', '20'),
  second: fc.integer({ min: 0, max: 2 }),
  verified: fc.boolean(),
  visitor: fc.constantFrom(null, 'a', 'b'),
  node: fc.constantFrom(null, 1, 2),
})

type Reported = typeof reported extends fc.Arbitrary<infer T> ? T : never

/** The sale that one event reports. Events are numbered in order of receipt. */
function saleOf({ amount, second, verified, visitor, node }: Reported, n: number): EventSale {
  const eventId = uuid(n)
  return {
    ...{ tenantId, saleKey: 'order:1', id: uuid(1), orderId: '1' },
    facts: {
      ...{ eventId, verified, occurredAt: new Date(Date.UTC(2026, 0, 1, 0, 0, second)) },
      ...{
        eventType: `type ${n}`,
        conversionType: 'purchase',
        source: 'track',
        sourceConfigId: null,
        objectId: `${n}`,
      },
      ...{ amount, currency: amount === null ? null : 'EUR' },
    },
    visitor: verified && visitor !== null ? { eventId, visitor } : null,
    person: verified && node !== null ? { eventId, node } : null,
    claim: verified ? null : { eventId, visitor, node },
    claims: verified ? 0 : 1,
    severalVisitors: false,
  }
}

/** The stored sale after these upserts, which are rolled back. */
async function storedAfter(upserts: EventSale[][]): Promise<Record<string, unknown>> {
  let stored: Record<string, unknown> | undefined
  const undone = new Error('undone')
  await inTransaction(pool, async client => {
    for (const sales of upserts) await upsertEventSales(client, sales)
    const { rows } = await client.query(`select * from conversions where tenant_id = $1`, [tenantId])
    assert.equal(rows.length, 1)
    stored = rows[0]
    throw undone
  }).catch(error => assert.equal(error, undone))
  return stored!
}

const arrivals = fc
  .array(reported, { minLength: 1, maxLength: 5 })
  .map(all => all.map((given, i) => saleOf(given, i + 1)))
  .chain(sales =>
    fc.record({
      sales: fc.constant(sales),
      order: fc.shuffledSubarray(sales, { minLength: sales.length, maxLength: sales.length }),
      cut: fc.integer({ min: 0, max: sales.length }),
    }),
  )

test('a sale is the same whether its events arrive one by one, in any order, in batches or together', async () => {
  await fc.assert(
    fc.asyncProperty(arrivals, async ({ sales, order, cut }) => {
      const together = await storedAfter([[foldSales(sales)]])
      assert.deepEqual(await storedAfter(order.map(sale => [sale])), together)
      const batches = [order.slice(0, cut), order.slice(cut)].filter(batch => batch.length > 0)
      assert.deepEqual(await storedAfter(batches.map(batch => [foldSales(batch)])), together)
    }),
    { numRuns: runs(100) },
  )
})

test('verified events alone determine a sale that one of them reports; the first event received adds the visitor', async () => {
  await fc.assert(
    fc.asyncProperty(arrivals, async ({ sales, order }) => {
      const stored = await storedAfter(order.map(sale => [sale]))
      const verified = sales.filter(({ facts }) => facts!.verified)
      const counted = foldSales(verified.length > 0 ? verified : sales).facts!
      assert.deepEqual(
        [stored.event_type, stored.occurred_at, stored.event_amount, stored.event_currency, stored.verified],
        [counted.eventType, counted.occurredAt, counted.amount, counted.currency, verified.length > 0],
      )
      const firstOf = <T>(values: (T | null | undefined)[]) => values.find(value => value != null) ?? null
      assert.deepEqual(
        stored.visitor,
        firstOf([...verified.map(({ visitor }) => visitor?.visitor), ...sales.map(({ claim }) => claim?.visitor)]),
      )
      assert.deepEqual(stored.event_node, firstOf(verified.map(({ person }) => person?.node)))
    }),
    { numRuns: runs(100) },
  )
})
