import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { App } from '../../src/http/app.ts'
import { openCors } from '../../src/http/cors.ts'
import { problems } from '../../src/http/problems.ts'
import { openShell } from './shell.ts'

const surfaces = [
  {
    name: 'events',
    register(app: App) {
      openCors(app)
      app.addHook('onRequest', async request => {
        if (request.method !== 'OPTIONS') throw problems.unauthorized('missing_credentials', 'No.')
      })
      app.post('/v1/track', async () => ({}))
      app.get('/v1/projects/:writeKey/settings', async () => ({}))
    },
  },
  {
    name: 'data',
    register(app: App) {
      app.get('/v1/events', async () => ({}))
    },
  },
]

test('preflights of public routes are answered, with the headers that SDKs send', async t => {
  const { app } = await openShell(t, () => {}, { surfaces })
  for (const url of ['/v1/track', '/v1/track/', '/v1/projects/abc/settings']) {
    const answer = await app.inject({
      method: 'OPTIONS',
      url,
      headers: {
        origin: 'https://shop.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'Authorization,RSA-Custom-1,x-evil',
        'content-type': 'garbage',
      },
    })
    assert.equal(answer.statusCode, 204)
    assert.equal(answer.headers['access-control-allow-origin'], '*')
    assert.match(String(answer.headers['access-control-allow-methods']), /POST/)
    assert.match(String(answer.headers['access-control-max-age']), /^\d+$/)
    const allowed = String(answer.headers['access-control-allow-headers']).split(', ')
    for (const name of [
      'authorization',
      'content-type',
      'x-retry-count',
      'anonymousid',
      'sentat',
      'x-write-key',
      'rsa-custom-1',
    ])
      assert(allowed.includes(name), name)
    assert(!allowed.includes('x-evil'))
  }
})

test('errors can be read by the page that caused them', async t => {
  const { app } = await openShell(t, () => {}, { surfaces })
  for (const [method, status] of [
    ['POST', 401],
    ['PUT', 405],
  ] as const) {
    const answer = await app.inject({ method, url: '/v1/track', payload: {} })
    assert.equal(answer.statusCode, status)
    assert.equal(answer.headers['access-control-allow-origin'], '*')
  }
})

test('other surfaces do not allow other origins', async t => {
  const { app } = await openShell(t, () => {}, { surfaces })
  for (const method of ['GET', 'OPTIONS', 'POST'] as const) {
    const answer = await app.inject({
      method,
      url: '/v1/events',
      headers: { origin: 'https://shop.example' },
    })
    assert.equal(answer.headers['access-control-allow-origin'], undefined)
  }
})
