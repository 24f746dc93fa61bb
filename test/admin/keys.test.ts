import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KeyView } from '../../src/admin/keys.ts'
import { hashOfSecret, kindOfKey, SCOPES } from '../../src/domain/tenants/keys.ts'
import { DAY_MS } from '../../src/domain/time.ts'
import { findKeyByHash } from '../../src/store/tenants/keys.ts'
import { openedAdmin } from './opened.ts'

const opened = await openedAdmin()
const { id: tenant } = await opened.admin.tenants.create({ name: 'acme' })

test('a private key has all scopes by default', async () => {
  const { keys } = opened.admin
  const all = await keys.create({ tenant, kind: 'private' })
  assert.equal(kindOfKey(all.key), 'private')
  assert.deepEqual(all.scopes, SCOPES)
  const some = await keys.create({ tenant: 'acme', kind: 'private', scopes: ['orders:read', 'orders:read'] })
  assert.deepEqual(some.scopes, ['orders:read'])
  assert.equal(some.tenant, tenant)
})

test('only a hash of the key is stored, and no list shows the key', async () => {
  const { key, id } = await opened.admin.keys.create({ tenant, kind: 'tracking' })
  assert.equal((await findKeyByHash(opened.pool, hashOfSecret(key)))?.id, id)
  const { rows } = await opened.pool.query('select row_to_json(k)::text as row from api_keys k')
  assert.ok(!JSON.stringify(rows).includes(key))
  const listed = await opened.admin.keys.list(tenant)
  assert.ok(listed.some(listedKey => listedKey.id === id))
  assert.ok(!JSON.stringify(listed).includes(key))
})

test('a key has the name that says what it is for, also after a rotation', async () => {
  const { keys } = opened.admin
  const { id, name } = await keys.create({ tenant, kind: 'private', name: ' Warehouse export ' })
  assert.equal(name, 'Warehouse export')
  assert.equal((await keys.list(tenant)).find(key => key.id === id)!.name, 'Warehouse export')
  assert.equal((await keys.rotate(id)).name, 'Warehouse export')
  await assert.rejects(keys.create({ tenant, kind: 'private', name: 'x'.repeat(101) }), /Invalid value/)
  assert.equal((await keys.create({ tenant, kind: 'private' })).name, null)
})

test('an admin key belongs to no tenant unless it is bound to one, and is listed separately', async () => {
  const { keys } = opened.admin
  const created = await keys.create({ kind: 'admin' })
  assert.equal(created.tenant, null)
  assert.deepEqual(created.scopes, [])
  assert.ok((await keys.list(null)).some(({ id }) => id === created.id))
  assert.ok(!(await keys.list(tenant)).some(({ id }) => id === created.id))
  assert.equal(created.role, 'admin')
  const bound = await keys.create({ kind: 'admin', tenant, role: 'operator' })
  assert.deepEqual([bound.tenant, bound.role], [tenant, 'operator'])
  for (const list of [await keys.list(null), await keys.list(tenant)]) assert.ok(list.some(({ id }) => id === bound.id))
})

test('revoking a key again keeps the first time of revocation', async () => {
  const { keys } = opened.admin
  const { id } = await keys.create({ tenant, kind: 'private' })
  const first = await keys.revoke(id)
  assert.notEqual(first.revoked_at, null)
  assert.equal((await keys.revoke(id)).revoked_at, first.revoked_at)
  await assert.rejects(keys.revoke('key_unknown'), { kind: 'not_found', code: 'key_not_found' })
})

test('all validation errors of a request are reported together', async () => {
  const asked = { kind: 'secret', scopes: ['orders:read', 'orders:eat'], expires_at: 'tomorrow' }
  await assert.rejects(opened.admin.keys.create(asked), (error: unknown) => {
    const { errors } = error as { errors: { pointer: string }[] }
    assert.deepEqual(
      errors.map(({ pointer }) => pointer),
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

test('a key cannot be created for an unknown tenant', async () => {
  await assert.rejects(opened.admin.keys.create({ tenant: 'unknown', kind: 'private' }), {
    kind: 'not_found',
  })
})

test('an expiry without a time zone is UTC', async () => {
  const created = await opened.admin.keys.create({ tenant, kind: 'private', expires_at: '2999-01-31' })
  assert.equal(created.expires_at, '2999-01-31T00:00:00.000Z')
})

test('revoking a key lists what was created with it, directly or indirectly, and revokes that too on request', async () => {
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
  assert.deepEqual((await opened.admin.keys.revoke(thief.id)).made, {
    ...{ keys: [], sources: [], destinations: [] },
  })
})

test('a rotated key is replaced by a similar one and stays valid during the overlap', async () => {
  const { keys } = opened.admin
  const settings = { tenant, kind: 'private', scopes: ['orders:read'], allowed_addresses: ['10.0.0.0/8'] }
  const old = await keys.create({ ...settings, expires_at: new Date(Date.now() + 90 * DAY_MS).toISOString() })
  const rotated = await keys.rotate(old.id, { overlapHours: 2 })
  const facts = ({ kind, scopes, allowed_addresses }: KeyView) => ({ kind, scopes, allowed_addresses })
  assert.deepEqual(facts(rotated), facts(old))
  assert.notEqual(rotated.key, old.key)
  assert.equal((await findKeyByHash(opened.pool, hashOfSecret(rotated.key)))?.id, rotated.id)
  const days = (Date.parse(rotated.expires_at!) - Date.now()) / DAY_MS
  assert.ok(days > 89.9 && days < 90.1, 'the same lifetime as before')
  const hours = (Date.parse(rotated.previous.expires_at) - Date.now()) / 3_600_000
  assert.ok(hours > 1.9 && hours <= 2)
  await opened.pool.query("update api_keys set created_at = created_at - interval '60 days' where id = $1", [old.id])
  const listed = (await keys.list(tenant)).find(({ id }) => id === old.id)!
  assert.deepEqual([listed.expires_at, listed.expires_soon], [rotated.previous.expires_at, true])
  assert.ok((await keys.expiringSoon()).some(({ id }) => id === old.id))

  const later = await keys.rotate(old.id, { overlapHours: 48 })
  assert.equal(later.previous.expires_at, rotated.previous.expires_at, 'a second rotation extends nothing')
  await keys.rotate(old.id, { overlapHours: 0 })
  await assert.rejects(keys.rotate(old.id), { kind: 'conflict', code: 'key_not_active' })
  await assert.rejects(keys.rotate(rotated.id, { overlapHours: -1 }), { kind: 'invalid' })
  await assert.rejects(keys.rotate('key_unknown'), { kind: 'not_found' })
})

test('a short-lived key does not warn of its expiry', async () => {
  const { keys } = opened.admin
  const created = await keys.create({
    tenant,
    kind: 'private',
    expires_at: new Date(Date.now() + DAY_MS).toISOString(),
  })
  assert.equal(created.expires_soon, false)
})

test('an invalid network is rejected, and so are networks of a tracking key', async () => {
  const { keys } = opened.admin
  for (const network of [
    'everywhere',
    '10.0.0.0/33',
    '::ffff:10.0.0.0/8',
    '0:0:0:0:0:FFFF:10.0.0.0/8',
    '::/129',
    '10.0.0.0/8/8',
    '10.0.0.0/',
    'fe80::1%eth0',
    '10.1',
  ])
    await assert.rejects(
      keys.create({ tenant, kind: 'private', allowed_addresses: [network] }),
      { kind: 'invalid' },
      network,
    )
  await assert.rejects(keys.create({ tenant, kind: 'tracking', allowed_addresses: ['10.0.0.1'] }), {
    kind: 'invalid',
  })
})
