import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inLockstep, permutations } from '../any-order.ts'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { json, type Row, rowsOf } from './rows.ts'

// Verified and unverified links between identifiers, and what exports and erasures cover: docs/guides/events.md.

let server: TestServer
let adminKey: string
before(async () => {
  server = await sharedServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

async function post(path: string, key: string, body: object): Promise<void> {
  const { status, body: answer } = await server.request(path, { method: 'POST', key, body: json(body) })
  assert.ok(status === 200 || status === 202, `${path} ${status} ${json(answer)}`)
}

let lastId = 0
const track = (tenant: TestTenant, body: object) =>
  post('/v1/track/', tenant.trackingKey, { event_id: `p-${++lastId}`, ...body })
const identify = (tenant: TestTenant, userId: string, email: string, anonymousId: string) =>
  post('/v1/identify', tenant.trackingKey, { messageId: `p-${++lastId}`, userId, anonymousId, traits: { email } })
const write = (tenant: TestTenant, entityType: 'contact' | 'order', id: string, data: object) =>
  post(`/v1/${entityType}s`, tenant.privateKey, {
    ...{ entityType, id, sourceUpdatedAt: new Date().toISOString(), data },
  })

const people = (path: string, body?: object) =>
  server.request(`/admin/v1/people/${path}`, { key: adminKey, ...(body && { method: 'POST', body: json(body) }) })

async function who(tenant: TestTenant, id: string): Promise<Row> {
  const { status, body } = await people(`${encodeURIComponent(id)}?tenant=${tenant.id}`)
  assert.equal(status, 200, json(body))
  return body
}
const marks = (person: Row): string[] =>
  person.names.map((name: Row) => `${name.kind}:${name.value} ${name.verified ? 'verified' : 'unverified'}`).toSorted()

async function exported(tenant: TestTenant, id: string, more = ''): Promise<string> {
  const path = `/admin/v1/people/${encodeURIComponent(id)}/export?tenant=${tenant.id}${more}`
  const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${adminKey}` } })
  assert.equal(response.status, 200)
  return response.text()
}

const erase = async (body: object): Promise<Row> => {
  const answer = await server.request('/admin/v1/erasures', { method: 'POST', key: adminKey, body: json(body) })
  assert.ok(answer.status === 200 || answer.status === 201, json(answer.body))
  return answer.body
}

test('identify in a browser reaches the contact with that address, in any order of arrival', async () => {
  const steps: ((tenant: TestTenant) => Promise<void>)[] = [
    tenant => track(tenant, { event_type: 'page_view', visitor: 'v-1' }),
    tenant => identify(tenant, 'u-1', 'Ada@example.com', 'v-1'),
    tenant => write(tenant, 'contact', 'c-1', { email: 'ada@example.com', name: 'Ada' }),
    tenant => track(tenant, { event_type: 'later', visitor: 'v-2', user_id: 'u-1' }),
  ]
  const orders = permutations(steps)
  const tenants = await Promise.all(orders.map((_, i) => server.anotherTenant(`order ${i}`)))
  // One third of them at once, with several workers; the others step by step.
  const atOnce = (i: number) => i % 3 === 0
  await Promise.all(
    orders.map(async (order, i) => {
      if (atOnce(i)) for (const step of order) await step(tenants[i]!)
    }),
  )
  const run = async (step: (tenant: TestTenant) => Promise<void>, i: number) => {
    if (!atOnce(i)) await step(tenants[i]!)
  }
  await inLockstep(orders, run, server.settled)
  for (const tenant of tenants) {
    const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
    assert.equal(rows.length, 3)
    for (const row of rows) assert.deepEqual([row.event_type, row.contact_id], [row.event_type, 'c-1'])
    assert.deepEqual(marks(await who(tenant, 'c-1')), [
      'contact:c-1 verified',
      'email:ada@example.com verified',
      'user:u-1 unverified',
      'visitor:v-1 unverified',
      'visitor:v-2 unverified',
    ])
  }
})

/** A customer, and an attacker who claims to be her with one public event. */
async function attacked(name: string): Promise<TestTenant> {
  const tenant = await server.anotherTenant(name)
  await write(tenant, 'contact', 'c-9', { email: 'eve@example.com', phone: '+49-secret', name: 'Eve' })
  await write(tenant, 'order', 'o-9', { contactId: 'c-9', total: 99, currency: 'EUR' })
  await track(tenant, {
    event_type: 'chat',
    visitor: 'v-eve',
    data: { email: 'eve@example.com', text: 'private words' },
  })
  await server.settled()
  await track(tenant, { event_type: 'claim', visitor: 'v-mal', data: { contactId: 'c-9', email: 'mal@example.com' } })
  await track(tenant, { event_type: 'claim', user_id: 'u-mal', data: { email: 'eve@example.com', n: 2 } })
  await server.settled()
  return tenant
}

test('an export that starts from an unverified identifier contains only what that identifier did', async () => {
  const tenant = await attacked('claimed export')
  for (const id of ['mal@example.com', 'v-mal', 'u-mal']) {
    const text = await exported(tenant, id)
    assert.doesNotMatch(text, /secret|private words|"c-9".*name|"o-9"/, id)
    assert.match(text, /claim/, id)
  }
  const claimed = await exported(tenant, 'u-mal')
  assert.match(claimed, new RegExp(`"linked_profile_id":"${(await who(tenant, 'c-9')).profile_id}"`))
  assert.match(await exported(tenant, 'u-mal', '&confirm_profile=true'), /secret/)
  const whole = await exported(tenant, 'eve@example.com')
  for (const wanted of [/secret/, /private words/, /o-9/]) assert.match(whole, wanted)
})

test('a user id with a verified address does not follow a public claim to the contact of another address', async () => {
  const steps: ((tenant: TestTenant, serverKey: string) => Promise<void>)[] = [
    tenant => write(tenant, 'contact', 'c-mal', { email: 'mal@example.com', name: 'Mal' }),
    (_, serverKey) =>
      post('/v1/identify', serverKey, { userId: 'u-eve', traits: { email: 'eve@example.com', phone: '+49-secret' } }),
    tenant => identify(tenant, 'u-eve', 'mal@example.com', 'v-mal'),
  ]
  const orders = permutations(steps)
  const senders = await Promise.all(
    orders.map(async (_, i) => {
      const tenant = await server.anotherTenant(`claimed user ${i}`)
      const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
      return { tenant, key }
    }),
  )
  await inLockstep(orders, (step, i) => step(senders[i]!.tenant, senders[i]!.key), server.settled)
  for (const { tenant } of senders) {
    assert.deepEqual(marks(await who(tenant, 'c-mal')), ['contact:c-mal verified', 'email:mal@example.com verified'])
    assert.deepEqual(marks(await who(tenant, 'u-eve')), [
      'email:eve@example.com verified',
      'user:u-eve verified',
      'visitor:v-mal unverified',
    ])
    assert.doesNotMatch(await exported(tenant, 'mal@example.com'), /secret/)
  }
})

test('a public event with the order id of a customer exports nothing of her order', async () => {
  const tenant = await server.anotherTenant('claimed order')
  await write(tenant, 'contact', 'c-1', { email: 'eve@example.com' })
  await write(tenant, 'order', 'o-1', { contactId: 'c-1', total: 123.45, currency: 'EUR', address: 'Secret Street 1' })
  await server.settled()
  await track(tenant, { event_type: 'convert', visitor: 'v-mal', data: { order_id: 'o-1' } })
  // The attacker may also be a customer.
  await write(tenant, 'contact', 'c-mal', { userId: 'u-mal' })
  await track(tenant, { event_type: 'convert', visitor: 'v-2', user_id: 'u-mal', data: { order_id: 'o-1' } })
  await server.settled()
  for (const id of ['v-mal', 'v-2', 'u-mal', 'c-mal']) {
    for (const more of ['', '&confirm_profile=true']) {
      const text = await exported(tenant, id, more)
      if (id === 'v-mal' && more !== '') continue
      assert.doesNotMatch(text, /Secret Street|123\.45/, id + more)
    }
  }
  assert.match(await exported(tenant, 'eve@example.com'), /Secret Street/)
})

test('an address finds its person, also if others use it as an id', async () => {
  const tenant = await server.anotherTenant('borrowed address')
  await write(tenant, 'contact', 'c-1', { email: 'eve@example.com', userId: 'u-eve' })
  await server.settled()
  await track(tenant, { event_type: 'x', visitor: 'eve@example.com' })
  await track(tenant, { event_type: 'x', visitor: 'z', user_id: 'eve@example.com' })
  await server.settled()
  assert.equal((await who(tenant, 'eve@example.com')).contact.id, 'c-1')
})

test('an erasure that starts from an unverified address spares the person it claims to be', async () => {
  const tenant = await attacked('claimed erasure')
  const body = { tenant: tenant.id, email: 'mal@example.com' }
  const preview = await erase({ ...body, dry_run: true })
  assert.deepEqual(preview.names, [{ kind: 'email', value: 'mal@example.com', verified: false }])
  const receipt = await erase(body)
  assert.equal(receipt.status, 'completed')
  const { contact, events } = await who(tenant, 'c-9')
  assert.equal(contact.name, 'Eve')
  assert.equal(events, 2)
  assert.equal((await people(`mal%40example.com?tenant=${tenant.id}`)).status, 404)
  // From a verified identifier: the whole profile, with what claims to be part of it.
  const own = await erase({ tenant: tenant.id, email: 'eve@example.com', dry_run: true })
  assert.equal(own.covers, 'profile')
  assert.deepEqual(own.names.map((name: Row) => `${name.kind}:${name.value} ${name.verified}`).toSorted(), [
    'contact:c-9 true',
    'email:eve@example.com true',
    'user:u-mal false',
    'visitor:v-eve false',
    'visitor:v-mal false',
  ])
})

test('an address that a browser linked to a user id covers only itself once that user id is verified', async () => {
  const tenant = await server.anotherTenant('claimed address')
  const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  await post('/v1/track/', key, { event_type: 'login', user_id: 'u-1', event_id: 's-1' })
  await track(tenant, { event_type: 'form', user_id: 'u-1', data: { email: 'x@example.com' } })
  await server.settled()
  const body = { tenant: tenant.id, email: 'x@example.com' }
  const preview = await erase({ ...body, dry_run: true })
  assert.deepEqual([preview.covers, preview.linked_profile_id], ['identifier', (await who(tenant, 'u-1')).profile_id])
  assert.equal(preview.would_erase.events, 1)
  const wider = await erase({ ...body, dry_run: true, confirm_profile: true })
  assert.deepEqual([wider.covers, wider.would_erase.events], ['profile', 2])
  const receipt = await erase(body)
  assert.deepEqual([receipt.covers, receipt.erased.events], ['identifier', 1])
  assert.deepEqual(marks(await who(tenant, 'u-1')), ['user:u-1 verified'])
  assert.equal((await who(tenant, 'u-1')).events, 1)
})

test('a verified event on a shared device does not give away the order of another contact', async () => {
  const tenant = await server.anotherTenant('shared device')
  const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  const bought = (order_id: string) =>
    post('/v1/track/', key, {
      event_type: 'convert',
      visitor: 'ipad',
      event_id: `bought ${order_id}`,
      data: { order_id },
    })
  for (const id of ['kid', 'mum']) await write(tenant, 'contact', id, { email: `${id}@example.com` })
  await post('/v1/identify', key, { userId: 'u-mum', anonymousId: 'ipad', traits: { email: 'mum@example.com' } })
  await write(tenant, 'order', 'A1', { contactId: 'kid', total: 40, currency: 'USD', shipping: 'Kid Street 1' })
  await write(tenant, 'order', 'A2', { total: 7, currency: 'USD' })
  for (const id of ['A1', 'A2']) await bought(id)
  await server.settled()
  const sales = async () => {
    const rows = await rowsOf(server, 'conversions', { key: tenant.privateKey })
    return rows.map(({ source_object_id, contact_id, visitor }) => [source_object_id, contact_id, visitor]).toSorted()
  }
  const buyers = async () => {
    const { body } = await server.request('/v1/customers', { key: tenant.privateKey })
    return body.results.map((row: Row) => [row.email, row.orders, row.revenue, row.status]).toSorted()
  }
  assert.deepEqual(await sales(), [
    ['A1', 'kid', 'ipad'],
    ['A2', 'mum', 'ipad'],
  ])
  assert.deepEqual([(await who(tenant, 'mum')).conversions, (await who(tenant, 'kid')).conversions], [1, 1])
  assert.doesNotMatch(await exported(tenant, 'mum@example.com'), /Kid Street|"source_object_id" : "A1"/)
  assert.match(await exported(tenant, 'kid@example.com'), /Kid Street/)
  const body = { tenant: tenant.id, email: 'mum@example.com' }
  const { would_erase } = await erase({ ...body, dry_run: true })
  const { erased } = await erase(body)
  assert.deepEqual([erased.conversions, erased.orders], [1, 1])
  assert.deepEqual([would_erase.conversions, would_erase.orders], [1, 1])
  assert.deepEqual(await sales(), [
    ['A1', 'kid', null],
    ['A2', null, null],
  ])
  await eventually('the customers to be current', async () => (await buyers()).length === 1)
  assert.deepEqual(await buyers(), [['kid@example.com', 1, { USD: 40 }, 'buyer']])
  const order = await server.request('/v1/orders/A1', { key: tenant.privateKey })
  assert.equal(order.body.data.shipping, 'Kid Street 1')
})

test('the page of a person has the sales that the lists show as theirs, and an export those that are theirs', async () => {
  const tenant = await server.anotherTenant('sales of a person')
  await write(tenant, 'contact', 'c-1', { email: 'ada@example.com' })
  await identify(tenant, 'u-1', 'ada@example.com', 'v-1')
  await write(tenant, 'order', 'o-1', { total: 10, currency: 'EUR', address: 'Secret Street 2' })
  await server.settled()
  await track(tenant, { event_type: 'convert', visitor: 'v-1', data: { order_id: 'o-1' } })
  await server.settled()
  const [sale] = await rowsOf(server, 'conversions', { key: tenant.privateKey })
  const person = await who(tenant, 'c-1')
  assert.deepEqual([sale!.profile_id, person.conversions], [person.profile_id, 1])
  const timeline = await people(`${person.profile_id}/timeline?tenant=${tenant.id}`)
  assert.match(json(timeline.body), /o-1/)
  assert.doesNotMatch(await exported(tenant, 'c-1', '&confirm_profile=true'), /Secret Street 2/)
})

/** An attacker with a contact of his own, who names the user id of a customer whom only a server knows. */
const claimedUser: ((tenant: TestTenant, serverKey: string) => Promise<void>)[] = [
  tenant => write(tenant, 'contact', 'c-mal', { email: 'mal@example.com', name: 'Mal' }),
  (_, key) => post('/v1/track/', key, { event_type: 'paid', user_id: 'u-42', data: { note: 'secret words' } }),
  tenant => track(tenant, { event_type: 'chat', visitor: 'v-42', user_id: 'u-42', data: { text: 'private words' } }),
  tenant => identify(tenant, 'u-42', 'mal@example.com', 'v-mal'),
]

test('a verified person gets nothing of another one whom only a public event links, unless confirmed', async () => {
  const [contact, ...others] = claimedUser
  for (const [i, order] of [[contact!, ...others], [...others, contact!], claimedUser.toReversed()].entries()) {
    const tenant = await server.anotherTenant(`claimed person ${i}`)
    const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
    for (const step of order) {
      await step(tenant, key)
      await server.settled()
    }
    // Both are one profile in reports.
    const { profile_id } = await who(tenant, 'c-mal')
    assert.equal((await who(tenant, 'u-42')).profile_id, profile_id)
    for (const id of ['mal@example.com', 'c-mal', profile_id]) {
      const text = await exported(tenant, id)
      assert.doesNotMatch(text, /secret words|private words|v-42/, id)
      assert.match(text, /"name": ?"Mal"/, id)
      const first = JSON.parse(text.slice(0, text.indexOf('\n')))
      assert.deepEqual([first.covers, first.linked_profile_id], ['identifier', profile_id])
      assert.ok(first.not_covered.some(({ kind }: Row) => kind === 'user'))
      assert.match(await exported(tenant, id, '&confirm_profile=true'), /secret words/)
    }
    // From the other side.
    const other = await exported(tenant, 'user:u-42')
    for (const wanted of [/secret words/, /private words/]) assert.match(other, wanted)
    assert.doesNotMatch(other, /"name": ?"Mal"/)
    const body = { tenant: tenant.id, email: 'mal@example.com', suppress: true }
    const preview = await erase({ ...body, dry_run: true })
    assert.deepEqual([preview.covers, preview.linked_profile_id], ['identifier', profile_id])
    assert.ok(preview.not_covered.some(({ kind, value }: Row) => `${kind}:${value}` === 'user:u-42'))
    assert.ok(preview.names.every(({ value }: Row) => value !== 'u-42' && value !== 'v-42'))
    const receipt = await erase(body)
    assert.deepEqual([receipt.covers, receipt.erased.contacts, receipt.erased.events], ['identifier', 1, 1])
    assert.ok(receipt.not_covered.some(({ kind }: Row) => kind === 'user'))
    const left = await who(tenant, 'u-42')
    assert.equal(left.events, 2)
    // The suppression does not concern her either.
    await post('/v1/track/', key, { event_type: 'paid again', user_id: 'u-42' })
    await server.settled()
    assert.equal((await who(tenant, 'u-42')).events, 3)
  }
})

test('confirm_profile erases and suppresses a verified person whom only a public event links', async () => {
  const tenant = await server.anotherTenant('confirmed person')
  const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  for (const step of claimedUser) await step(tenant, key)
  await server.settled()
  const receipt = await erase({ tenant: tenant.id, email: 'mal@example.com', suppress: true, confirm_profile: true })
  assert.deepEqual([receipt.covers, receipt.not_covered, receipt.erased.events], ['profile', [], 3])
  await post('/v1/track/', key, { event_type: 'paid again', user_id: 'u-42' })
  await server.settled()
  assert.deepEqual(await rowsOf(server, 'events', { key: tenant.privateKey }), [])
})

test('a person whom only browsers linked to a contact is covered without a confirmation', async () => {
  const tenant = await server.anotherTenant('ordinary person')
  await write(tenant, 'contact', 'c-1', { email: 'ada@example.com', name: 'Ada' })
  await track(tenant, { event_type: 'page_view', visitor: 'v-1' })
  await identify(tenant, 'u-1', 'ada@example.com', 'v-1')
  await track(tenant, { event_type: 'later', visitor: 'v-2', user_id: 'u-1' })
  await server.settled()
  for (const id of ['ada@example.com', 'c-1', (await who(tenant, 'c-1')).profile_id]) {
    const text = await exported(tenant, id)
    for (const wanted of [/"type":"person"/, /page_view/, /identify/, /later/]) assert.match(text, wanted, id)
  }
  const receipt = await erase({ tenant: tenant.id, email: 'ada@example.com' })
  assert.deepEqual([receipt.covers, receipt.not_covered, receipt.erased.events], ['profile', [], 3])
})

test('text that a browser claims as an id or address of a person finds nothing of others', async () => {
  const tenant = await server.anotherTenant('claimed text')
  const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  await write(tenant, 'contact', 'c-9', { email: 'eve@example.com' })
  await write(tenant, 'contact', 'c-mal', { email: 'mal@example.com' })
  const words = { plan: 'Premium plan', words: 'secret words' }
  await post('/v1/track/', key, { event_type: 'paid', user_id: 'u-9', data: { contactId: 'c-9', ...words } })
  await post('/v1/track/', key, { event_type: 'invited', data: { to: 'guest@example.com', words: 'secret words' } })
  await post('/v1/track/', key, { event_type: 'signed up', user_id: 'u-mal' })
  await server.settled()
  // A user id with the text of her events, linked to the attacker, with a claim to be her.
  await identify(tenant, 'Premium plan', 'mal@example.com', 'v-mal')
  await track(tenant, { event_type: 'claim', user_id: 'Premium plan', data: { contactId: 'c-9' } })
  // An address that only the text of an event without a person contains.
  await identify(tenant, 'u-mal', 'guest@example.com', 'v-mal')
  await server.settled()
  assert.deepEqual((await who(tenant, 'Premium plan')).profile_id, (await who(tenant, 'c-mal')).profile_id)
  assert.deepEqual((await who(tenant, 'user:u-mal')).profile_id, (await who(tenant, 'guest@example.com')).profile_id)
  for (const id of ['mal@example.com', 'user:u-mal'])
    assert.doesNotMatch(await exported(tenant, id), /secret words/, id)
  await erase({ tenant: tenant.id, email: 'mal@example.com' })
  await erase({ tenant: tenant.id, profile: (await who(tenant, 'user:u-mal')).profile_id })
  const types = (await rowsOf(server, 'events', { key: tenant.privateKey })).map(row => row.event_type)
  assert.deepEqual(types.toSorted(), ['invited', 'paid'])
})

test('in a profile without any verified identifier, an erasure covers the profile and an export the identifier', async () => {
  const tenant = await server.anotherTenant('nothing verified')
  await track(tenant, { event_type: 'a', visitor: 'v-1', user_id: 'u-1' })
  await track(tenant, { event_type: 'b', visitor: 'v-1', data: { email: 'b@example.com' } })
  await server.settled()
  assert.doesNotMatch(await exported(tenant, 'b@example.com'), /"event_type":"a"/)
  const preview = await erase({ tenant: tenant.id, email: 'b@example.com', dry_run: true })
  assert.deepEqual([preview.covers, preview.would_erase.events], ['profile', 2])
})

test('a public event does not move a visitor id that verified input linked, whenever it arrives', async () => {
  const tenant = await server.anotherTenant('claimed visitor')
  const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  const send = (key: string, body: object) => post('/v1/track/', key, { event_id: `p-${++lastId}`, ...body })
  const steps = [
    () => send(tenant.trackingKey, { event_type: 'claim first', visitor: 'v-1', user_id: 'u-mal' }),
    () => send(key, { event_type: 'login', visitor: 'v-1', user_id: 'u-ada' }),
    () => send(tenant.trackingKey, { event_type: 'claim', visitor: 'v-1', user_id: 'u-mal' }),
    () => send(tenant.trackingKey, { event_type: 'claim', visitor: 'v-1', user_id: 'u-mal' }),
    () => send(key, { event_type: 'of the server', visitor: 'v-1' }),
    () => send(tenant.trackingKey, { event_type: 'of the browser', visitor: 'v-1' }),
    () => send(key, { event_type: 'named by the server', visitor: 'v-1', user_id: 'u-mal' }),
    () => send(key, { event_type: 'later', visitor: 'v-1' }),
  ]
  for (const step of steps) {
    await step()
    await server.settled()
  }
  const [ada, mallory] = [await who(tenant, 'user:u-ada'), await who(tenant, 'user:u-mal')]
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  const typesOf = ({ profile_id }: Row) =>
    rows.flatMap(row => (row.profile_id === profile_id ? row.event_type : [])).toSorted()
  assert.deepEqual(typesOf(ada), ['login', 'of the browser', 'of the server'])
  assert.deepEqual(typesOf(mallory), ['claim', 'claim', 'claim first', 'later', 'named by the server'])
})

test('a verified link replaces unverified ones, and shows as such', async () => {
  const tenant = await server.anotherTenant('overridden')
  await identify(tenant, 'u-mal', 'ada@example.com', 'v-mal')
  await server.settled()
  await write(tenant, 'contact', 'c-1', { email: 'ada@example.com', userId: 'u-ada' })
  await server.settled()
  assert.deepEqual(marks(await who(tenant, 'c-1')), [
    'contact:c-1 verified',
    'email:ada@example.com verified',
    'user:u-ada verified',
  ])
  const mallory = await who(tenant, 'u-mal')
  assert.deepEqual(marks(mallory), ['user:u-mal unverified', 'visitor:v-mal unverified'])
  assert.deepEqual(
    mallory.claims.map(({ name, other }: Row) => [name, other.value]),
    [[{ kind: 'user', value: 'u-mal' }, 'ada@example.com']],
  )
})

test('an operator verifies or splits one identifier', async () => {
  const tenant = await server.anotherTenant('verified by hand')
  await write(tenant, 'contact', 'c-1', { email: 'ada@example.com' })
  await identify(tenant, 'u-1', 'ada@example.com', 'v-1')
  await server.settled()
  const verified = await people('c-1/verify', { tenant: tenant.id, name: 'u-1' })
  assert.equal(verified.status, 200, json(verified.body))
  assert.ok(marks(verified.body).includes('user:u-1 verified'))
  // A second user id that a browser claims does not replace it.
  await identify(tenant, 'u-2', 'ada@example.com', 'v-2')
  await server.settled()
  assert.ok(!marks(await who(tenant, 'c-1')).some(mark => mark.startsWith('user:u-2')))
  useDatabase(server.databaseUrl)
  const command = ['person', 'verify', 'c-1', '--name', 'v-1', '--tenant', tenant.name]
  assert.ok(marks((await kontor(...command)).json()).includes('visitor:v-1 verified'))
  const split = await people('c-1/split', { tenant: tenant.id, name: 'u-1' })
  assert.equal(split.status, 200, json(split.body))
  assert.ok(!marks(split.body.person).some(mark => mark.startsWith('user:u-1')))
  await identify(tenant, 'u-1', 'ada@example.com', 'v-1')
  await server.settled()
  assert.ok(!marks(await who(tenant, 'c-1')).some(mark => mark.startsWith('user:u-1')), 'the split holds')
})

test('an address that is used as a user id or contact id counts as that address', async () => {
  const tenant = await server.anotherTenant('address as id')
  await track(tenant, { event_type: 'login', user_id: 'Ada@Example.com' })
  await write(tenant, 'contact', 'BEN@example.com', { name: 'Ben' })
  await track(tenant, { event_type: 'other', user_id: 'CLEO@example.com', data: { email: 'other@example.com' } })
  await server.settled()
  const ada = await erase({ tenant: tenant.id, email: 'ada@example.com' })
  assert.equal(ada.erased.events, 1)
  const ben = await erase({ tenant: tenant.id, email: 'ben@example.com' })
  assert.equal(ben.erased.contacts, 1)
  const cleo = await erase({ tenant: tenant.id, email: 'cleo@example.com' })
  assert.equal(cleo.erased.events, 1)
  assert.deepEqual(await rowsOf(server, 'events', { key: tenant.privateKey }), [])
})
