import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type } from 'typebox'
import type { App } from '../../src/http/app.ts'
import { security } from '../../src/http/openapi.ts'
import { launchChromium, openContext } from '../chromium.ts'
import { compareWithOpenApi } from './compare.ts'
import { listen, openShell } from './shell.ts'

const Product = Type.Object(
  { id: Type.String(), sourceUpdatedAt: Type.String({ format: 'timestamp' }) },
  { examples: [{ id: 'p-1', sourceUpdatedAt: '2026-01-31T09:30:00Z' }] },
)

function routes(app: App): void {
  app.post(
    '/v1/products',
    {
      schema: { summary: 'Create or update a product', body: Product, response: { 202: Type.Object({}) } },
      config: { scope: 'products:write', problems: [409] },
    },
    async () => ({}),
  )
  app.get(
    '/v1/products/:id',
    {
      schema: { params: Type.Object({ id: Type.String() }), response: { 200: Product } },
      config: { scope: ['products:read', 'products:write'] },
    },
    async () => ({ id: 'p-1', sourceUpdatedAt: '2026-01-31T09:30:00Z' }),
  )
  app.post(
    '/v1/track',
    { schema: { security: security.tracking, body: Type.Object({}) }, config: { body: 'raw' } },
    async () => ({}),
  )
  app.get('/', async () => ({}))
  app.get('/secret', { schema: { hide: true } }, async () => ({}))
}

test('the document is generated from the schemas of the routes', async t => {
  const { app } = await openShell(t, routes, { publicUrl: 'https://data.example.com', version: '1.2.3' })
  const answer = await app.inject('/openapi.json')
  assert.match(String(answer.headers['content-type']), /^application\/json/)
  const document = answer.json()
  assert.equal(document.openapi, '3.1.0')
  assert.equal(document.info.version, '1.2.3')
  assert.deepEqual(document.servers, [{ url: 'https://data.example.com' }])
  assert.deepEqual(Object.keys(document.paths).sort(), ['/', '/v1/products', '/v1/products/{id}', '/v1/track'])
  const body = document.paths['/v1/products'].post.requestBody.content['application/json'].schema
  assert.equal(body.properties.sourceUpdatedAt.format, 'date-time')
  assert.deepEqual(body.required, ['id', 'sourceUpdatedAt'])
})

test('every operation documents its key and its errors, with examples', async t => {
  const { app } = await openShell(t, routes)
  const document = (await app.inject('/openapi.json')).json()
  const statuses = (path: string, method: string) => Object.keys(document.paths[path][method].responses)
  assert.deepEqual(statuses('/v1/products', 'post'), ['202', '400', '401', '403', '409', '413', '415', '503'])
  assert.deepEqual(statuses('/v1/products/{id}', 'get'), ['200', '400', '401', '403', '404', '503'])
  assert.deepEqual(statuses('/v1/track', 'post'), ['200', '400', '401', '413', '415', '503'])
  assert.deepEqual(statuses('/', 'get'), ['200'])

  const { post } = document.paths['/v1/products']
  assert.deepEqual(post.security, [{ privateKey: ['products:write'] }, { privateKeyHeader: ['products:write'] }])
  assert.match(post.description, /Scope: `products:write`/)
  for (const [name, response] of Object.entries<Record<string, never>>(document.components.responses)) {
    const { example, schema } = (response.content as never)['application/problem+json']
    assert.equal(`problem-${(example as { status: number }).status}`, name)
    assert.deepEqual(schema, { $ref: '#/components/schemas/Problem' })
  }
  for (const requirement of [...post.security, ...document.paths['/v1/track'].post.security])
    assert(Object.keys(requirement)[0]! in document.components.securitySchemes)
})

test('every reference in the document can be resolved', async t => {
  const { app } = await openShell(t, routes)
  const document = (await app.inject('/openapi.json')).json()
  const references = JSON.stringify(document).match(/"#\/[^"]+"/g) ?? []
  assert(references.length > 5)
  for (const reference of references) {
    const found = (JSON.parse(reference) as string)
      .slice(2)
      .split('/')
      .reduce((at, key) => at?.[key], document)
    assert.notEqual(found, undefined, reference)
  }
})

test('every visible route has an operation, and only these routes are hidden', async t => {
  const { app } = await openShell(t, routes)
  const { undocumented, unanswered, hidden } = await compareWithOpenApi(app)
  assert.deepEqual({ undocumented, unanswered }, { undocumented: [], unanswered: [] })
  const guides = ['', '/pictures/{name}', '/style.css', '/{name}'].map(path => `GET /docs/guides${path}`)
  assert.deepEqual(hidden.sort(), [
    'GET /docs',
    ...guides,
    'GET /docs/scalar.js',
    'GET /openapi.json',
    'GET /sdk/js.tgz',
    'GET /secret',
  ])
})

test('the API reference connects only to this server', async t => {
  const { app } = await openShell(t, routes)
  const page = await app.inject('/docs')
  assert.match(String(page.headers['content-type']), /^text\/html/)
  assert.doesNotMatch(page.body, /https?:/)
  assert.match(
    String(page.headers['content-security-policy']),
    /^sandbox allow-scripts allow-popups allow-downloads; default-src 'none'.*connect-src 'self';/,
  )
  assert.equal((await app.inject('/docs/')).body, page.body)

  const script = await app.inject({ url: '/docs/scalar.js', headers: { 'accept-encoding': 'gzip' } })
  assert.equal(script.headers['content-encoding'], 'gzip')
  const again = await app.inject({
    url: '/docs/scalar.js',
    headers: { 'accept-encoding': 'gzip', 'if-none-match': String(script.headers.etag) },
  })
  assert.equal(again.statusCode, 304)
})

test('a browser shows the API reference without requests to other servers', async t => {
  const browser = await launchChromium(t)
  if (!browser) return
  const { app } = await openShell(t, routes)
  const origin = `http://127.0.0.1:${await listen(app)}`
  const page = await (await openContext(t, browser)).newPage()
  const foreign: string[] = []
  const errors: string[] = []
  page.on('request', request => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(origin)) foreign.push(request.url())
  })
  page.on('console', message => {
    if (message.type() === 'error') errors.push(message.text())
  })
  page.on('pageerror', error => errors.push(String(error)))
  await page.goto(`${origin}/docs`)
  await page.getByText('Create or update a product').first().waitFor()
  await page.evaluate('new Promise(resolve => requestIdleCallback(resolve))')
  assert.deepEqual(foreign, [])
  assert.deepEqual(errors, [])
  // The third-party script must not reach the storage of the console, neither directly nor through a frame of our origin.
  assert.equal(await page.evaluate('origin'), 'null')
  const tried = 'try { read(); resolve("read") } catch (error) { resolve(error.name) }'
  const cookies = `new Promise(resolve => { const read = () => document.cookie; ${tried} })`
  assert.equal(await page.evaluate(cookies), 'SecurityError')
  const framed = `new Promise(resolve => {
    const frame = document.createElement('iframe')
    const read = () => frame.contentWindow.sessionStorage.length
    frame.src = '/openapi.json'
    frame.onload = () => { ${tried} }
    document.body.append(frame)
  })`
  assert.equal(await page.evaluate(framed), 'SecurityError')
})
