import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { registerHooks } from 'node:module'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { wantsTraces } from '../../src/telemetry/tracing.ts'
import { eventually } from '../eventually.ts'
import { type OwnServer, startServer } from '../server.ts'

type Value = { stringValue?: string; intValue?: number | string }
type SentSpan = {
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  status: { code?: number }
  attributes: { key: string; value: Value }[]
  links?: { traceId: string; spanId: string }[]
}

const loaded = new Set<string>()
registerHooks({
  resolve(specifier, context, next) {
    if (specifier.startsWith('@opentelemetry/')) loaded.add(specifier)
    return next(specifier, context)
  },
})

/** A minimal collector. */
const texts: string[] = []
const collector = createServer(async (request, response) => {
  let text = ''
  for await (const part of request) text += part
  assert.equal(request.url, '/v1/traces')
  texts.push(text)
  response.setHeader('content-type', 'application/json').end('{}')
})

function spans(): SentSpan[] {
  return texts.flatMap(text =>
    JSON.parse(text).resourceSpans.flatMap((resource: { scopeSpans: { spans: SentSpan[] }[] }) =>
      resource.scopeSpans.flatMap(scope => scope.spans),
    ),
  )
}

function attributesOf({ attributes }: SentSpan): Record<string, string | number | undefined> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)] as const),
  )
}

let server: OwnServer
before(async () => {
  await once(collector.listen(0, '127.0.0.1'), 'listening')
  server = await startServer()
})
after(async () => {
  // An unreachable collector delays nothing.
  collector.closeAllConnections()
  await once(collector.close(), 'close')
  await server.close()
  for (const name of Object.keys(process.env)) if (name.startsWith('OTEL_')) delete process.env[name]
})

const post = (path: string, key: string, body: object, headers: Record<string, string> = {}) =>
  server.request(path, { method: 'POST', key, body: JSON.stringify(body), headers })

test('the standard variables enable and disable traces', () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318' }
  assert.equal(wantsTraces({}), false)
  assert.equal(wantsTraces(endpoint), true)
  assert.equal(wantsTraces({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://localhost:4318/v1/traces' }), true)
  assert.equal(wantsTraces({ ...endpoint, OTEL_SDK_DISABLED: 'true' }), false)
  assert.equal(wantsTraces({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }), false)
  assert.equal(wantsTraces({ OTEL_TRACES_EXPORTER: 'otlp' }), true)
})

test('without the variables OpenTelemetry is not loaded, and entries carry no trace', async () => {
  assert.equal((await post('/v1/track', server.tenant.trackingKey, { event_type: 'off', visitor: 'v' })).status, 200)
  await server.settled()
  assert.deepEqual([...loaded], [])
  const { rows } = await server.pool.query(`select count(*)::int as count from log where context like '%traceparent%'`)
  assert.equal(rows[0].count, 0)
})

test('one trace covers a request from arrival to effects, and contains no request data', async () => {
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
  process.env.OTEL_BSP_SCHEDULE_DELAY = '50'
  process.env.OTEL_RESOURCE_ATTRIBUTES = 'deployment.environment.name=test'
  await server.restart()
  assert.ok(loaded.has('@opentelemetry/sdk-trace'))
  const { tenant } = server
  const traceId = 'a'.repeat(32)
  const sender = 'b'.repeat(16)
  const event = {
    event_type: 'secret type',
    visitor: 'secret visitor',
    data: { email: 'secret@example.com' },
  }
  const traceparent = { traceparent: `00-${traceId}-${sender}-01` }
  assert.equal((await post(`/v1/track?key=${tenant.trackingKey}`, '', event, traceparent)).status, 200)
  const record = {
    entityType: 'product',
    id: 'secret id',
    sourceUpdatedAt: new Date().toISOString(),
    data: {},
  }
  assert.equal((await post('/v1/products', tenant.privateKey, record, { traceparent: 'nonsense' })).status, 202)
  assert.equal((await post('/v1/products', 'private-secret', record)).status, 401)
  // Personal data in addresses, queries, bodies, headers and errors.
  const { key: adminKey } = await server.admin.keys.create({ kind: 'admin' })
  const forwarded = { 'x-forwarded-for': '203.0.113.77', 'user-agent': 'secret agent', cookie: 'kontor_session=secret' }
  for (const path of ['/v1/contacts/secret@example.com', '/v1/search?q=secret%40example.com', '/v1/secret@example.com'])
    await server.request(path, { key: tenant.privateKey, headers: forwarded })
  await server.request(`/admin/v1/people/secret@example.com?tenant=${tenant.id}`, { key: adminKey, headers: forwarded })
  await post('/admin/v1/erasures', adminKey, { tenant: tenant.id, email: 'secret@example.com' }, forwarded)
  const own = { 'x-kontor-console': '1', origin: server.url, ...forwarded }
  const password = { name: 'secret@example.com', password: 'secret password' }
  assert.equal((await post('/console/session', '', password, own)).status, 401)
  await server.settled()
  const wanted = ['POST /v1/track', 'log append', 'process batch', 'effects events', 'effects record']
  await eventually('all spans', () => wanted.every(name => spans().some(span => span.name === name)), {
    state: () => spans().map(span => span.name),
  })
  const wantedRequests = ['POST /console/session', 'POST /admin/v1/erasures', 'GET /admin/v1/people/:id']
  await eventually('all requests', () => wantedRequests.every(name => spans().some(span => span.name === name)))

  const request = spans().find(span => span.name === 'POST /v1/track')!
  assert.deepEqual([request.traceId, request.parentSpanId], [traceId, sender])
  assert.deepEqual(attributesOf(request), {
    ...{ 'http.request.method': 'POST', 'http.route': '/v1/track', 'http.response.status_code': 200 },
    'kontor.tenant': tenant.id,
  })
  const append = spans().find(span => span.name === 'log append' && span.traceId === traceId)!
  assert.equal(append.parentSpanId, request.spanId)
  assert.deepEqual(attributesOf(append), {
    ...{ 'kontor.entries': 1, 'kontor.kind': 'events', 'kontor.tenant': tenant.id },
  })
  const batch = spans().find(
    span => span.name === 'process batch' && span.links?.some(link => link.spanId === append.spanId),
  )!
  assert.ok(batch, 'the worker’s batch is linked to the append')
  assert.notEqual(batch.traceId, traceId, 'it is of many requests, so it is a trace of its own')
  const effects = spans().find(span => span.name === 'effects events' && span.parentSpanId === batch.spanId)!
  assert.deepEqual(attributesOf(effects), { 'kontor.kind': 'events', 'kontor.entries': 1 })
  const [written] = spans().filter(span => span.name === 'POST /v1/products' && span.status.code !== 2)
  assert.notEqual(written!.traceId, traceId, 'what is no traceparent begins a trace')

  const text = texts.join('')
  assert.match(text, /deployment\.environment\.name/)
  assert.doesNotMatch(text, /secret/i)
  assert.doesNotMatch(text, /203\.0\.113\.77|client\.address|user_agent|url\.(?:full|path|query)/)
  for (const key of [tenant.trackingKey, tenant.privateKey]) assert.ok(!text.includes(key), 'a credential')
  const row = await server.request('/v1/events?limit=1', { key: tenant.privateKey })
  assert.doesNotMatch(JSON.stringify(row.body), /traceparent/)
})
