import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { commandLineActor } from '../../src/admin/actor.ts'
import { resumeErasures } from '../../src/admin/erasure-run.ts'
import { erasureAdmin } from '../../src/admin/erasures.ts'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { startNode } from './node.ts'
import { json, type Row, rowsOf, tracesOf } from './rows.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await startServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

async function post(path: string, key: string, body: object, expected = 200) {
  const answer = await server.request(path, { method: 'POST', key, body: json(body) })
  assert.equal(answer.status, expected, json(answer.body))
  return answer.body
}

const track = (tenant: TestTenant, body: object) => post('/v1/track/', tenant.trackingKey, body)
const record = (tenant: TestTenant, entityType: string, id: string, data: object, at = '2026-01-01T00:00:00Z') =>
  post(`/v1/${entityType}s`, tenant.privateKey, { entityType, id, sourceUpdatedAt: at, data }, 202)
const erase = (body: object) => post('/admin/v1/erasures', adminKey, body, 201)
const events = (tenant: TestTenant) => rowsOf(server, 'events', { key: tenant.privateKey })
const sales = (tenant: TestTenant) => rowsOf(server, 'conversions', { key: tenant.privateKey })

/** Ada with every kind of data that a person can have, and Ben, who must not be affected. */
async function twoPeople(name: string) {
  const tenant = await server.tenantWithServerKey(name)
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  for (const who of ['ada', 'ben']) {
    const email = `${who}@example.com`
    const page = 'https://shop.example/?utm_source=letter'
    await track(tenant, {
      event_type: 'page_view',
      visitor: `visitor-${who}`,
      event_id: `${who}-1`,
      data: { page },
    })
    await track(tenant, {
      event_type: 'login',
      visitor: `visitor-${who}`,
      user_id: `user-${who}`,
      data: { email },
    })
    const sale = { order_id: `order-${who}`, amount: 50, currency: 'EUR' }
    await track(tenant, { event_type: 'convert', visitor: `visitor-${who}`, data: sale })
    const hook = {
      inbound_event_id: `hook-${who}`,
      event_type: 'ticket.opened',
      payload: { email, text: who },
    }
    await post(`/ingest/inbound/${source.id}`, source.token, hook)
    await record(tenant, 'contact', `contact-${who}`, { email, name: who, company: 'Tea' })
    const order = { email, total: 49.9, currency: 'EUR', status: 'paid', address: { street: who }, note: who }
    await record(tenant, 'order', `order-${who}`, order)
    // a batch with one valid and one invalid item
    const bad = { type: 'track', anonymousId: `visitor-${who}`, context: { traits: { email } } }
    await post('/v1/batch', tenant.trackingKey, { batch: [{ type: 'page', userId: `user-${who}` }, bad] })
  }
  await server.settled()
  // The rows of customers are computed a moment later.
  await server.request('/v1/customers', { key: tenant.privateKey, headers: { prefer: 'wait=10' } })
  return { tenant, source }
}

test('an erasure deletes all data of one person only, and its receipt identifies no one', async () => {
  const { tenant } = await twoPeople('erase by e-mail')
  const before = await sales(tenant)
  assert.equal(before.length, 2)
  assert.equal((await events(tenant)).length, 8)
  const receipt = await erase({ tenant: tenant.name, email: ' ADA@example.com ' })
  const audit = await server.request(`/admin/v1/audit?tenant=${tenant.id}&limit=1`, { key: adminKey })
  const [{ action, target, after }] = audit.body.results
  assert.deepEqual(
    { action, target, after },
    { action: 'person.erase', target: receipt.subject_hash, after: { id: receipt.id } },
  )
  assert.deepEqual(receipt.erased, {
    events: 5,
    conversions: 1,
    orders: 1,
    contacts: 1,
    identities: 4,
    touches: 2,
    archived: 1,
    dead_letters: 1,
    waiting: 0,
    log_entries: 7,
    billing: 0,
  })
  assert.equal(receipt.not_yet_processed, 0)
  assert.ok(receipt.completed_at >= receipt.requested_at)
  assert.doesNotMatch(json(receipt), /\bada\b/i)

  const left = await events(tenant)
  assert.equal(left.length, 4)
  assert.doesNotMatch(json(left), /\bada\b/)
  const rows = new Map((await sales(tenant)).map((row: Row) => [row.source_object_id, row]))
  const { id, occurred_at } = before.find(row => row.source_object_id === 'order-ada')
  assert.deepEqual(rows.get('order-ada'), {
    id,
    occurred_at,
    conversion_type: 'order',
    event_type: 'convert',
    source: 'orders',
    source_object_id: 'order-ada',
    amount: 49.9,
    currency: 'EUR',
    visitor: null,
    profile_id: null,
    contact_id: null,
    contact_name: null,
    contact_email: null,
    company_name: null,
    integration_id: null,
    verified: true,
    claims: 0,
  })
  assert.deepEqual(
    rows.get('order-ben'),
    before.find(row => row.source_object_id === 'order-ben'),
  )
  const get = (path: string) => server.request(path, { key: tenant.privateKey })
  assert.equal((await get('/v1/contacts/contact-ada')).status, 404)
  assert.equal((await get('/v1/contacts/contact-ben')).status, 200)
  assert.deepEqual((await get('/v1/orders/order-ada')).body.data, {
    total: 49.9,
    currency: 'EUR',
    status: 'paid',
  })
  assert.equal((await get('/v1/orders/order-ben')).body.data.note, 'ben')
  assert.equal((await get('/v1/events/lookup?event_id=ada-1')).status, 404)

  assert.deepEqual(await tracesOf(server, tenant, 'ada@example.com'), [])
  assert.match(receipt.notes.join(' '), /Raw requests .* stay in the log until its retention ends/)
  assert.ok((await tracesOf(server, tenant, 'ben@example.com')).length > 5)
  const list = await server.request(`/admin/v1/erasures?tenant=${tenant.id}`, { key: adminKey })
  assert.deepEqual(list.body, { results: [receipt], next_cursor: null })
})

test('late data does not restore an erased person, new data creates a new person', async () => {
  const { tenant } = await twoPeople('late')
  const worker = await startNode(server, 'worker')
  const profileOf = async (who: string) =>
    (await events(tenant)).find(row => row.visitor === `visitor-${who}` && row.event_type === 'page_view')?.profile_id
  const [ada, ben] = [await profileOf('ada'), await profileOf('ben')]
  await erase({ tenant: tenant.id, profile: ada })
  // a repeat of an old event, and an old write of the contact
  const page = 'https://shop.example/?utm_source=letter'
  await track(tenant, { event_type: 'page_view', visitor: 'visitor-ada', event_id: 'ada-1', data: { page } })
  await record(tenant, 'contact', 'contact-ada', { email: 'ada@example.com', name: 'ada' })
  await server.settled()
  assert.doesNotMatch(json(await events(tenant)), /\bada\b/)
  assert.equal((await server.request('/v1/contacts/contact-ada', { key: tenant.privateKey })).status, 404)

  // workers on all nodes have cleared their caches: she is one new person now
  for (let n = 0; n < 10; n++) {
    await track(tenant, { event_type: `again ${n}`, visitor: 'visitor-ada', user_id: 'user-ada' })
  }
  const again = (await events(tenant)).filter(row => row.event_type.startsWith('again'))
  await worker.close()
  const profiles = new Set(again.map(row => row.profile_id))
  assert.equal(profiles.size, 1)
  assert.ok(!profiles.has(null) && !profiles.has(ada) && !profiles.has(ben))
  assert.equal(again[0].contact_id, null)
})

/** Blocks writers of a table until `release`. */
async function holdWriters(t: TestContext, table: string) {
  const client = await server.pool.connect()
  await client.query(`begin; lock table ${table} in share mode`)
  let isHeld = true
  const release = async () => {
    if (!isHeld) return
    isHeld = false
    await client.query('commit')
    client.release()
  }
  t.after(release)
  return release
}

async function isWaiting(where: string): Promise<boolean> {
  const { rows } = await server.pool.query(
    `select from pg_locks l join pg_stat_activity a using (pid)
     where not l.granted and a.datname = current_database() and ${where}`,
  )
  return rows.length > 0
}

test('an erasure waits for a worker that applies events of the person, and erases what it wrote', async t => {
  const { tenant, source } = await twoPeople('under way')
  const release = await holdWriters(t, 'receipts')
  const payload = { email: 'ada@example.com', user_id: 'user-ada', text: 'one more' }
  const hook = { inbound_event_id: 'under way', event_type: 'ticket.opened', payload }
  await post(`/ingest/inbound/${source.id}`, source.token, hook)
  await eventually('the worker to have written the event', () => isWaiting(`a.query ilike 'copy receipts%'`))

  const erasing = erasureAdmin({
    pool: server.pool,
    log: server.log,
    actor: commandLineActor('test'),
    waitMs: 0,
  }).erase({
    tenant: tenant.id,
    email: 'ada@example.com',
  })
  await eventually('the erasure to wait for the worker', () => isWaiting(`l.locktype = 'advisory'`))
  assert.ok((await tracesOf(server, tenant, 'ada@example.com')).some(found => found.startsWith('identities')))
  await release()
  const { erased } = await erasing
  assert.deepEqual([erased.events, erased.archived, erased.identities], [6, 2, 4])
  await server.settled()
  assert.doesNotMatch(json(await events(tenant)), /\bada\b/)
  assert.ok((await tracesOf(server, tenant, 'ada@example.com')).every(found => found.startsWith('log:')))
})

test('events received during an erasure belong to a new person: no worker uses its old cache', async t => {
  const { tenant } = await twoPeople('meanwhile')
  const seen = (await events(tenant)).find(row => row.visitor === 'visitor-ada')!
  const release = await holdWriters(t, 'touches')
  const erasing = erase({ tenant: tenant.id, email: 'ada@example.com' })
  await eventually('the erasure to have taken her names', () => isWaiting(`a.query ilike 'delete from touches%'`))
  await track(tenant, { event_type: 'meanwhile', visitor: 'visitor-ada', user_id: 'user-ada' })
  await release()
  assert.equal((await erasing).erased.events, 5)
  const [again] = (await events(tenant)).filter(row => row.event_type === 'meanwhile')
  assert.match(again.profile_id, /^prof_/)
  assert.notEqual(again.profile_id, seen.profile_id)
})

test('the command line erases a person, and reports an unknown one', async () => {
  const { tenant } = await twoPeople('by command')
  useDatabase(server.databaseUrl)
  const done = await kontor('erase', '--tenant', tenant.name, '--email', 'ada@example.com')
  assert.equal(done.code, 0, done.err)
  const receipt = done.json() as Row
  assert.equal(receipt.erased.events, 5)
  const again = await kontor('erase', '--tenant', tenant.name, '--email', 'ada@example.com')
  assert.deepEqual([again.code, again.err.trim()], [1, 'No matching person: "ada@example.com".'])
  assert.equal((await kontor('erase', '--tenant', tenant.name)).code, 2)
  assert.equal((await kontor('erase', '--tenant', tenant.name, '--email', 'x', '--profile', 'prof_1')).code, 2)
  assert.equal((await kontor('erase', '--tenant', 'nobody', '--email', 'a@b.co')).code, 1)
})

test('only an admin key can erase, and only with a valid identifier', async () => {
  const { tenant } = await twoPeople('refused')
  const attempt = (body: object, key = adminKey) =>
    server.request('/admin/v1/erasures', { method: 'POST', key, body: json(body) })
  assert.equal((await attempt({ tenant: tenant.id, email: 'ada@example.com' }, tenant.privateKey)).status, 401)
  assert.equal((await attempt({ tenant: tenant.id, email: 'nonsense' })).status, 400)
  assert.equal((await attempt({ tenant: tenant.id, profile: '7' })).status, 400)
  assert.equal((await attempt({ tenant: tenant.id })).status, 400)
  assert.equal((await attempt({ tenant: tenant.id, email: 'a@b.co', profile: 'prof_1' })).status, 400)
  assert.equal((await attempt({ tenant: 'nobody', email: 'ada@example.com' })).status, 404)
  const ada = { tenant: tenant.id, email: 'ada@example.com' }
  const { status, body } = await attempt({ ...ada, dryRun: true })
  assert.deepEqual([status, body.errors], [400, [{ pointer: '/dryRun', message: 'is not a known field' }]])
  const asked = await server.request('/admin/v1/erasures?dry_run=true', {
    ...{ method: 'POST', key: adminKey, body: json(ada) },
  })
  assert.equal(asked.status, 400)
  assert.equal((await events(tenant)).length, 8)
  // another tenant's Ada is another person
  const { tenant: other } = await twoPeople('the other shop')
  await erase({ tenant: other.id, email: 'ada@example.com' })
  assert.equal((await events(tenant)).length, 8)
  assert.equal((await events(other)).length, 4)
})

test('all receipts are listed, page by page, the newest first', async () => {
  const tenant = await server.anotherTenant('receipts')
  const ids: string[] = []
  for (const name of ['a', 'b', 'c'])
    ids.unshift((await erase({ tenant: tenant.id, email: `${name}@example.com`, suppress: true })).id)
  const listed: string[] = []
  let cursor: string | null = ''
  for (; cursor !== null; ) {
    const path: string = `/admin/v1/erasures?tenant=${tenant.id}&limit=2${cursor && `&cursor=${cursor}`}`
    const { body }: { body: Row } = await server.request(path, { key: adminKey })
    listed.push(...body.results.map((receipt: Row) => receipt.id))
    cursor = body.next_cursor
  }
  assert.deepEqual(listed, ids)
})

test('a parked item is erased too, and the other items of its batch stay parked', async () => {
  const tenant = await server.anotherTenant('waiting')
  await server.pool.query("alter table events add constraint stuck check (event_type <> 'stuck')")
  const item = (who: string) => ({
    type: 'track',
    event: 'stuck',
    anonymousId: `visitor-${who}`,
    messageId: who,
  })
  await track(tenant, { event_type: 'login', visitor: 'visitor-ada', data: { email: 'ada@example.com' } })
  await post('/v1/batch', tenant.trackingKey, { batch: [item('ben'), item('ada')] })
  const parked = async () => {
    const { rows } = await server.pool.query(
      "select context::json -> 'items' as items from parked_entries where tenant_id = $1 order by parked_id",
      [Number(tenant.id.slice(4))],
    )
    return rows.flatMap(row => row.items)
  }
  await eventually('both items to be parked', async () => (await parked()).length >= 2)
  const impatient = erasureAdmin({
    pool: server.pool,
    log: server.log,
    actor: commandLineActor('test'),
    waitMs: 0,
  })
  const receipt = await impatient.erase({ tenant: tenant.id, email: 'ada@example.com' })
  assert.ok(receipt.not_yet_processed >= 1)
  assert.equal(receipt.erased.waiting, 1)
  assert.equal(receipt.erased.events, 1)
  const { rows: bodies } = await server.pool.query('select body from parked_entries where tenant_id = $1', [
    Number(tenant.id.slice(4)),
  ])
  assert.ok(bodies.length > 0)
  for (const { body } of bodies) assert.doesNotMatch(body, /ada/, 'no body keeps the erased item')
  await server.pool.query('alter table events drop constraint stuck')
  await server.pool.query('update parked_entries set next_attempt_at = now()')
  assert.deepEqual(
    (await events(tenant)).map(row => row.visitor),
    ['visitor-ben'],
  )
})

const eraseAnyway = (body: object) =>
  server.request('/admin/v1/erasures', { method: 'POST', key: adminKey, body: json(body) })

test('a dry run reports what would be erased and which identifiers, and changes nothing', async () => {
  const { tenant } = await twoPeople('dry run')
  const before = await tracesOf(server, tenant, 'ada')
  const { status, body } = await eraseAnyway({ tenant: tenant.id, email: 'ada@example.com', dry_run: true })
  assert.equal(status, 200)
  assert.deepEqual(await tracesOf(server, tenant, 'ada'), before)
  assert.deepEqual(body.names.map(({ kind, value }: Row) => `${kind}:${value}`).toSorted(), [
    'contact:contact-ada',
    'email:ada@example.com',
    'user:user-ada',
    'visitor:visitor-ada',
  ])
  useDatabase(server.databaseUrl)
  const shown = await kontor('erase', '--tenant', tenant.name, '--profile', body.profile_id, '--dry-run')
  assert.deepEqual((shown.json() as Row).would_erase, body.would_erase)
  const receipt = await erase({ tenant: tenant.id, email: 'ada@example.com' })
  assert.deepEqual(receipt.erased, body.would_erase)
  const progress = await server.request(`/admin/v1/erasures/${receipt.id}`, { key: adminKey })
  assert.deepEqual([progress.status, progress.body], [200, receipt])
  assert.equal(receipt.status, 'completed')
  for (const unknown of [{ email: 'ada@example.com' }, { profile: body.profile_id }, { profile: 'prof_987654' }])
    assert.equal((await eraseAnyway({ tenant: tenant.id, ...unknown })).body.code, 'person_not_found')
  assert.equal((await server.request('/admin/v1/erasures/nonsense', { key: adminKey })).status, 404)
})

test('a person with more than 20 identifiers is erased only with confirmation', async () => {
  const tenant = await server.anotherTenant('many names')
  const batch = Array.from({ length: 25 }, (_, i) => ({
    ...{ type: 'track', event: 'visit', messageId: `n-${i}`, anonymousId: `v-${i}`, userId: 'ada' },
  }))
  await post('/v1/batch', tenant.trackingKey, { batch })
  const profile = (await events(tenant))[0].profile_id
  const { status, body } = await eraseAnyway({ tenant: tenant.id, profile })
  assert.deepEqual([status, body.code], [409, 'confirmation_required'])
  assert.match(body.detail, /26 identifiers.*25 events/)
  useDatabase(server.databaseUrl)
  assert.equal((await kontor('erase', '--tenant', tenant.id, '--profile', profile)).code, 1)
  assert.equal((await events(tenant)).length, 25)
  const confirmed = await eraseAnyway({ tenant: tenant.id, profile, confirm: true })
  assert.deepEqual([confirmed.status, confirmed.body.erased.events], [201, 25])
})

test('an erasure by a merged profile id erases the surviving profile', async () => {
  const tenant = await server.tenantWithServerKey('merged away')
  // Separately, because identifiers that arrive together would be one profile from the start.
  await track(tenant, { event_type: 'page_view', visitor: 'visitor-ada' })
  await server.settled()
  await record(tenant, 'contact', 'contact-ada', { email: 'ada@example.com' })
  await server.settled()
  const data = { email: 'ada@example.com' }
  await track(tenant, { event_type: 'login', visitor: 'visitor-ada', user_id: 'user-ada', data })
  await server.settled()
  const person = await server.admin.people.show({ tenant: tenant.id, id: 'ada@example.com' })
  const [merged] = person.merged_profiles
  assert.ok(merged)
  assert.notEqual(merged, person.profile_id)
  const receipt = await erase({ tenant: tenant.id, profile: merged })
  assert.equal(receipt.erased.events, 2)
  assert.doesNotMatch(json(await events(tenant)), /ada/)
})

test('a person who was split off stays when the other is erased, without the events about her', async () => {
  const tenant = await server.anotherTenant('split, then erased')
  await record(tenant, 'contact', 'c-ada', { email: 'ada@example.com' })
  await server.settled()
  await track(tenant, { event_type: 'form', visitor: 'v-lodger', data: { email: 'ada@example.com' } })
  await track(tenant, { event_type: 'page_view', visitor: 'v-lodger' })
  await server.settled()
  await server.admin.people.split({ tenant: tenant.id, id: 'contact:c-ada', name: 'visitor:v-lodger' })
  await erase({ tenant: tenant.id, email: 'ada@example.com' })
  const left = await events(tenant)
  assert.deepEqual(
    left.map((row: Row) => row.event_type),
    ['page_view'],
  )
})

test('an order sent again with the same time does not restore its buyer; a newer one does', async () => {
  const { tenant } = await twoPeople('sent again')
  await erase({ tenant: tenant.id, email: 'ada@example.com' })
  const order = { email: 'ada@example.com', total: 49.9, currency: 'EUR' }
  await record(tenant, 'order', 'order-ada', order)
  await server.settled()
  assert.ok((await tracesOf(server, tenant, 'ada@example.com')).every(found => found.startsWith('log:')))
  await record(tenant, 'order', 'order-ada', { ...order, total: 50 }, '2026-01-01T00:00:00.001Z')
  assert.equal((await sales(tenant)).find(row => row.source_object_id === 'order-ada').amount, 50)
})

test('identifiers are found in deferred entries, in other spellings and long after their arrival', async () => {
  const tenant = await server.anotherTenant('deferred')
  const source = await server.admin.sources.create({
    ...{ tenant: tenant.id, type: 'webhook', rate_limit: { events: 1, per_seconds: 3600 } },
  })
  await record(tenant, 'contact', 'c', { email: 'ada+shop@example.com' })
  const hook = (id: string, who: string) =>
    server.request(`/ingest/inbound/${source.id}`, {
      method: 'POST',
      key: source.token!,
      body: `{"inbound_event_id": "${id}", "event_type": "t", "payload": {"email": "${who}"}}`,
    })
  await hook('first', 'ben@example.com')
  await hook('her', 'ada\\u002Bshop@example.com')
  await hook('his', 'ben@example.com')
  await server.pool.query(`update overflow set received_at = received_at - interval '3 hours'`)
  const receipt = await server.admin.erasures.erase({ tenant: tenant.id, email: 'ada+shop@example.com' })
  assert.equal(receipt.erased.waiting, 1)
  const { rows } = await server.pool.query('select body from overflow where source_id = $1', [source.id])
  assert.deepEqual(
    rows.map(({ body }) => JSON.parse(body).inbound_event_id),
    ['his'],
  )
})

test('a deferred part of a batch keeps no erased item, whether the item waits or was applied', async () => {
  const tenant = await server.anotherTenant('deferred batch')
  const source = await server.admin.sources.create({
    ...{ tenant: tenant.id, type: 'cdp', rate_limit: { events: 1, per_seconds: 3600 } },
  })
  const item = (who: string, id: string) => ({
    ...{ type: 'track', event: 'seen', messageId: id, userId: who },
    properties: { email: `${who}@example.com` },
  })
  const batch = [item('ada', 'first'), item('ben', 'second'), item('cleo', 'third'), item('ada', 'fourth')]
  await post(`/ingest/inbound/${source.id}`, source.token!, { sentAt: null, batch })
  assert.deepEqual(
    (await events(tenant)).map(row => row.inbound_event_id),
    ['first'],
  )
  const held = async () => {
    const { rows } = await server.pool.query('select body, items from overflow where source_id = $1', [source.id])
    return rows.map(({ body, items }) => ({ items, batch: JSON.parse(body).batch }))
  }
  const cleo = await server.admin.erasures.erase({ tenant: tenant.id, email: 'cleo@example.com' })
  assert.equal(cleo.erased.waiting, 1)
  const ada = await server.admin.erasures.erase({ tenant: tenant.id, email: 'ada@example.com' })
  assert.equal(ada.erased.waiting, 1)
  assert.equal(ada.erased.events, 1)
  assert.deepEqual(await held(), [{ items: 1, batch: [null, batch[1], null, null] }])
  await server.admin.sources.update(source.id, { rate_limit: { events: 1000, per_seconds: 1 } })
  await eventually('the rest to be applied', async () => (await held()).length === 0)
  assert.deepEqual(
    (await events(tenant)).map(row => row.inbound_event_id),
    ['second'],
  )
})

test('every version of a contact or order, and every repeat of an event, leaves the log with the erasure', async () => {
  const tenant = await server.anotherTenant('raw requests')
  await record(
    tenant,
    'contact',
    'c-ada',
    { email: 'old-ada@example.net', phone: '+49 30 111' },
    '2026-01-01T00:00:00Z',
  )
  await record(tenant, 'contact', 'c-ada', { email: 'ada@example.com', phone: '+49 30 222' }, '2026-01-02T00:00:00Z')
  await record(tenant, 'order', 'o-ada', { contactId: 'c-ada', total: 5, currency: 'EUR', note: 'ring at 4711' })
  await record(tenant, 'contact', 'c-ben', { email: 'ben@example.com', phone: '+49 30 333' })
  const login = { event_type: 'login', event_id: 'login-1', visitor: 'v-ada', data: { email: 'ada@example.com' } }
  for (let i = 0; i < 2; i++) await track(tenant, login)
  await server.settled()
  const preview = await server.admin.erasures.preview({ tenant: tenant.id, email: 'ada@example.com' })
  const receipt = await erase({ tenant: tenant.name, email: 'ada@example.com' })
  assert.equal(receipt.erased.log_entries, 5)
  assert.equal(preview.would_erase.log_entries, 5)
  for (const trace of ['ada@example', '49 30 111', '49 30 222', 'ring at 4711'])
    assert.deepEqual(await tracesOf(server, tenant, trace), [], trace)
  assert.ok((await tracesOf(server, tenant, '49 30 333')).includes('log: 1'))
})

test('an address that ends or begins like the erased one stays in the log', async () => {
  const tenant = await server.anotherTenant('similar addresses')
  const others = ['normal@x.example', 'a.mal@x.example', 'a+mal%40x.example', 'mal@x.example.org', 'mal@x.examples']
  for (const [i, email] of others.entries()) {
    await record(tenant, 'contact', `other-${i}`, { email, name: `Other-${i}` })
    await track(tenant, { event_type: 'login', visitor: `v-${i}`, data: { text: `${email}, Visit-${i}` } })
  }
  const own = [
    ...[
      'mal@x.example',
      'To: <MAL@x.example>',
      'a\nmal@x.example.',
      'x?q%3Dmal%40x.example',
      '{"a":"b\\nmal@x.example"}',
    ],
    ...['normal@x.example, mal@x.example', `key ${Buffer.from('mal@x.example').toString('base64')}`],
  ]
  for (const [i, text] of own.entries())
    await track(tenant, { event_type: 'mention', visitor: `m-${i}`, data: { text, note: `Secret-${i}` } })
  await server.settled()
  const query = { tenant: tenant.name, email: 'mal@x.example' }
  const preview = await server.admin.erasures.preview(query)
  const receipt = await erase(query)
  assert.equal(receipt.erased.log_entries, own.length)
  assert.equal(preview.would_erase.log_entries, own.length)
  const isLogged = async (text: string) => (await tracesOf(server, tenant, text)).includes('log: 1')
  for (const i of others.keys())
    assert.deepEqual([await isLogged(`Other-${i}`), await isLogged(`Visit-${i}`)], [true, true], others[i])
  for (const i of own.keys()) assert.equal(await isLogged(`Secret-${i}`), false, own[i])
})

test('an encoded address is found, and the receipt names the encodings that are not', async () => {
  const tenant = await server.anotherTenant('encoded addresses')
  const base64 = Buffer.from('Ada L. <Ada@Example.com>').toString('base64')
  const encoded = [
    ...['ada&#64;example.com', 'ada&#x40;example.com', 'ada&commat;example.com', 'ada%2540example.com'],
    ...['ada%40example.com', 'ada=40example.com', `=?utf-8?b?${base64}?=`, '=?UTF-8?Q?Ada_=3Cada=40example=2Ecom=3E?='],
    '=?utf-8?q?ada=40exa?= =?utf-8?q?mple.com?=',
  ]
  for (const [i, email] of encoded.entries()) {
    await track(tenant, { event_type: 'own', event_id: `own-${i}`, visitor: `v-${i}`, data: { email } })
    await track(tenant, { event_type: 'mention', event_id: `mention-${i}`, data: { text: `From: ${email}` } })
    await record(tenant, 'contact', `c-${i}`, { Email: email })
  }
  await track(tenant, { event_type: 'own', visitor: 'v-ben', data: { email: '=?utf-8?q?ben=40example.com?=' } })
  await record(tenant, 'contact', 'c-ben', { email: 'ben&#64;example.com' })
  await server.settled()
  const receipt = await erase({ tenant: tenant.name, email: 'ada@example.com' })
  assert.equal(receipt.erased.events, 2 * encoded.length)
  assert.equal(receipt.erased.contacts, encoded.length)
  const left = await events(tenant)
  assert.deepEqual(
    left.map(({ visitor }) => visitor),
    ['v-ben'],
  )
  for (const email of encoded) assert.deepEqual(await tracesOf(server, tenant, email.replaceAll('%', '\\%')), [], email)
  assert.ok((await tracesOf(server, tenant, 'ben=40')).includes('log: 1'))
  assert.match(receipt.notes.join(' '), /base64 elsewhere than in these words, are not found/)
})

test('events of other visitors that contain the address stay and are listed, those without a person are deleted', async () => {
  const tenant = await server.anotherTenant('mentions')
  await record(tenant, 'contact', 'c-ada', { email: 'ada@example.com' })
  const mentions = [
    ...[{ text: 'ADA@example.com' }, { text: 'call ada@example.com now' }, { 'Ada@example.com': 1 }],
    ...[{ page: 'https://shop.example/?email=ada@example.com' }, { page: 'https://shop.example/?e=ada%40example.com' }],
    ...[{ text: 'ada%2540example.com' }, { text: 'ada&#64;example.com' }, { text: '=?utf-8?q?ada=40example.com?=' }],
  ]
  for (const [i, data] of mentions.entries())
    await track(tenant, { event_type: 'mention', visitor: `other-${i}`, data })
  await track(tenant, { event_type: 'other', visitor: 'other-0', data: { text: '=?utf-8?q?ben=40example.com?=' } })
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const hook = (id: string, payload: object, headers: Record<string, string> = {}) =>
    server.request(`/ingest/inbound/${source.id}`, {
      ...{ method: 'POST', key: source.token!, headers },
      body: json({ inbound_event_id: id, event_type: 'hook', payload }),
    })
  await hook('of a header', {}, { 'user-agent': 'shop of ada@example.com' })
  await hook('of a key', { 'ada@example.com': 1 })
  await hook('of no one', { 'ben@example.com': 1 })
  await server.settled()
  // Only the first pass reads events that were received long ago.
  await server.pool.query(
    `update events set id = ('0190' || substr(id::text, 5))::uuid
     where tenant_id = $1 and visitor = 'other-0' and event_type = 'mention'`,
    [Number(tenant.id.slice(4))],
  )
  const query = { tenant: tenant.name, email: 'ada@example.com' }
  const preview = await server.admin.erasures.preview(query)
  const receipt = await erase(query)
  assert.deepEqual([preview.would_erase.events, receipt.erased.events], [2, 2])
  const left = await events(tenant)
  assert.deepEqual(
    left.flatMap(row => (row.event_type === 'mention' ? [] : [row.inbound_event_id ?? row.event_type])).toSorted(),
    ['of no one', 'other'],
  )
  const ids = left.flatMap(row => (row.event_type === 'mention' ? [row.id] : [])).toSorted()
  assert.equal(ids.length, mentions.length)
  assert.deepEqual(receipt.mentions, { events: ids.length, event_ids: ids })
  assert.deepEqual(preview.mentions, receipt.mentions)
  const again = await erase(query)
  assert.deepEqual(again.mentions, receipt.mentions, 'also if nothing else is left of the person')
})

test('an interrupted erasure continues, and counts nothing twice', async t => {
  const { tenant } = await twoPeople('interrupted')
  const release = await holdWriters(t, 'touches')
  const erasing = server.admin.erasures.erase({ tenant: tenant.id, email: 'ada@example.com' })
  const ended = assert.rejects(erasing)
  await eventually('its events to be deleted', () => isWaiting(`a.query ilike 'delete from touches%'`))
  await server.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and query ilike 'delete from touches%'`,
  )
  await ended
  await release()
  const [left] = (await server.admin.erasures.list({ tenant: tenant.id, limit: 10 })) as Row[]
  assert.deepEqual([left.status, left.erased.events, left.erased.identities], ['running', 5, 0])
  await server.pool.query(`update erasures set seen_at = seen_at - interval '1 minute'`)
  await resumeErasures(server)
  const [done] = (await server.admin.erasures.list({ tenant: tenant.id, limit: 10 })) as Row[]
  assert.deepEqual([done.status, done.erased.events, done.erased.identities], ['completed', 5, 4])
  assert.ok((await tracesOf(server, tenant, 'ada@example.com')).every(found => found.startsWith('log:')))
})

test('thousands of identifiers and dead letters do not block an erasure', async () => {
  const tenant = await server.anotherTenant('flooded')
  await track(tenant, { event_type: 'login', user_id: 'ada', data: { email: 'ada@example.com' } })
  await server.settled()
  const id = Number(tenant.id.slice(4))
  // as stored by an earlier version without these limits
  await server.pool.query(
    `insert into identities (tenant_id, node, kind, value, profile)
     select $1, nextval('identity_nodes'), 'visitor', 'flood-' || n, i.profile
     from identities i, generate_series(1, 16000) n where i.tenant_id = $1 and i.kind = 'user'`,
    [id],
  )
  await server.pool.query(
    `insert into dead_letters (tenant_id, id, kind, ordering_key, reason, error, attempts, received_at, context, body)
     select $1, gen_random_uuid(), 'events', 'k', 'rejected', 'x', 0, now(), '{"route":"track","ip":null,"headers":{}}',
       '{"visitor":"flood-' || n || '","data":{"x":' || n || '}}'
     from generate_series(1, 2000) n`,
    [id],
  )
  const receipt = await server.admin.erasures.erase({
    ...{ tenant: tenant.id, email: 'ada@example.com', confirm: true },
  })
  assert.deepEqual([receipt.erased.identities, receipt.erased.events], [16_002, 1])
})

test('a received batch shows the item of the event, or all items on request; after an erasure it shows that it was erased', async () => {
  const tenant = await server.anotherTenant('neighbors')
  const item = (name: string) =>
    `{"type":"track","event":"Seen","messageId":"n-${name}","userId":"${name}@example.com","properties":{"n":1.50}}`
  const batch = `{"batch":[${item('ada')},${item('ben')}]}`
  await server.request('/v1/batch', { method: 'POST', key: tenant.trackingKey, body: batch })
  await server.settled()
  const idOf = async (name: string) =>
    (await server.request(`/v1/events/lookup?event_id=n-${name}`, { key: tenant.privateKey })).body.id
  const requestOf = async (id: string, more = '') =>
    (await server.request(`/admin/v1/events/${id}/request?tenant=${tenant.id}${more}`, { key: adminKey })).body
  const ben = await idOf('ben')
  const shown = await requestOf(ben)
  assert.equal(shown.body, item('ben'))
  assert.deepEqual(shown.batch, { index: 1, items: 2 })
  assert.equal((await requestOf(ben, '&whole=true')).body, batch)
  await erase({ tenant: tenant.id, email: 'ada@example.com' })
  const after = await requestOf(ben)
  assert.deepEqual([after.missing, after.body, after.received_at], ['erased', null, null])
  assert.equal((await requestOf('nonsense')).missing, 'unknown')
  const longAgo = ben.replace(/^.{13}/, '01900000-0000')
  assert.equal((await requestOf(longAgo)).missing, 'expired')
})
