import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Runtime } from '../../src/runtime/runtime.ts'
import { eventually } from '../eventually.ts'
import { type OwnServer, startServer } from '../server.ts'
import { startNode } from './node.ts'
import { json, rowsOf } from './rows.ts'
import { openWire } from './wire.ts'

let server: OwnServer
let wire: Awaited<ReturnType<typeof openWire>>
/** A second node on the same database, over a connection that can be interrupted. */
let node: Runtime

before(async () => {
  server = await startServer()
  const url = new URL(server.databaseUrl)
  wire = await openWire({ host: url.hostname, port: Number(url.port) })
  url.port = String(wire.port)
  node = await startNode(server, 'data,events', url.href)
})
after(async () => {
  await node.close()
  await wire.close()
  await server.close()
})

async function send(path: string, key: string, body: object) {
  const response = await fetch(node.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: json(body),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Problem }
}

type Problem = { code?: string; detail?: string }

test('while storage is unavailable: 503 with Retry-After, never 401, whether the key is cached or not', async () => {
  const uncached = await server.anotherTenant('never seen by this node')
  const { trackingKey, privateKey } = server.tenant
  assert.equal((await send('/v1/track/', trackingKey, { event_type: 'before', event_id: 'b' })).status, 200)

  wire.cut()
  const tries: [string, string, object][] = [
    ['/v1/track/', trackingKey, { event_type: 'during', event_id: 'd' }],
    ['/v1/batch', trackingKey, { batch: [{ type: 'page', messageId: 'p' }] }],
    ['/v1/track/', uncached.trackingKey, { event_type: 'during' }],
    ['/v1/batch', uncached.trackingKey, { batch: [{ type: 'page' }] }],
  ]
  for (const [path, key, body] of tries) {
    const answer = await send(path, key, body)
    assert.equal(answer.status, 503, `${path} ${answer.body.code}`)
    assert.match(answer.headers.get('retry-after')!, /^[1-9]\d*$/)
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    assert.doesNotMatch(json(answer.body), /ECONN|select|insert|127\.0\.0\.1|\.ts/)
  }
  for (const path of ['/v1/events', '/v1/conversions', '/v1/events/lookup?event_id=b']) {
    for (const key of [privateKey, uncached.privateKey]) {
      const response = await fetch(node.url + path, { headers: { authorization: `Bearer ${key}` } })
      assert.equal(response.status, 503, path)
      assert.match(response.headers.get('retry-after')!, /^[1-9]\d*$/)
    }
  }

  wire.reconnect()
  // the senders retry after Retry-After
  for (const [path, key, body] of tries.slice(0, 3)) {
    const answer = await eventually('storage to recover', async () => {
      const answer = await send(path, key, body)
      return answer.status !== 503 && answer
    })
    assert.equal(answer.status, 200, path)
  }
  assert.deepEqual((await rowsOf(server, 'events')).map(row => row.event_type).sort(), ['before', 'during', 'page'])
})

test('requests beyond the memory limit get 503; every request that got 200 is stored', async () => {
  const busy = await startServer({ KONTOR_MAX_PENDING_BYTES: '1MiB', KONTOR_POOL_SIZE: '2' })
  try {
    const body = (n: number) => json({ event_type: 'big', event_id: `e-${n}`, data: { fill: 'x'.repeat(60_000) } })
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        busy.request('/v1/track/', { method: 'POST', key: busy.tenant.trackingKey, body: body(n) }),
      ),
    )
    const taken = answers.flatMap(({ status }, n) => (status === 200 ? [`e-${n}`] : []))
    const refused = answers.filter(({ status }) => status !== 200)
    assert.ok(taken.length > 0 && refused.length > 0, `${taken.length} taken`)
    for (const { status, headers, body } of refused) {
      assert.equal(status, 503)
      assert.equal(body.code, 'overloaded')
      assert.match(headers.get('retry-after')!, /^[1-9]\d*$/)
    }
    assert.deepEqual((await rowsOf(busy, 'events')).map(row => row.inbound_event_id).sort(), taken.sort())
  } finally {
    await busy.close()
  }
})

test('lock timeouts, statement timeouts, deadlocks and serialization failures get 503 with Retry-After', async () => {
  const own = await startServer()
  try {
    await own.pool.query(
      `create function fail_as_set() returns trigger language plpgsql as $$ begin
         raise exception 'failed on purpose' using errcode = current_setting('kontor.fail_as');
       end $$;
       create trigger fail_as_set before insert on log for each row execute function fail_as_set()`,
    )
    const product = { entityType: 'product', id: 'p', sourceUpdatedAt: '2026-01-01T00:00:00Z', data: {} }
    for (const code of ['55P03', '57014', '40P01', '40001']) {
      await own.pool.query(
        `alter database ${new URL(own.databaseUrl).pathname.slice(1)} set kontor.fail_as = '${code}'`,
      )
      await own.restart()
      for (const [path, key, body] of [
        ['/v1/products', own.tenant.privateKey, product],
        ['/v1/track', own.tenant.trackingKey, { event_type: 'x' }],
      ] as const) {
        const answer = await own.request(path, { method: 'POST', key, body: json(body) })
        assert.equal(answer.status, 503, `${code} ${path}`)
        assert.match(answer.headers.get('retry-after')!, /^[1-9]\d*$/)
      }
    }
  } finally {
    await own.close()
  }
})
