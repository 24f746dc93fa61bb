// A suppressed person returns with identifiers that were unknown.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newEntryId } from '../../src/domain/ids.ts'
import { openSuppressions, writeSuppressed } from '../../src/pipeline/identity/suppressions.ts'
import type { Change } from '../../src/pipeline/records/records.ts'
import type { Transaction } from '../../src/pipeline/unit.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { json, rowsOf, tracesOf } from './rows.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await sharedServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

async function post(path: string, key: string, body: object, { status = 200, headers = {} } = {}) {
  const answer = await server.request(path, { method: 'POST', key, headers, body: json(body) })
  assert.equal(answer.status, status, json(answer.body))
  await server.settled()
  return answer.body
}

/** Eve was here as `eve-1`, `u1` and by e-mail, and is suppressed. */
async function withoutEve(tenant: TestTenant) {
  const traits = { email: 'eve@example.com' }
  await post('/v1/identify', tenant.trackingKey, { anonymousId: 'eve-1', userId: 'u1', traits })
  const erasure = { tenant: tenant.id, email: 'eve@example.com', suppress: true }
  await post('/admin/v1/erasures', adminKey, erasure, { status: 201 })
}

const visitors = async ({ privateKey }: TestTenant) =>
  (await rowsOf(server, 'events', { key: privateKey })).map(row => row.visitor)
const namesOf = async ({ id }: TestTenant) => (await server.admin.suppressions.list(id)).results[0]!.names

test('identifiers that a server sends with a suppressed one are suppressed too, also in the same batch', async () => {
  const tenant = await server.tenantWithServerKey('learning')
  await withoutEve(tenant)
  const before = (await namesOf(tenant)).length
  const key = tenant.trackingKey
  await post('/v1/alias', key, { previousId: 'u1', userId: 'u-alias' })
  await post('/v1/track', key, { event_type: 'seen', visitor: 'new-laptop', user_id: 'u-alias' })
  const batch = [
    { type: 'identify', userId: 'u-alias', traits: { email: 'eve.new@example.com' } },
    { type: 'identify', anonymousId: 'new-phone', traits: { email: 'Eve.New@example.com' } },
    { type: 'page', anonymousId: 'new-phone' },
    { type: 'page', anonymousId: 'of-ben' },
  ]
  await post('/v1/batch', key, { batch })
  assert.deepEqual(await visitors(tenant), ['of-ben'])
  // u-alias twice (an alias may be meant for a browser), new-laptop, the address, new-phone
  assert.ok((await namesOf(tenant)).length >= before + 4)
  for (const name of ['u-alias', 'new-laptop', 'new-phone', 'eve.new'])
    assert.deepEqual(await tracesOf(server, tenant, name), [], name)
  await server.admin.suppressions.remove({ tenant: tenant.id, id: 'eve@example.com' })
  assert.deepEqual((await server.admin.suppressions.list(tenant.id)).results, [], 'what was learned goes too')
  await post('/v1/track', key, { event_type: 'seen', visitor: 'new-laptop', user_id: 'u-alias' })
  assert.deepEqual((await visitors(tenant)).sort(), ['new-laptop', 'of-ben'])
})

test('the number that a shop gives a suppressed customer is suppressed with the address', async () => {
  const tenant = await server.anotherTenant('learning from a shop')
  await withoutEve(tenant)
  for (const records of [true, false]) {
    const facts = { tenant: tenant.id, type: 'webhook', preset: 'shopify', records }
    const source = await server.admin.sources.create(facts)
    const id = records ? 991 : 992
    const hook = (topic: string, body: object) =>
      post(`/ingest/inbound/${source.id}`, source.token, body, {
        headers: { 'x-shopify-topic': topic, 'x-shopify-webhook-id': `${topic} ${id}` },
      })
    const at = { created_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' }
    await hook('customers/create', { id, email: 'eve@example.com', first_name: 'Evelyn', ...at })
    const order = { currency: 'EUR', total_price: '10.00', note: 'for Evelyn', customer: { id }, ...at }
    await hook('orders/create', { id: id + 5000, name: '#1', ...order })
  }
  assert.deepEqual(await tracesOf(server, tenant, 'Evelyn'), [])
  assert.deepEqual(await visitors(tenant), [])
  const order = await server.request('/v1/orders/5991', { key: tenant.privateKey })
  assert.deepEqual(order.body.data, {
    total_price: '10.00',
    currency: 'EUR',
    created_at: '2026-01-01T00:00:00Z',
  })
})

test('with a public tracking key only visitor ids are learned, up to a limit, and they suppress no verified input', async () => {
  const tenant = await server.anotherTenant('learning from browsers')
  await withoutEve(tenant)
  const { trackingKey } = tenant
  const trusted = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  const traits = { email: 'eve@example.com' }
  const before = (await namesOf(tenant)).length
  await post('/v1/identify', trackingKey, { anonymousId: 'eve-phone', userId: 'ben', traits })
  await post('/v1/identify', trackingKey, { anonymousId: 'ben@example.com', userId: 'ben', traits })
  await post('/v1/alias', trackingKey, { previousId: 'eve-1', userId: 'ben' })
  assert.equal((await namesOf(tenant)).length, before + 1)
  await post('/v1/page', trackingKey, { anonymousId: 'eve-phone' })
  await post('/v1/track', trackingKey, { event_type: 'seen', visitor: 'eve-phone', user_id: 'ben' })
  assert.deepEqual(await visitors(tenant), [])
  // Anyone could have sent the visitor id of another person with Eve's address.
  await post('/v1/track', trusted.key, { event_type: 'seen', visitor: 'eve-phone', user_id: 'ben' })
  await post('/v1/identify', trusted.key, {
    ...{ anonymousId: 'of-ben', userId: 'ben', traits: { email: 'ben@example.com' } },
  })
  assert.deepEqual(await visitors(tenant), ['of-ben', 'eve-phone'])

  const many = Array.from({ length: 250 }, (_, i) => ({ type: 'identify', anonymousId: `many-${i}`, traits }))
  await post('/v1/batch', trackingKey, { batch: many })
  assert.equal((await namesOf(tenant)).length, before + 200)
  await post('/v1/identify', trusted.key, { anonymousId: 'eve-laptop', userId: 'eve-again', traits })
  await post('/v1/page', trusted.key, { anonymousId: 'eve-laptop' })
  assert.deepEqual(await visitors(tenant), ['of-ben', 'eve-phone'])
  const after = await namesOf(tenant)
  assert.equal(
    after.filter(({ kind }) => kind === 'user').length,
    2,
    'visitor ids of public tracking keys do not use up the limit for others',
  )
})

test('an identifier that only a public tracking key linked to the suppressed person suppresses no verified input', async () => {
  const tenant = await server.anotherTenant('suppressing for a public tracking key')
  const { trackingKey, privateKey } = tenant
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const track = (visitor: string, email: string) =>
    post('/v1/track', trackingKey, { event_type: 'seen', visitor, data: { email } })
  const suppress = (email: string) =>
    post('/admin/v1/erasures', adminKey, { tenant: tenant.id, email, suppress: true }, { status: 201 })
  const contact = async (id: string, email: string, at = '2026-01-01T00:00:00Z') => {
    await post(
      '/v1/contacts',
      privateKey,
      { entityType: 'contact', id, sourceUpdatedAt: at, data: { email } },
      { status: 202 },
    )
    return (await server.request(`/v1/contacts/${id}`, { key: privateKey })).status
  }
  const hook = (id: string, payload: object) =>
    post(`/ingest/inbound/${source.id}`, source.token, { inbound_event_id: id, event_type: 'hook', payload })
  const types = async () => (await rowsOf(server, 'events', { key: privateKey })).map(row => row.event_type)

  await track('m-1', 'mallory@example.com')
  await track('m-1', 'future@example.com')
  await suppress('mallory@example.com')
  await track('m-2', 'future@example.com')
  assert.deepEqual(await types(), [], 'unverified input stays suppressed')
  assert.equal(await contact('c-mallory', 'mallory@example.com'), 404, 'the named identifier suppresses everything')
  await hook('h-1', { email: 'mallory@example.com' })
  assert.equal(await contact('c-future', 'future@example.com'), 200)
  await hook('h-2', { email: 'future@example.com' })
  assert.deepEqual(await types(), ['hook'])
  const { rows } = await server.pool.query('select from inbound_requests where source_id = $1', [source.id])
  assert.equal(rows.length, 1, 'the request of the source is stored, too')

  // Verified input links the two, or the request names the address itself.
  await hook('h-3', { email: 'mallory@example.com', contact_id: 'c-other' })
  assert.equal(await contact('c-other', 'other@example.com'), 404)
  await suppress('future@example.com')
  assert.equal(await contact('c-future', 'future@example.com', '2027-01-01T00:00:00Z'), 404)
  await server.admin.suppressions.remove({ tenant: tenant.id, id: 'mallory@example.com' })
  assert.equal(await contact('c-later', 'future@example.com'), 404, 'it belongs to the erasure that named it')
  assert.equal(await contact('c-mallory', 'mallory@example.com', '2027-01-01T00:00:00Z'), 200)
})

/** Invalid events. Each contains Eve in another way. */
const unreadable = [
  { type: 'no such type', anonymousId: 'eve-1' },
  { type: 'no such type', userId: 'u1' },
  { type: 'no such type', payload: { user_id: 'u1' } },
  { type: 'no such type', properties: { contactId: 77, eveKey: 'contact' } },
  { type: 'no such type', traits: { customer: { id: '77', eveKey: 'customer' } } },
  { type: 'no such type', context: { page: { url: 'https://shop.example/?mail=eve%40example.com&eve=1' } } },
  { type: 'no such type', properties: { note: 'please write to eve@example.com, thank you' } },
]

async function sendUnreadable({ trackingKey }: TestTenant) {
  const ofOther = { type: 'no such type', userId: 'u12', properties: { quantity: 77, sku: 'u1' } }
  const good = { type: 'page', anonymousId: 'of-ben' }
  await post('/v1/batch', trackingKey, { batch: [...unreadable, ofOther, good] })
}

async function eveWithContact(name: string) {
  const tenant = await server.tenantWithServerKey(name)
  const data = { email: 'eve@example.com', userId: 'u1', visitor: 'eve-1' }
  const contact = { entityType: 'contact', id: '77', sourceUpdatedAt: '2026-01-01T00:00:00Z', data }
  await post('/v1/contacts', tenant.privateKey, contact, { status: 202 })
  return tenant
}

for (const suppress of [true, false])
  test(`no dead letter contains any identifier of a person who was ${suppress ? 'suppressed before' : 'erased after'} it`, async () => {
    const tenant = await eveWithContact(`letters ${suppress}`)
    if (!suppress) await sendUnreadable(tenant)
    const erasure = { tenant: tenant.id, email: 'eve@example.com', suppress }
    await post('/admin/v1/erasures', adminKey, erasure, { status: 201 })
    if (suppress) await sendUnreadable(tenant)
    const letters = await server.admin.deadLetters.list({ tenant: tenant.id, limit: 100 })
    const bodies = await Promise.all(
      letters.map(async ({ id }) => (await server.admin.deadLetters.show(id, tenant.id)).body),
    )
    assert.deepEqual(
      bodies.map(body => JSON.parse(body).userId),
      ['u12'],
    )
  })

test('an erasure deletes ids built from the address in receipts and orders', async () => {
  const tenant = await server.tenantWithServerKey('ids of addresses')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const email = 'eve_1@example.com'
  for (const id of [`ticket/${email}`, 'ticket/EVE_1%40example.com', 'ticket/evex1@example.com']) {
    const hook = { inbound_event_id: id, event_type: 'ticket.opened', payload: { email } }
    await post(`/ingest/inbound/${source.id}`, source.token, hook)
  }
  const facts = { entityType: 'order', sourceUpdatedAt: '2026-01-01T00:00:00Z' }
  const data = { email, total: 10, currency: 'EUR' }
  const order = { ...facts, id: 'o-1', externalId: `web ${email}`, data }
  await post('/v1/orders', tenant.privateKey, order, { status: 202 })
  await post('/admin/v1/erasures', adminKey, { tenant: tenant.id, email }, { status: 201 })
  await server.pool.query('delete from log where tenant_id = $1', [Number(tenant.id.slice(4))])
  for (const text of ['eve\\_1@', 'eve\\_1\\%40']) assert.deepEqual(await tracesOf(server, tenant, text), [], text)
  const { body } = await server.request(`/admin/v1/receipts?source=${source.id}`, { key: adminKey })
  assert.deepEqual(
    body.results.map((row: { inbound_event_id: string | null }) => row.inbound_event_id),
    ['ticket/evex1@example.com', null, null],
  )
  const kept = await server.request('/v1/orders/o-1', { key: tenant.privateKey })
  assert.deepEqual([kept.body.externalId, kept.body.data], [null, { total: 10, currency: 'EUR' }])
})

const SHAPES = [
  { customer_details: { email: 'eve@example.com' } },
  { billing_details: { email: 'Eve@example.com' } },
  { receipt_email: 'eve@example.com' },
  { contact_email: 'eve@example.com' },
  { customer: { email: 'eve@example.com' } },
  { Email: 'eve@example.com' },
  { emails: ['eve@example.com'] },
]

/** Each shape as a webhook, a Stripe object and an order, and as sent by a browser. */
async function sendShapes(tenant: TestTenant) {
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  for (const [n, shape] of SHAPES.entries()) {
    const hook = { inbound_event_id: `plain-${n}`, event_type: 'ticket.opened', payload: shape }
    await post(`/ingest/inbound/${source.id}`, source.token, hook)
    const object = { id: `ch_${n}`, object: 'charge', created: 1_760_000_000, ...shape }
    const stripe = { id: `evt_${n}`, object: 'event', type: 'charge.updated', data: { object } }
    const charge = { inbound_event_id: `charge-${n}`, event_type: 'charge.updated', payload: stripe }
    await post(`/ingest/inbound/${source.id}`, source.token, charge)
    const facts = { entityType: 'order', id: `o-${n}`, sourceUpdatedAt: '2026-01-01T00:00:00Z' }
    const order = { ...facts, data: { ...shape, total: 10, currency: 'EUR' } }
    await post('/v1/orders', tenant.privateKey, order, { status: 202 })
  }
  await post('/v1/identify', tenant.trackingKey, {
    anonymousId: 'new-1',
    traits: { Email: 'eve@example.com' },
  })
}

test('the address is found where providers put it: for an erasure, an export and suppression', async () => {
  const tenant = await server.anotherTenant('places of addresses')
  await sendShapes(tenant)
  const path = `/admin/v1/people/eve@example.com/export?tenant=${tenant.id}&format=json`
  const { body } = await server.request(path, { key: adminKey })
  const types = body.map(({ type }: { type: string }) => type)
  assert.equal(types.filter((type: string) => type === 'event').length, 2 * SHAPES.length + 1)
  assert.equal(types.filter((type: string) => type === 'order').length, SHAPES.length)
  for (const suppress of [false, true]) {
    const erasure = { tenant: tenant.id, email: 'eve@example.com', suppress }
    const receipt = await post('/admin/v1/erasures', adminKey, erasure, { status: 201 })
    if (!suppress) assert.equal(receipt.erased.orders, SHAPES.length)
    if (suppress) await sendShapes(tenant)
    await server.pool.query('delete from log where tenant_id = $1', [Number(tenant.id.slice(4))])
    assert.deepEqual(await tracesOf(server, tenant, 'eve@example'), [])
  }
})

test('a public tracking key cannot link a browser to an address in a field that only servers send', async () => {
  const tenant = await server.anotherTenant('places of public tracking keys')
  const traits = { customer: { email: 'ben@example.com' }, receipt_email: 'ben@example.com' }
  await post('/v1/identify', tenant.trackingKey, { anonymousId: 'visitor-1', traits })
  const path = `/admin/v1/people/ben@example.com/export?tenant=${tenant.id}&format=json`
  assert.equal((await server.request(path, { key: adminKey })).status, 404)
})

test('unlinked data is found by the text of the address, and data of others that mentions it stays', async () => {
  const tenant = await server.tenantWithServerKey('unjoined places')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const email = 'eve_1@example.com'
  const payloads = [
    { customer_email: email },
    { text: `from ${email.toUpperCase()} to us` },
    { url: 'https://shop.example/?mail=eve_1%40example.com' },
    { text: 'from evex1@example.com' },
  ]
  for (const [n, payload] of payloads.entries()) {
    const hook = { inbound_event_id: `hook-${n}`, event_type: 'ticket.opened', payload }
    await post(`/ingest/inbound/${source.id}`, source.token, hook)
  }
  const friend = { event_type: 'invited', visitor: 'of-ben', data: { friend: email } }
  await post('/v1/track', tenant.trackingKey, friend)
  // As stored before this field was read: linked to no one.
  const facts = { entityType: 'order', sourceUpdatedAt: '2026-01-01T00:00:00Z' }
  for (const [id, who] of [
    ['o-1', { customer: { email } }],
    ['o-2', { referred_by: email }],
  ] as const)
    await post('/v1/orders', tenant.privateKey, { ...facts, id, data: { total: 5, ...who } }, { status: 202 })
  await server.pool.query('update conversions set order_node = null where tenant_id = $1', [Number(tenant.id.slice(4))])
  const erasure = { tenant: tenant.id, email }
  const preview = await server.admin.erasures.preview(erasure)
  const receipt = await post('/admin/v1/erasures', adminKey, erasure, { status: 201 })
  assert.deepEqual([receipt.erased.events, receipt.erased.orders], [3, 1])
  assert.deepEqual([preview.would_erase.events, preview.would_erase.orders], [3, 1])
  const left = await rowsOf(server, 'events', { key: tenant.privateKey })
  assert.deepEqual(left.map(({ event_type }) => event_type).sort(), ['invited', 'ticket.opened'])
  const mentions = { events: 1, event_ids: left.flatMap(row => (row.event_type === 'invited' ? row.id : [])) }
  assert.deepEqual([preview.mentions, receipt.mentions], [mentions, mentions])
  const order = async (id: string) => (await server.request(`/v1/orders/${id}`, { key: tenant.privateKey })).body.data
  assert.deepEqual([await order('o-1'), await order('o-2')], [{ total: 5 }, { total: 5, referred_by: email }])
})

test('a suppressing transaction locks the row of the count last, and uses what it learned before that', async () => {
  const tenant = await server.tenantWithServerKey('counting last')
  await withoutEve(tenant)
  await post('/v1/page', tenant.trackingKey, { anonymousId: 'eve-1' })
  const tenantId = Number(tenant.id.slice(4))
  const counted = () => server.admin.suppressions.list(tenant.id).then(list => list.not_recorded)
  const contact = (id: string, data: object) =>
    ({
      entry: { id: newEntryId(Date.now()), tenantId, receivedAt: new Date() },
      work: { op: 'write', entityType: 'contact', id, data },
    }) as Change
  const { changes, among } = openSuppressions()
  await inTransaction(server.pool, async client => {
    const transaction: Transaction = { client, now: new Date(), configVersion: -1 }
    const [known, other] = [contact('c-9', { email: 'eve@example.com', user_id: 'u-of-crm' }), contact('c-10', {})]
    assert.deepEqual(await changes(transaction, [known, other]), [null, other])
    const user = { kind: 'user', value: 'u-of-crm' } as const
    const thing = { tenantId, identities: () => [user], isVerified: false, isLearned: false } as const
    assert.deepEqual((await among(transaction, [thing])).are, [true])
    // Other transactions that count do not wait for the locks that this one waits for.
    await server.pool.query('select from suppression_counts where tenant_id = $1 for update nowait', [tenantId])
    await writeSuppressed(transaction)
    await assert.rejects(
      server.pool.query('select from suppression_counts where tenant_id = $1 for update nowait', [tenantId]),
      { code: '55P03' },
    )
  })
  assert.deepEqual([(await counted()).events, (await counted()).records], [1, 1])
  await post('/v1/track', tenant.trackingKey, { event_type: 'seen', user_id: 'u-of-crm' })
  assert.deepEqual(await visitors(tenant), [])
})
