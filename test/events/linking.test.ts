import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openIdentities } from '../../src/pipeline/identity/linking.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { type OwnServer, startServer, type TestTenant } from '../server.ts'
import { json, type Row, rowsOf } from './rows.ts'

// Which identifiers are linked and which stay separate: docs/guides/events.md.

let server: OwnServer
before(async () => {
  server = await startServer({ KONTOR_OPS_PORT: '0' })
})
after(() => server.close())

async function post(path: string, key: string, body: object): Promise<void> {
  const { status } = await server.request(path, { method: 'POST', key, body: json(body) })
  assert.ok(status === 200 || status === 202, `${path} ${status}`)
}

let lastId = 0
const track = (tenant: TestTenant, body: object) =>
  post('/v1/track/', tenant.trackingKey, { event_id: `e-${++lastId}`, ...body })

const write = (tenant: TestTenant, entityType: 'contact' | 'order', id: string, data: object) =>
  post(`/v1/${entityType}s`, tenant.privateKey, {
    ...{ entityType, id, sourceUpdatedAt: new Date().toISOString(), data },
  })

/** Sends the requests one after the other, each after the previous one is applied. */
async function inTurn(...steps: (() => Promise<void>)[]): Promise<void> {
  for (const step of steps) {
    await step()
    await server.settled()
  }
}

const profiles = async (tenant: TestTenant): Promise<Map<string, Row>> =>
  new Map((await rowsOf(server, 'events', { key: tenant.privateKey })).map(row => [row.event_type, row.profile_id]))

const sales = (tenant: TestTenant) => rowsOf(server, 'conversions', { key: tenant.privateKey })

async function serverKey(tenant: TestTenant): Promise<TestTenant> {
  const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  return { ...tenant, trackingKey: key }
}

test('a visitor id moves to the second person who uses it; earlier events stay', async () => {
  const tenant = await server.anotherTenant('shared browser')
  await inTurn(
    () => track(tenant, { event_type: 'before', visitor: 'tablet' }),
    () => track(tenant, { event_type: 'ada logs in', visitor: 'tablet', user_id: 'ada' }),
    () => track(tenant, { event_type: 'as ada', visitor: 'tablet' }),
    () => track(tenant, { event_type: 'bob logs in', visitor: 'tablet', user_id: 'bob' }),
    () => track(tenant, { event_type: 'as bob', visitor: 'tablet' }),
    () => track(tenant, { event_type: 'ada elsewhere', user_id: 'ada' }),
    () => track(tenant, { event_type: 'bob elsewhere', user_id: 'bob' }),
  )
  const found = await profiles(tenant)
  const [ada, bob] = [found.get('ada elsewhere'), found.get('bob elsewhere')]
  assert.notEqual(ada, bob)
  assert.deepEqual(
    ['before', 'ada logs in', 'as ada', 'bob logs in', 'as bob'].map(type => found.get(type)),
    [ada, ada, ada, bob, bob],
  )
})

test('a visitor id that moves within a batch takes the later events of the batch along', async () => {
  const tenant = await server.anotherTenant('moved in a batch')
  const event = (name: string, userId?: string) => ({
    ...{ type: 'track', event: name, messageId: `m-${++lastId}`, anonymousId: 'phone', ...(userId && { userId }) },
  })
  const batch = (...events: object[]) => post('/v1/batch', tenant.trackingKey, { batch: events })
  await inTurn(
    () => batch(event('ada logs in', 'ada')),
    // The worker now remembers the node of the visitor id.
    () => batch(event('as ada')),
    () => batch(event('still ada'), event('bob logs in', 'bob'), event('as bob')),
  )
  const found = await profiles(tenant)
  const [ada, bob] = [found.get('ada logs in'), found.get('bob logs in')]
  assert.notEqual(ada, bob)
  assert.deepEqual(
    ['as ada', 'still ada', 'as bob'].map(type => found.get(type)),
    [ada, ada, bob],
  )
})

test('an alias of a public tracking key does not merge identified people; one of a server does', async () => {
  const tenant = await server.anotherTenant('aliases')
  const alias = (who: TestTenant, userId: string, previousId: string) =>
    post('/v1/alias', who.trackingKey, { messageId: `a-${++lastId}`, userId, previousId })
  await inTurn(
    () => track(tenant, { event_type: 'one', user_id: 'u-1' }),
    () => track(tenant, { event_type: 'two', user_id: 'u-2' }),
    () => alias(tenant, 'u-1', 'u-2'),
  )
  let found = await profiles(tenant)
  assert.notEqual(found.get('one'), found.get('two'))
  const trusted = await serverKey(tenant)
  await inTurn(() => alias(trusted, 'u-1', 'u-2'))
  found = await profiles(tenant)
  assert.equal(found.get('one'), found.get('two'))
})

test('aliases of a visitor id take effect in the order in which they were sent', async () => {
  const tenant = await server.anotherTenant('aliases in order')
  const visitors = Array.from({ length: 12 }, (_, i) => i)
  const alias = (visitor: number, name: string) =>
    post('/v1/alias', tenant.trackingKey, {
      ...{ messageId: `a-${++lastId}`, userId: `${name}-${visitor}`, previousId: `v-${visitor}` },
    })
  // Without a wait in between: the log has all of them when a worker reads it.
  await Promise.all(
    visitors.map(async i => {
      await alias(i, 'ada')
      await alias(i, 'bob')
      await track(tenant, { event_type: `as bob ${i}`, visitor: `v-${i}` })
      await track(tenant, { event_type: `bob elsewhere ${i}`, user_id: `bob-${i}` })
    }),
  )
  await server.settled()
  const found = await profiles(tenant)
  for (const i of visitors) assert.equal(found.get(`as bob ${i}`), found.get(`bob elsewhere ${i}`), `visitor ${i}`)
})

test('one browser that sends the orders, e-mails and ids of all customers does not merge them', async () => {
  const tenant = await server.anotherTenant('guesses')
  const customers = Array.from({ length: 20 }, (_, i) => i)
  const claims = customers.flatMap(i => [
    { event: 'Order Completed', properties: { order_id: `o-${i}` } },
    { event: 'Form Sent', properties: { email: `c${i}@example.com` } },
    { event: 'Login', userId: `user-${i}` },
    { event: 'Seen', properties: { contact_id: `c-${i}` } },
  ])
  const attack = () =>
    post('/v1/batch', tenant.trackingKey, {
      batch: claims.map(claim => ({
        type: 'track',
        messageId: `m-${++lastId}`,
        anonymousId: 'evil',
        ...claim,
      })),
    })
  // before, between and after the writes of the customers
  await inTurn(attack)
  for (const i of customers.slice(0, 10)) {
    await write(tenant, 'contact', `c-${i}`, { email: `c${i}@example.com`, userId: `user-${i}` })
    await write(tenant, 'order', `o-${i}`, { total: i, currency: 'EUR', contactId: `c-${i}` })
  }
  await server.settled()
  await inTurn(attack)
  for (const i of customers.slice(10)) {
    await write(tenant, 'order', `o-${i}`, { total: i, currency: 'EUR', contactId: `c-${i}` })
    await write(tenant, 'contact', `c-${i}`, { email: `c${i}@example.com`, userId: `user-${i}` })
  }
  await server.settled()
  await inTurn(attack)
  const rows = (await sales(tenant)).filter(row => row.source === 'orders')
  assert.equal(rows.length, customers.length)
  for (const row of rows) {
    const n = row.source_object_id.slice(2)
    assert.deepEqual([row.contact_id, row.contact_email], [`c-${n}`, `c${n}@example.com`])
  }
  const { rows: shared } = await server.pool.query(
    `select profile, array_agg(value) as contacts from identities i join tenants t on t.id = i.tenant_id
     where t.name = 'guesses' and kind = 'contact' group by profile having count(*) > 1`,
  )
  assert.deepEqual(shared, [])
})

test('a sale links its only anonymous visitor with the contact of its order; a second visitor undoes that', async () => {
  const tenant = await server.anotherTenant('buyers')
  const convert = (visitor: string) =>
    track(tenant, { event_type: 'convert', visitor, data: { order_id: 'o', amount: 5, currency: 'EUR' } })
  await inTurn(
    () => track(tenant, { event_type: 'looked', visitor: 'v-1' }),
    () => convert('v-1'),
    () => track(tenant, { event_type: 'contact elsewhere', data: { contact_id: 'c-1' } }),
    () => write(tenant, 'order', 'o', { total: 5, currency: 'EUR', contactId: 'c-1' }),
  )
  let found = await profiles(tenant)
  assert.equal(found.get('looked'), found.get('contact elsewhere'))
  await inTurn(
    () => convert('v-2'),
    () => track(tenant, { event_type: 'looked again', visitor: 'v-1' }),
  )
  found = await profiles(tenant)
  assert.notEqual(found.get('looked'), found.get('contact elsewhere'))
  assert.equal(found.get('looked'), found.get('looked again'))
  assert.equal((await sales(tenant)).length, 1)
})

test('a deleted order no longer links its visitor, and a new version of it does', async () => {
  const tenant = await server.anotherTenant('deleted order')
  const at = (second: number) => `2026-01-01T00:00:0${second}Z`
  const order = (second: number, data: object | null) =>
    server.request('/v1/orders', {
      ...{ method: data ? 'POST' : 'DELETE', key: tenant.privateKey },
      body: json({ entityType: 'order', id: 'o', sourceUpdatedAt: at(second), ...(data && { data }) }),
    })
  await inTurn(
    () => track(tenant, { event_type: 'convert', visitor: 'v-1', data: { order_id: 'o', amount: 5 } }),
    () => track(tenant, { event_type: 'contact elsewhere', data: { contact_id: 'c-1' } }),
    () => order(1, { total: 5, currency: 'EUR', contactId: 'c-1' }).then(() => {}),
  )
  const rows = await sales(tenant)
  assert.equal(rows.length, 1)
  const looked = () => track(tenant, { event_type: 'looked', visitor: 'v-1' })
  await inTurn(looked)
  const together = async () => {
    const found = await profiles(tenant)
    return found.get('looked') === found.get('contact elsewhere')
  }
  assert.equal(await together(), true)
  await inTurn(() => order(2, null).then(() => {}))
  assert.equal(await together(), false)
  await inTurn(() => order(3, { total: 5, currency: 'EUR', contactId: 'c-1' }).then(() => {}))
  assert.equal(await together(), true)
})

test('without a record of the order, events with its id are one sale only within one profile', async () => {
  const tenant = await server.anotherTenant('claims')
  const convert = (visitor: string, user_id?: string) =>
    track(tenant, {
      event_type: 'convert',
      visitor,
      ...(user_id && { user_id }),
      data: { order_id: 'o', amount: 5, currency: 'EUR' },
    })
  await inTurn(
    () => convert('v-1'),
    () => convert('v-1'),
    () => convert('v-2'),
  )
  assert.deepEqual((await sales(tenant)).map(row => row.visitor).sort(), ['v-1', 'v-2'])
  // when both turn out to be one person, it is one sale
  await inTurn(
    () => track(tenant, { event_type: 'login', visitor: 'v-1', user_id: 'ada' }),
    () => track(tenant, { event_type: 'login again', visitor: 'v-2', user_id: 'ada' }),
  )
  assert.equal((await sales(tenant)).length, 1)
  await inTurn(() => convert('v-3'))
  assert.equal((await sales(tenant)).length, 2)
  // the order record identifies the buyer: one row for all
  await inTurn(() => write(tenant, 'order', 'o', { total: 6, currency: 'EUR', contactId: 'c-1' }))
  assert.deepEqual(
    (await sales(tenant)).map(row => [row.amount, row.contact_id]),
    [[6, 'c-1']],
  )
})

test('a profile has at most 200 identifiers; further events are still stored', async () => {
  const tenant = await server.anotherTenant('full')
  const batch = Array.from({ length: 300 }, (_, i) => ({
    ...{ type: 'track', event: `visit ${i}`, messageId: `f-${i}`, anonymousId: `v-${i}`, userId: 'ada' },
  }))
  await inTurn(() => post('/v1/batch', tenant.trackingKey, { batch }))
  const { rows } = await server.pool.query(
    `select count(*) as names from identities i join tenants t on t.id = i.tenant_id
     where t.name = 'full' group by profile order by 1 desc`,
  )
  assert.equal(rows[0].names, 200)
  const { rows: events } = await server.pool.query(
    `select count(*) as n from events e join tenants t on t.id = e.tenant_id where t.name = 'full'`,
  )
  assert.equal(events[0].n, 300)
  const metrics = await (await fetch(`${server.opsUrl}/metrics`)).text()
  assert.match(metrics, /^kontor_unlinked_identifiers 101$/m)
})

test('erasing a person by e-mail also erases the unlinked events that contain the address', async () => {
  const tenant = await server.anotherTenant('unlinked')
  await inTurn(
    () => write(tenant, 'contact', 'c-1', { email: 'ada@example.com' }),
    () => write(tenant, 'contact', 'c-2', { userId: 'mallory' }),
    // Ada is a contact, and so is the sender: they stay two people
    () => track(tenant, { event_type: 'names her', user_id: 'mallory', data: { email: 'ada@example.com' } }),
    () => track(tenant, { event_type: 'does not', user_id: 'mallory' }),
    // stored under the browser, which is linked with neither of the two
    () =>
      post('/v1/identify', tenant.trackingKey, {
        anonymousId: 'browser-of-mallory',
        userId: 'mallory',
        traits: { email: 'Ada <ADA@example.com>' },
      }),
    () => track(tenant, { event_type: 'does not either', visitor: 'browser-of-mallory' }),
  )
  const exported: string[] = []
  const person = { tenant: tenant.id, id: 'ada@example.com', format: 'ndjson' as const }
  for await (const text of await server.admin.people.export(person)) exported.push(text)
  assert.match(exported.join(''), /names her/)
  assert.match(exported.join(''), /browser-of-mallory/)
  assert.doesNotMatch(exported.join(''), /does not/)
  const preview = await server.admin.erasures.preview({ tenant: tenant.id, email: 'ada@example.com' })
  assert.equal(preview.would_erase.events, 2)
  await server.admin.erasures.erase({ tenant: tenant.id, email: 'ada@example.com' })
  assert.deepEqual([...(await profiles(tenant)).keys()].sort(), ['does not', 'does not either'])
})

test('verified input verifies only the person that it names, also in one batch with unverified input', async () => {
  let tenantId = 2_000_000
  /** The identifiers that each batch verifies, by user id. */
  const verifiedBy = async (...batches: [user: string | null, verified: boolean][][]) => {
    tenantId++
    for (const batch of batches)
      await inTransaction(server.pool, client =>
        openIdentities().resolve(
          { client, now: new Date(), configVersion: 1 },
          batch.map(([user, verified], i) => ({
            tenantId,
            identifiers: [
              { kind: 'visitor' as const, value: 'v' },
              ...(user === null ? [] : [{ kind: 'user' as const, value: user }]),
            ],
            verified,
            cause: { kind: 'event' as const, id: String(i) },
            receivedAt: new Date(),
          })),
        ),
      )
    const { rows } = await server.pool.query(
      `select i.kind || ' of ' || coalesce(w.value, i.value) as name from identities i
       left join identities w on w.tenant_id = i.tenant_id and w.node = i.seen_with
       where i.tenant_id = $1 and i.verified order by 1`,
      [tenantId],
    )
    return rows.map(({ name }) => name)
  }
  const claimed = ['ada', false] as [string, boolean]
  const stated = ['bob', true] as [string, boolean]
  const expected = ['user of bob', 'visitor of bob']
  assert.deepEqual(await verifiedBy([claimed], [stated]), expected)
  assert.deepEqual(await verifiedBy([claimed, stated]), expected)
  assert.deepEqual(await verifiedBy([[null, false]], [claimed, stated]), expected)
  assert.deepEqual(await verifiedBy([stated, claimed]), expected)
  assert.deepEqual(await verifiedBy([[null, false], stated]), expected)
  assert.deepEqual(await verifiedBy([claimed, ['bob', false], stated]), expected)
})

test('linking a thousand groups takes as many statements as linking ten', async () => {
  const statementsFor = (tenantId: number, names: [string, string][]) =>
    inTransaction(server.pool, async client => {
      let statements = 0
      const query = (...given: Parameters<typeof client.query>) => {
        statements++
        return client.query(...given)
      }
      const counting = new Proxy(client, {
        get: (own, name) => (name === 'query' ? query : Reflect.get(own, name)),
      })
      const seen = names.map(([visitor, user], i) => ({
        tenantId,
        identifiers: [
          { kind: 'visitor' as const, value: visitor },
          { kind: 'user' as const, value: user },
        ],
        verified: true,
        cause: { kind: 'event' as const, id: String(i) },
        receivedAt: new Date(),
      }))
      const transaction = { client: counting, now: new Date(), configVersion: 1 }
      const { nodes } = await openIdentities().resolve(transaction, seen)
      return { statements, nodes: new Set(nodes).size }
    })
  const sightings = (count: number, name: (i: number) => [string, string]) =>
    Array.from({ length: count }, (_, i) => name(i))
  // Tenants that no other test uses.
  let tenantId = 1_000_000
  for (const { nodes, name } of [
    // A visitor id that returns to a person has the node that it had with this person.
    { nodes: 2, name: (i: number): [string, string] => ['browser', `user ${i % 2}`] },
    { nodes: 1_000, name: (i: number): [string, string] => ['browser', `user ${i}`] },
    { nodes: 1_000, name: (i: number): [string, string] => [`browser ${i >> 1}`, `user ${(i + 1) >> 1}`] },
  ]) {
    const few = await statementsFor(tenantId++, sightings(10, name))
    const many = await statementsFor(tenantId++, sightings(1_000, name))
    assert.equal(many.nodes, nodes)
    assert.equal(many.statements, few.statements)
  }
})
