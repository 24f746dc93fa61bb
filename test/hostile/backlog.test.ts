import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { pino } from 'pino'
import { startWorkers, type Workers } from '../../src/runtime/workers.ts'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { type OwnServer, startServer } from '../server.ts'

const MAX = 1_000

let server: OwnServer
let workers: Workers | null = null
before(async () => {
  server = await startServer({
    KONTOR_SURFACES: 'data,events,inbound',
    KONTOR_MAX_BACKLOG: String(MAX),
    KONTOR_OPS_PORT: '0',
  })
})
after(async () => {
  await workers?.stop()
  await server.close()
})

const post = (path: string, key: string, body: object) =>
  server.request(path, { method: 'POST', key, body: JSON.stringify(body) })
const track = (n: number) => post('/v1/track', server.tenant.trackingKey, { event_type: 'seen', user_id: String(n) })
const opsText = async (path: string) => (await fetch(server.opsUrl! + path)).text()

test('with a full backlog writes are rejected and reads are served; accepted entries are processed', async () => {
  const { privateKey, trackingKey } = server.tenant
  const source = await makeSource(server, {})
  // No worker runs. Not all at once, because requests in flight when the limit is reached are still accepted.
  let accepted = 0
  await eventually('a limit', async () => {
    assert.ok(accepted < MAX + 100, 'more was accepted than the limit and what was on its way')
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => track(accepted + i)))
    const taken = answers.filter(({ status }) => status === 200).length
    const refused = answers.filter(({ status }) => status === 503).length
    assert.equal(taken + refused, 50)
    accepted += taken
    // Entries appended during a count may be counted twice until the next count.
    return refused === 50 && accepted >= MAX
  })

  const id = 'p-1'
  const product = { entityType: 'product', id, sourceUpdatedAt: '2026-01-01T00:00:00Z', data: { sku: id } }
  for (const [path, key, body] of [
    ['/v1/track', trackingKey, { event_type: 'seen' }],
    ['/v1/batch', trackingKey, { batch: [{ type: 'track', event: 'seen', userId: 'u' }] }],
    [source.path, source.token, { event_type: 'seen' }],
    ['/v1/products', privateKey, product],
    ['/v1/products/batch', privateKey, { items: [product] }],
  ] as [string, string, object][]) {
    const { status, headers, body: problem } = await post(path, key, body)
    assert.deepEqual([path, status, problem.code], [path, 503, 'backlog_full'])
    assert.match(headers.get('retry-after') ?? '', /^\d+$/)
  }
  assert.equal((await server.request('/v1/products', { key: privateKey })).status, 200)
  const metrics = await opsText('/metrics')
  assert.equal(Number(/^kontor_backlog_entries (\d+)$/m.exec(metrics)?.[1]) >= MAX, true)
  assert.match(metrics, /^kontor_backlog_limit_entries 1000$/m)
  assert.match(await opsText('/readyz'), /KONTOR_MAX_BACKLOG is 1,000: writes are answered with 503/)

  const connection = { url: server.databaseUrl }
  workers = await startWorkers(
    { connection, nats: null, workers: 2, eventsFloorMs: null, eventsRetentionMs: null },
    { logger: pino({ level: 'silent' }), onAppend: server.log.onAppend },
  )
  await eventually('something being taken in again', async () => (await track(accepted)).status === 200)
  assert.equal((await post('/v1/products', privateKey, product)).status, 202)
  await server.settled()
  const { rows } = await server.pool.query('select count(*) from events')
  assert.equal(rows[0].count, accepted + 1)
})
