import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../eventually.ts'
import { type Api, openApi } from './api.ts'

let api: Api
before(async () => {
  api = await openApi()
})
after(() => api.close())

const isInstant = (text: string) => new Date(text).toISOString() === text

/** Blocks the workers while `work` runs. */
async function whileBlocked<T>(work: () => Promise<T>): Promise<T> {
  const client = await api.server.pool.connect()
  try {
    await client.query('begin')
    await client.query('lock table records in access exclusive mode')
    return await work()
  } finally {
    await client.query('rollback')
    client.release()
  }
}

test('an operation is queued, then applied', async () => {
  const [location, accepted] = await whileBlocked(async () => {
    const answer = await api.write('contact', { id: 'c-1' })
    const path = answer.headers.get('location')!
    const queued = await api.get(path)
    assert.equal(queued.status, 200)
    const { acceptedAt, ...rest } = queued.body
    assert.deepEqual(rest, {
      operationId: answer.body.operationId,
      status: 'queued',
      entityType: 'contact',
      id: 'c-1',
      appliedAt: null,
      error: null,
    })
    assert.ok(isInstant(acceptedAt))
    return [path, acceptedAt]
  })
  await api.server.settled()
  const { appliedAt, ...rest } = (await api.get(location)).body
  assert.deepEqual(rest, {
    operationId: location.split('/').at(-1),
    status: 'applied',
    entityType: 'contact',
    id: 'c-1',
    acceptedAt: accepted,
    error: null,
  })
  assert.ok(isInstant(appliedAt))
})

test('a write that is older than the stored version is superseded', async () => {
  await api.write('order', { id: 'o', sourceUpdatedAt: '2026-05-02' })
  const older = await api.write('order', { id: 'o', sourceUpdatedAt: '2026-05-01' })
  await api.server.settled()
  const { status, error, appliedAt } = (await api.get(older.headers.get('location')!)).body
  assert.equal(status, 'superseded')
  assert.equal(error, null)
  assert.ok(isInstant(appliedAt))
})

test('an unknown operation is 404', async () => {
  const answer = await api.write('order', { id: 'known' })
  const id: string = answer.body.operationId
  const others = [
    'nope',
    '1',
    id.replace(/.$/, '1'),
    `${id}0`,
    id.toUpperCase(),
    '00000000-0000-0000-0000-000000000000',
  ]
  for (const other of others) {
    const { status, body } = await api.get(`/v1/operations/${other}`)
    if (other === id.toUpperCase() && status === 200) continue
    assert.equal(status, 404, other)
    assert.equal(body.code, 'not_found')
  }
})

test("another tenant's operation is the same 404, queued or done", async () => {
  const other = await api.server.anotherTenant('curious')
  const { privateKey } = other
  const unknown = await api.get('/v1/operations/019c1234-5678-7000-8abc-def012300000', { key: privateKey })
  const path = await whileBlocked(async () => {
    const location = (await api.write('order', { id: 'mine' })).headers.get('location')!
    assert.equal((await api.get(location, { key: privateKey })).status, 404)
    return location
  })
  await api.server.settled()
  const done = await api.get(path, { key: privateKey })
  assert.equal(done.status, 404)
  // Only the id of the request differs.
  const facts = ({ type, title, detail, code }: Record<string, string>) => {
    return { type, title, code, detail: detail!.replace(/"[0-9a-f-]+"/, 'ID') }
  }
  assert.deepEqual(facts(done.body), facts(unknown.body))
})

test("an operation can be read with its entity's read or write scope", async () => {
  const location = (await api.write('contact', { id: 'scoped' })).headers.get('location')!
  const keyWith = async (...scopes: string[]) =>
    (await api.server.admin.keys.create({ tenant: api.server.tenant.id, kind: 'private', scopes })).key
  for (const scope of ['contacts:read', 'contacts:write']) {
    assert.equal((await api.get(location, { key: await keyWith(scope) })).status, 200, scope)
  }
  const refused = await api.get(location, { key: await keyWith('orders:read', 'orders:write') })
  assert.equal(refused.status, 403)
  assert.equal(refused.body.code, 'insufficient_scope')
  assert.match(refused.body.detail, /contacts:read/)
  assert.match(refused.body.detail, /contacts:write/)
})

test('an operation that could not be applied is failed, has a reason without internal details, and can be replayed', async () => {
  const { pool, admin } = api.server
  // No request over HTTP is known to fail here, so a trigger makes one id fail.
  await pool.query(`create function refuse() returns trigger language plpgsql as $$
    begin
      if new.id = 'poison' then raise exception 'constraint "secret_table" refuses'; end if;
      return new;
    end $$`)
  await pool.query('create trigger refuse before insert on records for each row execute function refuse()')
  const answer = await api.write('order', { id: 'poison', data: { v: 1 } })
  const location = answer.headers.get('location')!
  const behind = await api.write('order', { id: 'fine' })
  assert.equal((await api.get(behind.headers.get('location')!)).status, 200)
  // During retries it is queued. The retries are made due now.
  await eventually('the last attempt to fail', async () => {
    await pool.query('update parked_entries set next_attempt_at = now() where next_attempt_at > now()')
    return (await api.get(location)).body.status !== 'queued'
  })
  const failed = (await api.get(location)).body
  assert.equal(failed.status, 'failed')
  assert.equal(failed.id, 'poison')
  assert.equal(failed.appliedAt, null)
  assert.equal(typeof failed.error, 'string')
  assert.doesNotMatch(failed.error, /secret_table|select|insert|\/src\//i)
  assert.equal((await api.record('order', 'fine')).id, 'fine')

  await pool.query('drop trigger refuse on records')
  const replayed = await admin.deadLetters.replay({ id: answer.body.operationId })
  assert.deepEqual([replayed.replayed, replayed.remaining], [1, 0])
  await api.server.settled()
  assert.equal((await api.get(location)).body.status, 'applied')
  assert.deepEqual((await api.record('order', 'poison')).data, { v: 1 })
})
