import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../eventually.ts'
import { startPooler } from '../pooler.ts'
import { startServer } from '../server.ts'

test('everything works behind a transaction pooler, and a revoked key is rejected', async t => {
  const server = await startServer()
  const pooler = await startPooler(t, server.databaseUrl)
  t.after(async () => {
    await server.restart()
    await pooler?.stop()
    await server.close()
  })
  if (!pooler) return
  await server.restart(pooler.url)
  const { privateKey, trackingKey } = server.tenant

  const writes = Array.from({ length: 60 }, (_, i) =>
    server.request('/v1/contacts', {
      method: 'POST',
      key: privateKey,
      headers: { 'x-idempotency-key': `key-${i % 50}` },
      body: JSON.stringify({
        entityType: 'contact',
        id: `c-${i % 50}`,
        sourceUpdatedAt: '2026-01-01T00:00:00Z',
      }),
    }),
  )
  const events = Array.from({ length: 60 }, (_, i) =>
    server.request('/v1/track/', {
      method: 'POST',
      key: trackingKey,
      body: JSON.stringify({ event_type: 'page_view', visitor: `v-${i % 7}`, event_id: `e-${i % 40}` }),
    }),
  )
  const statuses = (await Promise.all(writes)).map(answer => answer.status)
  assert.equal(statuses.filter(status => status === 202).length, 50)
  assert.equal(statuses.filter(status => status === 200).length, 10)
  assert.ok((await Promise.all(events)).every(answer => answer.status === 200))
  await server.settled()

  const listed = await server.request('/v1/events?limit=100', { key: privateKey })
  assert.equal(listed.body.results.length, 40)
  assert.equal((await server.request('/v1/contacts/c-49', { key: privateKey })).status, 200)

  const [key] = (await server.admin.keys.list(server.tenant.id)).filter(candidate => candidate.kind === 'private')
  await server.admin.keys.revoke(key!.id)
  // Notifications do not pass the pooler: the node has to poll.
  await eventually(
    'the revoked key to be refused',
    async () => (await server.request('/v1/contacts/c-1', { key: privateKey })).status === 401,
  )
})
