import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openOverflow } from '../../src/intake/overflow.ts'
import { overflowJob } from '../../src/jobs/overflow.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { openBudgets } from '../../src/overload/budgets.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'
import { eventually } from '../eventually.ts'
import { type OwnServer, startServer } from '../server.ts'
import { startInboundNode } from './node.ts'
import { drained, eventsOf, makeSource, rows } from './source.ts'

let server: OwnServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

// Long enough that the budget is not refilled during a test.
const perDay = (events: number) => ({ events, per_seconds: 86_400 })
const event = (n: number) => ({ inbound_event_id: `e${n}`, event_type: 'x', payload: { id: 'one', n } })
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)
const batch = (from: number, to: number) => range(from, to).map(event)
const waiting = (sourceId: string) =>
  rows<{ items: number }>(server, 'select items from overflow where source_id = $1 order by position', [sourceId])

test('events over the budget are deferred, one unit per item, and the response is always 200', async () => {
  const source = await makeSource(server, { rate_limit: perDay(5) })
  assert.deepEqual((await source.post(batch(0, 3))).body, {
    accepted: 3,
    duplicates: 0,
    deferred: 0,
    rejected: [],
  })
  assert.deepEqual((await source.post([{}, ...batch(3, 7)])).body, {
    accepted: 2,
    duplicates: 0,
    deferred: 2,
    rejected: [{ index: 0, message: 'event_type is required' }],
  })
  assert.deepEqual((await source.post(event(7))).body, {
    accepted: 0,
    duplicates: 0,
    deferred: 1,
    rejected: [],
  })
  // An invalid item of a deferred batch is a dead letter immediately.
  assert.deepEqual((await source.post([event(8), {}])).body.deferred, 1)
  assert.equal((await eventsOf(server, source.id)).length, 5)
  assert.equal((await rows(server, 'select from dead_letters where source_id = $1', [source.id])).length, 2)
  assert.deepEqual(
    (await waiting(source.id)).map(row => row.items),
    [2, 1, 1],
  )
  const { key } = await server.admin.keys.create({ kind: 'admin' })
  const { body } = await server.request('/admin/v1/overflow', { key })
  assert.equal(body.results.find((row: Record<string, unknown>) => row.source_config_id === source.id).events, 4)
})

test('the overflow queue drains in order as the budget is refilled, including entries larger than the budget', async () => {
  const source = await makeSource(server, { rate_limit: { events: 4, per_seconds: 1 } })
  const sums = { accepted: 0, deferred: 0 }
  for (const body of [batch(0, 3), batch(3, 13), [event(13)]]) {
    const { accepted, deferred } = (await source.post(body)).body
    sums.accepted += accepted
    sums.deferred += deferred
  }
  assert.equal(sums.accepted + sums.deferred, 14)
  assert.ok(sums.deferred >= 9, 'the budget of one second is 4')
  await drained(server, source.id)
  // Deferred entries have their own ids, so the receipts show the order.
  const order = await rows<{ n: number }>(
    server,
    `select substr(inbound_event_id, 2)::int as n from receipts where source_id = $1 order by written_at, id`,
    [source.id],
  )
  assert.deepEqual(
    order.map(row => row.n),
    range(0, 14),
  )
})

test('a flood of ten times the limit loses nothing, and the order per sender is kept', async () => {
  const source = await makeSource(server, { rate_limit: { events: 100, per_seconds: 1 } })
  const SENDERS = 10
  let kept = 0
  async function send(sender: number) {
    for (let request = 0; request < 25; request++) {
      const events = range(0, 4).map(item => ({
        inbound_event_id: `${sender}-${request}-${item}`,
        event_type: 'x',
        payload: { id: `sender-${sender}`, n: request * 4 + item },
      }))
      const { status, body } = await source.post(events)
      assert.equal(status, 200)
      kept += body.accepted + body.deferred
    }
  }
  await Promise.all(range(0, SENDERS).map(send))
  assert.equal(kept, 1000)
  await server.admin.sources.update(source.id, { rate_limit: { events: 10_000, per_seconds: 1 } })
  await drained(server, source.id)
  const processed = await rows<{ sender: string; n: number }>(
    server,
    `select split_part(inbound_event_id, '-', 1) as sender,
            split_part(inbound_event_id, '-', 2)::int * 4 + split_part(inbound_event_id, '-', 3)::int as n
     from receipts where source_id = $1 and outcome = 'processed' order by written_at, id`,
    [source.id],
  )
  const bySender = Map.groupBy(processed, row => row.sender)
  assert.equal(bySender.size, SENDERS)
  for (const sent of bySender.values())
    assert.deepEqual(
      sent.map(row => row.n),
      range(0, 100),
    )
})

test('while the overflow queue is not empty, new events queue behind it', async () => {
  const source = await makeSource(server, { rate_limit: perDay(1) })
  await source.post(event(0))
  assert.equal((await source.post(event(1))).body.deferred, 1)
  // Now there is budget, but other events already wait.
  await server.admin.sources.update(source.id, { rate_limit: perDay(100) })
  const answers = await Promise.all(range(2, 6).map(n => source.post(event(n))))
  for (const { status } of answers) assert.equal(status, 200)
  await drained(server, source.id)
  const order = await rows<{ n: number }>(
    server,
    `select substr(inbound_event_id, 2)::int as n from receipts where source_id = $1 order by written_at, id`,
    [source.id],
  )
  assert.equal(order.length, 6)
  assert.deepEqual(
    order.slice(0, 2).map(row => row.n),
    [0, 1],
  )
  await eventually('room for one more event', async () => (await source.post(event(Date.now()))).body.accepted === 1)
})

test('a duplicate uses no budget, also while others wait', async () => {
  const source = await makeSource(server, { rate_limit: perDay(1) })
  await source.post(event(0))
  await server.settled()
  await source.post(event(1))
  assert.deepEqual((await source.post([event(0), event(2)])).body, {
    accepted: 0,
    duplicates: 1,
    deferred: 1,
    rejected: [],
  })
})

test('with drop, events over the budget leave only a receipt', async () => {
  const source = await makeSource(server, { rate_limit: perDay(2), overflow: 'drop' })
  const { status, body } = await source.post([event(0), {}, event(1), event(2), event(3)])
  assert.equal(status, 200)
  assert.deepEqual(body, {
    accepted: 2,
    duplicates: 0,
    deferred: 0,
    rejected: [
      { index: 1, message: 'event_type is required' },
      { index: 3, message: 'dropped: above the rate limit of the source' },
      { index: 4, message: 'dropped: above the rate limit of the source' },
    ],
  })
  const all = await source.post(event(4))
  assert.equal(all.status, 200)
  assert.equal(all.body.rejected.length, 1)
  assert.equal((await eventsOf(server, source.id)).length, 2)
  assert.equal((await waiting(source.id)).length, 0)
  const receipts = await rows(
    server,
    `select outcome, count(*) from receipts where source_id = $1 group by outcome order by outcome`,
    [source.id],
  )
  assert.deepEqual(receipts, [
    { outcome: 'dead_letter', count: 1 },
    { outcome: 'dropped', count: 3 },
    { outcome: 'processed', count: 2 },
  ])
})

test('the overflow queue survives a restart, and drains even if its source was deleted', async () => {
  const source = await makeSource(server, { rate_limit: perDay(1) })
  await source.post(batch(0, 4))
  await server.restart()
  // A new node has new budgets in memory: one more event is accepted, the others still wait, in order.
  await eventually('two items in the overflow', async () => (await waiting(source.id))[0]?.items === 2)
  assert.equal((await source.post(event(4))).body.deferred, 1)
  await server.admin.sources.delete(source.id)
  await drained(server, source.id)
  assert.deepEqual(
    (await eventsOf(server, source.id)).map(row => row.inbound_event_id),
    ['e0', 'e1', 'e2', 'e3', 'e4'],
  )
})

test('an event that waited for more than half a day gets a new id and keeps its time', async () => {
  const source = await makeSource(server, { rate_limit: perDay(1) })
  await source.post(event(0))
  await source.post({ ...event(1), occurred_at: '2020-01-01T00:00:00Z' })
  await source.post(event(2))
  await server.pool.query(`update overflow set received_at = now() - interval '40 days' where source_id = $1`, [
    source.id,
  ])
  await server.admin.sources.update(source.id, { rate_limit: perDay(10) })
  await drained(server, source.id)
  const events = await eventsOf(server, source.id)
  const ageMs = (n: number) => Date.now() - (events.find(e => e.payload.n === n)!.occurred_at as Date).getTime()
  assert.equal(events.length, 3)
  assert.ok(ageMs(0) < 3_600_000)
  assert.ok(ageMs(1) > 365 * 86_400_000)
  assert.ok(ageMs(2) > 39 * 86_400_000, 'the time of receipt counts')
})

test('the overflow queue drains at the rate of its source, for single events as for batches', async () => {
  const source = await makeSource(server, { rate_limit: perDay(1) })
  await source.post(event(0))
  await source.post(event(1))
  await server.pool.query(
    `insert into overflow (source_id, id, tenant_id, kind, ordering_key, received_at, items, context, body_bytes, body)
     select source_id, overlay(id::text placing lpad(to_hex(n), 7, '0') from 25 for 7)::uuid, tenant_id, kind, ordering_key,
       received_at, items, context, body_bytes, replace(body, 'e1', 'copy' || n)
     from overflow, generate_series(1, 2999) as n where source_id = $1`,
    [source.id],
  )
  const { pool } = server
  const moved: number[] = []
  const drain = overflowJob({
    pool,
    log: openPostgresLog({ pool }),
    overflow: openOverflow({ pool, maxPendingBytes: 1_000_000 }),
    budgets: openBudgets({ store: 'memory', pool }),
    directory: {
      source: async () => ({ config: { rate_limit: { events: 10_000, per_seconds: 1 } } }) as never,
    },
    now: () => new Date(),
    moved: (sourceId, events) => sourceId === source.id && moved.push(events),
  })
  await drain.run()
  assert.deepEqual(await waiting(source.id), [])
  assert.deepEqual(moved, [1_000, 1_000, 1_000])
  await server.settled()
  assert.equal((await eventsOf(server, source.id)).length, 3_001)
})

test('a clock that was a year ahead blocks no source after it is corrected', async t => {
  const limit = { events: 1, per_seconds: 1 }
  for (const store of ['postgres', 'memory'] as const) {
    const [node, other] = [1, 2].map(() => openBudgets({ store, pool: server.pool }))
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 365 * 86_400_000 })
    assert.equal(await node!.take('src_ahead', limit, 1), 1)
    t.mock.timers.reset()
    for (const budgets of [node!, other!])
      await eventually(`${store} to have budget again`, async () => (await budgets.take('src_ahead', limit, 1)) === 1)
  }
})

test('nodes that share budgets in PostgreSQL accept as much as one node, and lose nothing', async () => {
  const settings = { KONTOR_VOLUME_STORE: 'postgres' }
  const nodes: Runtime[] = []
  for (let i = 0; i < 2; i++) nodes.push(await startInboundNode(server, settings))
  try {
    const source = await makeSource(server, { rate_limit: perDay(50) })
    const answers = await Promise.all(
      range(0, 120).map(async n => {
        const response = await fetch(nodes[n % 2]!.url + source.path, {
          method: 'POST',
          headers: { authorization: `Bearer ${source.token}` },
          body: JSON.stringify(event(n)),
        })
        return (await response.json()) as { accepted: number; deferred: number }
      }),
    )
    const accepted = answers.reduce((sum, answer) => sum + answer.accepted, 0)
    const deferred = answers.reduce((sum, answer) => sum + answer.deferred, 0)
    assert.equal(accepted + deferred, 120)
    // A request that finds a waiting event queues, even if there are tokens left.
    assert.ok(accepted <= 50, `${accepted} of 50`)
    await server.admin.sources.update(source.id, { rate_limit: perDay(1000) })
    await drained(server, source.id)
    assert.equal((await eventsOf(server, source.id)).length, 120)
  } finally {
    for (const node of nodes) await node.close()
  }
})
