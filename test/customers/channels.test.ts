import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { created, inDays, send } from '../subscriptions/shop.ts'
import { peopleOf } from './people.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const open = async (name: string) => peopleOf(server, await server.tenantWithServerKey(name))
type People = Awaited<ReturnType<typeof open>>

const visit = (people: People, visitor: string, query: string, days = -1) =>
  people.track({
    event_type: 'page_view',
    visitor,
    occurred_at: inDays(days),
    data: { page: `https://shop.example/${query}` },
  })

async function channels(people: People, query = {}) {
  const { status, body } = await people.ask('/v1/channels', query)
  assert.equal(status, 200, JSON.stringify(body))
  return body.results
}

test('each person counts once, in the channel of their first touch, from visit to payment', async () => {
  const people = await open('funnel of channels')
  await visit(people, 'v1', '?utm_source=google&utm_medium=cpc')
  await visit(people, 'v1', '?utm_source=letter&utm_medium=email', 0)
  await visit(people, 'v2', '?utm_source=google&utm_medium=cpc')
  await visit(people, 'v3', '?utm_source=bing&utm_medium=cpc')
  await people.track({ event_type: 'login', visitor: 'v2', user_id: 'u2' })
  await people.track({ event_type: 'login', visitor: 'v3', data: { contact_id: 'cus_s3' } })
  await people.track({ event_type: 'purchase', visitor: 'v1', data: { order_id: 'o1', amount: 20, currency: 'EUR' } })
  await send(server, [created('s3', { status: 'trialing', trial_end: inDays(9) })], people.tenant)
  await visit(people, 'v4', '')
  await visit(people, 'old', '?utm_source=google&utm_medium=cpc', -60)
  await people.contact('imported', { name: 'Ada' })
  await people.settled()
  assert.deepEqual(await channels(people), [
    { channel: 'paid_search', visitors: 3, identified: 3, trials: 1, customers: 1, revenue: { EUR: 20 }, mrr: {} },
    { channel: 'direct', visitors: 1, identified: 0, trials: 0, customers: 0, revenue: {}, mrr: {} },
    { channel: null, visitors: 0, identified: 1, trials: 0, customers: 0, revenue: {}, mrr: {} },
  ])
  assert.equal((await channels(people, { since: inDays(-90).slice(0, 10) }))[0].visitors, 4)
  // the people behind a number
  assert.equal((await people.customers({ channel: 'paid_search' })).length, 2)
  assert.equal((await people.customers({ channel: 'unattributed' })).length, 1)
})

test('rules of the tenant apply to the past', async () => {
  const people = await open('rules')
  await visit(people, 'v1', '?utm_source=ada&utm_campaign=talk')
  await visit(people, 'v2', '?utm_source=ada&utm_campaign=book')
  await people.track({ event_type: 'purchase', visitor: 'v1', data: { order_id: 'o1', amount: 20, currency: 'EUR' } })
  await people.settled()
  assert.deepEqual(
    (await channels(people)).map((row: { channel: string }) => row.channel),
    ['other'],
  )
  const rules = [{ channel: 'talks', source: ['ada'], campaign: ['talk'] }]
  await server.admin.policies.set(people.tenant.id, { channels: rules })
  await people.settled()
  assert.deepEqual((await channels(people)).map((row: { channel: string }) => row.channel).sort(), ['other', 'talks'])
  assert.deepEqual(
    (await people.customers()).map(row => row.channel),
    ['talks'],
  )
  const shown = await server.admin.policies.show(people.tenant.id)
  assert.deepEqual([shown.channels, shown.applied], [rules, true])
  await assert.rejects(server.admin.policies.set(people.tenant.id, { channels: [{ channel: 'x' }] }), /Invalid value/)
})

test('an unverified touch after the first payment, or with an old time, is none', async () => {
  const people = peopleOf(server, await server.anotherTenant('public key'))
  await people.order('o1', { total: 5, currency: 'EUR', email: 'ada@example.com' }, inDays(-3))
  await people.settled()
  await people.track({
    event_type: 'page_view',
    visitor: 'v1',
    data: { page: 'https://shop.example/?utm_source=claimed', email: 'ada@example.com' },
  })
  await visit(people, 'v2', '?utm_source=backdated', -3)
  await people.settled()
  assert.deepEqual(
    (await people.customers()).map(row => row.channel),
    [null],
  )
  assert.deepEqual(await channels(people), [
    { channel: null, visitors: 0, identified: 1, trials: 0, customers: 1, revenue: { EUR: 5 }, mrr: {} },
  ])
})

test('the route needs events:read, hides amounts without their scopes, and rejects invalid windows', async () => {
  const people = await open('scopes of channels')
  await visit(people, 'v1', '')
  await people.settled()
  const keyWith = async (...scopes: string[]) =>
    (await server.admin.keys.create({ tenant: people.tenant.id, kind: 'private', scopes: scopes as never })).key
  const { body } = await people.ask('/v1/channels', {}, await keyWith('events:read'))
  assert.deepEqual(body.results, [
    { channel: 'direct', visitors: 1, identified: 0, trials: null, customers: 0, revenue: null, mrr: null },
  ])
  assert.equal((await people.ask('/v1/channels', {}, await keyWith('contacts:read'))).status, 403)
  for (const query of [{ since: 'x' }, { since: '2026-02-01', until: '2026-01-01' }, { since: '2020-01-01' }]) {
    const { status, body } = await people.ask('/v1/channels', query)
    assert.deepEqual([status, body.errors?.[0]?.pointer], [400, '/since'], JSON.stringify(query))
  }
  const other = await open('another')
  assert.deepEqual(await channels(other), [])
})
