import assert from 'node:assert/strict'
import { request } from 'node:http'
import { json as readJson } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { json, rowsOf } from './rows.ts'

/** What events have in common is stored in a short form, and returned in full. */

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

/** Unlike `fetch`, sends only these headers. */
async function post(path: string, body: object, headers: Record<string, string>) {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const sent = request(`${server.url}${path}`, { method: 'POST', headers }, async answer => {
    await readJson(answer)
    if (answer.statusCode === 200) resolve()
    else reject(new Error(`status ${answer.statusCode}`))
  })
  sent.on('error', reject)
  sent.end(json(body))
  await promise
}

test('headers, ids and positions of events are returned as they were received', async () => {
  const tenant = await server.anotherTenant('short')
  const auth = { authorization: `Bearer ${tenant.trackingKey}` }
  const usual = { ...auth, 'content-type': 'application/json' }
  await post('/v1/track/', { event_type: 'usual', visitor: 'v' }, usual)
  await post(
    '/v1/track/',
    { event_type: 'with charset', visitor: 'v' },
    { ...auth, 'content-type': 'application/json; charset=utf-8' },
  )
  await post('/v1/track/', { event_type: 'with agent', visitor: 'v' }, { ...usual, 'user-agent': 'Test "1"' })
  const batch = ['first', 'second'].map(event => ({ type: 'track', event, messageId: `m-${event}`, anonymousId: 'v' }))
  await post('/v1/batch', { batch: [...batch, { type: 'track', event: 'third', anonymousId: 'v' }] }, usual)
  await server.settled()

  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  const seen = new Map(rows.map(row => [row.event_type, row]))
  const headersOf = (type: string) => seen.get(type)!.headers
  assert.deepEqual(headersOf('usual'), { 'content-type': 'application/json' })
  assert.deepEqual(headersOf('with charset'), { 'content-type': 'application/json; charset=utf-8' })
  assert.deepEqual(headersOf('with agent'), { 'content-type': 'application/json', 'user-agent': 'Test "1"' })
  assert.deepEqual(seen.get('usual')!.meta, { kind: 'track', ip: '127.0.0.1' })
  const inBatch = (index: number) => ({ kind: 'track', ip: '127.0.0.1', batch_index: index, batch_size: 3 })
  assert.deepEqual(
    ['first', 'second', 'third'].map(type => [seen.get(type)!.provider_event_id, seen.get(type)!.meta]),
    [
      ['m-first', inBatch(0)],
      ['m-second', inBatch(1)],
      [null, inBatch(2)],
    ],
  )
})

test('provider ids of webhooks are returned, whether they equal the id of the event or not', async () => {
  const source = await server.admin.sources.create({ tenant: server.tenant.id, type: 'webhook' })
  const headers = { authorization: `Bearer ${source.token}`, 'content-type': 'application/json' }
  for (const [id, provider] of [
    ['same', 'same'],
    ['own', 'other'],
    ['none', undefined],
  ])
    await post(
      `/ingest/inbound/${source.id}`,
      { inbound_event_id: id, provider_event_id: provider, event_type: 'x', payload: {} },
      headers,
    )
  await server.settled()
  const rows = await rowsOf(server, 'events', { query: '&event_type=x' })
  assert.deepEqual(rows.map(row => [row.inbound_event_id, row.provider_event_id]).sort(), [
    ['none', null],
    ['own', 'other'],
    ['same', 'same'],
  ])
})

test('two event types with the same hash are not confused', async () => {
  const { rows: pairs } = await server.pool.query<{ types: string[] }>(
    `select array_agg(type) as types from (select 'type-' || n as type from generate_series(1, 300000) n) t
     group by hashtext(type) having count(*) > 1 limit 1`,
  )
  const [one, other] = pairs[0]!.types as [string, string]
  const tenant = await server.anotherTenant('hashes')
  const headers = { authorization: `Bearer ${tenant.trackingKey}`, 'content-type': 'application/json' }
  for (const event_type of [one, other, one]) await post('/v1/track/', { event_type, visitor: 'v' }, headers)
  await server.settled()
  const typesOf = async (type: string) =>
    (await rowsOf(server, 'events', { key: tenant.privateKey, query: `&event_type=${type}` })).map(
      row => row.event_type,
    )
  assert.deepEqual(await typesOf(one), [one, one])
  assert.deepEqual(await typesOf(other), [other])
})
