import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { resumePurges } from '../../src/admin/purges.ts'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { runs } from '../long.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { json, type Row, rowsOf } from './rows.ts'

// A purge deletes what a tracking key added: docs/guides/events.md.

let server: TestServer
let adminKey: string
before(async () => {
  server = await sharedServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

/** A tenant with a second key, which is leaked. */
type Shop = TestTenant & { bad: { id: string; key: string } }

let shops = 0
async function shop({ isServers = false } = {}): Promise<Shop> {
  const tenant = await server.anotherTenant(`shop ${++shops}`)
  const bad = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: isServers })
  return { ...tenant, bad }
}

async function post(path: string, key: string, body: object): Promise<void> {
  const { status, body: answer } = await server.request(path, { method: 'POST', key, body: json(body) })
  assert.ok(status === 200 || status === 202, `${path} ${status} ${json(answer)}`)
}

type Step = { by: 'good' | 'bad'; event: Row } | { by: 'good'; record: 'contact' | 'order'; id: string; data: object }

const LONG_AGO = '2020-01-01T00:00:00Z'
let lastStep = 0

async function play(tenant: Shop, steps: Step[]): Promise<void> {
  for (const step of steps) {
    if ('event' in step) {
      const key = step.by === 'bad' ? tenant.bad.key : tenant.trackingKey
      await post('/v1/track/', key, step.event)
    } else {
      const { record: entityType, id, data } = step
      const sourceUpdatedAt = new Date(Date.parse('2026-01-01') + ++lastStep).toISOString()
      await post(`/v1/${entityType}s`, tenant.privateKey, { entityType, id, sourceUpdatedAt, data })
    }
    await server.settled()
  }
}

/** Profiles, events, sales and touches, without generated ids. */
async function stateOf(tenant: Shop): Promise<unknown> {
  const id = Number(tenant.id.slice(4))
  const key = tenant.privateKey
  const rows = [...(await rowsOf(server, 'events', { key })), ...(await rowsOf(server, 'conversions', { key }))]
  const { rows: names } = await server.pool.query(
    `select profile, array_agg(kind || ' ' || value || case when retired_at is null then '' else ' before' end order by kind, value, node) as names
     from identities where tenant_id = $1 group by profile`,
    [id],
  )
  const { rows: touches } = await server.pool.query(
    `select i.kind || ' ' || i.value as name, t.source, t.direct from touches t
     join identities i on i.tenant_id = t.tenant_id and i.node = t.node where t.tenant_id = $1 order by 1, 2`,
    [id],
  )
  const people = new Map(names.map(row => [`prof_${row.profile}`, json(row.names)]))
  const events = rows.map(row => ({
    ...{ type: row.event_type, visitor: row.visitor, amount: row.amount, order: row.source_object_id },
    ...{ source: row.source, contact: row.contact_id, payload: row.payload },
    person: row.profile_id && people.get(row.profile_id),
  }))
  return { events: events.map(json).toSorted(), people: [...people.values()].toSorted(), touches }
}

const purge = (body: object) => server.request('/admin/v1/purges', { method: 'POST', key: adminKey, body: json(body) })

const pick = (prefix: string, count: number) =>
  fc.option(
    fc.integer({ min: 1, max: count }).map(n => `${prefix}${n}`),
    { nil: undefined },
  )

const event = fc
  .record({
    visitor: pick('v', 3),
    user_id: pick('u', 2),
    email: pick('e', 2),
    order: pick('o', 2),
    campaign: pick('c', 2),
    n: fc.integer({ min: 1, max: 9 }),
  })
  .map(({ visitor, user_id, email, order, campaign, n }) => ({
    event_type: order ? 'convert' : `did ${n}`,
    ...{ visitor, user_id },
    data: {
      ...(email && { email: `${email}@example.com` }),
      ...(order && { order_id: order, amount: n, currency: 'EUR' }),
      ...(campaign && { utm_source: campaign }),
    },
  }))

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: event.map(event => ({ by: 'good' as const, event })) },
  { weight: 4, arbitrary: event.map(event => ({ by: 'bad' as const, event })) },
  {
    weight: 1,
    arbitrary: fc.record({
      ...{ by: fc.constant('good' as const), record: fc.constant('contact' as const) },
      ...{
        id: fc.constantFrom('k1', 'k2'),
        data: fc.record({ email: fc.constantFrom('e1@example.com', 'e2@example.com') }),
      },
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      ...{ by: fc.constant('good' as const), record: fc.constant('order' as const) },
      ...{ id: fc.constantFrom('o1', 'o2') },
      data: fc.record({
        total: fc.integer({ min: 1, max: 9 }),
        currency: fc.constant('EUR'),
        contactId: fc.constantFrom('k1', 'k2'),
      }),
    }),
  },
)

/** Identifiers of two different people; fewer if there are not two. */
async function differentPeople(tenant: Shop): Promise<string[]> {
  const { rows } = await server.pool.query(
    `select distinct on (profile) kind || ':' || value as name from identities
     where tenant_id = $1 and retired_at is null order by profile, node desc`,
    [Number(tenant.id.slice(4))],
  )
  return rows.slice(0, 2).map(({ name }) => name)
}

test('in any order: a split undoes its merge completely, and a purge undoes its key completely', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 9 }), async steps => {
      const [attacked, spared] = [await shop(), await shop()]
      await play(attacked, steps)
      const [id, into] = await differentPeople(attacked)
      if (id && into) {
        const before = await stateOf(attacked)
        await server.admin.people.merge({ tenant: attacked.id, id, into })
        await server.admin.people.split({ tenant: attacked.id, id: into, name: id })
        assert.deepEqual(await stateOf(attacked), before)
      }
      const good = steps.filter(({ by }) => by === 'good')
      await play(spared, good)
      const query = { tenant: attacked.id, key: attacked.bad.id, since: LONG_AGO }
      const { purged } = await server.admin.purges.purge(query)
      assert.equal(purged.events, steps.length - good.length)
      assert.deepEqual(await stateOf(attacked), await stateOf(spared))
    }),
    {
      numRuns: runs(3),
      seed: Number(process.env.KONTOR_TEST_SEED ?? 11),
      endOnFailure: true,
    },
  )
})

const visit = (by: 'good' | 'bad', event: object): Step => ({ by, event })

test('a browser that sent all customers’ orders and e-mails leaves no trace after its key is purged', async () => {
  const [attacked, spared] = [await shop(), await shop()]
  const claims = [1, 2, 3].flatMap(n => [
    visit('bad', { event_type: 'convert', visitor: 'evil', data: { order_id: `o${n}`, amount: 1 } }),
    visit('bad', { event_type: 'form', visitor: 'evil', data: { email: `e${n}@example.com` } }),
    visit('bad', { event_type: 'convert', visitor: 'evil', data: { amount: 1000, currency: 'EUR' } }),
  ])
  const honest = [1, 2, 3].flatMap((n): Step[] => [
    visit('good', { event_type: 'page_view', visitor: `v${n}`, data: { utm_source: 'letter' } }),
    visit('good', { event_type: 'convert', visitor: `v${n}`, data: { order_id: `o${n}`, amount: 5 } }),
    { by: 'good', record: 'contact', id: `k${n}`, data: { email: `e${n}@example.com` } },
    { by: 'good', record: 'order', id: `o${n}`, data: { total: n, currency: 'EUR', contactId: `k${n}` } },
  ])
  await play(attacked, [...claims.slice(0, 4), ...honest, ...claims.slice(4)])
  await play(spared, honest)
  const body = { tenant: attacked.id, key: attacked.bad.id, since: LONG_AGO }
  const before = await stateOf(attacked)
  const preview = await purge({ ...body, dry_run: true })
  assert.deepEqual([preview.status, preview.body.would_purge.events], [200, 9])
  assert.deepEqual(await stateOf(attacked), before)
  const { status, body: receipt } = await purge(body)
  assert.deepEqual([status, receipt.status, receipt.purged.events], [201, 'completed', 9])
  assert.deepEqual(await stateOf(attacked), await stateOf(spared))
  assert.deepEqual((await server.request(`/admin/v1/purges/${receipt.id}`, { key: adminKey })).body, receipt)
  const audit = await server.request(`/admin/v1/audit?tenant=${attacked.id}&limit=1`, { key: adminKey })
  assert.deepEqual(
    audit.body.results.map(({ action, target }: Row) => [action, target]),
    [['events.purge', attacked.bad.id]],
  )
  // later events create new profiles
  await play(attacked, [visit('good', { event_type: 'later', visitor: 'evil' })])
  assert.ok((await rowsOf(server, 'events', { key: attacked.privateKey })).some(row => row.profile_id !== null))
})

test('only events of the given period are purged; an unknown key, another tenant’s and invalid input are rejected', async () => {
  const [tenant, other] = [await shop(), await shop()]
  await play(tenant, [visit('bad', { event_type: 'before', visitor: 'v' })])
  // By PostgreSQL's clock, which may differ from the clock of this process by up to 0.5 s on a busy machine.
  const [before] = await rowsOf(server, 'events', { key: tenant.privateKey })
  const since = new Date(Date.parse(before.received_at) + 1).toISOString()
  await play(tenant, [visit('bad', { event_type: 'since', visitor: 'v' })])
  const body = { tenant: tenant.id, key: tenant.bad.id, since }
  for (const [wrong, expected] of [
    [{ key: other.bad.id }, 404],
    [{ key: 'key_unknown' }, 404],
    [{ tenant: 'nobody' }, 404],
    [{ since: 'yesterday' }, 400],
    [{ until: since }, 400],
    [{ dryRun: true }, 400],
    [{ to: since }, 400],
  ] as const)
    assert.equal((await purge({ ...body, ...wrong })).status, expected, json(wrong))
  useDatabase(server.databaseUrl)
  const words = ['events', 'purge', '--tenant', tenant.id, '--key', tenant.bad.id, '--since', since]
  assert.equal(((await kontor(...words, '--dry-run')).json() as Row).would_purge.events, 1)
  assert.equal(((await kontor(...words)).json() as Row).purged.events, 1)
  const left = await rowsOf(server, 'events', { key: tenant.privateKey })
  assert.deepEqual(
    left.map(row => [row.event_type, row.profile_id !== null]),
    [['before', true]],
  )
})

test('event ids used by the purged key can be used again by their owner', async () => {
  const tenant = await shop()
  await play(tenant, [
    visit('bad', { event_type: 'squatted', event_id: 'order-1-paid' }),
    visit('good', { event_type: 'mine', event_id: 'order-2-paid' }),
    visit('bad', { event_type: 'late', event_id: 'order-2-paid' }),
    visit('good', { event_type: 'paid', event_id: 'order-1-paid' }),
  ])
  await server.admin.purges.purge({ tenant: tenant.id, key: tenant.bad.id, since: LONG_AGO })
  await play(tenant, [
    visit('good', { event_type: 'paid', event_id: 'order-1-paid' }),
    visit('good', { event_type: 'again', event_id: 'order-2-paid' }),
  ])
  const left = await rowsOf(server, 'events', { key: tenant.privateKey })
  assert.deepEqual(left.map(row => row.event_type).sort(), ['mine', 'paid'])
})

test('an interrupted purge continues', async () => {
  const [attacked, spared] = [await shop(), await shop()]
  const honest = [
    visit('good', { event_type: 'a', visitor: 'v1', user_id: 'u1' }),
    visit('good', { event_type: 'b', visitor: 'v1' }),
  ]
  await play(attacked, [...honest, visit('bad', { event_type: 'c', visitor: 'v1', user_id: 'u2' })])
  await play(spared, honest)
  // the purge fails after it deleted the events, when it derives the profiles
  await server.pool.query(
    `alter table identity_links add constraint held check (tenant_id <> ${attacked.id.slice(4)}) not valid`,
  )
  const query = { tenant: attacked.id, key: attacked.bad.id, since: LONG_AGO }
  await assert.rejects(server.admin.purges.purge(query))
  assert.equal((await rowsOf(server, 'events', { key: attacked.privateKey })).length, 2)
  await server.pool.query('alter table identity_links drop constraint held')
  await server.pool.query(`update purges set seen_at = seen_at - interval '1 minute' where tenant_id = $1`, [
    Number(attacked.id.slice(4)),
  ])
  await resumePurges(server)
  assert.deepEqual(await stateOf(attacked), await stateOf(spared))
})
