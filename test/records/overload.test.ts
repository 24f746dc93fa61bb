import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Api, openApi } from './api.ts'

let api: Api
before(async () => {
  api = await openApi({ KONTOR_MAX_PENDING_BYTES: '1MiB' })
})
after(() => api.close())

test('requests beyond the memory limit get 503 with Retry-After immediately, and are not applied; the others are', async () => {
  const client = await api.server.pool.connect()
  await client.query('begin')
  await client.query('lock table log in access exclusive mode')
  const data = { text: 'x'.repeat(400_000) }
  const sent = [1, 2, 3, 4, 5].map(async i => {
    const given = { headers: { 'x-idempotency-key': `key-${i}` } }
    return { i, given, answer: await api.write('order', { id: `o-${i}`, data }, given) }
  })
  // Nothing can become durable now, so the first response is a rejection.
  const shed = await Promise.race(sent)
  assert.equal(shed.answer.status, 503)
  assert.equal(shed.answer.body.code, 'overloaded')
  assert.match(shed.answer.headers.get('retry-after')!, /^[1-9]\d*$/)

  await client.query('rollback')
  client.release()
  const all = await Promise.all(sent)
  assert.ok(all.some(({ answer }) => answer.status === 202))
  for (const { i, answer } of all) {
    assert.equal((await api.record('order', `o-${i}`)) !== null, answer.status === 202)
  }
  // The rejection did not consume the key.
  assert.equal((await api.write('order', { id: `o-${shed.i}`, data }, shed.given)).status, 202)
  assert.equal((await api.record('order', `o-${shed.i}`)).id, `o-${shed.i}`)
})
