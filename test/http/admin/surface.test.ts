import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openApiDocument } from '../../../src/http/openapi.ts'
import { adminSurface } from '../../../src/http/surfaces.ts'
import { openDirectory } from '../../../src/store/tenants/directory.ts'
import { openedAdmin } from '../../admin/opened.ts'
import { compareWithOpenApi } from '../compare.ts'
import { openShell, problemIn } from '../shell.ts'

const { admin, pool } = await openedAdmin()
const { id: tenant } = await admin.tenants.create({ name: 'acme' })
const { key: adminKey } = await admin.keys.create({ kind: 'admin' })
const { key: privateKey } = await admin.keys.create({ kind: 'private', tenant })

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

async function open(t: TestContext) {
  const surface = adminSurface({ admin, directory: openDirectory({ pool }), now: () => new Date() })
  const { app } = await openShell(t, surface.register)
  const call = async (method: Method, url: string, body?: object, key = adminKey) => {
    const headers = { authorization: `Bearer ${key}` }
    const answer = await app.inject({ method, url, headers, ...(body && { payload: body }) })
    return { ...answer, json: () => JSON.parse(answer.body) }
  }
  return { app, call }
}

test('nothing answers without an admin key', async t => {
  const { app, call } = await open(t)
  const routes = app.routeTable.filter(({ url }) => url.startsWith('/admin/'))
  assert.ok(routes.length >= 14)
  for (const { method, url } of routes) {
    if (method === 'HEAD') continue
    const path = url.replace(':id', 'src_1')
    assert.equal(
      (await app.inject({ method: method as Method, url: path })).statusCode,
      401,
      `${method} ${url}`,
    )
    const answer = await call(method as Method, path, undefined, privateKey)
    assert.equal(answer.statusCode, 401, `${method} ${url}`)
    assert.equal(problemIn(answer).code, 'wrong_key_kind')
  }
})

test('a tenant is made, found, listed and changed', async t => {
  const { call } = await open(t)
  const made = await call('POST', '/admin/v1/tenants', { name: 'globex' })
  assert.equal(made.statusCode, 201)
  assert.equal(made.headers.location, `/admin/v1/tenants/${made.json().id}`)
  assert.deepEqual((await call('GET', '/admin/v1/tenants/globex')).json(), made.json())
  const { results, next_cursor } = (await call('GET', '/admin/v1/tenants')).json()
  assert.ok(results.some((one: { name: string }) => one.name === 'globex'))
  assert.equal(next_cursor, null)
  const changed = await call('PATCH', '/admin/v1/tenants/globex', { conversion_types: ['purchase'] })
  assert.deepEqual(changed.json().conversion_types, ['purchase'])
  const again = await call('POST', '/admin/v1/tenants', { name: 'globex' })
  assert.equal(again.statusCode, 409)
  assert.equal(problemIn(again).code, 'tenant_exists')
})

test('a key is made, listed without itself, and revoked', async t => {
  const { call } = await open(t)
  const made = await call('POST', '/admin/v1/keys', {
    tenant: 'acme',
    kind: 'private',
    scopes: ['orders:read'],
  })
  assert.equal(made.statusCode, 201)
  const { id, key } = made.json()
  const listed = await call('GET', '/admin/v1/keys?tenant=acme')
  assert.ok(listed.body.includes(id))
  assert.ok(!listed.body.includes(key))
  assert.notEqual((await call('POST', `/admin/v1/keys/${id}/revoke`)).json().revoked_at, null)
  assert.equal((await call('POST', '/admin/v1/keys/key_nothing/revoke')).statusCode, 404)
})

test('a source is made, shown without its secrets, changed, rotated, switched and deleted', async t => {
  const { call } = await open(t)
  const made = await call('POST', '/admin/v1/sources', {
    tenant: 'acme',
    type: 'webhook',
    signing_secret: 'generate',
    event_type_override: { prefix: 'shop.' },
  })
  assert.equal(made.statusCode, 201)
  const { id, token, signing_secret } = made.json()
  const path = `/admin/v1/sources/${id}`
  const shown = await call('GET', path)
  for (const secret of [token, signing_secret]) assert.ok(!shown.body.includes(secret))
  assert.deepEqual(shown.json().event_type_override, { prefix: 'shop.' })
  assert.equal((await call('PATCH', path, { overflow: 'drop' })).json().overflow, 'drop')
  const rotated = (await call('POST', `${path}/rotate`, { what: 'token', overlap_hours: 1 })).json()
  assert.notEqual(rotated.token, token)
  assert.equal(rotated.tokens.length, 2)
  assert.equal((await call('POST', `${path}/disable`)).json().enabled, false)
  assert.equal((await call('POST', `${path}/enable`)).json().enabled, true)
  const deleted = await call('DELETE', path)
  assert.equal(deleted.statusCode, 204)
  assert.equal(deleted.body, '')
  assert.equal((await call('GET', path)).statusCode, 404)
})

test('all faults of a body are in the answer', async t => {
  const { call } = await open(t)
  const bad = { tenant: 'acme', type: 'ftp', overflow: 'explode', headers: ['cookie'], colour: 'green' }
  const answer = await call('POST', '/admin/v1/sources', bad)
  assert.equal(answer.statusCode, 400)
  assert.deepEqual(
    problemIn(answer).errors!.map(({ pointer }) => pointer),
    ['/type', '/overflow', '/headers', '/colour'],
  )
  for (const [url, body] of [
    ['/admin/v1/sources', []],
    ['/admin/v1/tenants', { name: 7 }],
    ['/admin/v1/keys', { kind: 'private', tenant: 'acme', scopes: 'orders:read' }],
  ] as const)
    assert.equal((await call('POST', url, body)).statusCode, 400, url)
})

test('every route is in the OpenAPI document, as one that needs an admin key', async t => {
  const { app } = await open(t)
  const { undocumented, unanswered } = compareWithOpenApi(app)
  assert.deepEqual({ undocumented, unanswered }, { undocumented: [], unanswered: [] })
  for (const [path, operations] of Object.entries(openApiDocument(app).paths))
    if (path.startsWith('/admin/'))
      for (const operation of Object.values(operations))
        assert.deepEqual(operation.security, [{ adminKey: [] }], path)
})
