import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type Api, aRecord, openApi } from './api.ts'

let api: Api
before(async () => {
  api = await openApi()
})
after(() => api.close())

const lines = { headers: { 'content-type': 'application/x-ndjson' } }

test('a batch is 202 with a result per item, in order: valid items accepted, invalid ones with errors', async () => {
  const answer = await api.post('/v1/contacts/batch', {
    records: [
      aRecord('contact', { id: 'a', data: { v: 1 } }),
      { entityType: 'contact', id: '', sourceUpdatedAt: 'x' },
      aRecord('contact', { id: 'b', surprise: true }),
      aRecord('order', { id: 'wrong type' }),
      'not an object',
      aRecord('contact', { id: 'c', data: { text: '\0' } }),
    ],
  })
  assert.equal(answer.status, 202)
  const pointers = (i: number) =>
    answer.body.results[i].errors.map(({ pointer }: { pointer: string }) => pointer).sort()
  assert.deepEqual(
    answer.body.results.map(({ index, accepted }: { index: number; accepted: boolean }) => [index, accepted]),
    [
      [0, true],
      [1, false],
      [2, true],
      [3, false],
      [4, false],
      [5, false],
    ],
  )
  const [first, , third] = answer.body.results
  assert.deepEqual(Object.keys(first).sort(), ['accepted', 'duplicate', 'entityType', 'id', 'index', 'operationId'])
  assert.equal(first.id, 'a')
  assert.equal(third.warnings[0].pointer, '/surprise')
  assert.deepEqual(pointers(1), ['/id', '/sourceUpdatedAt'])
  assert.deepEqual(pointers(3), ['/entityType'])
  assert.deepEqual(pointers(4), [''])
  assert.deepEqual(pointers(5), ['/data/text'])
  assert.deepEqual((await api.record('contact', 'a')).data, { v: 1 })
  assert.equal((await api.get(`/v1/operations/${first.operationId}`)).body.status, 'applied')
})

test('NDJSON has one record per line; empty lines are ignored, and digits stay exact', async () => {
  const body = [
    JSON.stringify(aRecord('product', { id: 'n-1', data: { sku: 'N-1' } })),
    '',
    '{"entityType":"product","id":"n-2","sourceUpdatedAt":"2026-01-01","data":{"n":12345678901234567890}}\r',
    '{broken',
  ].join('\n')
  const { status, body: answer } = await api.post('/v1/products/batch', body, lines)
  assert.equal(status, 202)
  assert.deepEqual(
    answer.results.map(({ accepted }: { accepted: boolean }) => accepted),
    [true, true, false],
  )
  assert.equal(answer.results[2].errors[0].pointer, '')
  await api.server.settled()
  const response = await fetch(`${api.server.url}/v1/products/n-2`, {
    headers: { authorization: `Bearer ${api.server.tenant.privateKey}` },
  })
  assert.match(await response.text(), /"n": ?12345678901234567890\b/)
})

test('a batch that is not valid UTF-8 is 400 and changes nothing', async () => {
  const record = JSON.stringify(aRecord('contact', { id: 'no-utf8', data: { name: 'J\u00f6rg' } }))
  const send = (text: string, type: string) =>
    api.server.request('/v1/contacts/batch', {
      method: 'POST',
      key: api.server.tenant.privateKey,
      headers: { 'content-type': type },
      body: Buffer.from(text, 'latin1') as unknown as string,
    })
  for (const { status, body } of [
    await send(record, 'application/x-ndjson'),
    await send(`{"records":[${record}]}`, 'application/json'),
  ])
    assert.deepEqual([status, body.code], [400, 'malformed_text'])
  assert.equal(await api.record('contact', 'no-utf8'), null)
})

test('of several writes of one record the newest wins, as with separate requests', async () => {
  const versions = ['2026-01-02', '2026-01-03', '2026-01-01', '2026-01-03']
  const records = versions.map((sourceUpdatedAt, v) =>
    aRecord('contact', { id: 'twice', sourceUpdatedAt, data: { v } }),
  )
  const { body, headers } = await api.post('/v1/contacts/batch', { records }, { headers: { prefer: 'wait=10' } })
  assert.equal(headers.get('preference-applied'), 'wait=10')
  assert.deepEqual(
    body.results.map(({ status }: { status: string }) => status),
    ['applied', 'applied', 'superseded', 'applied'],
  )
  assert.deepEqual((await api.record('contact', 'twice')).data, { v: 3 })
})

test('idempotency keys of items work as in single writes, also twice in one batch', async () => {
  const records = ['k-1', 'k-2', 'k-1'].map((idempotencyKey, v) =>
    aRecord('order', { id: `keyed-${idempotencyKey}`, idempotencyKey, data: { v } }),
  )
  const first = (await api.post('/v1/orders/batch', { records })).body.results
  assert.deepEqual(
    first.map(({ duplicate }: { duplicate: boolean }) => duplicate),
    [false, false, true],
  )
  assert.equal(first[2].operationId, first[0].operationId)
  assert.equal(first[2].payloadMismatch, true)
  const again = (await api.post('/v1/orders/batch', { records })).body.results
  assert.deepEqual(
    again.map(({ duplicate, operationId }: { duplicate: boolean; operationId: string }) => [duplicate, operationId]),
    first.map(({ operationId }: { operationId: string }) => [true, operationId]),
  )
  assert.deepEqual((await api.record('order', 'keyed-k-1')).data, { v: 0 })
})

test('with a key in the header, a repeated batch is a duplicate of each item', async () => {
  const records = Array.from({ length: 3 }, (_, i) => aRecord('order', { id: `whole-${i}` }))
  const given = { headers: { 'x-idempotency-key': 'the batch' } }
  const first = (await api.post('/v1/orders/batch', { records }, given)).body.results
  const again = (await api.post('/v1/orders/batch', { records }, given)).body.results
  assert.ok(first.every(({ duplicate }: { duplicate: boolean }) => !duplicate))
  assert.ok(again.every(({ duplicate }: { duplicate: boolean }) => duplicate))
  assert.deepEqual(
    again.map(({ operationId }: { operationId: string }) => operationId),
    first.map(({ operationId }: { operationId: string }) => operationId),
  )
})

test('a thousand items are accepted, one more is not', async () => {
  const records = Array.from({ length: 1_001 }, (_, i) => aRecord('product', { id: `t-${i}` }))
  const refused = await api.post('/v1/products/batch', { records })
  assert.equal(refused.status, 400)
  assert.equal(refused.body.errors[0].pointer, '/records')
  const taken = await api.post('/v1/products/batch', { records: records.slice(1) })
  assert.equal(taken.status, 202)
  assert.equal(taken.body.results.length, 1_000)
  assert.equal(await api.record('product', 't-0'), null)
  assert.equal((await api.record('product', 't-1000')).id, 't-1000')
})

test('eight mebibytes are accepted, more is not, compressed or plain', async () => {
  const filled = (bytes: number) => JSON.stringify({ records: [aRecord('order', { data: { x: 'x'.repeat(bytes) } })] })
  assert.equal((await api.post('/v1/orders/batch', filled(8 * 1_048_576 - 500))).status, 202)
  assert.equal((await api.post('/v1/orders/batch', filled(8 * 1_048_576))).status, 413)
  const answer = await api.server.request('/v1/orders/batch', {
    method: 'POST',
    key: api.server.tenant.privateKey,
    headers: { 'content-encoding': 'gzip' },
    body: gzipSync(filled(9 * 1_048_576)) as unknown as string,
  })
  assert.equal(answer.status, 413)
})

const refused: [what: string, body: string, type: string, status: number][] = [
  ['no records', '{}', 'application/json', 400],
  ['records that are no list', '{"records":{}}', 'application/json', 400],
  ['an empty list', '{"records":[]}', 'application/json', 400],
  ['a bare list', '[]', 'application/json', 400],
  ['no JSON', '{"records":[', 'application/json', 400],
  ['no lines', '\n\n', 'application/x-ndjson', 400],
  ['another type', '{"records":[{}]}', 'text/plain', 415],
]

for (const [what, body, type, status] of refused) {
  test(`a batch with ${what} is ${status}, and nothing is enqueued`, async () => {
    const before = await api.entries()
    const answer = await api.post('/v1/orders/batch', body, { headers: { 'content-type': type } })
    assert.equal(answer.status, status)
    assert.equal(answer.headers.get('content-type'), 'application/problem+json')
    assert.equal(await api.entries(), before)
  })
}

test('a batch of only invalid items is 202 and accepts none', async () => {
  const before = await api.entries()
  const answer = await api.post('/v1/orders/batch', { records: [{}, {}] })
  assert.equal(answer.status, 202)
  assert.ok(answer.body.results.every(({ accepted }: { accepted: boolean }) => !accepted))
  assert.equal(await api.entries(), before)
})
