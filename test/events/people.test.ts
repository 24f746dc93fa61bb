import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { json, type Row, rowsOf } from './rows.ts'

// Profiles and their correction by merge and split: docs/guides/events.md.

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
const track = (tenant: TestTenant, body: object, key = tenant.trackingKey) =>
  post('/v1/track/', key, { event_id: `e-${++lastId}`, ...body })
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

const people = (path: string, body?: object) =>
  server.request(`/admin/v1/people/${path}`, {
    key: adminKey,
    ...(body && { method: 'POST', body: json(body) }),
  })

async function who(tenant: TestTenant, id: string): Promise<Row> {
  const { status, body } = await people(`${encodeURIComponent(id)}?tenant=${tenant.id}`)
  assert.equal(status, 200, json(body))
  return body
}

const namesOf = (person: Row): string[] => person.names.map((name: Row) => `${name.kind}:${name.value}`).toSorted()

/** Everything that distinguishes one person from another. */
async function stateOf(tenant: TestTenant): Promise<Row> {
  const key = tenant.privateKey
  const { rows } = await server.pool.query(
    `select kind, value, profile, retired_at is null as used from identities where tenant_id = $1 order by node`,
    [Number(tenant.id.slice(4))],
  )
  return {
    events: await rowsOf(server, 'events', { key }),
    conversions: await rowsOf(server, 'conversions', { key }),
    names: rows,
  }
}

const convert = (tenant: TestTenant, visitor: string, amount: number) =>
  track(tenant, { event_type: 'convert', visitor, data: { order_id: 'o', amount, currency: 'EUR' } })

test('a profile shows every identifier with its time and cause, and is found by any of them', async () => {
  const tenant = await server.anotherTenant('shown')
  await inTurn(
    () => track(tenant, { event_type: 'looked', visitor: 'v-1' }),
    () => track(tenant, { event_type: 'login', visitor: 'v-1', user_id: 'ada' }),
    () => write(tenant, 'contact', 'c-1', { email: 'Ada@example.com', userId: 'ada', name: 'Ada' }),
    () => write(tenant, 'order', 'o-1', { total: 5, currency: 'EUR', contactId: 'c-1' }),
  )
  const person = await who(tenant, 'ada@EXAMPLE.com')
  assert.deepEqual(namesOf(person), ['contact:c-1', 'email:ada@example.com', 'user:ada', 'visitor:v-1'])
  assert.deepEqual(person.contact, { id: 'c-1', name: 'Ada', email: 'Ada@example.com', company: null })
  assert.deepEqual([person.events, person.conversions], [2, 1])
  const causes = Object.fromEntries(person.names.map((name: Row) => [name.kind, name.cause]))
  assert.equal(causes.visitor.kind, 'event')
  assert.deepEqual(causes.contact, { kind: 'record', id: 'contact/c-1' })
  for (const id of ['ada', 'user:ada', 'v-1', 'c-1', 'contact:c-1', person.profile_id])
    assert.deepEqual(await who(tenant, id), person)
  for (const id of person.merged_profiles) assert.deepEqual(await who(tenant, id), person)
})

test('the search finds people by the first letters of a name, and records and events by id, within the scopes of the key', async () => {
  const [tenant, other] = [await server.anotherTenant('searched'), await server.anotherTenant('beside')]
  await inTurn(
    () =>
      write(tenant, 'contact', 'c-1', {
        firstName: 'Ada',
        lastName: 'Lovelace',
        email: 'Countess@Example.com',
      }),
    () => write(tenant, 'contact', 'c-2', { name: 'Ben 100% Ämil', email: 'ben@example.com' }),
    () => write(tenant, 'contact', 'c-3', { name: { not: 'a string' }, email: null }),
    () => write(tenant, 'contact', 'c-4', { name: 'x'.repeat(70_000) }),
    () => write(other, 'contact', 'c-1', { name: 'Ada Other' }),
    () => write(tenant, 'order', 'o-1', { contactId: 'c-1', amount: 5 }),
    () => track(tenant, { event_type: 'page_view', visitor: 'v-77', event_id: 'sent-1' }),
  )
  const find = async (q: string, key = tenant.privateKey) => {
    const { status, body } = await server.request(`/v1/search?q=${encodeURIComponent(q)}`, { key })
    assert.equal(status, 200, json(body))
    return body.results.map(({ kind, title }: Row) => `${kind} ${title}`) as string[]
  }
  for (const q of ['ada', 'ADA LOVE', 'lovelace', 'Love', 'countess@', 'Countess@Example.com'])
    assert.equal((await find(q)).length, 1, q)
  assert.deepEqual(await find('ad'), ['person Ada Lovelace'])
  assert.deepEqual(await find('ben 100%'), ['person Ben 100% Ämil'])
  assert.deepEqual(await find('ben 1_0'), [])
  assert.deepEqual(await find('v-7'), ['person v-77'])
  assert.deepEqual(await find('c-1'), ['contact c-1', 'person c-1'])
  assert.deepEqual(await find('o-1'), ['order o-1'])
  assert.deepEqual(await find('sent-1'), ['event page_view'])
  assert.deepEqual(await find('unknown person'), [])
  assert.deepEqual(await find('\u0000'.repeat(3)), [])
  assert.equal((await server.request('/v1/search?q=a', { key: tenant.privateKey })).status, 400)
  const { key } = await server.admin.keys.create({
    ...{ tenant: tenant.id, kind: 'private' as const, scopes: ['orders:read'] },
  })
  assert.deepEqual(await find('ada', key), [])
  assert.deepEqual(await find('o-1', key), ['order o-1'])
})

test('an unknown person is 404, and an identifier of two people lists both', async () => {
  const tenant = await server.anotherTenant('asked for')
  await inTurn(
    () => track(tenant, { event_type: 'a', visitor: '42' }),
    () => track(tenant, { event_type: 'b', user_id: '42' }),
  )
  const answers = ['nobody', 'prof_999999', 'user:43', '\u0000'].map(id =>
    people(`${encodeURIComponent(id)}?tenant=${tenant.id}`),
  )
  for (const { status, body } of await Promise.all(answers)) {
    assert.deepEqual([status, body.code], [404, 'person_not_found'])
  }
  const { status, body } = await people(`42?tenant=${tenant.id}`)
  assert.deepEqual([status, body.code], [409, 'person_ambiguous'])
  assert.match(body.detail, /user:42 \(prof_\d+\), visitor:42 \(prof_\d+\)/)
  assert.deepEqual(
    body.choices.map(({ name }: { name: string }) => name),
    ['user:42', 'visitor:42'],
  )
  assert.deepEqual(namesOf(await who(tenant, 'user:42')), ['user:42'])
  // people of another tenant are unknown here
  const other = await server.anotherTenant('other people')
  const profile = (await who(tenant, 'user:42')).profile_id
  assert.equal((await people(`${profile}?tenant=${other.id}`)).status, 404)
  assert.equal((await people(`42/merge`, { tenant: tenant.id, into: 'nobody' })).status, 409)
  assert.equal((await people(`user:42/merge`, { tenant: tenant.id, into: 'nobody' })).status, 404)
})

test('a split after a merge restores the previous state', async () => {
  const tenant = await server.anotherTenant('merged and split')
  await inTurn(
    () => track(tenant, { event_type: 'a', visitor: 'v-a', user_id: 'ada' }),
    () => track(tenant, { event_type: 'b', visitor: 'v-b', user_id: 'bob' }),
    () => convert(tenant, 'v-b', 5),
    () => convert(tenant, 'v-a', 7),
    () => convert(tenant, 'v-a', 6),
  )
  const before = await stateOf(tenant)
  assert.equal(before.conversions.length, 2)
  const [ada, bob] = [await who(tenant, 'ada'), await who(tenant, 'bob')]
  const merged = await people('ada/merge', { tenant: tenant.id, into: 'v-b' })
  assert.equal(merged.status, 200, json(merged.body))
  assert.equal(merged.body.profile_id, bob.profile_id)
  assert.deepEqual(namesOf(merged.body), [...namesOf(ada), ...namesOf(bob)].toSorted())
  assert.deepEqual((await who(tenant, ada.profile_id)).profile_id, bob.profile_id)
  assert.equal((await stateOf(tenant)).conversions.length, 1)
  assert.equal((await people('ada/merge', { tenant: tenant.id, into: 'v-b' })).body.code, 'same_person')

  const split = await people('bob/split', { tenant: tenant.id, name: 'v-a' })
  assert.equal(split.status, 200, json(split.body))
  assert.deepEqual(split.body, { person: bob, split_off: ada })
  assert.deepEqual(await stateOf(tenant), before)
  const audit = await server.request(`/admin/v1/audit?tenant=${tenant.id}&limit=2`, { key: adminKey })
  assert.deepEqual(
    audit.body.results.map(({ action, target, after }: Row) => [action, target, after]),
    [
      ['person.split', bob.profile_id, { split_off: ada.profile_id }],
      ['person.merge', bob.profile_id, { from: ada.profile_id }],
    ],
  )
  const again = await people('bob/split', { tenant: tenant.id, name: 'v-a' })
  assert.deepEqual([again.status, again.body.code], [409, 'not_joined'])
})

test('identifiers linked through a split identifier are split off with it', async () => {
  const tenant = await server.anotherTenant('followers')
  await inTurn(
    () => track(tenant, { event_type: 'ada', visitor: 'v-1', user_id: 'ada' }),
    () => track(tenant, { event_type: 'shared', visitor: 'v-2', user_id: 'ada' }),
    () => track(tenant, { event_type: 'wrote', visitor: 'v-2', data: { email: 'kim@example.com' } }),
  )
  assert.equal((await who(tenant, 'ada')).names.length, 4)
  const { body } = await people('ada/split', { tenant: tenant.id, name: 'v-2' })
  assert.deepEqual(namesOf(body.split_off), ['email:kim@example.com', 'visitor:v-2'])
  assert.deepEqual(namesOf(body.person), ['user:ada', 'visitor:v-1'])
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  const profiles = new Map(rows.map(row => [row.event_type, row.profile_id]))
  assert.equal(profiles.get('shared'), profiles.get('wrote'))
  assert.notEqual(profiles.get('shared'), profiles.get('ada'))
})

test('a visitor id that moved to another person moves back when the link is undone', async () => {
  const tenant = await server.anotherTenant('lent')
  await inTurn(
    () => track(tenant, { event_type: 'ada', visitor: 'tablet', user_id: 'ada' }),
    () => track(tenant, { event_type: 'bob', visitor: 'tablet', user_id: 'bob' }),
    () => track(tenant, { event_type: 'later', visitor: 'tablet' }),
  )
  assert.equal((await who(tenant, 'bob')).events, 2)
  const { body } = await people('bob/split', { tenant: tenant.id, name: 'tablet' })
  assert.deepEqual(namesOf(body.person), ['user:bob'])
  assert.equal(body.split_off.profile_id, (await who(tenant, 'ada')).profile_id)
  assert.deepEqual([body.split_off.events, body.person.events], [3, 0])
  await inTurn(() => track(tenant, { event_type: 'once more', visitor: 'tablet' }))
  assert.equal((await who(tenant, 'ada')).events, 4)
})

test('an export contains all data of one person and nothing of another', async () => {
  const tenant = await server.anotherTenant('exported')
  for (const name of ['ada', 'ben'])
    await inTurn(
      () =>
        track(tenant, {
          event_type: 'looked',
          visitor: `v-${name}`,
          data: { page: '/' },
        }),
      () => track(tenant, { event_type: 'login', visitor: `v-${name}`, user_id: name }),
      () => write(tenant, 'contact', `c-${name}`, { email: `${name}@example.com`, userId: name }),
      () => write(tenant, 'order', `o-${name}`, { total: 5, currency: 'EUR', contactId: `c-${name}` }),
    )
  const url = `${server.url}/admin/v1/people/ada/export?tenant=${tenant.id}`
  const body = await (await fetch(url, { headers: { authorization: `Bearer ${adminKey}` } })).text()
  const lines = body
    .trim()
    .split('\n')
    .map(JSON.parse as never) as Row[]
  assert.deepEqual(
    lines.map(({ type }) => type),
    ['person', 'contact', 'conversion', 'order', 'event', 'event'],
  )
  assert.doesNotMatch(body, /ben/)
  const viewer = await server.admin.keys.create({ kind: 'admin', role: 'viewer' })
  assert.equal((await fetch(url, { headers: { authorization: `Bearer ${viewer.key}` } })).status, 403)
  const asArray = await people(`ada/export?tenant=${tenant.id}&format=json`)
  assert.deepEqual(asArray.body, lines)
  assert.equal((await people(`unknown/export?tenant=${tenant.id}`)).status, 404)
})

test('an export from an address includes its use as a user id, as an erasure does', async () => {
  const tenant = await server.anotherTenant('address as user id')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  for (const [email, hasContact] of [
    ['ada@example.com', true],
    ['eve@example.com', false],
  ] as const) {
    if (hasContact) {
      await write(tenant, 'contact', 'c-ada', { email })
      await post('/v1/identify', tenant.trackingKey, { userId: 'u1', traits: { email } })
    }
    await track(tenant, { event_type: 'as user id', user_id: email })
    const hook = { inbound_event_id: email, event_type: 'hook', payload: { text: `from ${email}` } }
    await post(`/ingest/inbound/${source.id}`, source.token!, hook)
    await track(tenant, { event_type: 'of ben', user_id: 'ben' })
    await server.settled()
    const { body } = await people(`${email}/export?tenant=${tenant.id}&format=json`)
    const types = body.flatMap((row: Row) => (row.type === 'event' ? [row.event_type] : []))
    assert.deepEqual(types.toSorted(), ['as user id', 'hook', ...(hasContact ? ['identify'] : [])])
    const preview = await server.admin.erasures.preview({ tenant: tenant.id, email })
    assert.equal(preview.would_erase.events, types.length)
  }
})

test('the counts of a person equal their export and erasure: merged profiles, orders of the contact, and mentions in events of others', async () => {
  const tenant = await server.anotherTenant('counted')
  const sale = (order_id: string, user_id: string) =>
    track(tenant, { event_type: 'convert', user_id, data: { order_id, amount: 5, currency: 'EUR' } })
  await inTurn(
    () => write(tenant, 'contact', 'c-1', { email: 'ada@example.com' }),
    () => write(tenant, 'order', 'o-1', { total: 5, currency: 'EUR', contactId: 'c-1' }),
    // an order of the contact that is in another person's event
    () => write(tenant, 'order', 'o-2', { total: 5, currency: 'EUR', contactId: 'c-1' }),
    () => sale('o-2', 'c-1'),
    () => track(tenant, { event_type: 'identify', user_id: 'c-1', data: { email: 'ada@example.com' } }),
    () => track(tenant, { event_type: 'looked', visitor: 'v-9' }),
    () => track(tenant, { event_type: 'login', visitor: 'v-9', user_id: 'c-1' }),
    () => track(tenant, { event_type: 'looked', visitor: 'v-old', user_id: 'ada-old' }),
    () => people('user:ada-old/merge', { tenant: tenant.id, into: 'contact:c-1' }).then(() => {}),
  )
  const heldOf = async (id: string) => {
    const person = await who(tenant, id)
    const all = (await people(`${person.profile_id}/export?tenant=${tenant.id}&format=json`)).body
    const preview = await server.request('/admin/v1/erasures', {
      ...{ method: 'POST', key: adminKey },
      body: json({ tenant: tenant.id, profile: person.profile_id, dry_run: true }),
    })
    const exported = (wanted: string) => all.filter(({ type }: Row) => type === wanted).length
    assert.equal(person.events + person.events_of_others, exported('event'), id)
    assert.equal(person.conversions, exported('conversion'), id)
    assert.equal(person.events + person.events_of_others, preview.body.would_erase.events, id)
    assert.equal(person.conversions, preview.body.would_erase.conversions, id)
    return { person, others: preview.body.not_joined }
  }
  const contact = await heldOf('contact:c-1')
  const { person: user } = await heldOf('user:c-1')
  assert.deepEqual([contact.person.events, contact.person.events_of_others, contact.person.conversions], [1, 1, 2])
  // events under the same id that remain: all except the one that mentions the contact
  assert.deepEqual(contact.others, [{ profile_id: user.profile_id, kind: 'user', value: 'c-1', remaining_events: 3 }])
  await people('user:c-1/merge', { tenant: tenant.id, into: 'contact:c-1' })
  const one = await heldOf('contact:c-1')
  assert.deepEqual([one.person.events, one.person.events_of_others, one.person.conversions], [5, 0, 2])
  assert.deepEqual(one.others, [])
})

test('the command line shows, exports, merges and splits people', async () => {
  const tenant = await server.anotherTenant('by hand')
  await inTurn(
    () => track(tenant, { event_type: 'a', user_id: 'ada' }),
    () => track(tenant, { event_type: 'b', user_id: 'bob' }),
  )
  useDatabase(server.databaseUrl)
  const person = (...words: string[]) => kontor('person', ...words, '--tenant', tenant.name)
  const shown = (await person('show', 'ada')).json() as Row
  assert.deepEqual(namesOf(shown), ['user:ada'])
  assert.deepEqual(namesOf((await person('merge', 'bob', 'ada')).json()), ['user:ada', 'user:bob'])
  const exported = await person('export', 'ada')
  assert.equal(exported.out.trim().split('\n').length, 3, exported.out)
  const { split_off } = (await person('split', 'ada', '--name', 'bob')).json() as Row
  assert.deepEqual(namesOf(split_off), ['user:bob'])
  const unknown = await person('show', 'nobody')
  assert.deepEqual([unknown.code, unknown.err.trim()], [1, 'No matching person: "nobody".'])
  assert.equal((await person('split', 'ada')).code, 2)
})
