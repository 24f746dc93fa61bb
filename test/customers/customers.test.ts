import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { parseTenantId } from '../../src/domain/tenants/tenants.ts'
import { type CustomerRow, customerPages } from '../../src/store/customers/list.ts'
import { eventually } from '../eventually.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { created, ended, inDays, item, send, updated } from '../subscriptions/shop.ts'
import { peopleOf } from './people.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const open = async (name: string) => peopleOf(server, await server.tenantWithServerKey(name))
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
type Row = any

test('lists people with a contact, a purchase or a subscription, and no other visitors', async () => {
  const people = await open('everyone')
  await people.contact('c1', { name: 'Ada Lovelace', email: 'ada@example.com', company: 'Engines', country: 'gb' })
  await people.track({ event_type: 'page_view', visitor: 'v-anonymous', data: { page: 'https://shop.example/' } })
  await people.track({
    event_type: 'page_view',
    visitor: 'v-buyer',
    occurred_at: inDays(-3),
    data: { page: 'https://shop.example/?utm_source=google&utm_medium=cpc' },
  })
  await people.track({
    event_type: 'purchase',
    visitor: 'v-buyer',
    occurred_at: inDays(-2),
    data: { order_id: 'o1', amount: 20.5, currency: 'EUR' },
  })
  await people.track({
    event_type: 'purchase',
    visitor: 'v-buyer',
    data: { order_id: 'o2', amount: 5, currency: 'USD' },
  })
  await send(
    server,
    [created('s1', { customer_email: 'grace@example.com', customer_name: 'Grace Hopper' })],
    people.tenant,
  )
  await people.settled()
  const rows = await people.customers()
  const shown = (row: Row) => [
    row.name,
    row.email,
    row.company,
    row.country,
    row.channel,
    row.orders,
    row.revenue,
    row.mrr,
    row.status,
  ]
  assert.deepEqual(rows.map(shown).sort(), [
    [null, null, null, null, 'paid_search', 2, { EUR: 20.5, USD: 5 }, {}, 'buyer'],
    ['Ada Lovelace', 'ada@example.com', 'Engines', 'GB', null, 0, {}, {}, 'lead'],
    ['Grace Hopper', 'grace@example.com', null, null, null, 0, {}, { EUR: 10 }, 'active'],
  ])
  const buyer = rows.find(row => row.status === 'buyer')
  assert.equal(buyer.first_seen_at.slice(0, 10), inDays(-3).slice(0, 10))
  assert.equal(buyer.customer_since.slice(0, 10), inDays(-2).slice(0, 10))
  assert.match(buyer.profile_id, /^prof_\d+$/)
  const grace = rows.find(row => row.status === 'active')
  assert.deepEqual([grace.customer, grace.plans], ['cus_s1', ['Plan']])
})

test('a merge, a split, a deleted order and an erasure show in the list', async () => {
  const people = await open('changes')
  const { tenant } = people
  await people.contact('c1', { name: 'Ada', email: 'ada@example.com' })
  await people.track({
    event_type: 'page_view',
    visitor: 'v1',
    data: { page: 'https://shop.example/?utm_source=bing' },
  })
  await people.track({ event_type: 'purchase', visitor: 'v1', data: { order_id: 'o1', amount: 10, currency: 'EUR' } })
  await people.order('o2', { total: 7, currency: 'EUR', contactId: 'c1' })
  await people.settled()
  const revenue = async () => (await people.customers()).map(row => [row.name, row.orders, row.revenue.EUR]).sort()
  const apart = [
    [null, 1, 10],
    ['Ada', 1, 7],
  ]
  assert.deepEqual(await revenue(), apart)
  const [ada, visitor] = (await people.customers({ sort: 'name' })).map(row => row.profile_id)
  await server.admin.people.merge({ tenant: tenant.id, id: visitor, into: ada })
  await people.settled()
  assert.deepEqual(await revenue(), [['Ada', 2, 17]])
  assert.deepEqual((await people.customers({ channel: 'other' })).length, 1)
  await server.admin.people.split({ tenant: tenant.id, id: ada, name: 'v1' })
  await people.settled()
  assert.deepEqual(await revenue(), apart)
  const { status } = await server.request('/v1/orders?id=o2', {
    method: 'DELETE',
    key: tenant.privateKey,
    body: JSON.stringify({ entityType: 'order', id: 'o2', sourceUpdatedAt: inDays(1) }),
  })
  assert.equal(status, 202)
  await people.settled()
  assert.deepEqual(await revenue(), [
    [null, 1, 10],
    ['Ada', 0, undefined],
  ])
  await server.admin.erasures.erase({ tenant: tenant.id, email: 'ada@example.com' })
  // at once: the job is not needed to delete personal data
  const { rows } = await server.pool.query('select name, email from customers where tenant_id = $1', [
    parseTenantId(tenant.id),
  ])
  assert.deepEqual(rows, [{ name: null, email: null }])
})

test('the status follows the subscription: trial, active, at risk, churned', async () => {
  const people = await open('status')
  const at = (days: number) => ({ updated_at: inDays(days), started_at: inDays(-100) })
  await send(
    server,
    [
      created('trial', { status: 'trialing', trial_end: inDays(10) }),
      created('active'),
      created('leaving', { cancel_at: inDays(20) }),
      created('overdue', { status: 'past_due' }),
      created('gone'),
      ended('gone', inDays(-5), at(-5)),
      created('never', { status: 'trialing' }),
      ended('never', inDays(-5), at(-5)),
    ],
    people.tenant,
  )
  await people.settled()
  const statusOf = async () =>
    Object.fromEntries((await people.customers()).map(row => [row.customer?.slice(4) ?? 'none', row.status]))
  assert.deepEqual(await statusOf(), {
    trial: 'trial',
    active: 'active',
    leaving: 'at_risk',
    overdue: 'at_risk',
    gone: 'churned',
    never: 'lead',
  })
  await send(server, [updated('trial', { status: 'active', ...at(0) })], people.tenant)
  await people.settled()
  assert.equal((await statusOf()).trial, 'active')
  assert.deepEqual((await people.customers({ segment: 'at_risk' })).map(row => row.customer).sort(), [
    'cus_leaving',
    'cus_overdue',
  ])
  // the first payment of `trial` was just now, that of the others 100 days ago
  assert.deepEqual(
    (await people.customers({ segment: 'new' })).map(row => row.customer),
    ['cus_trial'],
  )
})

test('a change that a subscription has scheduled shows when its time comes', async () => {
  const people = await open('scheduled')
  const soon = new Date(Date.now() + 3_000).toISOString()
  await send(server, [created('s', { ended_at: soon, cancel_at: soon })], people.tenant)
  await people.settled()
  await eventually('the subscription to end', async () => (await people.customers())[0].status === 'churned')
})

test('a person with a subscription that starts later is a lead until then', async () => {
  const people = await open('starts later')
  const startsAt = inDays(30)
  const later = created('later', { customer_email: 'later@example.com', started_at: startsAt, updated_at: inDays(-1) })
  await send(server, [later], people.tenant)
  await people.settled()
  const [row] = await people.customers()
  assert.deepEqual([row.email, row.status, row.customer_since], ['later@example.com', 'lead', null])
  const segments = ['new', 'lead', 'churned', 'active']
  const found = await Promise.all(segments.map(async segment => (await people.customers({ segment })).length))
  assert.deepEqual(found, [0, 1, 0, 0])
  assert.deepEqual(
    (await people.exported({ segment: 'lead' })).map(row => [row.customer, row.customer_since]),
    [['cus_later', null]],
  )
  const customersByChannel = async () =>
    (await people.ask('/v1/channels')).body.results.map((row: Row) => row.customers)
  assert.deepEqual(await customersByChannel(), [0])

  const soon = new Date(Date.now() + 3_000).toISOString()
  await send(server, [updated('later', { started_at: soon, updated_at: inDays(-0.5) })], people.tenant)
  // no event reports the start
  await eventually('the subscription to start', async () => (await people.customers())[0].status === 'active')
  const [customer] = await people.customers({ segment: 'new' })
  assert.equal(customer.customer_since, soon)
  assert.deepEqual(await customersByChannel(), [1])
})

test('a contact that is stored while another transaction creates its profile shows', async () => {
  const people = await open('two transactions')
  const workers = await server.pool.connect()
  const writer = await server.pool.connect()
  const namesShown = async () => (await people.customers()).map(row => row.name).join()
  try {
    // the order waits in the log until the writer has begun
    await workers.query('begin')
    await workers.query('select from log_cursors for update')
    await people.order('o1', { total: 5, currency: 'EUR', contactId: 'c1' })
    await writer.query('begin')
    await writer.query(
      `insert into records (tenant_id, entity_type, id, source_updated_at, entry_id, deleted, data, created_at, updated_at)
       values ($1, 'contact', 'c1', now(), gen_random_uuid(), false, '{"name":"Ada"}', now(), now())`,
      [parseTenantId(people.tenant.id)],
    )
    await workers.query('rollback')
    await eventually('a customer without a name', async () => (await people.customers())[0]?.name === null)
    await writer.query('commit')
  } finally {
    workers.release()
    writer.release()
  }
  await eventually('their name', async () => (await namesShown()) === 'Ada')
})

test('each order of the list is complete and without repeats, page by page', async () => {
  const people = await open('pages')
  for (let n = 0; n < 7; n++) {
    await people.contact(`c${n}`, { name: `Name ${n % 3}`, country: n % 2 ? 'DE' : 'FR' })
    await people.order(`o${n}`, { total: n % 2, currency: 'EUR', contactId: `c${n}` })
  }
  await people.settled()
  const all = new Set((await people.customers()).map(row => row.profile_id))
  assert.equal(all.size, 7)
  for (const sort of ['last_seen_at', 'first_seen_at', 'name', 'revenue', 'mrr'])
    for (const order of ['asc', 'desc']) {
      const rows = await people.customers({ sort, order, limit: 2, currency: 'EUR' })
      assert.deepEqual(rows.length, 7, `${sort} ${order}`)
      assert.deepEqual(new Set(rows.map(row => row.profile_id)), all)
      const values = rows.map(row => (sort === 'revenue' ? (row.revenue.EUR ?? 0) : sort === 'mrr' ? 0 : row[sort]))
      const sorted = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
      assert.deepEqual(values, order === 'asc' ? sorted : sorted.reverse())
    }
  assert.equal((await people.customers({ country: 'de' })).length, 3)
  for (const query of [
    { sort: 'name' },
    { sort: 'revenue', currency: 'EUR', order: 'asc' },
    { q: 'name', country: 'de' },
  ])
    assert.deepEqual(
      await people.exported(query),
      await people.customers(query),
      'the export has the same rows and order',
    )
  const { body: first } = await people.ask('/v1/customers', { limit: 1 })
  for (const query of [{ sort: 'name' }, { order: 'asc' }]) {
    const { status, body } = await people.ask('/v1/customers', { ...query, cursor: first.next_cursor })
    assert.deepEqual([status, body.errors?.[0].pointer], [400, '/cursor'], 'the cursor of another order')
  }
})

test('an export contains all customers of the list, each once, also if the order changes meanwhile', async () => {
  const people = await open('export')
  const ids = Array.from({ length: 1_200 }, (_, n) => `c${n}`)
  const contacts = ids.map(id => ({ entityType: 'contact', id, sourceUpdatedAt: inDays(-3), data: { name: id } }))
  for (const portion of [contacts.slice(0, 600), contacts.slice(600)]) {
    const { status } = await server.request('/v1/contacts/batch', {
      ...{ method: 'POST', key: people.tenant.privateKey, body: JSON.stringify({ records: portion }) },
    })
    assert.equal(status, 202)
  }
  await people.settled()
  const rows = await people.exported({ sort: 'name' })
  assert.equal(rows.length, ids.length)
  assert.deepEqual(new Set(rows.map(row => row.contact_id)), new Set(ids))

  const tenantId = parseTenantId(people.tenant.id)!
  const pages = customerPages(server.pool, tenantId, {
    ...{ sort: 'name', descending: false, currency: null, words: [], status: null, newSince: null },
    ...{ country: null, channel: null, plan: null, profile: null, acquired: { since: null, until: null } },
  })
  const found: CustomerRow[] = (await pages.next()).value!
  assert.ok(found.length < ids.length, 'a portion is smaller than the list')
  const last = rows.at(-1).contact_id
  await people.contact(last, { name: 'a' })
  await people.settled()
  assert.equal(
    (await people.ask('/v1/customers', { sort: 'name' })).body.results[0].contact_id,
    last,
    'is now the first',
  )
  for await (const page of pages) found.push(...page)
  assert.deepEqual(new Set(found.map(row => row.contactId)), new Set(ids))
})

test('people are found by the beginnings of the words of their name, company and e-mail address', async () => {
  const people = await open('search')
  await people.contact('c1', { name: "Ada O'Neill", email: 'ada@example.com', company: 'Back\\slash & Sons' })
  await people.contact('c2', { name: 'Äda Byron', email: 'byron@example.com' })
  await people.settled()
  const found = async (q: string) => (await people.customers({ q })).map(row => row.contact_id).sort()
  assert.deepEqual(await found('ada'), ['c1'])
  assert.deepEqual(await found('neill'), ['c1'])
  assert.deepEqual(await found('AD ONE'), [])
  assert.deepEqual(await found('äd by'), ['c2'])
  assert.deepEqual(await found('byron@example'), ['c2'])
  assert.deepEqual(await found('back\\sl'), ['c1'])
  assert.deepEqual(await found('&'), ['c1'])
  for (const q of ["':*", '!ada', 'ada | byron', '<->', '%', '\u0000', '\ud800', '\\', "\\'", ':A'])
    assert.equal((await people.ask('/v1/customers', { q })).status < 500, true, q)
  assert.deepEqual(await found('ada | byron'), [])
})

test('a sale with a time in the future does not mean that the person was seen then', async () => {
  const people = await open('future')
  await people.order('o1', { total: 5, currency: 'EUR', email: 'ada@example.com', placedAt: '9999-12-31T00:00:00Z' })
  await people.settled()
  const [row] = await people.customers()
  assert.ok(row.last_seen_at <= inDays(1), row.last_seen_at)
  assert.equal(row.customer_since, '9999-12-31T00:00:00.000Z')
})

test('last_seen_at follows the events of a customer', async () => {
  const people = await open('seen')
  await people.contact('c1', { email: 'ada@example.com' }, inDays(-50))
  await people.settled()
  const [before] = await people.customers()
  await people.track({ event_type: 'login', visitor: 'v1', data: { email: 'ada@example.com' } })
  await people.settled()
  await people.track({ event_type: 'login', visitor: 'v1', data: {} })
  await people.settled()
  const [row] = await people.customers()
  assert.ok(row.last_seen_at > before.last_seen_at, row.last_seen_at)
})

test('amounts need the scopes of sales and subscriptions, and other tenants see nothing', async () => {
  const people = await open('scopes')
  await people.order('o1', { total: 3, currency: 'EUR', email: 'ada@example.com' })
  await send(server, [created('s1', { customer_email: 'ada@example.com', items: [item(7)] })], people.tenant)
  await people.settled()
  const keyWith = async (...scopes: string[]) =>
    (await server.admin.keys.create({ tenant: people.tenant.id, kind: 'private', scopes: scopes as never })).key
  const [contacts, events] = [await keyWith('contacts:read'), await keyWith('events:read')]
  const { body } = await people.ask('/v1/customers', {}, contacts)
  const [row] = body.results
  assert.deepEqual([row.orders, row.revenue, row.mrr, row.plans], [null, null, null, null])
  const [full] = await people.customers()
  assert.deepEqual([full.orders, full.revenue, full.mrr], [1, { EUR: 3 }, { EUR: 7 }])
  for (const sort of ['mrr', 'revenue']) {
    const answer = await people.ask('/v1/customers', { sort, currency: 'EUR' }, contacts)
    assert.deepEqual([answer.status, answer.body.code], [403, 'insufficient_scope'])
  }
  assert.equal((await people.ask('/v1/customers', {}, events)).status, 403)
  const other = await open('other')
  assert.deepEqual(await other.customers(), [])
  assert.deepEqual(await other.customers({ q: 'ada' }), [])
})

test('invalid parameters are validation errors', async () => {
  const people = await open('hostile')
  const invalid: [Record<string, string>, string][] = [
    [{ sort: 'mrr' }, '/currency'],
    [{ currency: 'nope' }, '/currency'],
    [{ sort: 'email' }, '/sort'],
    [{ segment: 'rich' }, '/segment'],
    [{ limit: '0' }, '/limit'],
    [{ cursor: 'x' }, '/cursor'],
    [{ cursor: Buffer.from('["2026-01-01T00:00:00Z","1e99"]').toString('base64url') }, '/cursor'],
    [{ sort: 'mrr', currency: 'EUR', cursor: Buffer.from('["1; drop","1"]').toString('base64url') }, '/cursor'],
    [{ since: '2026-02-01', until: '2026-01-01' }, '/since'],
    [{ q: ' ' }, '/q'],
  ]
  for (const [query, pointer] of invalid) {
    const { status, body } = await people.ask('/v1/customers', query)
    assert.deepEqual([status, body.errors?.[0]?.pointer], [400, pointer], JSON.stringify(query))
  }
})

test('with Accept: text/csv, the rows are CSV', async () => {
  const people = await open('csv')
  await people.contact('c1', { name: '=cmd()', email: 'ada@example.com' })
  await people.contact('c2', { name: "Bo;=cmd|'x'!A0;\r\n+1", email: 'bo@example.com' })
  await people.settled()
  const { headers, body } = await server.request('/v1/customers', {
    key: people.tenant.privateKey,
    headers: { accept: 'text/csv' },
  })
  assert.match(headers.get('content-type')!, /^text\/csv/)
  assert.match(body, /^profile_id,contact_id,customer,name,/)
  assert.ok(!/,=cmd/.test(body), 'a spreadsheet must not run it')
  assert.ok(body.includes(`"Bo;'=cmd|'x'!A0;\r\n'+1"`), 'nor one that separates cells at semicolons')
})
