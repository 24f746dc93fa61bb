import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { validatorCompiler } from '../../src/http/validation.ts'
import { startServer } from '../server.ts'
import { compareWithOpenApi } from './compare.ts'

type Operation = {
  operationId: string
  summary?: string
  description?: string
  responses: Record<string, unknown>
  security: Record<string, string[]>[]
  tags: string[]
  parameters?: ({ name: string; description?: string; schema?: { description?: string } } | { $ref: string })[]
  requestBody?: { content: Record<string, { example?: unknown; examples?: Record<string, { value: unknown }> }> }
}
type Schema = { [key: string]: unknown }

const server = await startServer()
after(server.close)
const { body: document } = await server.request('/openapi.json')
const operations = Object.entries<Record<string, Operation>>(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)

test('every route of the server is in the OpenAPI document, and every operation has a route', async () => {
  const { undocumented, unanswered, hidden } = await compareWithOpenApi(server.http)
  assert.deepEqual(undocumented, [])
  assert.deepEqual(unanswered, [])
  // Only pages for people, packages and preflights may be hidden.
  const unexpected = hidden.filter(route => !/^OPTIONS |^\w+ \/(?:console|docs|sdk|openapi\.json)/.test(route))
  assert.deepEqual(unexpected, [])

  assert.equal(document.openapi.slice(0, 3), '3.1')
  for (const path of ['/v1/products', '/v1/track', '/ingest/inbound/{sourceConfigId}', '/v1/subscriptions/overview']) {
    assert.ok(document.paths[path], `${path} is documented`)
  }
})

test('every schema of every route can be compiled', () => {
  const compile = validatorCompiler()
  const parts = ['body', 'querystring', 'params', 'headers'] as const
  let used = 0
  for (const { options } of server.http.routeTable)
    for (const httpPart of parts) {
      const schema = options.schema?.[httpPart]
      if (!schema) continue
      assert.equal(typeof compile({ schema, httpPart })({}), 'boolean')
      used++
    }
  assert.ok(used > 100, `only ${used}`)
})

test('a public linter finds no problem in the document, and every example matches its schema', async () => {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      'no-invalid-media-type-examples': { severity: 'error', allowAdditionalProperties: true },
      // The script, the welcome and ignored metrics have no client errors.
      'operation-4xx-response': 'off',
    },
  })
  const problems = await lintFromString({ source: JSON.stringify(document), config })
  assert.deepEqual(
    problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} at ${location[0]?.pointer}`),
    [],
  )
})

test('every operation has a summary, a description and its error responses', () => {
  const named = (lacking: (operation: Operation) => boolean) =>
    operations.filter(({ operation }) => lacking(operation)).map(({ method, path }) => `${method} ${path}`)
  assert.deepEqual(
    named(({ summary }) => !summary),
    [],
  )
  // Without the note on scopes, which is added to every guarded route.
  const wordsOf = ({ description = '' }: Operation) => description.replace(/\s*Scope: [^\n]*$/, '')
  assert.deepEqual(
    named(operation => wordsOf(operation).length < 20),
    [],
  )
  const isError = (status: string) => status >= '400'
  // These have no client errors.
  assert.deepEqual(
    named(({ responses }) => !Object.keys(responses).some(isError)),
    ['GET /', 'GET /k.js', 'POST /v1/m'],
  )
})

test('the server accepts every example of a request', async () => {
  await server.anotherTenant('acme')
  const { key: admin } = await server.admin.keys.create({ kind: 'admin' })
  const source = await server.admin.sources.create({ tenant: server.tenant.id, type: 'webhook' })
  const cdpSource = await server.admin.sources.create({ tenant: server.tenant.id, type: 'cdp', token: source.token! })
  const keys: Record<string, string> = {
    ...{ privateKey: server.tenant.privateKey, trackingKey: server.tenant.trackingKey },
    ...{ adminKey: admin, sourceToken: source.token! },
  }
  const rejected: string[] = []
  for (const { path, method, operation } of operations) {
    for (const example of examplesOf(operation)) {
      const url = path
        .replace('{sourceConfigId}', isCdp(example) ? cdpSource.id : source.id)
        .replace(/\{\w+\}/g, 'none')
      const key = keys[Object.keys(operation.security[0] ?? {})[0] ?? '']
      const headers = { accept: 'application/json, text/event-stream' } // MCP clients accept both
      const body = JSON.stringify(example)
      const answer = await server.request(url, { method, headers, ...(key && { key }), body })
      // The object in an example may be missing, or may already exist.
      if (answer.status >= 300 && ![404, 409].includes(answer.status))
        rejected.push(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body.errors ?? answer.body.detail)}`)
    }
  }
  assert.deepEqual(rejected, [])
})

function isCdp(example: unknown): boolean {
  return typeof example === 'object' && example !== null && ('messageId' in example || 'batch' in example)
}

function examplesOf({ requestBody }: Operation): unknown[] {
  const { example, examples = {} } = requestBody?.content['application/json'] ?? {}
  return [...(example === undefined ? [] : [example]), ...Object.values(examples).map(({ value }) => value)]
}

test('every request that sends several items has an example with several items', () => {
  const batches = operations.filter(({ method, path }) => method === 'POST' && /\/(?:batch|b)$/.test(path))
  assert.equal(batches.length, 6)
  for (const { path, operation } of batches) {
    const [example] = examplesOf(operation) as { records?: unknown[]; batch?: unknown[] }[]
    assert.ok((example?.records ?? example?.batch ?? []).length > 1, path)
  }
})

test('every parameter and every tag has a description', () => {
  const shared: Record<string, { description?: string }> = document.components.parameters
  const lacking = operations.flatMap(({ method, path, operation }) =>
    (operation.parameters ?? [])
      .map(parameter => ('$ref' in parameter ? shared[parameter.$ref.split('/').at(-1)!]! : parameter))
      .filter(parameter => !parameter.description)
      .map(parameter => `${method} ${path}: ${JSON.stringify(parameter)}`),
  )
  assert.deepEqual(lacking, [])
  const described = document.tags.map(({ name, description }: Schema) => (String(description).length > 10 ? name : ''))
  const used = [...new Set(operations.flatMap(({ operation }) => operation.tags))]
  assert.deepEqual(described.sort(), used.sort())
})

test('shapes are named components, each is written once, and each object in them has a description', () => {
  const { schemas } = document.components as { schemas: Record<string, Schema> }
  const names = [
    'Product',
    'Contact',
    'Order',
    'Event',
    'Conversion',
    'Subscription',
    'Movement',
    'Problem',
    'Customer',
  ]
  for (const name of names) assert.ok(schemas[name]?.properties, name)

  const lacking: string[] = []
  const copies = new Map<string, string[]>()
  walk(document.components, [], (_, path, isDescribed) => {
    if (!isDescribed) lacking.push(path.join('/'))
  })
  walk(document.paths, [], (schema, path, isDescribed) => {
    // The operation describes its own body.
    if (!isDescribed && path.at(-1) !== 'schema') lacking.push(path.join('/'))
    const text = JSON.stringify(schema)
    copies.set(text, [...(copies.get(text) ?? []), path.join('/')])
  })
  assert.deepEqual(lacking, [])
  // Lists of the same rows, and bodies with one field.
  const repeated = [...copies].filter(([text, paths]) => paths.length > 2 && text.length > 300)
  assert.deepEqual(repeated, [])
})

/** Calls `found` with every schema that has properties. It is described if it, or what directly contains it, has a description. */
function walk(value: unknown, path: string[], found: (schema: Schema, path: string[], isDescribed: boolean) => void) {
  const visit = (value: unknown, path: string[], containers: Schema[], isMap: boolean) => {
    if (typeof value !== 'object' || value === null) return
    const node = value as Schema
    const isObject = !isMap && node.type === 'object' && Object.keys(node.properties ?? {}).length > 0
    if (isObject)
      found(
        node,
        path,
        [node, ...containers].some(({ description }) => description !== undefined),
      )
    for (const [key, inner] of Object.entries(node)) {
      if (!isMap && ['example', 'examples', 'default', 'enum'].includes(key)) continue
      const isInside = ['items', 'anyOf', 'additionalProperties'].includes(key) || Array.isArray(value)
      visit(inner, [...path, key], isInside ? [...containers, node] : [], key === 'properties' && !isMap)
    }
  }
  visit(value, path, [], false)
}

test('the document is compressed on request', async () => {
  const answer = await fetch(`${server.url}/openapi.json`, { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(answer.headers.get('content-encoding'), 'gzip')
  assert.deepEqual(await answer.json(), document)
})
