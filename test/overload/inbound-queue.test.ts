import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inTransaction } from '../../src/postgres/database.ts'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { startServer } from '../server.ts'

test('webhooks take part in the fair queue: while a tenant floods, its own wait, and its neighbor is answered', async t => {
  const server = await startServer({ KONTOR_OPS_PORT: '0' })
  t.after(server.close)
  const neighbor = await server.anotherTenant('neighbor')
  const flooding = await makeSource(server)
  const quiet = await makeSource(server, { tenant: neighbor.id })
  const post = async ({ post }: typeof quiet, id: string) =>
    (await post({ inbound_event_id: id, event_type: 'x', payload: {} })).status
  const waiting = async () => {
    const text = await (await fetch(`${server.opsUrl}/metrics`)).text()
    return Number(/^kontor_turns_waiting_requests (\d+)$/m.exec(text)![1])
  }
  assert.equal(await post(quiet, 'first'), 200)
  const answers: Promise<number>[] = []
  await inTransaction(server.pool, async client => {
    // No write ends, so every request keeps its place.
    await client.query('lock table log in exclusive mode')
    answers.push(post(quiet, 'second'))
    for (let i = 0; i < 100; i++) answers.push(post(flooding, `flood ${i}`))
    await eventually('webhooks to wait in the queue', async () => (await waiting()) > 0, { withinMs: 8_000 })
  })
  assert.deepEqual([...new Set(await Promise.all(answers))], [200])
  await eventually('the queue to be empty', async () => (await waiting()) === 0)
})
