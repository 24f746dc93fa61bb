import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import type { App } from '../../src/http/app.ts'
import type { RawBody } from '../../src/http/body.ts'
import { eventually } from '../eventually.ts'
import { runs } from '../long.ts'
import { exchange, listen, openShell, problemIn } from './shell.ts'

const KIB = 1024
const JSON_TYPE = { 'content-type': 'application/json' }

function routes(app: App): void {
  const echo = async (request: { body: unknown; rawText: string }) => ({
    body: request.body,
    text: request.rawText,
  })
  app.post('/json', echo)
  app.delete('/json', echo)
  app.post('/optional', { config: { body: 'optional-json' } }, echo)
  app.post('/none', { config: { body: 'none' } }, async () => ({}))
  app.post('/small', { config: { bodyLimit: KIB } }, async () => ({}))
  app.post(
    '/varying',
    { config: { body: 'raw', bodyLimit: request => Number(request.headers['x-limit']) } },
    async () => ({}),
  )
  app.post('/raw', { config: { body: 'raw' } }, async request => {
    const { raw, text } = request.body as RawBody
    return { hex: raw.toString('hex'), text, same: text === request.rawText }
  })
}

test('JSON is accepted with any JSON Content-Type, and with no other', async t => {
  const { app } = await openShell(t, routes)
  for (const type of ['application/json', 'Application/JSON; charset=utf-8', 'application/vnd.shop.v1+json']) {
    const answer = await app.inject({
      method: 'POST',
      url: '/json',
      payload: '{"a":1}',
      headers: { 'content-type': type },
    })
    assert.deepEqual(answer.json(), { body: { a: 1 }, text: '{"a":1}' })
  }
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'garbage']) {
    const answer = await app.inject({
      method: 'POST',
      url: '/json',
      payload: '{"a":1}',
      headers: { 'content-type': type },
    })
    assert.equal(answer.statusCode, 415)
    assert.equal(problemIn(answer).code, 'unsupported_media_type')
  }
})

test('a body without a Content-Type is 415', async t => {
  const { app } = await openShell(t, routes)
  const port = await listen(app)
  const answer = await exchange(
    port,
    'POST /json HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}',
  )
  assert.match(answer, /^HTTP\/1\.1 415 /)
})

test('a body that is not JSON is a 400 problem that does not quote the body', async t => {
  const { app } = await openShell(t, routes)
  for (const payload of ['', ' ', '{', '{"secret": tru}', "{'a': 1}", 'undefined', '{"a":1}{"a":2}', '[1,]']) {
    for (const method of ['POST', 'DELETE'] as const) {
      const answer = await app.inject({ method, url: '/json', payload, headers: JSON_TYPE })
      assert.equal(answer.statusCode, 400, payload)
      assert.equal(problemIn(answer).code, 'malformed_json')
      assert.doesNotMatch(answer.body, /secret/)
    }
  }
})

test('a missing body is malformed if it is required, and accepted if it is optional', async t => {
  const { app } = await openShell(t, routes)
  const needed = await app.inject({ method: 'DELETE', url: '/json' })
  assert.equal(needed.statusCode, 400)
  assert.equal(problemIn(needed).code, 'malformed_json')
  assert.deepEqual((await app.inject({ method: 'POST', url: '/optional' })).json(), { body: {}, text: '' })
  const wrong = { method: 'POST', url: '/optional', payload: 'a', headers: { 'content-type': 'text/plain' } }
  assert.equal((await app.inject(wrong as { method: 'POST' })).statusCode, 415)
  assert.equal((await app.inject({ method: 'POST', url: '/none', payload: 'a' })).statusCode, 200)
})

test('extremely deep nesting is rejected', async t => {
  const { app } = await openShell(t, routes)
  const payload = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  const answer = await app.inject({ method: 'POST', url: '/json', payload, headers: JSON_TYPE })
  assert.equal(answer.statusCode, 400)
  assert.equal(problemIn(answer).code, 'malformed_json')
})

test('integers beyond 2^53 keep all their digits', async t => {
  const { app } = await openShell(t, routes)
  const payload = '{"id":12345678901234567890}'
  const answer = await app.inject({ method: 'POST', url: '/json', payload, headers: JSON_TYPE })
  assert.deepEqual(answer.json().body, { id: '12345678901234567890' })
})

test('invalid UTF-8 is rejected by JSON routes and replaced by raw routes; a byte order mark is ignored', async t => {
  const { app } = await openShell(t, routes)
  const payload = Buffer.from([0x22, 0xff, 0x22])
  const json = await app.inject({ method: 'POST', url: '/json', payload, headers: JSON_TYPE })
  assert.equal(json.statusCode, 400)
  assert.equal(problemIn(json).code, 'malformed_text')
  const raw = await app.inject({ method: 'POST', url: '/raw', payload })
  assert.deepEqual(raw.json(), { hex: '22ff22', text: '"\ufffd"', same: true })

  const marked = Buffer.from('\ufeff{}')
  const json2 = await app.inject({ method: 'POST', url: '/json', payload: marked, headers: JSON_TYPE })
  assert.deepEqual(json2.json(), { body: {}, text: '{}' })
  const raw2 = await app.inject({ method: 'POST', url: '/raw', payload: marked })
  assert.deepEqual(raw2.json(), { hex: 'efbbbf7b7d', text: '{}', same: true })
})

test('a raw route accepts any Content-Type, including an invalid one or none', async t => {
  const { app } = await openShell(t, routes)
  const port = await listen(app)
  for (const header of ['', 'content-type: text/plain\r\n', 'content-type: @@\r\n', 'content-type: \r\n']) {
    const answer = await exchange(
      port,
      `POST /raw HTTP/1.1\r\nhost: a\r\nconnection: close\r\n${header}content-length: 2\r\n\r\n{}`,
    )
    assert.match(answer, /^HTTP\/1\.1 200 /, header)
    assert.match(answer, /"hex":"7b7d"/)
  }
})

test('any gzipped body is decompressed to the original bytes', async t => {
  const { app } = await openShell(t, routes)
  const headers = { 'content-encoding': 'gzip', 'content-type': 'application/x-www-form-urlencoded' }
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 40_000, size: 'max' }), async bytes => {
      const answer = await app.inject({ method: 'POST', url: '/raw', payload: gzipSync(bytes), headers })
      assert.equal(answer.json().hex, Buffer.from(bytes).toString('hex'))
    }),
    { numRuns: runs(30) },
  )
})

test('invalid or truncated gzip is a 400 problem; other encodings are 415', async t => {
  const { app } = await openShell(t, routes)
  const whole = gzipSync(JSON.stringify({ a: 'x'.repeat(100_000) }), { level: 0 })
  for (const payload of [Buffer.from('{}'), whole.subarray(0, 500), whole.subarray(0, -4)]) {
    for (const encoding of ['gzip', 'x-gzip', 'GZIP']) {
      const headers = { ...JSON_TYPE, 'content-encoding': encoding }
      const answer = await app.inject({ method: 'POST', url: '/json', payload, headers })
      assert.equal(answer.statusCode, 400)
      assert.equal(problemIn(answer).code, 'malformed_gzip')
    }
  }
  for (const encoding of ['br', 'deflate', 'gzip, gzip', 'zstd']) {
    const headers = { ...JSON_TYPE, 'content-encoding': encoding }
    const answer = await app.inject({ method: 'POST', url: '/json', payload: '{}', headers })
    assert.equal(answer.statusCode, 415)
    assert.equal(answer.headers['accept-encoding'], 'gzip')
  }
  const headers = { ...JSON_TYPE, 'content-encoding': 'identity' }
  assert.equal((await app.inject({ method: 'POST', url: '/json', payload: '{}', headers })).statusCode, 200)
})

test('the limit applies to the decompressed size, exact to the byte', async t => {
  const { app } = await openShell(t, routes)
  const padded = (length: number) => `"${'x'.repeat(length - 2)}"`
  const status = async (payload: string | Buffer, encoding: object = {}) =>
    (await app.inject({ method: 'POST', url: '/small', payload, headers: { ...JSON_TYPE, ...encoding } })).statusCode
  const gzip = { 'content-encoding': 'gzip' }
  assert.equal(await status(padded(KIB)), 200)
  assert.equal(await status(padded(KIB + 1)), 413)
  assert.equal(await status(gzipSync(padded(KIB)), gzip), 200)
  assert.equal(await status(gzipSync(padded(KIB), { level: 0 }), gzip), 200)
  assert.equal(await status(gzipSync(padded(KIB + 1)), gzip), 413)
})

test('a gzip bomb is rejected without being decompressed completely', async t => {
  const { app } = await openShell(t, routes)
  const bomb = gzipSync(Buffer.alloc(64 * KIB * KIB))
  const headers = { ...JSON_TYPE, 'content-encoding': 'gzip' }
  const before = process.memoryUsage().rss
  const answer = await app.inject({ method: 'POST', url: '/json', payload: bomb, headers })
  assert.equal(answer.statusCode, 413)
  assert.equal(problemIn(answer).code, 'payload_too_large')
  assert(process.memoryUsage().rss - before < 32 * KIB * KIB)
})

test('a limit may depend on the request', async t => {
  const { app } = await openShell(t, routes)
  const status = async (limit: string) =>
    (await app.inject({ method: 'POST', url: '/varying', payload: '12345', headers: { 'x-limit': limit } })).statusCode
  assert.equal(await status('5'), 200)
  assert.equal(await status('4'), 413)
})

test('a client that sends too much gets a 413, and its connection stays usable', async t => {
  const { app } = await openShell(t, routes)
  const port = await listen(app)
  const large = Buffer.alloc(3 * KIB * KIB, ' ')
  const head = (length: string, close = '') =>
    `POST /json HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${length}${close}\r\n`
  const answers = await exchange(
    port,
    head(`content-length: ${large.length}\r\n`),
    large,
    head('transfer-encoding: chunked\r\n'),
    `${large.length.toString(16)}\r\n`,
    large,
    '\r\n0\r\n\r\n',
    `${head('content-length: 2\r\n', 'connection: close\r\n')}{}`,
  )
  assert.deepEqual(
    answers.match(/^HTTP\/1\.1 \d+|HTTP\/1\.1 \d+ /g)?.map(line => line.slice(9, 12)),
    ['413', '413', '200'],
  )
})

test('a body with a huge Content-Length is rejected immediately', async t => {
  const { app } = await openShell(t, routes)
  const port = await listen(app)
  const answer = await exchange(
    port,
    'POST /json HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 9999999999\r\n\r\n{',
  )
  assert.match(answer, /^HTTP\/1\.1 413 /)
  assert.match(answer, /connection: close/i)
})

test('many small chunks are one body', async t => {
  const { app } = await openShell(t, routes)
  const port = await listen(app)
  const text = JSON.stringify({ euro: '€'.repeat(20) })
  // one byte per chunk, so that every multi-byte character is split
  const chunks = [...Buffer.from(text)].map(byte => Buffer.from([0x31, 0x0d, 0x0a, byte, 0x0d, 0x0a]))
  const answer = await exchange(
    port,
    'POST /json HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
    ...chunks,
    '0\r\n\r\n',
  )
  assert.match(answer, /€{20}/)
})

test('a client that disconnects while it sends its body does not affect others', async t => {
  const { app, lines } = await openShell(t, routes)
  const port = await listen(app)
  await new Promise<void>(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(
        'POST /json HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{',
        () => socket.destroy(),
      )
    })
    socket.on('close', () => resolve())
  })
  await eventually('its log line', () => lines.some(line => line.code === 'incomplete_body'))
  assert.equal((await app.inject({ method: 'POST', url: '/json', payload: {} })).statusCode, 200)
})
