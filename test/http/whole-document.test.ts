import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../server.ts'
import { compareWithOpenApi } from './compare.ts'

test('every route of the service is in the OpenAPI document, and the other way round', async t => {
  const server = await startServer()
  t.after(() => server.close())
  const { undocumented, unanswered, hidden } = compareWithOpenApi(server.http)
  assert.deepEqual(undocumented, [])
  assert.deepEqual(unanswered, [])
  // What is hidden is meant to be: pages for people, and what browsers ask before they send.
  const unexpected = hidden.filter(route => !/^OPTIONS |^\w+ \/(?:console|docs|openapi\.json)/.test(route))
  assert.deepEqual(unexpected, [])

  const { body } = await server.request('/openapi.json')
  assert.equal(body.openapi.slice(0, 3), '3.1')
  for (const path of [
    '/v1/products',
    '/v1/track',
    '/ingest/inbound/{sourceConfigId}',
    '/v1/subscriptions/overview',
  ]) {
    assert.ok(body.paths[path], `${path} is documented`)
  }
})
