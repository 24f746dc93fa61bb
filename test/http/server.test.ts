import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AdminError } from '../../src/admin/error.ts'
import type { App } from '../../src/http/app.ts'
import { problems } from '../../src/http/problems.ts'
import { Overloaded } from '../../src/overload/limits.ts'
import { openShell, problemIn } from './shell.ts'

function things(app: App): void {
  app.get('/v1/things/:id', async request => ({ id: (request.params as { id: string }).id }))
  app.post('/v1/things', async () => ({}))
  app.get('/text', async (_request, reply) => reply.type('application/json').send('{"as": "it is"}'))
  app.get('/page', async (_request, reply) => reply.type('text/html').send('<p>'))
}

test('an unknown path is a 404 problem', async t => {
  const { app } = await openShell(t, things)
  for (const url of ['/nope', '/v1/Things/7', '/v1', '/v1/things/7/8']) {
    const answer = await app.inject(url)
    assert.equal(answer.statusCode, 404)
    assert.equal(problemIn(answer).code, 'not_found')
  }
})

test('a known path with another method is 405 and lists the allowed methods', async t => {
  const { app } = await openShell(t, things)
  const put = await app.inject({ method: 'PUT', url: '/v1/things/?a=b' })
  assert.equal(put.statusCode, 405)
  assert.equal(put.headers.allow, 'POST, OPTIONS')
  assert.equal(problemIn(put).code, 'method_not_allowed')
  const post = await app.inject({ method: 'POST', url: '/v1/things/7', payload: {} })
  assert.equal(post.statusCode, 405)
  assert.equal(post.headers.allow, 'GET, HEAD, OPTIONS')
})

test('OPTIONS returns the methods of a path, HEAD responds like GET without a body', async t => {
  const { app } = await openShell(t, things)
  const options = await app.inject({ method: 'OPTIONS', url: '/v1/things/7' })
  assert.equal(options.statusCode, 204)
  assert.equal(options.headers.allow, 'GET, HEAD, OPTIONS')
  assert.equal((await app.inject({ method: 'OPTIONS', url: '/nope' })).statusCode, 404)

  const head = await app.inject({ method: 'HEAD', url: '/v1/things/7' })
  assert.equal(head.statusCode, 200)
  assert.equal(head.headers['content-length'], '10')
  assert.equal(head.body, '')
  const missing = await app.inject({ method: 'HEAD', url: '/nope' })
  assert.equal(missing.statusCode, 404)
})

test('a trailing slash does not matter', async t => {
  const { app } = await openShell(t, things)
  assert.deepEqual((await app.inject('/v1/things/7/')).json(), { id: '7' })
  assert.equal((await app.inject({ method: 'POST', url: '/v1/things/', payload: {} })).statusCode, 200)
})

test('a path that is not valid percent-encoding is a 400 problem, a long identifier is not', async t => {
  const { app } = await openShell(t, things)
  const bad = await app.inject('/v1/things/%zz')
  assert.equal(bad.statusCode, 400)
  assert.equal(problemIn(bad).code, 'malformed_url')
  const long = '💶'.repeat(255)
  assert.deepEqual((await app.inject(`/v1/things/${encodeURIComponent(long)}`)).json(), { id: long })
})

test('every response has a request id: the one sent if it is usable, otherwise a new one', async t => {
  const { app } = await openShell(t, things)
  const sent = await app.inject({ url: '/v1/things/7', headers: { 'x-request-id': 'My_id-1' } })
  assert.equal(sent.headers['x-request-id'], 'My_id-1')
  const ids = new Set<unknown>()
  for (const unusable of ['', 'has space', 'x'.repeat(129), 'a\u00e9', '"><script>']) {
    for (const url of ['/v1/things/7', '/nope', '/v1/things/%zz']) {
      const id = (await app.inject({ url, headers: { 'x-request-id': unusable } })).headers['x-request-id']
      assert.match(String(id), /^[\w-]{1,128}$/)
      ids.add(id)
    }
  }
  assert.equal(ids.size, 15)
})

test('responses have security headers; pages also have a content security policy and cannot be framed', async t => {
  const { app } = await openShell(t, things)
  for (const url of ['/v1/things/7', '/nope', '/page']) {
    const { headers } = await app.inject(url)
    assert.equal(headers['x-content-type-options'], 'nosniff')
    assert.equal(headers['referrer-policy'], 'no-referrer')
    assert.equal(headers['x-powered-by'], undefined)
    assert.equal(headers.server, undefined)
  }
  const page = await app.inject('/page')
  assert.equal(page.headers['x-frame-options'], 'DENY')
  assert.match(String(page.headers['content-security-policy']), /default-src 'self'.*frame-ancestors 'none'/)
  const data = await app.inject('/v1/things/7')
  assert.equal(data.headers['content-security-policy'], undefined)
  assert.equal(data.headers['cache-control'], 'no-store')
})

test('a string from a handler is sent unchanged', async t => {
  const { app } = await openShell(t, things)
  assert.equal((await app.inject('/text')).body, '{"as": "it is"}')
})

test('an unexpected error is a 500 without internal details, and is logged with its stack', async t => {
  const secret = 'select * from api_keys -- /srv/kontor/src'
  const { app, lines } = await openShell(t, app => {
    app.get('/boom', async () => {
      throw Object.assign(new Error(secret), { statusCode: 418, code: '42P01', detail: secret })
    })
    app.get('/odd', async () => {
      throw undefined
    })
    app.get('/unserializable', async () => ({ n: 1n }))
  })
  for (const url of ['/boom', '/odd', '/unserializable']) {
    const answer = await app.inject(url)
    assert.equal(answer.statusCode, 500)
    assert.equal(problemIn(answer).code, 'internal_error')
    assert.doesNotMatch(answer.body, /select|srv|BigInt|42P01|stack|\.ts/)
  }
  const line = lines.find(line => line.route === '/boom')
  assert(line)
  assert.equal(line.level, 'error')
  assert.match((line.err as { stack: string }).stack, /select \* from api_keys[\s\S]*server\.test\.ts/)
})

test('unavailable storage and overload are 503 with Retry-After in whole seconds', async t => {
  const { app, lines } = await openShell(t, app => {
    app.get('/unavailable', async () => {
      throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:5432'), { code: 'ECONNREFUSED' })
    })
    app.get('/stopping', async () => {
      throw Object.assign(new Error('terminating connection'), { code: '57P01' })
    })
    app.get('/full', async () => {
      throw new Overloaded(1)
    })
  })
  for (const [url, code] of [
    ['/unavailable', 'service_unavailable'],
    ['/stopping', 'service_unavailable'],
    ['/full', 'overloaded'],
  ] as const) {
    const answer = await app.inject(url)
    assert.equal(answer.statusCode, 503)
    assert.match(String(answer.headers['retry-after']), /^[1-9]\d*$/)
    assert.equal(problemIn(answer).code, code)
    assert.doesNotMatch(answer.body, /10\.0\.0\.7|terminating/)
    assert.equal(lines.find(line => line.route === url)?.level, 'warn')
  }
})

test('an error thrown by a handler keeps its status, code, message and headers', async t => {
  const { app } = await openShell(t, app => {
    app.get('/busy', async () => {
      throw problems.tooManyRequests(12.2)
    })
    app.get('/taken', async () => {
      throw new AdminError('conflict', 'name_taken', 'The name is already taken.')
    })
    app.get('/invalid', async () => {
      throw problems.invalid([{ pointer: '/a', message: 'is required' }])
    })
  })
  const busy = await app.inject('/busy')
  assert.equal(busy.statusCode, 429)
  assert.equal(busy.headers['retry-after'], '13')
  const taken = await app.inject('/taken')
  assert.equal(taken.statusCode, 409)
  assert.equal(problemIn(taken).code, 'name_taken')
  const invalid = problemIn(await app.inject('/invalid'))
  assert.deepEqual(invalid.errors, [{ pointer: '/a', message: 'is required' }])
  assert.equal(invalid.detail, 'a is required.')
})

test('hooks of a surface do not affect other surfaces', async t => {
  const { app } = await openShell(t, () => {}, {
    surfaces: [
      {
        name: 'guarded',
        register(app) {
          app.addHook('onRequest', async () => {
            throw problems.forbidden('closed', 'Closed.')
          })
          app.get('/guarded', async () => ({}))
        },
      },
      { name: 'open', register: app => void app.get('/open', async () => ({})) },
    ],
  })
  assert.equal((await app.inject('/guarded')).statusCode, 403)
  assert.equal((await app.inject('/open')).statusCode, 200)
})

test('the client address is taken from X-Forwarded-For only from trusted proxies', async t => {
  const ipOf = async (trustProxy: boolean | number | string[]) => {
    const { app } = await openShell(t, app => void app.get('/ip', async request => request.ip), {
      trustProxy,
    })
    const headers = { 'x-forwarded-for': '203.0.113.9, 10.0.0.2' }
    return (await app.inject({ url: '/ip', headers, remoteAddress: '10.0.0.1' })).body
  }
  assert.equal(await ipOf(false), '10.0.0.1')
  assert.equal(await ipOf(true), '203.0.113.9')
  assert.equal(await ipOf(1), '10.0.0.2')
  assert.equal(await ipOf(['10.0.0.0/8']), '203.0.113.9')
})
