import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashOfSecret, kindOfKey, SCOPES } from '../../src/domain/tenants/keys.ts'
import { findKeyByHash } from '../../src/store/tenants/keys.ts'
import { openedAdmin } from './opened.ts'

const opened = await openedAdmin()
const { id: tenant } = await opened.admin.tenants.create({ name: 'acme' })

test('a private key has every scope unless told otherwise', async () => {
  const { keys } = opened.admin
  const all = await keys.create({ tenant, kind: 'private' })
  assert.equal(kindOfKey(all.key), 'private')
  assert.deepEqual(all.scopes, SCOPES)
  const some = await keys.create({ tenant: 'acme', kind: 'private', scopes: ['orders:read', 'orders:read'] })
  assert.deepEqual(some.scopes, ['orders:read'])
  assert.equal(some.tenant, tenant)
})

test('only a hash of the key is kept, and no list shows the key', async () => {
  const { key, id } = await opened.admin.keys.create({ tenant, kind: 'tracking' })
  assert.equal((await findKeyByHash(opened.pool, hashOfSecret(key)))?.id, id)
  const { rows } = await opened.pool.query('select row_to_json(k)::text as row from api_keys k')
  assert.ok(!JSON.stringify(rows).includes(key))
  const listed = await opened.admin.keys.list(tenant)
  assert.ok(listed.some(one => one.id === id))
  assert.ok(!JSON.stringify(listed).includes(key))
})

test('an admin key belongs to no tenant unless it is bound to one, and is listed apart', async () => {
  const { keys } = opened.admin
  const made = await keys.create({ kind: 'admin' })
  assert.equal(made.tenant, null)
  assert.deepEqual(made.scopes, [])
  assert.ok((await keys.list(null)).some(({ id }) => id === made.id))
  assert.ok(!(await keys.list(tenant)).some(({ id }) => id === made.id))
  assert.equal(made.role, 'admin')
  const bound = await keys.create({ kind: 'admin', tenant, role: 'operator' })
  assert.deepEqual([bound.tenant, bound.role], [tenant, 'operator'])
  for (const list of [await keys.list(null), await keys.list(tenant)])
    assert.ok(list.some(({ id }) => id === bound.id))
})

test('a revoked key stays revoked since the first time', async () => {
  const { keys } = opened.admin
  const { id } = await keys.create({ tenant, kind: 'private' })
  const first = await keys.revoke(id)
  assert.notEqual(first.revoked_at, null)
  assert.equal((await keys.revoke(id)).revoked_at, first.revoked_at)
  await assert.rejects(keys.revoke('key_unknown'), { kind: 'not_found', code: 'key_not_found' })
})

test('every fault of a request is named at once', async () => {
  const asked = { kind: 'secret', scopes: ['orders:read', 'orders:eat'], expires_at: 'tomorrow' }
  await assert.rejects(opened.admin.keys.create(asked), (error: unknown) => {
    const { faults } = error as { faults: { pointer: string }[] }
    assert.deepEqual(
      faults.map(({ pointer }) => pointer),
      ['/kind', '/tenant', '/scopes/1', '/expires_at'],
    )
    return true
  })
  await assert.rejects(opened.admin.keys.create({ kind: 'admin', role: 'root' }), { kind: 'invalid' })
  await assert.rejects(opened.admin.keys.create({ tenant, kind: 'private', role: 'viewer' }), {
    kind: 'invalid',
  })
  await assert.rejects(opened.admin.keys.create({ tenant, kind: 'tracking', scopes: ['orders:read'] }), {
    kind: 'invalid',
  })
  await assert.rejects(opened.admin.keys.create({ tenant, kind: 'private', scopes: [] }), { kind: 'invalid' })
  await assert.rejects(opened.admin.keys.create({ tenant, kind: 'private', expires_at: '2020-01-01' }), {
    kind: 'invalid',
  })
})

test('a key is not made for a tenant that is not there', async () => {
  await assert.rejects(opened.admin.keys.create({ tenant: 'nobody', kind: 'private' }), { kind: 'not_found' })
})

test('an expiry without a zone is UTC', async () => {
  const made = await opened.admin.keys.create({ tenant, kind: 'private', expires_at: '2999-01-31' })
  assert.equal(made.expires_at, '2999-01-31T00:00:00.000Z')
})

test('revoking a key tells what was made with it, at any remove, and ends that too when told', async () => {
  const as = (name: string) => opened.adminFor({ ...opened.actor, name })
  const thief = await opened.admin.keys.create({ kind: 'admin' })
  const second = await as(thief.id).keys.create({ kind: 'admin' })
  const third = await as(second.id).keys.create({ tenant, kind: 'private' })
  const source = await as(second.id).sources.create({ tenant, type: 'webhook' })
  const bystander = await opened.admin.keys.create({ tenant, kind: 'private' })
  const gone = await as(thief.id).keys.create({ tenant, kind: 'tracking' })
  await opened.admin.keys.revoke(gone.id)

  const first = await opened.admin.keys.revoke(thief.id)
  assert.equal(first.created_by, 'cli:test')
  assert.deepEqual(
    first.made.keys.map(({ id, revoked_at }) => [id, revoked_at]),
    [second, third].map(({ id }) => [id, null]),
  )
  assert.deepEqual(first.made.sources, [{ id: source.id, tenant, name: 'webhook', enabled: true }])

  const again = await opened.admin.keys.revoke(thief.id, { withMade: true })
  assert.equal(again.revoked_at, first.revoked_at)
  assert.equal(again.made.keys.filter(({ revoked_at }) => revoked_at !== null).length, 2)
  assert.equal((await opened.admin.sources.show(source.id)).enabled, false)
  const live = (await opened.admin.keys.list(tenant)).filter(({ revoked_at }) => revoked_at === null)
  assert.ok(live.some(({ id }) => id === bystander.id))
  assert.ok(!live.some(({ id }) => id === third.id))
  assert.deepEqual((await opened.admin.keys.revoke(thief.id)).made, { keys: [], sources: [] })
})
