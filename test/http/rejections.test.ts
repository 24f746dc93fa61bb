// Rejected requests with a known key are listed for the tenant and counted, without a write for each.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openRejections } from '../../src/intake/rejections.ts'
import { pruneKeyRejections } from '../../src/store/inbound/rejections.ts'
import { kontor, startKontor, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer } from '../server.ts'

// without a worker, so accepted entries stay unprocessed
const server = await startServer({ KONTOR_SURFACES: 'data,events,inbound,console' })
after(() => server.close())
useDatabase(server.databaseUrl)
const { key } = await server.admin.keys.create({ kind: 'admin' })

const post = (path: string, by: string, body: unknown, headers = {}) =>
  server.request(path, {
    ...{ method: 'POST', key: by, headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const read = async (path: string) => (await server.request(path, { key })).body
const rejectionsOf = async (tenant: string, more = '') =>
  (await read(`/admin/v1/rejections?tenant=${tenant}&limit=100${more}`)).results as Record<string, unknown>[]
const issuesOf = async (tenant: string) =>
  (await read(`/admin/v1/tenants/${tenant}/issues`)).results as Record<string, unknown>[]

test('a rejected request is listed with its reason, the beginning of its body and its key, and counted by cause', async () => {
  const { id, trackingKey, privateKey } = await server.anotherTenant('rejected')
  await post('/v1/track', trackingKey, { visitor: 'v-1' })
  await post('/v1/track', trackingKey, { visitor: 'v-2' })
  await post('/v1/track', trackingKey, '{"event_type": oops')
  await post('/v1/batch', '', { writeKey: trackingKey, batch: [{ type: 'track' }] })
  await post('/v1/track', trackingKey, `{"event_type":"x","data":"${'y'.repeat(70_000)}"}`)
  await post('/v1/track', privateKey, { event_type: 'x' })
  await post('/v1/orders', privateKey, { id: 'o-1', sourceUpdatedAt: 'yesterday' })
  await post('/v1/products/batch', privateKey, {
    records: [
      { entityType: 'product', id: 'p', sourceUpdatedAt: '2026-01-01T00:00:00Z' },
      { id: 7 },
      { sku: '\u0000' },
    ],
  })
  await post('/v1/track', trackingKey, { event_type: 'fine' })
  await server.request('/v1/events?limit=nonsense', { key: privateKey })
  await server.request('/v1/products/unknown', { key: privateKey })
  await eventually('all rejections', async () => (await rejectionsOf(id)).length >= 9)
  const found = (await rejectionsOf(id)).reverse()
  assert.deepEqual(
    found.map(({ route, status, code }) => `${route} ${status} ${code}`),
    [
      ...Array(2).fill('POST /v1/track 400 invalid_request'),
      'POST /v1/track 400 malformed_json',
      'POST /v1/batch 400 invalid_request',
      'POST /v1/track 413 payload_too_large',
      'POST /v1/track 401 wrong_key_kind',
      'POST /v1/orders 400 invalid_request',
      ...Array(2).fill('POST /v1/products/batch 400 invalid_request'),
    ],
  )
  assert.equal(found[0]?.body, '{"visitor":"v-1"}')
  assert.match(String(found[0]?.detail), /event_type/)
  assert.match(String(found[0]?.key_id), /^key_/)
  assert.equal(found[0]?.source_config_id, null)
  assert.equal(found[4]?.body, null)
  assert.match(String(found[7]?.detail), /^Item 1: /)
  assert.equal(found[7]?.body, '{"id":7}')
  assert.equal(JSON.stringify(found).includes(trackingKey), false)
  const issues = await issuesOf(id)
  const untyped = issues.find(({ route, count }) => route === 'POST /v1/track' && count === 2)
  assert.equal(untyped?.kind, 'refused')
  assert.match(String(untyped?.example), /event_type/)
  const examples = await rejectionsOf(
    id,
    `&route=${encodeURIComponent('POST /v1/track')}&cause=${encodeURIComponent(String(untyped?.cause))}`,
  )
  assert.deepEqual(
    examples.map(({ body }) => body),
    ['{"visitor":"v-2"}', '{"visitor":"v-1"}'],
  )
  // Counts are written a moment after the examples.
  await eventually('the count of the last 24 hours', async () => {
    const { refused } = await read(`/admin/v1/tenants/${id}/health`)
    return refused.last_24_hours === 9
  })
  const other = await server.anotherTenant('other')
  assert.deepEqual(await rejectionsOf(other.id), [])
  assert.deepEqual(await issuesOf(other.id), [])
})

test('a rejected key is listed, whether sent in a header or in the body; an unknown key belongs to no tenant', async () => {
  const { id } = await server.anotherTenant('revoked')
  const { key: revoked, id: keyId } = await server.admin.keys.create({ tenant: id, kind: 'tracking' })
  await server.admin.keys.revoke(keyId)
  await post('/v1/track', revoked, { event_type: 'x' })
  await post('/v1/batch', '', { writeKey: revoked, batch: [{ type: 'page' }] })
  await post('/v1/batch', '', { writeKey: 'trk_unknown', batch: [{ type: 'page' }] })
  await eventually('both rejections', async () => (await rejectionsOf(id)).length === 2)
  const found = await rejectionsOf(id)
  assert.deepEqual(
    found.map(({ code, key_id }) => [code, key_id]),
    [
      ['key_revoked', keyId],
      ['key_revoked', keyId],
    ],
  )
  assert.equal(JSON.stringify(found).includes(revoked), false)
})

test('stored bodies contain no credential and no card number', async () => {
  const { id, trackingKey } = await server.anotherTenant('careless')
  const secrets = [
    ...['whsec_c2VjcmV0+/x=', 'sk_live_c2VjcmV0', 'rk_test_c2VjcmV0', 'trk_c2VjcmV0', 'shpat_c2VjcmV0', 'eyJc2VjcmV0'],
    ...['Bearer c2VjcmV0', '4242 4242 4242 4242', '5555555555554444', '378282246310005'],
  ]
  await post('/v1/track', trackingKey, { order: 4242424242424241, at: 1763262000000, secrets })
  await post('/v1/track', trackingKey, { ...{ password: 'c2V"jcmV0' }, user: { db_password: 'c2VjcmV0' } })
  await post('/v1/track', trackingKey, { cvc: 987, note: JSON.stringify({ client_secret: 'c2VjcmV0' }) })
  await post('/v1/track', trackingKey, `{"password":"c2VjcmV0`)
  await post('/v1/track', trackingKey, 'user=ada&password=c2VjcmV0&x=1')
  await eventually('the rejections', async () => (await rejectionsOf(id)).length === 5)
  // not the ids, which are random and may match by chance
  const kept = JSON.stringify((await rejectionsOf(id)).map(({ body, detail }) => [body, detail]))
  assert.doesNotMatch(kept, /c2V|jcmV0|4242 4242|5555555555554444|378282246310005|987/)
  assert.match(kept, /whsec_….*Bearer …/)
  assert.match(kept, /4242424242424241.*1763262000000/, 'other numbers stay')
})

test('health shows the backlog of the tenant, and separately that of the installation', async () => {
  const { id, trackingKey } = await server.anotherTenant('waiting')
  const idle = await server.anotherTenant('idle')
  for (const n of [1, 2]) await post('/v1/track', trackingKey, { event_type: 'x', data: { n } })
  const own = await read(`/admin/v1/tenants/${id}/health`)
  assert.equal(own.waiting.entries, 2)
  assert.notEqual(own.waiting.oldest_at, null)
  assert.ok(own.installation.waiting.entries >= 2)
  const other = await read(`/admin/v1/tenants/${idle.id}/health`)
  assert.deepEqual(other.waiting, { entries: 0, oldest_at: null })
  assert.deepEqual(other.retrying, { entries: 0, oldest_at: null })
  assert.deepEqual(other.installation, own.installation)
  const limited = await server.admin.keys.create({ kind: 'admin', tenant: id, role: 'viewer' })
  const seen = (await server.request(`/admin/v1/tenants/${id}/health`, { key: limited.key })).body
  assert.equal(seen.waiting.entries, 2)
  assert.equal(seen.installation, null)
})

test('tail refused prints new rejections', async t => {
  const { id, trackingKey } = await server.anotherTenant('tailed')
  const tail = startKontor(t, ['tail', 'refused', '--tenant', id], { DATABASE_URL: server.databaseUrl })
  await post('/v1/track', trackingKey, { no: 'type' })
  await eventually('the line of the rejection', () => tail.out().includes('"{\\"no\\":\\"type\\"}"'))
  tail.child.kill('SIGINT')
  assert.equal(await tail.ended, 0)
})

test('a flood is counted exactly and stored as a few rows, limited in number and age', async () => {
  const { id } = await server.anotherTenant('flooded')
  const tenantId = Number(id.slice(4))
  let now = Date.now()
  const rejections = openRejections({ pool: server.pool, now: () => new Date(now) })
  const note = (detail: string) =>
    rejections.recordForKey({
      ...{ tenantId, keyId: 'key_1', route: 'POST /v1/track', status: 400, code: 'invalid_request', detail },
      ...{ at: new Date(now), example: () => ({ ip: null, userAgent: null, bytes: 1, body: '{}' }) },
    })
  for (let i = 0; i < 5_000; i++) note(`/data/${i} must be text`)
  for (let i = 0; i < 5_000; i++) note(`${'x'.repeat((i % 200) + 1)} is not known`)
  await rejections.write()
  const total = (await issuesOf(id)).reduce((sum, { count }) => sum + Number(count), 0)
  assert.equal(total, 10_000)
  assert.ok((await issuesOf(id)).length <= 51)
  assert.equal((await issuesOf(id)).find(({ cause }) => cause === '/data/… must be text')?.count, 5_000)
  assert.ok((await rejectionsOf(id)).length <= 51 * 5)
  await pruneKeyRejections(server.pool, { before: new Date(now - 14 * 86_400_000), perCode: 20 })
  assert.equal((await rejectionsOf(id)).length, 20)
  now += 15 * 86_400_000
  await pruneKeyRejections(server.pool, { before: new Date(now - 14 * 86_400_000), perCode: 20 })
  assert.deepEqual(await rejectionsOf(id), [])
  assert.deepEqual(await issuesOf(id), [])
})

test('an erasure deletes bodies, none is stored for a suppressed person, and addresses follow the setting of the tenant', async () => {
  const { id } = await server.anotherTenant('private')
  await server.request(`/admin/v1/tenants/${id}`, {
    ...{ method: 'PATCH', key },
    body: JSON.stringify({ ip_addresses: 'truncate' }),
  })
  // A new key, because the setting may reach cached keys up to two seconds later.
  const { key: trackingKey } = await server.admin.keys.create({ tenant: id, kind: 'tracking' })
  const bad = (email: string) => post('/v1/track', trackingKey, { data: { email, ip: '203.0.113.7' } })
  await bad('Ada@Example.com')
  await eventually('the rejection', async () => (await rejectionsOf(id)).length === 1)
  assert.match(String((await rejectionsOf(id))[0]?.body), /"ip":"203.0.113.0"/)
  const erasure = await kontor('erase', '--tenant', id, '--email', 'ada@example.com', '--suppress')
  assert.equal(erasure.code, 0, erasure.err)
  assert.deepEqual(await rejectionsOf(id), [])
  assert.notEqual((await issuesOf(id)).length, 0)
  await bad('Ada@Example.com')
  await post('/v1/track', trackingKey, '{"email":"ada@example.com" broken')
  await post('/v1/track', trackingKey, '{"email":"\\u0061da\\u0040example.com" broken too')
  await post('/v1/track', trackingKey, { note: JSON.stringify({ note: '{"email":"ada@example.com"}' }) })
  await bad('bob@example.com')
  await eventually('five rejections', async () => (await rejectionsOf(id)).length >= 5)
  const kept = JSON.stringify(await rejectionsOf(id))
  assert.equal(/ada@|u0040/i.test(kept), false)
  assert.equal(kept.includes('bob@'), true)
})

test('an error quotes what was sent: short, visible, and without keys', async () => {
  const { privateKey } = await server.anotherTenant('quoted')
  const long = 'x'.repeat(5_000)
  const detailOf = async (path: string, by: string) => String((await server.request(path, { key: by })).body.detail)
  for (const [path, by] of [
    ['/v1/products/', privateKey],
    ['/admin/v1/tenants/', key],
    ['/admin/v1/dead-letters/', key],
    ['/admin/v1/keys?tenant=', key],
  ] as const) {
    assert.ok((await detailOf(path + long, by)).length < 300, path)
    assert.doesNotMatch(await detailOf(path + privateKey, by), new RegExp(privateKey), path)
    assert.doesNotMatch(await detailOf(path + encodeURIComponent('a\u202eb'), by), /\u202e/, path)
  }
  assert.equal(await detailOf('/v1/products/p-1', privateKey), 'No such product: "p-1".')
  assert.match(await detailOf(`/v1/products/${privateKey}`, privateKey), /"private-…"/)
  const { status, body } = await post('/admin/v1/tenants', key, { name: 'a', [long]: 1 })
  assert.equal(status, 400)
  assert.ok(JSON.stringify(body).length < 2_000)
})
