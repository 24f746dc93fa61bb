import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { eventually } from '../eventually.ts'
import { isLong } from '../long.ts'
import { settled } from '../settled.ts'
import { openService, type Service } from './service.ts'
import { type RecordWrite, startTraffic, type Traffic } from './traffic.ts'

// In CI each kind of failure once; more with KONTOR_TEST_CRASH_ROUNDS.
const ROUNDS = Number(process.env.KONTOR_TEST_CRASH_ROUNDS ?? (isLong ? 5 : 2))

const HOW = ['server', 'server and PostgreSQL', 'stop', 'backend', 'PostgreSQL'] as const

let service: Service
before(async () => {
  service = await openService()
})
after(() => service.close())

test(`killed ${ROUNDS} times at random moments under load: nothing acknowledged is lost, nothing takes effect twice`, async t => {
  await service.start()
  const { traffic, stop } = startTraffic(service)
  try {
    for (let round = 0; round < ROUNDS; round++) {
      await sleep(200 + Math.random() * 1_200)
      const how = HOW[round % HOW.length]!
      if (how === 'backend') {
        await service.killBackend()
        continue
      }
      if (how === 'PostgreSQL') {
        await service.killPostgres()
        continue
      }
      if (how === 'stop') {
        const { code, stderr } = await service.stop()
        assert.equal(code, 0, stderr)
      } else await service.kill(how)
      await service.start()
    }
    await sleep(300)
  } finally {
    await stop()
  }
  assert.equal(service.hasEnded(), false)
  const acknowledged = [...traffic.writes, ...traffic.events].filter(({ outcome }) => outcome === 'acknowledged')
  t.diagnostic(
    `${traffic.writes.length} writes and ${traffic.events.length} events sent, ${acknowledged.length} acknowledged`,
  )
  assert.deepEqual(traffic.odd, [])
  assert.ok(acknowledged.length > 0)
  await service.withDatabase(async pool => {
    await settled(pool)
    await verifyEvents(pool, traffic)
    await verifyWrites(pool, traffic)
    await verifyRecords(pool, traffic)
    const { rows } = await pool.query('select id, error from dead_letters')
    assert.deepEqual(rows, [])
  })
})

/** The worker is killed while it waits for one of these tables: before it records a restatement, and before earlier steps of the same transaction. */
const TABLES = [
  'billing_restatements',
  ...(isLong ? ['billing_closed_accounts', 'billing_segments', 'billing_movements'] : []),
]

test('killed while a late fact restates a closed month: restated − as closed is still the sum of the restatements', async () => {
  if (service.hasEnded()) await service.start()
  const ask = async (path: string) => {
    const response = await fetch(`${service.url}/v1/subscriptions/${path}`, {
      headers: { authorization: `Bearer ${service.privateKey}` },
    })
    assert.equal(response.status, 200, path)
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
    return (await response.json()) as any
  }
  const send = async (id: string, unit_amount: number, updated_at: string) => {
    const items = [{ id: 'i', quantity: 1, unit_amount, interval: 'month', interval_count: 1 }]
    const payload = {
      id,
      customer: `cus_${id}`,
      status: 'active',
      currency: 'EUR',
      started_at: '2025-01-10T00:00:00Z',
      updated_at,
      items,
    }
    const response = await fetch(service.url + service.source.path, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.source.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ event_type: 'subscription.updated', payload }),
    })
    assert.equal(response.status, 200)
  }
  const mrr = async (basis: string) => (await ask(`overview?currency=EUR&as_of=2025-04-01&basis=${basis}`)).mrr
  await send('s', 10, '2025-01-10T00:00:00Z')
  await service.withDatabase(pool => settled(pool))
  await service.closeMonth('2025-03')
  for (const [round, table] of TABLES.entries()) {
    await service.withDatabase(async pool => {
      const client = await pool.connect()
      try {
        await client.query(`begin; lock table ${table} in exclusive mode`)
        await send(`late-${round}`, 7 + round, `2025-03-0${round + 1}T00:00:00Z`)
        await eventually(`the worker to wait for ${table}`, async () => {
          const { rows } = await pool.query('select from pg_locks where relation = $1::regclass and not granted', [
            table,
          ])
          return rows.length > 0
        })
        await service.kill('server')
        await client.query('rollback')
      } finally {
        client.release()
      }
    })
    await service.start()
    await service.withDatabase(pool => settled(pool))
    const { results } = await ask('books?month=2025-03')
    assert.equal(results.length, round + 1)
    const sum = results.reduce((total: number, row: { amount: number }) => total + row.amount, 0)
    assert.deepEqual([await mrr('as_closed'), (await mrr('restated')) - 10], [10, sum], table)
    assert.ok(results.every((row: { event_id: string | null }) => row.event_id !== null))
  }
})

/** An acknowledged event is stored once, one without a response at most once. */
async function verifyEvents(pool: pg.Pool, { events }: Traffic): Promise<void> {
  const { rows } = await pool.query<{ marker: string; count: number }>(
    `select coalesce(payload::jsonb #>> '{data,marker}', payload::jsonb ->> 'marker') as marker, count(*) from events group by 1`,
  )
  const counts = new Map(rows.map(row => [row.marker, row.count]))
  for (const { marker, outcome } of events) {
    const count = counts.get(marker) ?? 0
    if (outcome === 'acknowledged') assert.equal(count, 1, `${marker} was acknowledged and is stored ${count} times`)
    else assert.ok(count <= 1, `${marker} was sent once and is stored ${count} times`)
  }
  assert.ok(rows.length <= events.length)
}

/** Every acknowledged write has an outcome. Of repeats with one key, only one is in the log. */
async function verifyWrites(pool: pg.Pool, { writes }: Traffic): Promise<void> {
  const { rows } = await pool.query<{ id: string; marker: string; status: string | null }>(
    `select l.id, l.body::json #>> '{data,marker}' as marker, o.status
     from log l left join operations o on o.tenant_id = l.tenant_id and o.id = l.id and o.received_at = l.received_at
     where l.kind = 'record'`,
  )
  const entries = Map.groupBy(rows, row => row.marker)
  for (const { marker, outcome, operationId, key } of writes) {
    const own = entries.get(marker) ?? []
    assert.ok(own.length <= 1, `${marker} (key ${key}) is in the log ${own.length} times`)
    for (const { status } of own) assert.ok(status === 'applied' || status === 'superseded', `${marker} ${status}`)
    if (outcome === 'acknowledged')
      assert.deepEqual(
        own.map(({ id }) => id),
        [operationId],
      )
  }
}

/** Each record is at least as new as the newest acknowledged write, and equals one of the writes that were sent. */
async function verifyRecords(pool: pg.Pool, { writes }: Traffic): Promise<void> {
  const { rows } = await pool.query<{ id: string; marker: string; version: number }>(
    `select id, data ->> 'marker' as marker, (data ->> 'version')::int as version from records`,
  )
  const stored = new Map(rows.map(row => [row.id, row]))
  for (const [id, own] of Map.groupBy(writes, (write: RecordWrite) => write.id)) {
    const newest = Math.max(0, ...own.filter(({ outcome }) => outcome === 'acknowledged').map(({ version }) => version))
    const record = stored.get(id)
    if (newest === 0 && !record) continue
    assert.ok(record && record.version >= newest, `${id} is at ${record?.version}, but ${newest} was acknowledged`)
    assert.ok(own.some(({ marker, version }) => marker === record.marker && version === record.version))
  }
}
