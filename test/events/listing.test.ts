import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { parseTenantId } from '../../src/domain/tenants/tenants.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { json, type Row, rowsOf } from './rows.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
  for (let i = 0; i < 130; i++) events.push({ event_type: i % 3 ? 'page_view' : 'click', at: i })
  await send(events.map(({ event_type, at }) => ({ event_type, occurred_at: minute(at), data: { at } })))
  await server.settled()
})
after(() => server.close())

const events: { event_type: string; at: number }[] = []
const START = Date.parse('2026-03-30T23:00:00Z')
/** Minutes across the end of a month, so that rows are in two partitions. */
const minute = (n: number) => new Date(START + n * 60_000).toISOString()

async function send(bodies: object[], key = server.tenant.trackingKey) {
  for (const body of bodies) {
    const { status } = await server.request('/v1/track/', { method: 'POST', key, body: json(body) })
    assert.equal(status, 200)
  }
}

const list = (query: string, key = server.tenant.privateKey, name = 'events') =>
  server.request(`/v1/${name}?${query}`, { key })
const places = (rows: Row[]) => rows.map(row => row.payload.at)
const down = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, i) => from - i)

test('a list has 50 rows by default, newest first', async () => {
  const { body } = await list('')
  assert.deepEqual(Object.keys(body), ['results', 'limit', 'offset', 'has_more', 'next_cursor'])
  assert.deepEqual(places(body.results), down(129, 80))
  assert.deepEqual([body.limit, body.offset, body.has_more], [50, 0, true])
  assert.equal(typeof body.next_cursor, 'string')
})

test('limit and offset select rows; a limit above 100 is reduced to 100; an invalid number is rejected', async () => {
  assert.deepEqual(places((await list('limit=3&offset=2')).body.results), [127, 126, 125])
  const all = (await list('limit=500')).body
  assert.equal(all.results.length, 100)
  assert.equal(all.limit, 100)
  const last = (await list('limit=100&offset=30')).body
  assert.deepEqual([last.results.length, last.has_more, last.next_cursor, last.offset], [100, false, null, 30])
  assert.deepEqual((await list('offset=130')).body.results, [])
  for (const name of ['events', 'conversions']) {
    for (const offset of ['1000000', '9007199254740993', '100000000000000000000']) {
      const { body } = await list(`offset=${offset}&event_type=convert`, undefined, name)
      assert.deepEqual(body.results, [], `${name} ${offset}`)
    }
  }
  assert.equal((await list('limit=100000000000000000000')).body.limit, 100)
  for (const query of [
    'limit=0',
    'limit=-1',
    'limit=ten',
    'limit=1.5',
    'limit=',
    'offset=-1',
    'offset=x',
    'offset=0.5',
  ]) {
    for (const name of ['events', 'conversions']) {
      const refused = await list(query, undefined, name)
      assert.equal(refused.status, 400, `${name}?${query}`)
      assert.equal(refused.body.errors[0].pointer, `/${query.split('=')[0]}`)
    }
  }
})

test('since and until are both inclusive, in any zone; since after until is rejected', async () => {
  const from = async (query: string) => places((await list(`limit=100&${query}`)).body.results)
  assert.deepEqual(await from(`since=${minute(127)}`), [129, 128, 127])
  assert.deepEqual(await from(`until=${minute(2)}`), [2, 1, 0])
  assert.deepEqual(await from(`since=${minute(58)}&until=${minute(61)}`), [61, 60, 59, 58])
  assert.deepEqual(await from(`since=${minute(7)}&until=${minute(7)}`), [7])
  assert.deepEqual(await from(`since=2026-03-31T02:58:00%2B02:00&until=2026-03-31T00:59:00`), [119, 118])
  assert.deepEqual(await from('until=2026-03-29'), [])
  // a date without a time includes that day
  assert.deepEqual(await from('until=2026-03-30'), down(59, 0))
  assert.equal((await from('since=2026-03-31&until=2026-03-31')).length, 70)
  assert.equal((await from('since=2026-03-31')).length, 70)
  for (const query of [`since=${minute(2)}&until=${minute(1)}`, 'since=yesterday', 'until=1775000000', 'until=']) {
    assert.equal((await list(query)).status, 400, query)
    assert.equal((await list(query, undefined, 'conversions')).status, 400, query)
  }
})

test('event_type is exact', async () => {
  const clicks = await rowsOf(server, 'events', { query: '&event_type=click' })
  assert.deepEqual(
    places(clicks),
    down(129, 0).filter(n => n % 3 === 0),
  )
  assert.deepEqual((await list('event_type=Click')).body.results, [])
  assert.deepEqual((await list('event_type=clic')).body.results, [])
  assert.deepEqual((await list('event_type=%00')).body.results, [])
  assert.deepEqual(places((await list(`event_type=click&until=${minute(7)}&limit=2`)).body.results), [6, 3])
})

test('the cursor walks the whole list once, and new rows do not shift it', async () => {
  const seen: number[] = []
  let cursor = ''
  for (let page = 0; ; page++) {
    const { body } = await list(`limit=20${cursor}`)
    seen.push(...places(body.results))
    if (!body.has_more) break
    cursor = `&cursor=${body.next_cursor}`
    // one event newer than all others, and one on a later page
    await send([
      { event_type: 'page_view', occurred_at: minute(1000 + page), data: { at: 1000 + page } },
      ...(page === 1 ? [{ event_type: 'page_view', occurred_at: minute(5), data: { at: 5.5 } }] : []),
    ])
    await server.settled()
  }
  assert.deepEqual(
    seen.filter(n => n !== 5.5),
    down(129, 0),
  )
  assert.ok(seen.includes(5.5))
  const { rowCount } = await server.pool.query(
    "delete from events where tenant_id = $2 and (occurred_at >= $1 or payload::jsonb ->> 'at' = '5.5')",
    [minute(999), parseTenantId(server.tenant.id)],
  )
  assert.ok(rowCount! > 5)
})

test('a cursor works with the filters it is used with, and an invalid cursor is rejected', async () => {
  const first = (await list('event_type=click&limit=5')).body
  const second = (await list(`event_type=click&limit=5&cursor=${first.next_cursor}`)).body
  assert.deepEqual(
    places([...first.results, ...second.results]),
    down(129, 0)
      .filter(n => n % 3 === 0)
      .slice(0, 10),
  )
  assert.equal(second.offset, 0)
  for (const cursor of ['x', 'bnVsbA', Buffer.from('["a","b"]').toString('base64url'), '%00']) {
    const refused = await list(`cursor=${cursor}`)
    assert.equal(refused.status, 400, cursor)
    assert.equal(refused.body.errors[0].pointer, '/cursor')
  }
})

test('rows of one instant are paged without loss', async () => {
  const tenant = await server.anotherTenant('one instant')
  await send(
    Array.from({ length: 25 }, (_, at) => ({ event_type: 'same', occurred_at: minute(0), data: { at } })),
    tenant.trackingKey,
  )
  await server.settled()
  const seen = new Set<number>()
  let cursor = ''
  for (;;) {
    const { body } = await list(`limit=7${cursor}`, tenant.privateKey)
    for (const at of places(body.results)) seen.add(at)
    if (!body.has_more) break
    cursor = `&cursor=${body.next_cursor}`
  }
  assert.equal(seen.size, 25)
})

test('a key sees only its own tenant, and needs the scope of the list', async () => {
  const other = await server.anotherTenant('elsewhere')
  for (const name of ['events', 'conversions']) {
    assert.deepEqual((await list('', other.privateKey, name)).body.results, [])
    assert.deepEqual((await list(`tenant_id=${server.tenant.id}`, other.privateKey, name)).body.results, [])
  }
  const { id: tenant } = server.tenant
  const scoped = async (scope: string) =>
    (await server.admin.keys.create({ tenant, kind: 'private', scopes: [scope] })).key
  const [events, conversions] = [await scoped('events:read'), await scoped('conversions:read')]
  assert.equal((await list('', events)).status, 200)
  assert.equal((await list('', conversions, 'conversions')).status, 200)
  for (const [key, name] of [
    [conversions, 'events'],
    [events, 'conversions'],
  ] as const) {
    const refused = await list('', key, name)
    assert.equal(refused.status, 403)
    assert.equal(refused.body.code, 'insufficient_scope')
    assert.match(refused.body.detail, new RegExp(`${name}:read`))
  }
})

test('a page of large events is complete, whether read by limit, offset or cursor', async () => {
  const tenant = await server.anotherTenant('large events')
  // 60 KB each: a page of 90 is read in portions
  for (let from = 0; from < 90; from += 15) {
    const batch = Array.from({ length: 15 }, (_, i) => ({
      ...{ type: 'page', timestamp: minute(from + i), at: from + i },
      properties: { fill: 'x'.repeat(60_000) },
    }))
    const sent = { method: 'POST', key: tenant.trackingKey, body: json({ batch }) }
    assert.equal((await server.request('/v1/batch', sent)).status, 200)
  }
  await server.settled()
  const page = async (query: string) => (await list(query, tenant.privateKey)).body
  const whole = await page('limit=100')
  assert.deepEqual([places(whole.results), whole.has_more, whole.next_cursor], [down(89, 0), false, null])
  assert.equal((await page('limit=90')).has_more, false)
  const first = await page('limit=40')
  assert.deepEqual([places(first.results), first.limit, first.has_more], [down(89, 50), 40, true])
  const second = await page(`limit=40&cursor=${first.next_cursor}`)
  assert.deepEqual([places(second.results), second.has_more], [down(49, 10), true])
  const third = await page('limit=40&offset=80')
  assert.deepEqual([places(third.results), third.offset, third.has_more], [down(9, 0), 80, false])
})

test('a stream also contains sales if the client asks for them and may read them', async () => {
  const tenant = await server.anotherTenant('sales live')
  const follow = (key: string) =>
    fetch(`${server.url}/v1/events/live?conversions=true&seconds=60`, {
      headers: { authorization: `Bearer ${key}` },
    })
  const { key: eventsOnly } = await server.admin.keys.create({
    ...{ tenant: tenant.id, kind: 'private' as const, scopes: ['events:read'] },
  })
  assert.equal((await follow(eventsOnly)).status, 403)
  const reader = (await follow(tenant.privateKey)).body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const until = async (wanted: string) => {
    while (!text.includes(wanted)) text += (await reader.read()).value ?? ''
  }
  await until(': following')
  await send([{ event_type: 'convert', data: { amount: 49.9, currency: 'EUR' } }], tenant.trackingKey)
  await until('"amount":49.9')
  assert.match(text, /event: conversion\nid: .*\ndata: \{.*"conversion_type":"convert"/)
  await send([{ event_type: 'page_view' }], tenant.trackingKey)
  await until('event: event')
  await reader.cancel()
})

test('a stream sends new events of the tenant and the requested type until its key is revoked', async () => {
  const other = await server.anotherTenant('others')
  const { key, id } = await server.admin.keys.create({ tenant: server.tenant.id, kind: 'private' })
  const response = await fetch(`${server.url}/v1/events/live?event_type=live`, {
    headers: { authorization: `Bearer ${key}` },
  })
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const read = async () => {
    const { done, value } = await reader.read()
    text += value ?? ''
    return !done
  }
  while (!text.includes(': following')) await read()
  await send([{ event_type: 'live', data: { whose: 'others' } }], other.trackingKey)
  await send([{ event_type: 'live', data: { n: 1 } }, { event_type: 'not asked for' }])
  await send([{ event_type: 'live', data: { n: 2 } }])
  while (!text.includes('"n":2')) await read()
  const sent = text.split('\n').filter(line => line.startsWith('data: '))
  assert.deepEqual(
    sent.map(
      line => JSON.parse(line.slice('data: '.length)).payload.data ?? JSON.parse(line.slice('data: '.length)).payload,
    ),
    [{ n: 1 }, { n: 2 }],
  )
  await server.admin.keys.revoke(id)
  while (await read());
})
