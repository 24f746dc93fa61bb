import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { rebuildSeries } from '../../src/store/sums/fold.ts'
import { kontor } from '../cli/kontor.ts'
import { startServer, TEST_SECRET_KEY, type TestServer } from '../server.ts'
import { eventsOf, makeSource, rows } from './source.ts'

let server: TestServer
let key: string
before(async () => {
  server = await startServer()
  key = (await server.admin.keys.create({ kind: 'admin' })).key
  Object.assign(process.env, { DATABASE_URL: server.databaseUrl, KONTOR_SECRET_KEY: TEST_SECRET_KEY })
})
after(async () => {
  delete process.env.DATABASE_URL
  delete process.env.KONTOR_SECRET_KEY
  await server.close()
})

type Step = { step: string; ok: boolean; detail: string }

test('a sample event fits every kind of source, and its trace is shown up to the archive', async () => {
  const kinds = [
    { type: 'webhook' },
    { type: 'automation' },
    { type: 'cdp' },
    { type: 'webhook', preset: 'stripe', signing_secret: 'whsec_1234567890' },
    { type: 'webhook', preset: 'shopify' },
    { type: 'webhook', preset: 'github' },
    { type: 'automation', preset: 'standard-webhooks' },
  ]
  for (const kind of kinds) {
    const source = await makeSource(server, kind)
    const { status, body } = await server.request(`/admin/v1/sources/${source.id}/test`, {
      method: 'POST',
      key,
    })
    assert.equal(status, 200)
    assert.equal(body.ok, true, JSON.stringify(body))
    assert.deepEqual(
      body.steps.map(({ step }: Step) => step),
      ['source', 'normalize', 'accept', 'process', 'archive'],
    )
    assert.equal(body.receipts[0].outcome, 'processed')
    const [event] = await eventsOf(server, source.id)
    assert.equal(body.archived[0].inbound_event_id, event?.inbound_event_id)
    assert.match(String(event?.event_type), /kontor.test/)
  }
})

test('a sample is marked as test and does not count in any total, also if the source maps it to a sale', async () => {
  const source = await makeSource(server, { event_type_override: { set: 'order.paid' } })
  const { id: destination } = await server.admin.destinations.create({
    tenant: server.tenant.id,
    url: 'https://receiver.invalid/',
    what: ['events', 'conversions'],
  })
  const get = async (path: string) => (await server.request(path, { key: server.tenant.privateKey })).body
  const total = async (series: string) => {
    const { results } = await get(`/v1/${series}/series?interval=day`)
    return results.reduce((sum: number, { count }: { count: number }) => sum + count, 0)
  }
  const activity = async () =>
    (await server.request(`/admin/v1/sources/${source.id}/activity`, { key })).body.received.last_24_hours
  const before = { events: await total('events'), conversions: await total('conversions') }
  await server.request(`/admin/v1/sources/${source.id}/test`, { method: 'POST', key })
  await server.settled()

  const [event] = await eventsOf(server, source.id)
  assert.deepEqual(
    [event!.event_type, event!.meta.test, event!.conversion, event!.node],
    ['order.paid', true, false, null],
  )
  const { results } = await get('/v1/events?limit=100')
  assert.equal(results.find(({ id }: { id: string }) => id === event!.id).meta.test, true)
  assert.match((await get(`/v1/events/${event!.id}`)).reason, /test event/)
  const sales = (await get('/v1/conversions?limit=100')).results as { integration_id: string }[]
  assert.deepEqual(
    sales.filter(({ integration_id }) => integration_id === source.id),
    [],
  )
  await rebuildSeries(server.pool)
  assert.deepEqual({ events: await total('events'), conversions: await total('conversions') }, before)
  assert.equal(await activity(), 0)
  const exported = await server.request('/v1/export/events?format=csv', { key: server.tenant.privateKey })
  assert.doesNotMatch(JSON.stringify(exported.body), new RegExp(String(event!.id)))
  assert.deepEqual(await rows(server, 'select from outbox where object = $1', [event!.id]), [])
  await server.admin.destinations.delete(destination)

  // An event that is not a test counts in each of these.
  await source.post({ inbound_event_id: 'real', event_type: 'x', payload: { amount: 1, currency: 'EUR' } })
  await server.settled()
  assert.equal(await total('conversions'), before.conversions + 1)
  assert.equal(await activity(), 1)
})

test('an operator sends only the sample; a body or headers of their own require the role admin; both are audited', async () => {
  const source = await makeSource(server)
  const operator = await server.admin.keys.create({ kind: 'admin', role: 'operator' })
  const send = (by: string, body: object) =>
    server.request(`/admin/v1/sources/${source.id}/test`, { method: 'POST', key: by, body: JSON.stringify(body) })
  for (const own of [
    { body: { event_type: 'x' } },
    { body: null },
    { headers: { 'x-shopify-topic': 'orders/paid' } },
  ]) {
    const { status, body } = await send(operator.key, own)
    assert.equal(status, 403, JSON.stringify(own))
    assert.equal(body.code, 'insufficient_role')
  }
  assert.equal((await eventsOf(server, source.id)).length, 0)
  assert.equal((await send(operator.key, {})).status, 200)
  assert.equal((await send(operator.key, { headers: {} })).status, 200)
  assert.equal((await send(key, { body: { event_type: 'x' } })).status, 200)
  const audit = (await server.request('/admin/v1/audit', { key })).body.results as {
    action: string
    target: string
    actor: string
    after: { sent: string }
  }[]
  const tests = audit.filter(({ action, target }) => action === 'source.test' && target === source.id)
  assert.deepEqual(
    tests.map(({ after }) => after.sent),
    ['custom', 'sample', 'sample'],
  )
  assert.equal(tests[1]!.actor, operator.id)
  const events = await eventsOf(server, source.id)
  assert.deepEqual(
    events.map(({ meta }) => meta.test),
    [true, true, undefined],
  )
})

test('a custom body shows the response that a real request would get', async () => {
  const source = await makeSource(server)
  const run = async (body: object) =>
    (
      await server.request(`/admin/v1/sources/${source.id}/test`, {
        method: 'POST',
        key,
        body: JSON.stringify(body),
      })
    ).body
  const good = await run({ body: { inbound_event_id: 'mine', event_type: 'order.shipped' } })
  assert.equal(good.archived[0].event_type, 'order.shipped')
  const again = await run({ body: { inbound_event_id: 'mine', event_type: 'order.shipped' } })
  assert.equal(again.receipts[0].outcome, 'duplicate')
  const bad = await run({ body: { payload: {} } })
  assert.equal(bad.ok, false)
  assert.match(bad.steps.at(-1).detail, /400: \/event_type: is required/)
  await server.admin.sources.setEnabled(source.id, false)
  assert.match((await run({})).steps[0].detail, /403/)
  assert.equal((await server.request('/admin/v1/sources/src_nothing/test', { method: 'POST', key })).status, 404)
})

test('the command prints the steps, and the complete result as JSON', async () => {
  const source = await makeSource(server, { preset: 'shopify' })
  const tested = await kontor('source', 'test', source.id)
  assert.equal(tested.code, 0, tested.err)
  assert.match(tested.err, /✓ archive/)
  assert.equal((tested.json() as { ok: boolean }).ok, true)
  const refused = await kontor('source', 'test', source.id, '--body', '{', '--header', 'X-Shopify-Topic: orders/paid')
  assert.equal(refused.code, 1)
  assert.match(refused.err, /✗ normalize.*not valid JSON/)
  const paid = await kontor(
    ...['source', 'test', source.id, '--body', '{"id": 1}', '--header', 'X-Shopify-Topic: orders/paid'],
  )
  assert.equal(paid.code, 0)
  assert.match(paid.err, /"orders\/paid"/)
  assert.equal((await kontor('source', 'test', 'src_nothing')).code, 1)
  assert.equal((await kontor('source', 'test', source.id, '--wait', 'x')).code, 2)
})

test('dead letters are listed, shown and replayed from the command line, with progress on stderr', async () => {
  const source = await makeSource(server)
  // At most 100 per request are stored.
  const bad = Array.from({ length: 60 }, (_, n) => ({ payload: { n } }))
  for (const good of ['x', 'y']) await source.post([{ event_type: good }, ...bad])
  await server.settled()
  const listed = (await kontor('dead-letters', 'list', '--source', source.id)).json() as {
    id: string
    reason: string
  }[]
  assert.equal(listed.length, 120)
  assert.equal(((await kontor('dead-letters', 'list', '--source', source.id, '--limit', '7')).json() as []).length, 7)
  const [single] = (await kontor('dead-letters', 'list', '--id', listed[3]!.id)).json() as typeof listed
  assert.deepEqual(single, listed[3])
  const shown = (await kontor('dead-letters', 'show', listed[0]!.id)).json() as { body: string }
  assert.match(shown.body, /"payload"/)
  await server.admin.sources.update(source.id, { event_type_override: { set: 'fixed' } })
  const replayed = await kontor('dead-letters', 'replay', '--id', listed[0]!.id)
  const outcome = { applied: 1, failed_again: 0, waiting: 0 }
  assert.deepEqual(replayed.json(), { replayed: 1, remaining: 0, ...outcome })
  const all = await kontor('dead-letters', 'replay', '--tenant', 'default')
  const many: Record<string, number> = all.json()
  assert.deepEqual([many.replayed, many.remaining, many.failed_again], [119, 0, 0])
  assert.equal(many.applied! + many.waiting!, 119)
  assert.match(all.err, /119 replayed/)
  assert.equal((await eventsOf(server, source.id)).length, 122)
  assert.equal((await kontor('dead-letters', 'replay')).code, 2)
  assert.equal((await kontor('dead-letters', 'replay', '--reason', 'other')).code, 2)
  assert.equal((await kontor('dead-letters', 'show', 'x')).code, 1)
  assert.equal((await kontor('dead-letters', 'list', '--limit', '0')).code, 2)
})
