import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inLockstep, permutations } from '../any-order.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { json, type Row, rowsOf } from './rows.ts'

// The same messages give the same profiles and sales, in whatever order they arrive: docs/decisions/0037-profiles-from-links.md.

let server: TestServer
let adminKey: string
before(async () => {
  server = await sharedServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

type Step = (tenant: TestTenant) => Promise<void>

let lastId = 0
async function send(method: 'POST' | 'DELETE', path: string, key: string, body: object): Promise<void> {
  const answer = await server.request(path, { method, key, body: json(body) })
  assert.ok(answer.status === 200 || answer.status === 202, `${path} ${answer.status} ${json(answer.body)}`)
}
const version = (day: number) => `2026-01-0${day}T00:00:00Z`
const write =
  (entityType: 'contact' | 'order', id: string, day: number, data: object): Step =>
  ({ privateKey }) =>
    send('POST', `/v1/${entityType}s`, privateKey, { entityType, id, sourceUpdatedAt: version(day), data })
const remove =
  (entityType: 'contact' | 'order', id: string, day: number): Step =>
  ({ privateKey }) =>
    send('DELETE', `/v1/${entityType}s`, privateKey, { entityType, id, sourceUpdatedAt: version(day) })
const track =
  (body: object): Step =>
  ({ trackingKey }) =>
    send('POST', '/v1/track/', trackingKey, { event_id: `o-${++lastId}`, ...body })
const identify =
  (userId: string, email: string, anonymousId: string): Step =>
  ({ trackingKey }) =>
    send('POST', '/v1/identify', trackingKey, { messageId: `o-${++lastId}`, userId, anonymousId, traits: { email } })

/** The identifiers of each person, with a mark for those that verified input connects, and the events by person. */
async function peopleOf(tenant: TestTenant, ids: string[]): Promise<string[]> {
  const people = new Set<string>()
  for (const id of ids) {
    const path = `/admin/v1/people/${encodeURIComponent(id)}?tenant=${tenant.id}`
    const { status, body } = await server.request(path, { key: adminKey })
    if (status !== 200) continue
    const names = body.names.map((name: Row) => `${name.value}${name.verified ? '+' : ''}`).toSorted()
    if (names.length > 1 || !names[0].startsWith('c-')) people.add(names.join(' '))
  }
  return [...people].toSorted()
}

/** Sends the steps in each order, to a tenant of its own, and compares what `read` returns. */
async function compareOrders(
  orders: Step[][],
  read: (tenant: TestTenant) => Promise<unknown>,
  expected: unknown,
): Promise<void> {
  const steps = orders[0]!
  const tenants = await Promise.all(
    orders.map(order => server.anotherTenant(`${++lastId}: ${order.map(step => steps.indexOf(step)).join(' ')}`)),
  )
  await inLockstep(orders, (step, n) => step(tenants[n]!), server.settled)
  for (const tenant of tenants) assert.deepEqual(await read(tenant), expected, `in the order ${tenant.name}`)
}

const names = ['c-1', 'a@x.example', 'b@x.example', 'u-1', 'u-2']

test('an event shows whether verified input sent it, in lists, by id and in exports', async () => {
  const tenant = await server.anotherTenant('verified events')
  const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  await track({ event_type: 'of a browser' })(tenant)
  await track({ event_type: 'of a server' })({ ...tenant, trackingKey: key })
  await server.settled()
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  const marks = Object.fromEntries(rows.map(row => [row.event_type, row.verified]))
  assert.deepEqual(marks, { 'of a browser': false, 'of a server': true })
  for (const row of rows) {
    const { body } = await server.request(`/v1/events/${row.id}`, { key: tenant.privateKey })
    assert.equal(body.event.verified, row.verified)
  }
  const csv = await fetch(`${server.url}/v1/events`, {
    headers: { authorization: `Bearer ${tenant.privateKey}`, accept: 'text/csv' },
  })
  assert.match(await csv.text(), /,contact_id,verified,payload,/)
})

test('a contact that changes its address is linked only with the current one, in any order', async () => {
  const steps = [
    write('contact', 'c-1', 1, { email: 'a@x.example' }),
    write('contact', 'c-1', 2, { email: 'b@x.example' }),
    identify('u-1', 'a@x.example', 'v-1'),
    identify('u-2', 'b@x.example', 'v-2'),
  ]
  await compareOrders(permutations(steps), tenant => peopleOf(tenant, names), [
    'a@x.example u-1 v-1',
    'b@x.example+ c-1+ u-2 v-2',
  ])
})

test('a deleted contact or order links no one, in any order', async () => {
  const steps = [
    write('contact', 'c-1', 1, { email: 'a@x.example', userId: 'u-2' }),
    identify('u-1', 'a@x.example', 'v-1'),
    remove('contact', 'c-1', 3),
    write('order', 'o-1', 1, { contactId: 'c-1', email: 'b@x.example', total: 5, currency: 'EUR' }),
    remove('order', 'o-1', 2),
  ]
  const orders = permutations(steps).filter((_, i) => i % 5 === 0)
  await compareOrders(
    orders,
    async tenant => (await peopleOf(tenant, names.slice(0, 4))).filter(p => p.includes(' ')),
    ['a@x.example u-1 v-1'],
  )
})

test('a sale links its visitor with the current contact of the order, in any order', async () => {
  const named = (tenant: TestTenant) => peopleOf(tenant, ['c-1', 'c-2', 'v-1'])
  const sale = track({ event_type: 'convert', visitor: 'v-1', data: { order_id: 'o-1' } })
  const first = write('order', 'o-1', 1, { contactId: 'c-1', total: 5, currency: 'EUR' })
  const second = write('order', 'o-1', 2, { contactId: 'c-2', total: 5, currency: 'EUR' })
  const none = write('order', 'o-1', 3, { total: 5, currency: 'EUR' })
  await compareOrders(permutations([sale, first, second]), named, ['c-2+ v-1'])
  await compareOrders(permutations([sale, first, none]), named, ['v-1'])
})

test('a link that two records make stays until neither makes it', async () => {
  const tenant = await server.anotherTenant('two records')
  const steps: [Step, string[]][] = [
    [write('contact', 'c-1', 1, { email: 'a@x.example' }), ['a@x.example+ c-1+']],
    [write('order', 'o-1', 1, { contactId: 'c-1', email: 'a@x.example', total: 1 }), ['a@x.example+ c-1+']],
    [write('contact', 'c-1', 2, { email: 'b@x.example' }), ['a@x.example+ b@x.example+ c-1+']],
    [write('order', 'o-1', 2, { contactId: 'c-1', total: 1 }), ['a@x.example', 'b@x.example+ c-1+']],
  ]
  for (const [step, expected] of steps) {
    await step(tenant)
    await server.settled()
    assert.deepEqual(await peopleOf(tenant, names), expected)
  }
})

test('a link that a limit prevented is made when a record verifies it', async () => {
  const tenant = await server.anotherTenant('full profile')
  const batch = Array.from({ length: 210 }, (_, i) => ({
    type: 'track',
    event: 'e',
    anonymousId: `f-${i}`,
    userId: 'u-1',
  }))
  await send('POST', '/v1/batch', tenant.trackingKey, { batch })
  await server.settled()
  await identify('u-1', 'a@x.example', 'f-0')(tenant)
  await server.settled()
  assert.deepEqual(await peopleOf(tenant, ['a@x.example']), ['a@x.example'])
  await write('contact', 'c-1', 1, { email: 'a@x.example', userId: 'u-1' })(tenant)
  await server.settled()
  const [person] = await peopleOf(tenant, ['a@x.example'])
  assert.match(person!, /^a@x.example\+ c-1\+ .* u-1\+$/)
})

test('a visitor who named two people: each has the same events, whenever their records arrive', async () => {
  const visits = ['before', 'as a', 'as a later', 'as b', 'as b later', 'as a again'].map((event_type): Step => {
    const named = event_type.startsWith('as a') ? 'a@x.example' : 'b@x.example'
    const isNamed = event_type !== 'before' && !event_type.endsWith('later')
    return track({ event_type, visitor: 'v-1', ...(isNamed && { data: { email: named } }) })
  })
  const records = [
    write('contact', 'c-1', 1, { email: 'a@x.example' }),
    write('contact', 'c-2', 1, { email: 'b@x.example' }),
  ]
  const orders = [0, 2, 4, 6].flatMap(first =>
    [0, 3, 6].map(second => visits.toSpliced(first, 0, records[0]!).toSpliced(second, 0, records[1]!)),
  )
  const contactsOf = async (tenant: TestTenant) =>
    Object.fromEntries(
      (await rowsOf(server, 'events', { key: tenant.privateKey })).map(row => [row.event_type, row.contact_id]),
    )
  await compareOrders(orders, contactsOf, {
    ...{ before: 'c-1', 'as a': 'c-1', 'as a later': 'c-1' },
    ...{ 'as b': 'c-2', 'as b later': 'c-2', 'as a again': 'c-1' },
  })
})

test('a sale that records, sources and browsers report is the same in any order', async () => {
  const sources = new Map<string, { id: string; token: string }>()
  const hook =
    (event_type: string, payload: object): Step =>
    async tenant => {
      const source =
        sources.get(tenant.id) ?? (await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' }))
      sources.set(tenant.id, source)
      const body = { inbound_event_id: event_type, event_type, occurred_at: version(3), payload }
      await send('POST', `/ingest/inbound/${source.id}`, source.token, body)
    }
  const salesOf = async (tenant: TestTenant) =>
    (await rowsOf(server, 'conversions', { key: tenant.privateKey })).map(row => [
      ...[row.amount, row.currency, row.event_type, row.conversion_type, row.source, row.occurred_at, row.visitor],
      ...[row.claims, row.verified],
    ])
  const browser = track({
    event_type: 'convert',
    visitor: 'v-1',
    data: { order_id: 'o-1', amount: 1, currency: 'USD' },
  })
  const paid = hook('order.paid', { order_id: 'o-1', total: 99.5, currency: 'EUR' })
  const completed = hook('order_completed', { order_id: 'o-1', total: 99.5, currency: 'EUR' })
  const time = '2026-01-03T00:00:00.000Z'
  await compareOrders(permutations([browser, paid, completed]), salesOf, [
    [99.5, 'EUR', 'order.paid', 'order.paid', 'webhook', time, 'v-1', 1, true],
  ])
  // The order has no time of its own.
  const order = write('order', 'o-1', 2, { total: 80, currency: 'EUR' })
  await compareOrders(permutations([browser, completed, order]), salesOf, [
    [80, 'EUR', 'order_completed', 'order', 'orders', time, 'v-1', 1, true],
  ])
})
