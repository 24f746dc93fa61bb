import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openRejections } from '../../src/intake/rejections.ts'
import { insertRejections, pruneSourceRejections } from '../../src/store/inbound/rejections.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer } from '../server.ts'
import { makeSource, rows, signed } from './source.ts'

let server: TestServer
let key: string
before(async () => {
  server = await startServer()
  key = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

const GOOD = '{"event_type":"x"}'
const rejectionsOf = async (id: string) =>
  (await server.request(`/admin/v1/rejections?source=${id}`, { key })).body.results as Record<string, unknown>[]

test('rejected requests are recorded with their cause, without credentials', async () => {
  const source = await makeSource(server, { signing_secret: 'generate', max_body_bytes: 1000 })
  const secret = source.signing_secret!
  const sign = (body: string, atS?: number) => ({
    headers: { 'x-service-signature': signed(secret, body, atS) },
  })
  await source.post(GOOD, { key: '' })
  await source.post(GOOD, { key: 'tok_wrong' })
  await source.post(GOOD)
  await source.post(GOOD, { headers: { 'x-service-signature': 'nonsense' } })
  await source.post(GOOD, sign(GOOD, 1_000))
  await source.post('{', sign('{'))
  await source.post('{}', sign('{}'))
  await source.post('x'.repeat(1001), sign('x'))
  await source.post('zz', { headers: { 'content-encoding': 'br' } })
  await source.post(GOOD, sign(GOOD))
  await server.admin.sources.setEnabled(source.id, false)
  await eventually('the disabled source to refuse', async () => (await source.post(GOOD, sign(GOOD))).status === 403)
  await eventually('ten rejections', async () => (await rejectionsOf(source.id)).length >= 10)
  const found = await rejectionsOf(source.id)
  assert.deepEqual(found.map(({ status, code }) => `${status} ${code}`).reverse(), [
    '401 missing_credentials',
    '401 invalid_credentials',
    '401 signature_missing',
    '401 signature_invalid',
    '401 signature_expired',
    '400 unparsable_json',
    '400 invalid_request',
    '413 payload_too_large',
    '415 unsupported_encoding',
    '403 source_disabled',
  ])
  for (const row of found) {
    assert.equal(row.ip, '127.0.0.1')
    assert.equal(JSON.stringify(row).includes(source.token), false)
    assert.equal(JSON.stringify(row).includes('tok_wrong'), false)
  }
  const refused = await server.request(`/admin/v1/rejections?source=${source.id}&code=signature_invalid`, {
    key,
  })
  assert.equal(refused.body.results.length, 1)
  assert.equal(refused.body.results[0].bytes, GOOD.length)
  const page = await server.request(`/admin/v1/rejections?source=${source.id}&limit=4`, { key })
  const next = await server.request(
    `/admin/v1/rejections?source=${source.id}&limit=100&cursor=${page.body.next_cursor}`,
    { key },
  )
  assert.equal(next.body.results.length, 6)
})

test('a flood of rejections is sampled: ten per minute and cause are stored, the others counted', async () => {
  const source = await makeSource(server)
  let now = Date.now()
  const rejections = openRejections({ pool: server.pool, now: () => new Date(now) })
  const rejection = (code: string) => ({
    ...{ tenantId: 1, sourceId: source.id, rejectedAt: new Date(now), status: 401, code },
    ...{ detail: 'd', ip: null, userAgent: null, bytes: null, isAuthenticated: false },
  })
  for (let i = 0; i < 5000; i++) rejections.recordForSource(rejection('a'))
  rejections.recordForSource(rejection('b'))
  await rejections.write()
  assert.equal((await rejectionsOf(source.id)).length, 11)
  now += 61_000
  await rejections.write()
  const found = await rejectionsOf(source.id)
  assert.equal(found.length, 12)
  assert.equal(found[0]?.suppressed, 4989)
  rejections.recordForSource(rejection('a'))
  await rejections.write()
  assert.equal((await rejectionsOf(source.id)).length, 13)
})

test('rejections per source are limited in number and age', async () => {
  const source = await makeSource(server)
  const other = await makeSource(server)
  const rejection = (sourceId: string, ageDays: number, detail: string) => ({
    ...{ tenantId: 1, sourceId, rejectedAt: new Date(Date.now() - ageDays * 86_400_000), status: 401 },
    ...{ code: 'c', detail, ip: null, userAgent: null, bytes: null, isAuthenticated: false, suppressed: 0 },
  })
  await insertRejections(server.pool, [
    ...Array.from({ length: 30 }, (_, i) => rejection(source.id, 0, String(i))),
    rejection(other.id, 15, 'old'),
    rejection(other.id, 1, 'new'),
  ])
  await pruneSourceRejections(server.pool, { before: new Date(Date.now() - 14 * 86_400_000), perSource: 10 })
  assert.deepEqual(
    (await rejectionsOf(source.id)).map(row => row.detail),
    Array.from({ length: 10 }, (_, i) => String(29 - i)),
  )
  assert.deepEqual(
    (await rejectionsOf(other.id)).map(row => row.detail),
    ['new'],
  )
})

test('a rejection that cannot be recorded fails no request', async () => {
  const source = await makeSource(server)
  await server.pool.query('alter table rejections rename to rejections_away')
  try {
    for (let i = 0; i < 5; i++) assert.equal((await source.post(GOOD, { key: 'x' })).status, 401)
    assert.equal((await source.post(GOOD)).status, 200)
  } finally {
    await server.pool.query('alter table rejections_away rename to rejections')
  }
  await server.settled()
  assert.equal((await rows(server, 'select from events where source_config_id = $1', [source.id])).length, 1)
})
