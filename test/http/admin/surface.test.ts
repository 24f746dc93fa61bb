import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openExportLimit } from '../../../src/http/export/routes.ts'
import { openApiDocument } from '../../../src/http/openapi.ts'
import { adminSurface } from '../../../src/http/surfaces.ts'
import { openDirectory } from '../../../src/store/tenants/directory.ts'
import { openedAdmin } from '../../admin/opened.ts'
import { compareWithOpenApi } from '../compare.ts'
import { openShell, problemIn } from '../shell.ts'

const { admin, adminFor, pool } = await openedAdmin()
const { id: tenant } = await admin.tenants.create({ name: 'acme' })
const { key: adminKey } = await admin.keys.create({ kind: 'admin' })
const { key: privateKey } = await admin.keys.create({ kind: 'private', tenant })

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

async function open(t: TestContext) {
  const surface = adminSurface({
    ...{
      adminFor,
      pool,
      exportLimit: openExportLimit(),
      consoleUrl: null,
      directory: openDirectory({ pool }),
      now: () => new Date(),
    },
    disk: { free: () => 0.5, daysLeft: () => null },
  })
  const { app } = await openShell(t, surface.register)
  const call = async (method: Method, url: string, body?: object, key = adminKey) => {
    const headers = { authorization: `Bearer ${key}` }
    const answer = await app.inject({ method, url, headers, ...(body && { payload: body }) })
    return { ...answer, json: () => JSON.parse(answer.body) }
  }
  return { app, call }
}

test('every route requires an admin key', async t => {
  const { app, call } = await open(t)
  const routes = app.routeTable.filter(({ url }) => url.startsWith('/admin/'))
  assert.ok(routes.length >= 14)
  for (const { method, url } of routes) {
    if (method === 'HEAD') continue
    const path = url.replace(':id', 'src_1')
    assert.equal((await app.inject({ method: method as Method, url: path })).statusCode, 401, `${method} ${url}`)
    const answer = await call(method as Method, path, undefined, privateKey)
    assert.equal(answer.statusCode, 401, `${method} ${url}`)
    assert.equal(problemIn(answer).code, 'wrong_key_kind')
  }
})

test('a tenant is created, found, listed and changed', async t => {
  const { call } = await open(t)
  const created = await call('POST', '/admin/v1/tenants', { name: 'globex' })
  assert.equal(created.statusCode, 201)
  assert.equal(created.headers.location, `/admin/v1/tenants/${created.json().id}`)
  assert.deepEqual((await call('GET', '/admin/v1/tenants/globex')).json(), created.json())
  const { results, next_cursor } = (await call('GET', '/admin/v1/tenants')).json()
  assert.ok(results.some((tenant: { name: string }) => tenant.name === 'globex'))
  assert.equal(next_cursor, null)
  const changed = await call('PATCH', '/admin/v1/tenants/globex', { conversion_types: ['purchase'] })
  assert.deepEqual(changed.json().conversion_types, ['purchase'])
  const again = await call('POST', '/admin/v1/tenants', { name: 'globex' })
  assert.equal(again.statusCode, 409)
  assert.equal(problemIn(again).code, 'tenant_exists')
})

test('a key is created, listed without its secret, and revoked', async t => {
  const { call } = await open(t)
  const created = await call('POST', '/admin/v1/keys', {
    tenant: 'acme',
    kind: 'private',
    scopes: ['orders:read'],
  })
  assert.equal(created.statusCode, 201)
  const { id, key } = created.json()
  const listed = await call('GET', '/admin/v1/keys?tenant=acme')
  assert.ok(listed.body.includes(id))
  assert.ok(!listed.body.includes(key))
  assert.notEqual((await call('POST', `/admin/v1/keys/${id}/revoke`)).json().revoked_at, null)
  assert.equal((await call('POST', '/admin/v1/keys/key_nothing/revoke')).statusCode, 404)
})

test('a source is created, shown without its secrets, changed, rotated, disabled, enabled and deleted', async t => {
  const { call } = await open(t)
  const created = await call('POST', '/admin/v1/sources', {
    tenant: 'acme',
    type: 'webhook',
    signing_secret: 'generate',
    event_type_override: { prefix: 'shop.' },
  })
  assert.equal(created.statusCode, 201)
  const { id, token, signing_secret } = created.json()
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

test('all validation errors of a body are in the response', async t => {
  const { call } = await open(t)
  const bad = { tenant: 'acme', type: 'ftp', overflow: 'explode', headers: ['cookie'], color: 'green' }
  const answer = await call('POST', '/admin/v1/sources', bad)
  assert.equal(answer.statusCode, 400)
  assert.deepEqual(
    problemIn(answer).errors!.map(({ pointer }) => pointer),
    ['/type', '/overflow', '/headers', '/color'],
  )
  for (const [url, body] of [
    ['/admin/v1/sources', []],
    ['/admin/v1/tenants', { name: 7 }],
    ['/admin/v1/keys', { kind: 'private', tenant: 'acme', scopes: 'orders:read' }],
  ] as const)
    assert.equal((await call('POST', url, body)).statusCode, 400, url)
})

test('every route is in the OpenAPI document and requires an admin key there', async t => {
  const { app } = await open(t)
  const { undocumented, unanswered } = await compareWithOpenApi(app)
  assert.deepEqual({ undocumented, unanswered }, { undocumented: [], unanswered: [] })
  const { paths } = await openApiDocument(app, { publicUrl: null, version: '0.0.0' })
  for (const [path, operations] of Object.entries(paths))
    if (path.startsWith('/admin/'))
      for (const operation of Object.values(operations)) assert.deepEqual(operation.security, [{ adminKey: [] }], path)
})

type AuditRow = { id: string; action: string; target: string; actor: string; before: object; after: object }

async function auditOf(call: Awaited<ReturnType<typeof open>>['call'], query: string): Promise<AuditRow[]> {
  const rows: AuditRow[] = []
  let cursor = ''
  do {
    const answer = await call('GET', `/admin/v1/audit?limit=3&${query}${cursor && `&cursor=${cursor}`}`)
    assert.equal(answer.statusCode, 200)
    const { results, next_cursor } = answer.json()
    rows.push(...results)
    cursor = next_cursor
  } while (cursor)
  return rows
}

test('every change has one audit row with actor, action and address, without secrets', async t => {
  const { call } = await open(t)
  const { id: of } = (await call('POST', '/admin/v1/tenants', { name: 'audited' })).json()
  await call('PATCH', '/admin/v1/tenants/audited', { conversion_types: ['purchase'] })
  const key = (await call('POST', '/admin/v1/keys', { tenant: of, kind: 'private' })).json()
  await call('POST', `/admin/v1/keys/${key.id}/revoke`)
  const source = (await call('POST', '/admin/v1/sources', { tenant: of, type: 'webhook' })).json()
  const path = `/admin/v1/sources/${source.id}`
  await call('PATCH', path, { overflow: 'drop' })
  const rotated = (await call('POST', `${path}/rotate`, { what: 'signing_secret' })).json()
  await call('POST', `${path}/disable`)
  await call('DELETE', path)

  const rows = await auditOf(call, 'tenant=audited')
  assert.deepEqual(
    rows.map(({ action, target }) => [action, target]),
    [
      ['source.delete', source.id],
      ['source.disable', source.id],
      ['source.rotate', source.id],
      ['source.update', source.id],
      ['source.create', source.id],
      ['key.revoke', key.id],
      ['key.create', key.id],
      ['tenant.update', of],
      ['tenant.create', of],
    ],
  )
  const { results: admins } = (await call('GET', '/admin/v1/keys')).json()
  const me = admins.find(({ hint }: { hint: string }) => adminKey.endsWith(hint.slice(1)))
  for (const row of rows)
    assert.deepEqual(
      Object.entries(row).filter(([name]) => ['actor', 'tenant', 'ip'].includes(name)),
      [
        ['actor', me.id],
        ['tenant', of],
        ['ip', '127.0.0.1'],
      ],
    )
  assert.deepEqual([rows[1]!.before, rows[1]!.after], [{ enabled: true }, { enabled: false }])
  assert.deepEqual([rows[3]!.before, rows[3]!.after], [{ overflow: 'defer' }, { overflow: 'drop' }])
  const text = JSON.stringify((await pool.query('select row_to_json(a)::text as row from audit a')).rows)
  for (const secret of [key.key, source.token, rotated.signing_secret, adminKey]) assert.ok(!text.includes(secret))
})

test('reads, rejected requests and requests without a change have no audit row', async t => {
  const { call } = await open(t)
  const source = (await call('POST', '/admin/v1/sources', { tenant: 'acme', type: 'webhook' })).json()
  const before = await auditOf(call, '')
  await call('GET', `/admin/v1/sources/${source.id}`)
  await call('GET', '/admin/v1/keys?tenant=acme')
  await call('POST', '/admin/v1/tenants', { name: 'acme' })
  await call('POST', '/admin/v1/keys', { tenant: 'unknown', kind: 'private' })
  await call('POST', '/admin/v1/sources/src_1/disable')
  await call('POST', `/admin/v1/sources/${source.id}/enable`)
  await call('POST', '/admin/v1/dead-letters/replay', { all: true })
  assert.deepEqual(await auditOf(call, ''), before)
  assert.equal((await call('GET', '/admin/v1/audit?tenant=unknown')).statusCode, 404)
  assert.equal((await call('GET', '/admin/v1/audit?since=yesterday')).statusCode, 400)
  assert.deepEqual(await auditOf(call, 'since=2999-01-01'), [])
  assert.deepEqual(await auditOf(call, 'until=2000-01-01'), [])
})

test('the database rejects changes of the audit log', async () => {
  for (const statement of [
    "update audit set actor = 'other'",
    'delete from audit',
    'truncate audit',
    'delete from audit where false',
  ])
    await assert.rejects(pool.query(statement), /never changed or deleted/, statement)
})

/** A tenant with a source and a key. */
async function createTenantObjects(name: string) {
  const { id } = await admin.tenants.create({ name })
  const source = await admin.sources.create({ tenant: id, type: 'webhook' })
  const key = await admin.keys.create({ tenant: id, kind: 'private' })
  return { tenant: id, source: source.id, key: key.id }
}

test('viewers read, operators also enable, disable and replay, admins do everything; a 403 names the role', async t => {
  const { app, call } = await open(t)
  const { source } = await createTenantObjects('roles')
  const viewer = (await call('POST', '/admin/v1/keys', { kind: 'admin', role: 'viewer' })).json()
  const operator = (await call('POST', '/admin/v1/keys', { kind: 'admin', role: 'operator' })).json()
  const operating = [
    /^\/admin\/v1\/(sources|destinations)\/:id\/(enable|disable|test|retry)$/,
    /\/(replay|alert-test)$/,
  ]
  const checked = [/^\/admin\/v1\/keys$/, /\/keys\/:id\/revoke$/, /\/sessions\/:id\/end$/]
  for (const { method, url } of app.routeTable) {
    if (!url.startsWith('/admin/') || method === 'HEAD' || checked.some(path => path.test(url))) continue
    // exporting all data of a person or a tenant requires the role admin
    const isRead = method === 'GET' && !/\/export(\/|$)/.test(url)
    const needed = isRead ? 0 : operating.some(path => path.test(url)) ? 1 : 2
    for (const [rank, { key }] of [viewer, operator].entries()) {
      const answer = await call(method as Method, url.replace(':id', 'src_1'), undefined, key)
      assert.equal(answer.statusCode === 403, rank < needed, `${method} ${url}`)
      if (rank >= needed) continue
      assert.equal(problemIn(answer).code, 'insufficient_role')
      assert.match(problemIn(answer).detail, needed === 1 ? /role operator or admin/ : /role admin/)
    }
  }
  assert.equal((await call('POST', `/admin/v1/sources/${source}/disable`, {}, operator.key)).statusCode, 200)
})

test('a viewer can create and revoke a read-only key for a day, and no other key', async t => {
  const { call } = await open(t)
  const viewer = (await call('POST', '/admin/v1/keys', { kind: 'admin', role: 'viewer' })).json()
  const hours = (n: number) => new Date(Date.now() + n * 3_600_000).toISOString()
  const reading = { tenant: 'acme', kind: 'private', scopes: ['orders:read'], expires_at: hours(12) }
  const own = await call('POST', '/admin/v1/keys', reading, viewer.key)
  assert.equal(own.statusCode, 201)
  assert.equal(own.json().created_by, viewer.id)
  for (const more of [
    { scopes: ['orders:read', 'orders:write'] },
    { expires_at: hours(48) },
    { expires_at: null },
    { kind: 'admin', tenant: undefined, scopes: undefined },
    { kind: 'tracking', scopes: undefined },
    { scopes: undefined },
  ]) {
    const answer = await call('POST', '/admin/v1/keys', { ...reading, ...more }, viewer.key)
    assert.equal(answer.statusCode, 403, JSON.stringify(more))
  }
  const other = (await call('POST', '/admin/v1/keys', reading)).json()
  const revoke = (id: string) => call('POST', `/admin/v1/keys/${id}/revoke`, undefined, viewer.key)
  assert.equal((await revoke(other.id)).statusCode, 403)
  assert.equal((await revoke(own.json().id)).statusCode, 200)
})

test('an admin key that is bound to a tenant cannot see or change other tenants', async t => {
  const { call } = await open(t)
  const own = await createTenantObjects('bound')
  const foreign = await createTenantObjects('foreign')
  const bound = (await call('POST', '/admin/v1/keys', { kind: 'admin', tenant: own.tenant })).json()
  const as = (method: Method, url: string, body?: object) => call(method, url, body, bound.key)
  const ids = (answer: { json(): { results: { id: string }[] } }) => answer.json().results.map(({ id }) => id)

  assert.deepEqual(ids(await as('GET', '/admin/v1/tenants')), [own.tenant])
  assert.deepEqual(ids(await as('GET', '/admin/v1/keys')), [bound.id])
  assert.equal((await as('GET', `/admin/v1/sources/${own.source}`)).statusCode, 200)
  const { results } = (await as('GET', '/admin/v1/audit')).json()
  assert.ok(results.length > 0)
  assert.ok(results.every((row: { tenant: string }) => row.tenant === own.tenant))

  const erasure = { tenant: foreign.tenant, email: 'ada@example.com' }
  for (const [method, url, body] of [
    ['GET', `/admin/v1/tenants/${foreign.tenant}`],
    ['PATCH', '/admin/v1/tenants/foreign', { conversion_types: [] }],
    ['GET', '/admin/v1/keys?tenant=foreign'],
    ['POST', '/admin/v1/keys', { kind: 'private', tenant: foreign.tenant }],
    ['POST', '/admin/v1/keys', { kind: 'admin', tenant: foreign.tenant }],
    ['POST', `/admin/v1/keys/${foreign.key}/revoke`],
    ['GET', '/admin/v1/sources?tenant=foreign'],
    ['POST', '/admin/v1/sources', { type: 'webhook', tenant: 'foreign' }],
    ['GET', `/admin/v1/sources/${foreign.source}`],
    ['PATCH', `/admin/v1/sources/${foreign.source}`, { overflow: 'drop' }],
    ['DELETE', `/admin/v1/sources/${foreign.source}`],
    ['POST', `/admin/v1/sources/${foreign.source}/rotate`, { what: 'token' }],
    ['POST', `/admin/v1/sources/${foreign.source}/disable`],
    ['POST', `/admin/v1/sources/${foreign.source}/test`, {}],
    ['GET', '/admin/v1/receipts?tenant=foreign'],
    ['GET', '/admin/v1/rejections?tenant=foreign'],
    ['GET', '/admin/v1/dead-letters?tenant=foreign'],
    ['POST', '/admin/v1/dead-letters/replay', { tenant: 'foreign', all: true }],
    ['POST', '/admin/v1/erasures', erasure],
    ['GET', '/admin/v1/erasures?tenant=foreign'],
    ['GET', '/admin/v1/people/ada?tenant=foreign'],
    ['GET', '/admin/v1/people/ada/export?tenant=foreign'],
    ['POST', '/admin/v1/people/ada/merge', { tenant: 'foreign', into: 'bob' }],
    ['POST', '/admin/v1/people/ada/split', { tenant: 'foreign', name: 'bob' }],
    ['GET', '/admin/v1/audit?tenant=foreign'],
  ] as const)
    assert.equal((await as(method, url, body)).statusCode, 404, `${method} ${url}`)
  for (const [url, body] of [
    ['/admin/v1/tenants', { name: 'another' }],
    ['/admin/v1/keys', { kind: 'admin' }],
  ] as const) {
    const answer = await as('POST', url, body)
    assert.deepEqual([answer.statusCode, problemIn(answer).code], [403, 'tenant_bound'], url)
  }
})
