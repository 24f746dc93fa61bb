import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { commandLineActor } from '../../src/admin/actor.ts'
import { keyAdmin } from '../../src/admin/keys.ts'
import { tenantAdmin } from '../../src/admin/tenants.ts'
import { newKey } from '../../src/domain/tenants/keys.ts'
import type { App } from '../../src/http/app.ts'
import {
  authenticateAdmin,
  authenticatePrivate,
  authenticateTracking,
  requireScope,
  trackingCaller,
} from '../../src/http/auth.ts'
import { openPool } from '../../src/postgres/database.ts'
import { type Directory, openDirectory } from '../../src/store/tenants/directory.ts'
import { testDatabase } from '../database.ts'
import { openShell, problemIn } from './shell.ts'

const OFFICE = ['203.0.113.0/24', '198.51.100.7', '2001:db8::/32']

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
let directory: Directory
let keys: Record<'private' | 'tracking' | 'admin' | 'reader' | 'revoked' | 'expired' | 'office' | 'root', string>
let clock = new Date()

before(async () => {
  database = await testDatabase()
  pool = openPool({ connection: { url: database.url }, max: 2, name: 'test', onError: () => {} })
  directory = openDirectory({ pool })
  const actor = commandLineActor('test')
  const tenant = (await tenantAdmin({ pool, actor }).create({ name: 'acme' })).id
  const admin = keyAdmin({ pool, actor })
  const create = async (
    kind: string,
    more: { scopes?: string[]; expires_at?: string; allowed_addresses?: string[] } = {},
  ) => admin.create({ tenant: kind === 'admin' ? undefined : tenant, kind, ...more })
  const revoked = await create('private')
  await admin.revoke(revoked.id)
  keys = {
    private: (await create('private')).key,
    tracking: (await create('tracking')).key,
    admin: (await create('admin')).key,
    reader: (await create('private', { scopes: ['products:read'] })).key,
    revoked: revoked.key,
    office: (await create('private', { allowed_addresses: OFFICE })).key,
    root: (await create('admin', { allowed_addresses: OFFICE })).key,
    expired: (await create('private', { expires_at: new Date(Date.now() + 60_000).toISOString() })).key,
  }
})
after(async () => {
  await pool.end()
  await database.drop()
})

function routes(app: App, known: Directory = directory): void {
  const deps = { directory: known, now: () => clock }
  app.register(async scope => {
    scope.addHook('onRequest', authenticatePrivate(deps))
    const answer = async (request: { caller: { tenantId: number } }) => ({ tenant: request.caller.tenantId })
    scope.get('/read', { config: { scope: 'products:read' } }, answer)
    scope.get('/write', { config: { scope: 'products:write' } }, answer)
    scope.get('/either', { config: { scope: ['orders:read', 'products:read'] } }, answer)
    scope.get('/neither', { config: { scope: ['orders:read', 'orders:write'] } }, answer)
    scope.get('/undeclared', answer)
    scope.get('/later', { config: { scope: [] } }, async request => {
      requireScope(request.caller, 'orders:write')
      return {}
    })
  })
  app.register(async scope => {
    scope.addHook('onRequest', authenticateTracking(deps))
    scope.post('/track', { config: { body: 'raw' } }, async request => ({ tenant: request.caller.tenantId }))
  })
  app.register(async scope => {
    scope.addHook('onRequest', authenticateTracking({ ...deps, optional: true }))
    const find = trackingCaller(deps)
    scope.post('/cdp', async request => {
      const { writeKey } = request.body as { writeKey: string }
      const caller = (request.caller as unknown) === null ? await find(writeKey, request) : request.caller
      return { tenant: caller.tenantId }
    })
  })
  app.register(async scope => {
    scope.addHook('onRequest', authenticateAdmin(deps))
    scope.get('/admin', async request => ({ key: request.operator.role }))
  })
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

async function problemOf(app: App, url: string, headers: Record<string, string>) {
  const answer = await app.inject({ method: /track/.test(url) ? 'POST' : 'GET', url, headers })
  const { code, detail } = problemIn(answer)
  if (answer.statusCode === 401) assert.match(String(answer.headers['www-authenticate']), /^Bearer realm="kontor"/)
  return { status: answer.statusCode, code, detail }
}

test('a private key is accepted by the data API in either header, or in both if they are equal', async t => {
  const { app } = await openShell(t, routes)
  for (const headers of [
    bearer(keys.private),
    { authorization: `bearer   ${keys.private}` },
    { 'x-api-key': keys.private },
    { ...bearer(keys.private), 'x-api-key': keys.private },
  ]) {
    const answer = await app.inject({ url: '/read', headers })
    assert.equal(answer.statusCode, 200)
    assert.equal(typeof answer.json().tenant, 'number')
  }
})

test('two headers with different keys are 401, even if one key is valid', async t => {
  const { app } = await openShell(t, routes)
  for (const headers of [
    { ...bearer(keys.private), 'x-api-key': keys.reader },
    { ...bearer('nonsense'), 'x-api-key': keys.private },
    { authorization: 'Basic abc', 'x-api-key': keys.private },
  ])
    assert.deepEqual(await problemOf(app, '/read', headers).then(({ status, code }) => [status, code]), [
      401,
      'conflicting_credentials',
    ])
})

test('each kind of failed authentication is 401 with its own code', async t => {
  const { app } = await openShell(t, routes)
  clock = new Date(Date.now() + 61_000)
  t.after(() => {
    clock = new Date()
  })
  for (const [url, headers, code] of [
    ['/read', {}, 'missing_credentials'],
    ['/read', { 'x-api-key': '' }, 'missing_credentials'],
    ['/read', { authorization: keys.private }, 'invalid_credentials'],
    ['/read', { authorization: 'Bearer ' }, 'invalid_credentials'],
    ['/read', { authorization: `Basic ${btoa(`${keys.private}:`)}` }, 'invalid_credentials'],
    ['/read', bearer(newKey('private')), 'invalid_credentials'],
    ['/read', bearer(`${keys.private}x`), 'invalid_credentials'],
    ['/read', bearer('private-'), 'invalid_credentials'],
    ['/read', bearer(keys.revoked), 'key_revoked'],
    ['/read', bearer(keys.expired), 'key_expired'],
    ['/read', bearer(keys.tracking), 'wrong_key_kind'],
    ['/read', bearer(keys.admin), 'wrong_key_kind'],
    ['/track', {}, 'missing_credentials'],
    ['/track', bearer(keys.private), 'wrong_key_kind'],
    ['/track?key=nonsense', {}, 'invalid_credentials'],
    ['/admin', bearer(keys.private), 'wrong_key_kind'],
    ['/admin', {}, 'missing_credentials'],
  ] as const) {
    const { status, code: answered } = await problemOf(app, url, headers)
    assert.deepEqual([url, status, answered], [url, 401, code])
  }
  assert.match((await problemOf(app, '/read', bearer(keys.tracking))).detail, /private key \(private-…\)/)
  assert.match((await problemOf(app, '/track', bearer(keys.private))).detail, /tracking key \(trk_…\)/)
})

test('a key without the scope is 403, and the error names the missing scope', async t => {
  const { app } = await openShell(t, routes)
  for (const [url, scope] of [
    ['/write', 'products:write'],
    ['/later', 'orders:write'],
    ['/neither', 'orders:read or orders:write'],
  ] as const) {
    const { status, code, detail } = await problemOf(app, url, bearer(keys.reader))
    assert.deepEqual([status, code], [403, 'insufficient_scope'])
    assert.match(detail, new RegExp(scope))
  }
  for (const url of ['/read', '/either'])
    assert.equal((await app.inject({ url, headers: bearer(keys.reader) })).statusCode, 200)
})

test('a data route without a declared scope rejects every request', async t => {
  const { app } = await openShell(t, routes)
  assert.equal((await problemOf(app, '/undeclared', bearer(keys.private))).status, 500)
})

test('a tracking key is accepted in every place where SDKs send it', async t => {
  const { app } = await openShell(t, routes)
  const key = keys.tracking
  for (const [url, headers] of [
    ['/track', bearer(key)],
    ['/track', { authorization: `Basic ${btoa(`${key}:`)}` }],
    ['/track', { authorization: `Basic ${btoa(`${key}:secret`)}` }],
    ['/track', { 'x-write-key': key }],
    ['/track', { 'x-write-key': `${key}:secret` }],
    [`/track?key=${key}`, {}],
    [`/track/?writeKey=${key}`, {}],
    [`/track?key=${key}`, { authorization: 'Digest of-a-proxy' }],
  ] as const)
    assert.equal((await app.inject({ method: 'POST', url, headers, payload: '' })).statusCode, 200, url)
})

test('a key in the body is used only if there is no other key', async t => {
  const { app } = await openShell(t, routes)
  const post = (writeKey: unknown, headers = {}) =>
    app.inject({ method: 'POST', url: '/cdp', headers, payload: { writeKey } })
  assert.equal((await post(keys.tracking)).statusCode, 200)
  assert.equal((await post('', bearer(keys.tracking))).statusCode, 200)
  const bad = await post(keys.private)
  assert.equal(bad.statusCode, 401)
  assert.equal(problemIn(bad).code, 'wrong_key_kind')
})

test('an admin key is accepted by the admin API', async t => {
  const { app } = await openShell(t, routes)
  const answer = await app.inject({ url: '/admin', headers: bearer(keys.admin) })
  assert.deepEqual(answer.json(), { key: 'admin' })
})

test('while storage is unavailable, a key that is not cached gets 503, never 401', async t => {
  const broken = openPool({
    connection: { url: 'postgres://kontor@127.0.0.1:1/kontor' },
    max: 1,
    name: 'test',
    onError: () => {},
  })
  t.after(() => broken.end())
  const { app } = await openShell(t, app => routes(app, openDirectory({ pool: broken })))
  for (const [url, key] of [
    ['/read', keys.private],
    ['/track', keys.tracking],
    ['/admin', keys.admin],
  ] as const) {
    const answer = await app.inject({
      method: url === '/track' ? 'POST' : 'GET',
      url,
      headers: bearer(key),
    })
    assert.equal(answer.statusCode, 503)
    assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
    assert.equal(problemIn(answer).code, 'service_unavailable')
  }
  const inBody = await app.inject({ method: 'POST', url: '/cdp', payload: { writeKey: keys.tracking } })
  assert.equal(inBody.statusCode, 503)
})

test('the time of last use of a key is recorded', async t => {
  const { app } = await openShell(t, routes)
  await app.inject({ url: '/read', headers: bearer(keys.reader) })
  await directory.writeUses()
  directory.forget()
  const key = await directory.key(keys.reader)
  assert.equal(key?.lastUsedAt?.getTime(), clock.getTime())
})

test('a key with allowed addresses is 403 from other addresses', async t => {
  const { app } = await openShell(t, routes)
  const from = (remoteAddress: string, url: string, key: string) =>
    app.inject({ url, headers: bearer(key), remoteAddress })
  for (const [url, key] of [
    ['/read', keys.office],
    ['/admin', keys.root],
  ] as const) {
    for (const address of ['203.0.113.9', '198.51.100.7', '2001:db8:1::9', '::ffff:203.0.113.9'])
      assert.equal((await from(address, url, key)).statusCode, 200, address)
    for (const address of ['203.0.114.9', '198.51.100.8', '2001:db9::1', '::ffff:10.0.0.1', 'unknown', '']) {
      const answer = await from(address, url, key)
      assert.deepEqual([answer.statusCode, problemIn(answer).code], [403, 'address_not_allowed'], address)
    }
  }
  assert.equal((await from('10.0.0.1', '/read', keys.private)).statusCode, 200)
})
