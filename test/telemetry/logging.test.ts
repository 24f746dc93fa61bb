import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newKey, newToken } from '../../src/domain/tenants/keys.ts'
import { problems } from '../../src/http/problems.ts'
import { openLogger, redactUrl } from '../../src/telemetry/logging.ts'
import { openShell } from '../http/shell.ts'

test('a request is logged in one line, without credentials', async t => {
  const { app, lines } = await openShell(t, app => {
    app.get('/v1/projects/:writeKey/settings', async () => ({}))
  })
  const key = newKey('tracking')
  await app.inject({
    url: `/v1/projects/${key}/settings?writeKey=${key}&key=${key}&page=2`,
    headers: {
      authorization: `Bearer ${key}`,
      'x-api-key': key,
      'x-write-key': key,
      cookie: `session=${key}`,
      'user-agent': 'curl/8',
      'x-request-id': 'mine',
    },
  })
  assert.equal(lines.length, 1)
  const [line] = lines
  assert(line)
  assert.doesNotMatch(JSON.stringify(lines), new RegExp(key.slice(4)))
  assert.equal(line.level, 'debug')
  assert.equal(line.request_id, 'mine')
  assert.equal(line.route, '/v1/projects/:writeKey/settings')
  assert.equal(line.url, '/v1/projects/trk_[redacted]/settings?writeKey=[redacted]&key=[redacted]&page=2')
  assert.equal(line.status, 200)
  assert.equal(line.user_agent, 'curl/8')
  assert.equal(typeof line.duration_ms, 'number')
})

test('an outage is logged once per second, with the number of requests that the line represents', async t => {
  const lines: Record<string, unknown>[] = []
  const log = openLogger({
    level: 'info',
    pretty: false,
    to: { write: line => lines.push(JSON.parse(line)) },
  })
  const { app } = await openShell(
    t,
    app => {
      app.get('/away', async () => {
        throw problems.unavailable()
      })
      app.get('/boom', async () => {
        throw new Error('boom')
      })
    },
    { log },
  )
  let at = 1_000_000
  t.mock.method(performance, 'now', () => at)
  for (let i = 0; i < 50; i++) await app.inject('/away')
  for (let i = 0; i < 3; i++) await app.inject('/boom')
  at += 1_001
  for (let i = 0; i < 5; i++) await app.inject('/away')
  assert.deepEqual(
    lines.map(({ status, suppressed_before }) => [status, suppressed_before]),
    [
      [503, 0],
      [500, undefined],
      [500, undefined],
      [500, undefined],
      [503, 49],
    ],
  )
})

test('credentials in logged headers are redacted', () => {
  const written: string[] = []
  const log = openLogger({ level: 'info', pretty: false, to: { write: line => written.push(line) } })
  const headers = { authorization: 'a-secret', 'x-api-key': 'b-secret', cookie: 'c-secret', host: 'kept' }
  log.info({ headers }, 'flat')
  log.info({ req: { headers: { ...headers, 'x-write-key': 'd-secret' } } }, 'deep')
  log.info(headers, 'bare')
  assert.equal(written.length, 3)
  for (const line of written) {
    assert.doesNotMatch(line, /secret/)
    assert.match(line, /kept/)
  }
  assert.equal(headers.authorization, 'a-secret')
})

test('transient errors are logged without a stack, unexpected ones with it', () => {
  const lines: { err: Record<string, unknown> }[] = []
  const to = { write: (line: string) => lines.push(JSON.parse(line)) }
  const log = openLogger({ level: 'info', pretty: false, to })
  const passing = [
    Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), {
      code: 'ECONNREFUSED',
      syscall: 'connect',
    }),
    Object.assign(new Error('the database system is starting up'), { code: '57P03', severity: 'FATAL' }),
    Object.assign(new Error('deadlock detected'), { code: '40P01' }),
    new Error('timeout exceeded when trying to connect'),
  ]
  for (const err of passing) log.warn({ err, job: 'any' }, 'a job failed and will be retried')
  for (const { err } of lines) assert.deepEqual([typeof err.message, err.stack], ['string', undefined])
  assert.equal(lines[1]!.err.code, '57P03')
  const unforeseen = [
    new TypeError('x is not a function'),
    Object.assign(new Error('column "x" does not exist'), { code: '42703' }),
    Object.assign(new Error('invalid'), { code: 'ERR_INVALID_ARG_TYPE' }),
  ]
  for (const err of unforeseen) log.error({ err }, 'the pipeline failed')
  for (const { err } of lines.slice(passing.length)) assert.match(String(err.stack), /logging\.test/)
  log.info({ err: undefined }, 'nothing')
  log.info({ err: 'a string' }, 'words')
  assert.equal(lines.at(-1)!.err, 'a string')
})

test('only secrets are redacted in a URL', () => {
  for (const secret of [newKey('private'), newKey('admin'), newToken(), 'whsec_abc+%2F='])
    assert.doesNotMatch(redactUrl(`/x/${secret}?a=${secret}`), new RegExp(secret.slice(-4).replace(/\W/g, '\\$&')))
  assert.equal(redactUrl('/v1/events?limit=5&monkey=1&cursor=abc'), '/v1/events?limit=5&monkey=1&cursor=abc')
})
