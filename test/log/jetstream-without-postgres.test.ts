import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Runtime } from '../../src/runtime/runtime.ts'
import { startNode } from '../events/node.ts'
import { openWire } from '../events/wire.ts'
import { eventually } from '../eventually.ts'
import { drained, makeSource } from '../inbound/source.ts'
import { type TestNats, testNats, withoutNats } from '../nats.ts'
import { type OwnServer, startServer } from '../server.ts'

// A request that waits for PostgreSQL takes 30 s. Others take well under 2 s, but not on a busy machine.
const ANSWERED_WITHIN_MS = 15_000

describe('on JetStream, while PostgreSQL hangs or is gone', { skip: withoutNats }, () => {
  let nats: TestNats
  let server: OwnServer
  let wire: Awaited<ReturnType<typeof openWire>>
  let nodes: Runtime[]

  before(async () => {
    nats = await testNats()
    const settings = { NATS_URL: nats.url, KONTOR_VOLUME_STORE: 'postgres' }
    server = await startServer(settings)
    const url = new URL(server.databaseUrl)
    wire = await openWire({ host: url.hostname, port: Number(url.port) })
    url.port = String(wire.port)
    nodes = []
    for (let i = 0; i < 2; i++) nodes.push(await startNode(server, 'events,inbound', url.href, settings))
  })
  after(async () => {
    wire?.reconnect()
    for (const node of nodes ?? []) await node.close()
    await wire?.close()
    await server?.close()
    await nats?.end()
  })

  async function post(node: Runtime, path: string, key: string, body: object, deadline?: AbortSignal) {
    const response = await fetch(node.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: deadline ?? null,
    })
    return { path, status: response.status, text: await response.text() }
  }
  const webhook = (type: string, id: string) => ({ inbound_event_id: id, event_type: type, payload: {} })
  async function idsOf(type: string): Promise<string[]> {
    const { rows } = await server.pool.query<{ id: string }>(
      'select inbound_event_id as id from events where event_type = $1 order by 1',
      [type],
    )
    return rows.map(({ id }) => id)
  }

  for (const outage of ['freeze', 'cut'] as const)
    test(`known keys and sources are answered 200 on every node (${outage})`, async t => {
      t.after(() => wire.reconnect())
      const limited = await server.admin.keys.create({
        ...{ tenant: server.tenant.id, kind: 'tracking' },
        rate_limit: { events: 1_000, per_seconds: 60 },
      })
      const roomy = await makeSource(server)
      const narrow = await makeSource(server, { rate_limit: { events: 2, per_seconds: 3_600 } })
      const dropping = await makeSource(server, {
        ...{ rate_limit: { events: 2, per_seconds: 3_600 }, overflow: 'drop' },
      })
      const sources = [roomy, narrow, dropping]
      const type = `during ${outage}`
      for (const [n, node] of nodes.entries()) {
        for (const source of sources)
          await eventually('the node to know the source', async () => {
            const { status } = await post(node, source.path, source.token, webhook('before', `${outage} ${n}`))
            return status === 200
          })
        for (const key of [limited.key, server.tenant.trackingKey])
          assert.equal((await post(node, '/v1/track', key, { event_type: 'before' })).status, 200)
      }
      // A change makes every node read again what it has cached.
      await server.anotherTenant(`created before ${outage}`)

      wire[outage]()
      const inTime = AbortSignal.timeout(ANSWERED_WITHIN_MS)
      const sent = nodes.flatMap((node, n) =>
        Array.from({ length: 6 }, (_, i) => i).flatMap(i => [
          ...sources.map(source => {
            const event = webhook(type, `${source.id} ${n} ${i}`)
            return post(node, source.path, source.token, event, inTime)
          }),
          post(node, '/v1/track', limited.key, { event_type: type, event_id: `limited ${outage} ${n} ${i}` }, inTime),
          post(
            node,
            '/v1/batch',
            server.tenant.trackingKey,
            { batch: [{ type: 'track', event: type, messageId: `cdp ${outage} ${n} ${i}` }] },
            inTime,
          ),
        ]),
      )
      const answers = await Promise.all(sent)
      assert.deepEqual(
        answers.filter(({ status }) => status !== 200),
        [],
      )
      const unknown = await post(
        nodes[0]!,
        '/v1/track',
        limited.key.replace(/.$/, last => (last === 'x' ? 'y' : 'x')),
        { event_type: type },
      )
      assert.ok([401, 503].includes(unknown.status), unknown.text)

      wire.cut()
      wire.reconnect()
      await server.admin.sources.update(narrow.id, { rate_limit: { events: 1_000, per_seconds: 1 } })
      await server.settled()
      await drained(server, narrow.id)
      const ids = await idsOf(type)
      assert.equal(new Set(ids).size, ids.length)
      for (const name of [roomy.id, narrow.id, 'limited', 'cdp'])
        assert.equal(ids.filter(id => id.startsWith(name)).length, 2 * 6, name)
      const dropped = 2 * 6 - ids.filter(id => id.startsWith(dropping.id)).length
      assert.ok(dropped > 0, 'the local share of the budget is limited')
      await eventually('receipts of the dropped events', async () => {
        const { rows } = await server.pool.query(
          `select from receipts where source_id = $1 and outcome = 'dropped' and inbound_event_id like '% % %'`,
          [dropping.id],
        )
        return rows.length === dropped
      })
    })
})
