import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { rowsOf } from '../events/rows.ts'
import { makeSource } from '../inbound/source.ts'
import { sampled } from '../long.ts'
import { sharedServer, type TestServer } from '../server.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

type Declared = { in: string; name: string; required?: boolean }
type Parameter = Declared | { $ref: string }
type Document = {
  paths: Record<string, Record<string, { parameters?: Parameter[] }>>
  components: { parameters: Record<string, Declared> }
}

const FORGED = [
  ['2026-01-01T00:00:00Z', '\u0000'],
  ['2026-01-01T00:00:00Z', '\ud800'],
  ['\u0000', 'x'],
  ['+275760-09-13T00:00:00.000Z', '00000000-0000-7000-8000-000000000000'],
  ['-271821-04-20T00:00:00.000Z', 'x'],
  ['9'.repeat(400)],
].map(parts => Buffer.from(JSON.stringify(parts)).toString('base64url'))
const ODD = ['%00', 'a%00b', '%ED%A0%80', '%F0%9F']

/** Every route, with unusual text in each parameter. */
function* oddAddresses({ paths, components }: Document, sourceId: string) {
  const resolve = (parameter: Parameter) =>
    '$ref' in parameter ? components.parameters[parameter.$ref.split('/').at(-1)!]! : parameter
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { parameters = [] }] of Object.entries(operations)) {
      const queries = parameters.map(resolve).filter(parameter => parameter.in === 'query')
      const named = path.replace('{sourceConfigId}', sourceId).replace(/\{[^}]+\}/g, 'x1')
      if (path.includes('{')) for (const odd of ODD) yield { method, url: path.replace(/\{[^}]+\}/g, odd) }
      for (const { name } of queries) {
        const others = queries.filter(query => query.required && query.name !== name)
        const rest = others.map(query => `&${query.name}=${query.name === 'currency' ? 'EUR' : 'x'}`).join('')
        for (const odd of [...ODD, `x&${name}=y`, ...(name === 'cursor' ? FORGED : [])])
          yield { method, url: `${named}?${name}=${odd}${rest}` }
      }
    }
}

test('NUL, invalid text, repeated parameters and forged cursors in a URL never cause a 500, on any route', async () => {
  const { key: adminKey } = await server.admin.keys.create({ kind: 'admin' })
  const source = await makeSource(server, {})
  const keyOf = (url: string) => {
    if (url.startsWith('/admin')) return adminKey
    if (url.startsWith('/ingest')) return source.token!
    return /^\/(api|beacon)\//.test(url) ? server.tenant.trackingKey : server.tenant.privateKey
  }
  const { body: document } = await server.request('/openapi.json')
  const extra = [
    ...['lookup?event_id=x&source_config_id=%00', 'lookup?event_id=%00', 'live?event_type=%00&seconds=1'],
    ...['live?seconds=%00', 'live?conversions=%00', 'live?event_type=%F0%9F&seconds=1'],
  ].map(query => ({ method: 'get', url: `/v1/events/${query}` }))
  // a stream would last a minute
  const { '/v1/events/live': _, ...paths } = document.paths
  const addresses = [...oddAddresses({ ...document, paths }, source.id)]
  assert.ok(addresses.length > 1_000, `only ${addresses.length} addresses were found`)
  for (const { method, url } of [...sampled(addresses), ...extra]) {
    const body = method === 'get' ? {} : { body: '{}' }
    const answer = await server.request(url, { method: method.toUpperCase(), key: keyOf(url), ...body })
    assert.ok(answer.status < 500, `${method} ${url} is answered ${answer.status}`)
  }
  assert.equal((await server.request('/v1/products/%00', { key: server.tenant.privateKey })).status, 400)
})

test('values hidden by a repeated key are checked: rejected in records, replaced in events', async () => {
  const { privateKey, trackingKey } = server.tenant
  const record = (data: string) =>
    `{"entityType":"product","id":"hidden","sourceUpdatedAt":"2026-01-01T00:00:00Z","data":${data}}`
  for (const data of ['{"a":"\\u0000","a":"x"}', '{"a":{"b":"\\ud800"},"a":1}', '{"a":1e999,"a":1}']) {
    const sent = { method: 'POST', key: privateKey }
    assert.equal((await server.request('/v1/products', { ...sent, body: record(data) })).status, 400, data)
    const batch = { ...sent, body: `{"records":[${record(data)}]}` }
    assert.equal((await server.request('/v1/products/batch', batch)).body.results[0].accepted, false, data)
  }
  const body = '{"event_type":"hidden","data":{"a":"\\u0000","a":"x"}}'
  assert.equal((await server.request('/v1/track', { method: 'POST', key: trackingKey, body })).status, 200)
  const rows = await rowsOf(server, 'events', { query: '&event_type=hidden' })
  assert.deepEqual([rows[0].payload, rows[0].meta.sanitized], [{ a: 'x' }, true])
})
