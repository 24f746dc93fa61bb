import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { waitSeconds } from '../../src/http/wait.ts'
import { eventually } from '../eventually.ts'
import { type Answer, type Api, aRecord, openApi } from './api.ts'

let api: Api
before(async () => {
  api = await openApi()
})
after(() => api.close())

const waiting = (seconds: number | string) => ({ headers: { prefer: `wait=${seconds}` } })

test('with Prefer: wait, the 202 is sent when the change is applied, with its status', async () => {
  const answer = await api.write('contact', { id: 'c' }, waiting(10))
  assert.equal(answer.status, 202)
  assert.equal(answer.body.status, 'applied')
  assert.equal(answer.headers.get('preference-applied'), 'wait=10')
  assert.equal((await api.get('/v1/contacts/c')).status, 200)
  const removed = await api.remove('contact', { id: 'c', sourceUpdatedAt: '2026-03-01' }, waiting(10))
  assert.equal(removed.body.status, 'applied')
  assert.equal((await api.get('/v1/contacts/c')).status, 404)
})

test('a superseded change is reported too', async () => {
  await api.write('contact', { id: 'late', sourceUpdatedAt: '2026-03-02' }, waiting(10))
  const late = await api.write('contact', { id: 'late', sourceUpdatedAt: '2026-03-01' }, waiting(10))
  assert.equal(late.status, 202)
  assert.equal(late.body.status, 'superseded')
})

test('without the header there is no status and no wait', async () => {
  const answer = await api.write('contact', { id: 'none' })
  assert.equal('status' in answer.body, false)
  assert.equal(answer.headers.get('preference-applied'), null)
})

test('when the time is up, the change is accepted with the status queued', async () => {
  const client = await api.server.pool.connect()
  await client.query('begin')
  await client.query('lock table records in access exclusive mode')
  const answer = await api.write('contact', { id: 'slow' }, waiting(0))
  const waited = await api.write('contact', { id: 'slow' }, waiting(1))
  await client.query('rollback')
  client.release()
  for (const { status, body } of [answer, waited]) {
    assert.equal(status, 202)
    assert.equal(body.status, 'queued')
  }
  assert.equal((await api.record('contact', 'slow')).id, 'slow')
})

test('many concurrent waits each get their own result', async () => {
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, i) => api.write('contact', { id: `many-${i}` }, waiting(10))),
  )
  for (const { body } of answers) assert.equal(body.status, 'applied')
})

test('a request that waits for the pipeline holds no slot of the fair queue: later requests are answered first, also of other tenants', async () => {
  const neighbor = await api.server.anotherTenant('neighbor')
  const client = await api.server.pool.connect()
  await client.query('begin')
  await client.query('lock table records in access exclusive mode')
  const answered: Answer[] = []
  const keep = async (answer: Promise<Answer>) => void answered.push(await answer)
  const waiters = Array.from({ length: 60 }, (_, i) => keep(api.write('contact', { id: `waits-${i}` }, waiting(10))))
  const records = [aRecord('contact', { id: 'waits in a batch' })]
  waiters.push(keep(api.post('/v1/contacts/batch', { records }, waiting(10))))
  try {
    await api.write('contact', { id: 'beside' }, { key: neighbor.privateKey })
    await api.write('contact', { id: 'after' })
    assert.deepEqual(answered, [])
  } finally {
    await client.query('rollback')
    client.release()
    await Promise.all(waiters)
  }
  for (const { status } of answered) assert.equal(status, 202)
})

const headers: [text: string | undefined, seconds: number | null][] = [
  [undefined, null],
  ['wait=5', 5],
  ['wait=0', 0],
  ['respond-async, wait=3', 3],
  ['respond-async; wait=3', 3],
  ['WAIT = "7"', 7],
  ['wait=10', 10],
  ['wait=11', 10],
  ['wait=99999', 10],
  ['wait=-1', null],
  ['wait=1.5', null],
  ['wait', null],
  ['await=5', null],
  ['return=minimal', null],
]

test('the header is parsed as in RFC 7240, and the maximum is ten seconds', () => {
  for (const [text, seconds] of headers) assert.equal(waitSeconds(text), seconds, text)
})

test('a read with Prefer: wait waits for an entry that is retried, also while the tenant sends more', async () => {
  const { pool, url, tenant } = api.server
  const client = await pool.connect()
  await client.query('begin')
  await client.query('select from log_cursors for update')
  await pool.query(
    `insert into parked_entries (partition, id, tenant_id, kind, ordering_key, received_at, context, body, attempts, next_attempt_at)
     select 'postgres/0', gen_random_uuid(), id, 'events', 'k', now() - interval '1 minute', '{}', '{}', 1, now() + interval '1 hour'
     from tenants where name = $1`,
    [tenant.name],
  )
  let isAnswered = false
  const read = api.get('/v1/events', waiting(10)).finally(() => {
    isAnswered = true
  })
  // Entries that are received later than the request, also by the clock of a node that is ahead.
  const begin = Date.now()
  await eventually('later entries to be accepted', async () => {
    const body = JSON.stringify({ event_type: 'later' })
    const sent = await fetch(`${url}/v1/track/?key=${tenant.trackingKey}`, { method: 'POST', body })
    assert.equal(sent.status, 200)
    return isAnswered || Date.now() > begin + 2_000
  })
  assert.equal(isAnswered, false)
  await pool.query('delete from parked_entries')
  await client.query('rollback')
  client.release()
  assert.equal((await read).status, 200)
})

test('a read with Prefer: wait contains what the tenant sent before, and when the time is up it is answered without', async () => {
  const { pool, url, tenant } = api.server
  const client = await pool.connect()
  await client.query('begin')
  await client.query('select from log_cursors for update')
  const sent = await fetch(`${url}/v1/track/?key=${tenant.trackingKey}`, {
    method: 'POST',
    body: JSON.stringify({ event_type: 'waited_for', visitor: 'v' }),
  })
  assert.equal(sent.status, 200)
  const list = '/v1/events?event_type=waited_for'
  const early = await api.get(list, waiting(1))
  const late = api.get(list, waiting(10))
  await client.query('rollback')
  client.release()
  assert.deepEqual(early.body.results, [])
  assert.equal(early.headers.get('preference-applied'), 'wait=1')
  assert.equal((await late).body.results.length, 1)
})
