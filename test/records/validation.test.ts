import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type Answer, type Api, aRecord, openApi } from './api.ts'

let api: Api
before(async () => {
  api = await openApi()
})
after(() => api.close())

/** Checks the form of a rejection. Returns the sorted pointers of its errors. */
function rejectedPointers(answer: Answer, status: number, code: string): string[] {
  assert.equal(answer.status, status, JSON.stringify(answer.body))
  assert.equal(answer.headers.get('content-type'), 'application/problem+json')
  assert.equal(answer.body.status, status)
  assert.equal(answer.body.code, code)
  assert.equal(answer.body.request_id, answer.headers.get('x-request-id'))
  for (const field of ['type', 'title', 'detail']) assert.equal(typeof answer.body[field], 'string')
  const errors = (answer.body.errors ?? []) as { pointer: string; message: string }[]
  for (const { message } of errors) assert.equal(typeof message, 'string')
  return errors.map(({ pointer }) => pointer).sort()
}

const good = { entityType: 'contact', id: 'c', sourceUpdatedAt: '2026-01-01T00:00:00Z' }

const bodies: [what: string, body: unknown, pointers: string[]][] = [
  ['nothing at all', {}, ['/entityType', '/id', '/sourceUpdatedAt']],
  [
    'all validation errors at once',
    {
      entityType: 'person',
      id: 7,
      sourceUpdatedAt: 'yesterday',
      externalId: '',
      idempotencyKey: 1,
      data: [],
    },
    ['/data', '/entityType', '/externalId', '/id', '/idempotencyKey', '/sourceUpdatedAt'],
  ],
  ['another type than the path', { ...good, entityType: 'order' }, ['/entityType']],
  ['another type and no id', { entityType: 'order', sourceUpdatedAt: '2026-01-01' }, ['/entityType', '/id']],
  ['an empty id', { ...good, id: '' }, ['/id']],
  ['a null id', { ...good, id: null }, ['/id']],
  ['data that is null', { ...good, data: null }, ['/data']],
  ['data that is a string', { ...good, data: 'x' }, ['/data']],
  ['an empty idempotency key', { ...good, idempotencyKey: '' }, ['/idempotencyKey']],
  ['a key of 256 characters', { ...good, idempotencyKey: 'x'.repeat(256) }, ['/idempotencyKey']],
  ['a key with a line break', { ...good, idempotencyKey: 'a\nb' }, ['/idempotencyKey']],
  ['a NUL in data', { ...good, data: { a: { b: ['x\0y'] } } }, ['/data/a/b/0']],
  ['a NUL in a field name', { ...good, data: { 'a\0b': 1 } }, ['/data/a\ufffdb']],
  ['a NUL in the id', { ...good, id: 'a\0' }, ['/id']],
  ['half a surrogate pair', { ...good, data: { a: '\ud800', b: 'x\udc00' } }, ['/data/a', '/data/b']],
  [
    'NUL and a missing id',
    { entityType: 'contact', sourceUpdatedAt: '2026-01-01', data: { a: '\0' } },
    ['/data/a', '/id'],
  ],
  ['a list', [], ['']],
  ['a string', 'x', ['']],
  ['null', null, ['']],
]

for (const [what, body, pointers] of bodies) {
  test(`${what} is rejected with every error listed, and nothing is enqueued`, async () => {
    const before = await api.entries()
    const answer = await api.post('/v1/contacts', JSON.stringify(body))
    assert.deepEqual(rejectedPointers(answer, 400, 'invalid_request'), pointers.toSorted())
    assert.equal(await api.entries(), before)
  })
}

test('a missing field is reported with what to send', async () => {
  const { body } = await api.post('/v1/contacts', '{}')
  assert.deepEqual(body.errors, [
    { pointer: '/entityType', message: 'is required and must be "contact"' },
    { pointer: '/id', message: 'is required' },
    {
      pointer: '/sourceUpdatedAt',
      message: 'is required: the time of the last change in your system, for example 2026-01-31T09:30:00Z',
    },
  ])
})

const timestamps: [text: unknown, instant: string | null][] = [
  ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31T09:30:00.123456789Z', '2026-01-31T09:30:00.123Z'],
  ['2026-01-31T09:30:00+02:00', '2026-01-31T07:30:00.000Z'],
  ['2026-01-31T09:30:00-0530', '2026-01-31T15:00:00.000Z'],
  ['2026-01-31T09:30:00', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31T09:30', '2026-01-31T09:30:00.000Z'],
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ['2026-02-29', null],
  ['2026-13-01', null],
  ['2026-01-31T24:30:00Z', null],
  ['2026-01-31T09:60:00Z', null],
  ['31.01.2026', null],
  ['2026-01', null],
  ['2026', null],
  ['now', null],
  ['', null],
  [' 2026-01-31', null],
  ['1769851800', null],
  [1769851800, null],
  [null, null],
  ['infinity', null],
]

test('timestamps are ISO 8601: without a zone UTC, a bare date 00:00 UTC, anything else 400', async () => {
  for (const [i, [text, instant]] of timestamps.entries()) {
    const answer = await api.write('order', { id: `time-${i}`, sourceUpdatedAt: text })
    if (instant === null) {
      assert.deepEqual(rejectedPointers(answer, 400, 'invalid_request'), ['/sourceUpdatedAt'], String(text))
    } else {
      assert.equal(answer.status, 202, String(text))
      assert.equal((await api.record('order', `time-${i}`)).sourceUpdatedAt, instant)
    }
  }
})

const malformed: [
  what: string,
  body: string | Buffer,
  headers: Record<string, string>,
  status: number,
  code: string,
][] = [
  ['no JSON', '{"entityType":', {}, 400, 'malformed_json'],
  ['nothing', '', {}, 400, 'malformed_json'],
  ['NaN', '{"data":{"a":NaN}}', {}, 400, 'malformed_json'],
  ['a raw NUL', '{"entityType":"contact\0"}', {}, 400, 'malformed_json'],
  ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), {}, 400, 'malformed_text'],
  ['gzip that is none', 'not gzip', { 'content-encoding': 'gzip' }, 400, 'malformed_gzip'],
  ['gzip cut short', gzipSync('{}').subarray(0, 12), { 'content-encoding': 'gzip' }, 400, 'malformed_gzip'],
  ['an encoding that is not known', '{}', { 'content-encoding': 'br' }, 415, 'unsupported_encoding'],
  ['plain text', '{}', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
  ['a form', 'a=1', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'unsupported_media_type'],
  ['ten megabytes', `{"x":"${'x'.repeat(10_000_000)}"}`, {}, 413, 'payload_too_large'],
  ['gzip of ten megabytes', gzipSync('x'.repeat(10_000_000)), { 'content-encoding': 'gzip' }, 413, 'payload_too_large'],
  ['nesting without end', `{"data":${'['.repeat(100_000)}`, {}, 400, 'malformed_json'],
]

for (const [what, body, headers, status, code] of malformed) {
  test(`a body of ${what} is ${status} ${code}, and nothing is enqueued`, async () => {
    const before = await api.entries()
    for (const method of ['POST', 'DELETE']) {
      const answer = await api.server.request('/v1/contacts', {
        method,
        key: api.server.tenant.privateKey,
        headers: { 'content-type': 'application/json', ...headers },
        body: body as string,
      })
      rejectedPointers(answer, status, code)
    }
    assert.equal(await api.entries(), before)
  })
}

test('a body just under the limit is accepted', async () => {
  const data = { text: 'x'.repeat(1_048_576 - 200) }
  assert.equal((await api.write('contact', { id: 'large', data })).status, 202)
  assert.equal((await api.record('contact', 'large')).data.text.length, data.text.length)
})

test('gzip is accepted', async () => {
  const answer = await api.server.request('/v1/contacts', {
    method: 'POST',
    key: api.server.tenant.privateKey,
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    body: gzipSync(JSON.stringify(aRecord('contact', { id: 'zipped', data: { a: 'ü' } }))) as unknown as string,
  })
  assert.equal(answer.status, 202)
  assert.deepEqual((await api.record('contact', 'zipped')).data, { a: 'ü' })
})

test('any JSON type with a charset or suffix is accepted', async () => {
  for (const type of ['application/json; charset=utf-8', 'application/vnd.shop+json', 'APPLICATION/JSON']) {
    const headers = { 'content-type': type }
    assert.equal((await api.write('contact', { id: 'typed' }, { headers })).status, 202)
  }
})

test('unusual characters that PostgreSQL can store are accepted', async () => {
  const data = { text: '\u0001\u007f\ufffe\uffff\\u0000 \u2028🦀', '': 'empty key', 'a"b\\c': [[]] }
  await api.write('contact', { id: 'odd', data })
  assert.deepEqual((await api.record('contact', 'odd')).data, data)
})

test('numbers that PostgreSQL cannot store are rejected with their field', async () => {
  const body = `{"entityType":"contact","id":"n","sourceUpdatedAt":"2026-01-01","data":{"a":1e999,"b":[-1e500]}}`
  const answer = await api.post('/v1/contacts', body)
  assert.deepEqual(rejectedPointers(answer, 400, 'invalid_request'), ['/data/a', '/data/b/0'])
})
