import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Runtime } from '../../src/runtime/runtime.ts'
import { openWire } from '../events/wire.ts'
import { eventually } from '../eventually.ts'
import { type OwnServer, startServer } from '../server.ts'
import { startInboundNode } from './node.ts'
import { drained, eventsOf, makeSource, signed } from './source.ts'

let server: OwnServer
let wire: Awaited<ReturnType<typeof openWire>>
/** A second node on the same database, over a connection that can be interrupted. */
let node: Runtime

before(async () => {
  server = await startServer()
  const url = new URL(server.databaseUrl)
  wire = await openWire({ host: url.hostname, port: Number(url.port) })
  url.port = String(wire.port)
  node = await startInboundNode(server, { DATABASE_URL: url.href })
})
after(async () => {
  await node.close()
  await wire.close()
  await server.close()
})

type Source = Awaited<ReturnType<typeof makeSource>>

async function send(source: Source, id: string, token = source.token) {
  const body = JSON.stringify({ inbound_event_id: id, event_type: 'x', payload: {} })
  const headers: Record<string, string> = { authorization: `Bearer ${token}` }
  if (source.signing_secret) headers['x-service-signature'] = signed(source.signing_secret, body)
  const response = await fetch(node.url + source.path, { method: 'POST', headers, body })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

test('while storage is unavailable: 503 with Retry-After, never 401 or 404; afterwards nothing is lost', async () => {
  const known = await makeSource(server, { signing_secret: 'generate' })
  const uncached = await makeSource(server)
  const full = await makeSource(server, { rate_limit: { events: 1, per_seconds: 60 } })
  const dropping = await makeSource(server, { rate_limit: { events: 1, per_seconds: 60 }, overflow: 'drop' })
  for (const source of [known, full, dropping]) assert.equal((await send(source, 'first')).status, 200)

  wire.cut()
  for (const source of [known, uncached, full, dropping]) {
    const answer = await send(source, 'second')
    assert.equal(answer.status, 503, answer.text)
    assert.match(answer.headers.get('retry-after')!, /^[1-9]\d*$/)
    assert.doesNotMatch(answer.text, /ECONN|select|insert|127\.0\.0\.1|\.ts/)
  }

  wire.reconnect()
  for (const source of [known, uncached, full, dropping]) {
    const answer = await eventually('storage to recover', async () => {
      const answer = await send(source, 'second')
      return answer.status !== 503 && answer
    })
    assert.equal(answer.status, 200)
  }
  assert.equal((await send(known, 'third', 'tok_wrong')).status, 401)
  await server.admin.sources.update(full.id, { rate_limit: { events: 100, per_seconds: 60 } })
  await drained(server, full.id)
  for (const source of [known, full])
    assert.deepEqual((await eventsOf(server, source.id)).map(event => event.inbound_event_id).sort(), [
      'first',
      'second',
    ])
})
