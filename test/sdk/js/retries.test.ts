import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Kontor, KontorError } from '../../../sdk/js/src/index.ts'
import { all } from './rows.ts'
import { notePauses, scriptedService } from './scripted.ts'

const privateKey = 'private-x'

function assertWithin(pauses: number[], bounds: [number, number][]): void {
  assert.equal(pauses.length, bounds.length, String(pauses))
  for (const [index, [from, to]] of bounds.entries())
    assert.ok(pauses[index]! >= from && pauses[index]! <= to, `pause ${index} is ${pauses[index]} ms`)
}

test('network failures, 429 and 5xx are retried with growing delays, with the same key and body', async t => {
  const pauses = notePauses(t)
  const service = await scriptedService(t, 'hang up', { status: 500 }, { status: 429 }, { status: 502 })
  const kontor = new Kontor({ url: service.url, privateKey })
  await kontor.products.upsert({ id: 'p-1', data: { a: 1 } })
  assert.equal(service.asked.length, 5)
  const [first, ...others] = service.asked
  assert.ok(first!.body.idempotencyKey.length >= 20)
  for (const { body } of others) assert.deepEqual(body, first!.body)
  assertWithin(pauses, [
    [125, 250],
    [250, 500],
    [500, 1_000],
    [1_000, 2_000],
  ])
})

test('every call has its own key', async t => {
  const service = await scriptedService(t)
  const kontor = new Kontor({ url: service.url, privateKey })
  await kontor.products.upsert({ id: 'p-1' })
  await kontor.products.upsert({ id: 'p-1' })
  await kontor.products.delete({ id: 'p-1' }, { idempotencyKey: 'mine' })
  const [a, b, c] = service.asked.map(({ body }) => body.idempotencyKey)
  assert.notEqual(a, b)
  assert.equal(c, 'mine')
})

test('Retry-After is respected, in seconds and as a date', async t => {
  const pauses = notePauses(t)
  const date = new Date(Date.now() + 55_000).toUTCString()
  const headers = (retryAfter: string) => ({ 'retry-after': retryAfter })
  const service = await scriptedService(
    t,
    { status: 503, headers: headers('7') },
    { status: 429, headers: headers(date) },
  )
  const kontor = new Kontor({ url: service.url, privateKey })
  await kontor.orders.get('o-1')
  // some of the time until that date has passed
  assertWithin(pauses, [
    [7_125, 7_250],
    [5_000, 55_500],
  ])
})

test('a Retry-After of more than a minute is returned to the caller', async t => {
  const pauses = notePauses(t)
  const service = await scriptedService(t, { status: 429, headers: { 'retry-after': '3600' } })
  const kontor = new Kontor({ url: service.url, privateKey })
  await assert.rejects(kontor.orders.get('o-1'), { status: 429, retryAfterS: 3_600 })
  assert.deepEqual(pauses, [])
})

test('a rejected request is not retried', async t => {
  const problem = { code: 'insufficient_scope', detail: 'No.', request_id: 'req_1', status: 403 }
  const service = await scriptedService(t, { status: 403, body: JSON.stringify(problem) })
  const kontor = new Kontor({ url: service.url, privateKey })
  await assert.rejects(kontor.orders.get('o-1'), (error: KontorError) => {
    assert.ok(error instanceof KontorError)
    const { name, message, status, code, requestId, errors } = error
    assert.deepEqual([name, message], ['KontorError', 'No.'])
    assert.deepEqual([status, code, requestId, errors], [403, 'insufficient_scope', 'req_1', []])
    return true
  })
  assert.equal(service.asked.length, 1)
})

test('after the last retry, the last error is thrown', async t => {
  notePauses(t)
  const page = { status: 502, headers: { 'x-request-id': 'req_2' }, body: '<h1>Bad Gateway</h1>' }
  const service = await scriptedService(t, page, page, page, page)
  const kontor = new Kontor({ url: service.url, privateKey, maxRetries: 2 })
  await assert.rejects(kontor.orders.get('o-1'), { status: 502, code: 'http_error', requestId: 'req_2' })
  assert.equal(service.asked.length, 3)
})

test('an unreachable server gives a KontorError with status 0 and the cause', async t => {
  notePauses(t)
  const service = await scriptedService(t, 'hang up')
  const kontor = new Kontor({ url: service.url, privateKey, maxRetries: 0 })
  await assert.rejects(kontor.orders.get('o-1'), (error: KontorError) => {
    assert.deepEqual([error.status, error.code], [0, 'network_error'])
    return error.cause instanceof Error
  })
})

test('a timeout is handled like a network failure', async t => {
  const service = await scriptedService(t, { after: new Promise(() => undefined) })
  const kontor = new Kontor({ url: service.url, privateKey, timeoutMs: 50, maxRetries: 0 })
  await assert.rejects(kontor.orders.get('o-1'), { status: 0, code: 'timeout' })
})

test('an incomplete response is handled like a missing one', async t => {
  notePauses(t)
  const service = await scriptedService(t, { body: '{"id":"o-1","da' }, { body: '{"id":"o-1"}' })
  const kontor = new Kontor({ url: service.url, privateKey })
  assert.deepEqual(await kontor.orders.get('o-1'), { id: 'o-1' })
})

test('a redirect is an error with its target, because a POST would become a GET', async t => {
  const service = await scriptedService(t, {
    status: 301,
    headers: { location: 'https://elsewhere.example/' },
  })
  const kontor = new Kontor({ url: service.url, privateKey })
  await assert.rejects(kontor.orders.upsert({ id: 'o-1' }), {
    status: 301,
    message: /https:\/\/elsewhere\.example/,
  })
  assert.equal(service.asked.length, 1)
})

test('a 404 that is not from Kontor is an error, not a missing object', async t => {
  const service = await scriptedService(t, { status: 404, body: 'nginx' })
  const kontor = new Kontor({ url: service.url, privateKey })
  await assert.rejects(kontor.orders.get('o-1'), { status: 404 })
})

test('a batch that fails permanently reports each item, and the next batch is sent', async t => {
  const accepted = { accepted: true, duplicate: false, operationId: 'x' }
  const good = (count: number) => ({
    status: 202,
    body: JSON.stringify({ results: Array.from({ length: count }, (_, index) => ({ index, ...accepted })) }),
  })
  const service = await scriptedService(t, good(1_000), { status: 503 }, good(499))
  const kontor = new Kontor({ url: service.url, privateKey, maxRetries: 0 })
  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  const records = Array.from({ length: 2_500 }, (_, n) => ({ id: `p-${n}`, data: n === 2_400 ? cyclic : {} }))
  const results = await all(kontor.products.upsertMany(records))
  assert.deepEqual(
    results.map(({ index, id }) => `${index} ${id}`),
    records.map(({ id }, index) => `${index} ${id}`),
  )
  const refused = results.filter(result => !result.accepted)
  assert.deepEqual([refused[0]!.index, refused[999]!.index, refused[1_000]!.index], [1_000, 1_999, 2_400])
  assert.equal(refused.length, 1_001)
  assert.equal(refused[0]!.error!.status, 503)
  assert.match(refused[1_000]!.errors[0]!.message, /circular/)
  assert.equal(service.asked[2]!.body.records.length, 499)
})

test('large records are sent in smaller batches, and only while results are read', async t => {
  const service = await scriptedService(t)
  const kontor = new Kontor({ url: service.url, privateKey, maxRetries: 0 })
  const data = { text: 'ü'.repeat(900_000) }
  let read = 0
  let isClosed = false
  function* records() {
    try {
      for (;;) yield { id: `p-${read++}`, data }
    } finally {
      isClosed = true
    }
  }
  for await (const _ of kontor.products.upsertMany(records())) break
  assert.equal(service.asked.length, 1)
  assert.equal(service.asked[0]!.body.records.length, 2)
  assert.deepEqual([read, isClosed], [3, true])
})
