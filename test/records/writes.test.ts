import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Api, aRecord, openApi, type Type } from './api.ts'

let api: Api
before(async () => {
  api = await openApi()
})
after(() => api.close())

const TYPES: Type[] = ['product', 'contact', 'order']
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

for (const type of TYPES) {
  test(`a ${type} is accepted with 202 and can be read once it is applied`, async () => {
    const answer = await api.write(type, {
      id: `${type}-1`,
      externalId: 'ext-1',
      data: { name: 'Näme', nested: { list: [1, null, true] } },
    })
    const { operationId, ...body } = answer.body
    assert.equal(answer.status, 202)
    assert.deepEqual(body, { accepted: true, duplicate: false, entityType: type, id: `${type}-1` })
    assert.match(operationId, UUID)
    assert.equal(answer.headers.get('location'), `/v1/operations/${operationId}`)
    assert.match(answer.headers.get('content-type')!, /^application\/json/)
    assert.ok(answer.headers.get('x-request-id'))

    const { createdAt, updatedAt, ...record } = await api.record(type, `${type}-1`)
    assert.deepEqual(record, {
      entityType: type,
      id: `${type}-1`,
      externalId: 'ext-1',
      sourceUpdatedAt: '2026-01-31T09:30:00.000Z',
      data: { name: 'Näme', nested: { list: [1, null, true] } },
    })
    assert.ok(Date.parse(createdAt) <= Date.parse(updatedAt))
  })
}

test('data is {} and externalId null if they are not sent', async () => {
  await api.write('contact', { id: 'bare' })
  const { data, externalId } = await api.record('contact', 'bare')
  assert.deepEqual({ data, externalId }, { data: {}, externalId: null })
})

test('a write is a full snapshot: data and externalId replace the previous values', async () => {
  await api.write('contact', { id: 'snap', externalId: 'e', data: { a: 1, b: 2 } })
  const first = await api.record('contact', 'snap')
  await api.write('contact', { id: 'snap', sourceUpdatedAt: '2026-02-01T00:00:00Z', data: { b: 3 } })
  const second = await api.record('contact', 'snap')
  assert.deepEqual(second.data, { b: 3 })
  assert.equal(second.externalId, null)
  assert.equal(second.createdAt, first.createdAt)
})

test('the newest sourceUpdatedAt wins in any order of arrival, and older writes are superseded', async () => {
  const newer = await api.write('order', {
    id: 'o-1',
    sourceUpdatedAt: '2026-03-02T00:00:00Z',
    data: { v: 'new' },
  })
  const older = await api.write('order', {
    id: 'o-1',
    sourceUpdatedAt: '2026-03-01T00:00:00Z',
    data: { v: 'old' },
  })
  assert.equal(await api.statusOf(newer), 'applied')
  assert.equal(await api.statusOf(older), 'superseded')
  const record = await api.record('order', 'o-1')
  assert.deepEqual(record.data, { v: 'new' })
  assert.equal(record.sourceUpdatedAt, '2026-03-02T00:00:00.000Z')
})

test('of equal sourceUpdatedAt the later arrival wins', async () => {
  for (const v of ['first', 'second', 'third']) {
    const answer = await api.write('order', { id: 'equal', data: { v } })
    assert.equal(await api.statusOf(answer), 'applied')
  }
  assert.deepEqual((await api.record('order', 'equal')).data, { v: 'third' })
})

test('times are compared to the microsecond, and as instants in any zone', async () => {
  await api.write('order', { id: 'fine', sourceUpdatedAt: '2026-03-01T12:00:00.000002Z', data: { v: 2 } })
  await api.write('order', { id: 'fine', sourceUpdatedAt: '2026-03-01T12:00:00.000001Z', data: { v: 1 } })
  await api.write('order', { id: 'fine', sourceUpdatedAt: '2026-03-01T13:59:00+02:00', data: { v: 0 } })
  assert.deepEqual((await api.record('order', 'fine')).data, { v: 2 })
})

test('the same id in another type is another record', async () => {
  for (const type of TYPES) await api.write(type, { id: 'same', data: { type } })
  for (const type of TYPES) assert.deepEqual((await api.record(type, 'same')).data, { type })
})

test('numbers keep every digit', async () => {
  const data =
    '{"big":12345678901234567890123,"price":0.10,"long":3.141592653589793238462643383279,"small":1e-7,"neg":-0.0}'
  const body = `{"entityType":"order","id":"digits","sourceUpdatedAt":"2026-01-01","data":${data}}`
  assert.equal((await api.post('/v1/orders', body)).status, 202)
  await api.server.settled()
  const response = await fetch(`${api.server.url}/v1/orders/digits`, {
    headers: { authorization: `Bearer ${api.server.tenant.privateKey}` },
  })
  const text = await response.text()
  for (const digits of ['12345678901234567890123', '0.10', '3.141592653589793238462643383279', '0.0000001']) {
    assert.ok(text.includes(digits), `${digits} in ${text}`)
  }
})

test('unknown top-level fields are ignored and named in warnings, tenantId too', async () => {
  const { warnings } = (await api.write('contact', { id: 'warned', tenantId: 'other', 'a/b~c': 1 })).body
  assert.deepEqual(warnings.map(({ pointer }: { pointer: string }) => pointer).sort(), ['/a~1b~0c', '/tenantId'])
  for (const { message } of warnings) assert.equal(typeof message, 'string')
  assert.equal((await api.record('contact', 'warned')).id, 'warned')
})

test('without warnings the field is absent', async () => {
  assert.equal('warnings' in (await api.write('contact', { id: 'quiet' })).body, false)
})

test('a sourceUpdatedAt more than 24 hours ahead is accepted with a warning, a nearer one without', async () => {
  const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
  const far = await api.write('contact', { id: 'ahead', sourceUpdatedAt: inHours(24.1) })
  assert.equal(far.status, 202)
  assert.deepEqual(
    far.body.warnings.map(({ pointer }: { pointer: string }) => pointer),
    ['/sourceUpdatedAt'],
  )
  const near = await api.write('contact', { id: 'near', sourceUpdatedAt: inHours(23.9) })
  assert.equal('warnings' in near.body, false)
})

test('unknown query parameters are ignored', async () => {
  assert.equal((await api.post('/v1/contacts?tenant=2&x', aRecord('contact', { id: 'q' }))).status, 202)
  await api.server.settled()
  assert.equal((await api.get('/v1/contacts/q?tenant=2')).status, 200)
})

test('a trailing slash does not matter', async () => {
  assert.equal((await api.post('/v1/contacts/', aRecord('contact', { id: 'slash' }))).status, 202)
  assert.equal((await api.delete('/v1/contacts/', aRecord('contact', { id: 'slashed' }))).status, 202)
  await api.server.settled()
  assert.equal((await api.get('/v1/contacts/slash/')).status, 200)
  assert.equal((await api.get('/v1/contacts/')).status, 200)
})

test('ids have 1 to 255 characters, whatever their size in bytes', async () => {
  const longest = ['x'.repeat(255), 'ü'.repeat(255), '🦀'.repeat(255)]
  for (const id of longest) {
    assert.equal((await api.write('contact', { id, externalId: id })).status, 202)
    const record = await api.record('contact', id)
    assert.equal(record.id, id)
    assert.equal(record.externalId, id)
  }
  for (const id of ['', 'x'.repeat(256), '🦀'.repeat(256)]) {
    const answer = await api.write('contact', { id })
    assert.equal(answer.status, 400)
    assert.deepEqual(
      answer.body.errors.map(({ pointer }: { pointer: string }) => pointer),
      ['/id'],
    )
  }
})

test('ids with any character are read back from the path', async () => {
  for (const id of ['a/b', 'a b', 'a%2Fb', 'batch', 'ü?x=1#y', "o'hara;--", '批']) {
    await api.write('contact', { id, data: { id } })
    assert.deepEqual((await api.record('contact', id))?.data, { id }, id)
  }
})

test('an unknown record is 404', async () => {
  for (const path of ['/v1/products/nope', '/v1/contacts/nope', '/v1/orders/nope']) {
    const answer = await api.get(path)
    assert.equal(answer.status, 404)
    assert.equal(answer.body.code, 'not_found')
  }
})

test('an unsupported method is 405 and lists the supported ones', async () => {
  for (const [method, path, allow] of [
    ['PUT', '/v1/products', /POST/],
    ['PATCH', '/v1/contacts', /DELETE/],
    ['POST', '/v1/orders/o-1', /GET/],
    ['DELETE', '/v1/operations/x', /GET/],
  ] as const) {
    const answer = await api.send(method, path, '{}')
    assert.equal(answer.status, 405, `${method} ${path}`)
    assert.match(answer.headers.get('allow')!, allow)
    assert.equal(answer.body.code, 'method_not_allowed')
  }
})
