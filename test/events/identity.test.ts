import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { Identifier } from '../../src/domain/identity/identifiers.ts'
import { openIdentities, rememberNodes } from '../../src/pipeline/identity/linking.ts'
import { openProfileLocks } from '../../src/pipeline/profile-lock.ts'
import type { Learned } from '../../src/pipeline/unit.ts'
import { inTransaction, isConflict, RestartTransaction } from '../../src/postgres/database.ts'
import { lockTenants, TENANT_LOCKS } from '../../src/postgres/locks.ts'
import { configVersion } from '../../src/store/tenants/config-version.ts'
import { eventually } from '../eventually.ts'
import { runs } from '../long.ts'
import { startServer, type TestServer } from '../server.ts'
import { startNode } from './node.ts'
import { json, type Row, rowsOf } from './rows.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

/** Resolves groups in batches, with the memory of one worker. */
async function see(tenantId: number, batches: Identifier[][][], verified = true): Promise<void> {
  const identities = openIdentities()
  const { lockFor } = openProfileLocks()
  for (const batch of batches) {
    const apply = () =>
      inTransaction(server.pool, async client => {
        const learned: Learned = { nodes: [], touches: [], seen: [], suppressed: [] }
        const transaction = {
          client,
          now: new Date(),
          configVersion: await configVersion(client),
          profileLock: lockFor(client, new Set([tenantId])),
          learned,
        }
        await identities.resolve(
          transaction,
          batch.map(identifiers => ({
            tenantId,
            identifiers,
            verified,
            cause: { kind: 'event', id: 'e' },
            receivedAt: new Date(),
          })),
        )
        return learned.nodes
      })
    let done: Learned['nodes'] | null = null
    while (!done) {
      done = await apply().catch(error => {
        if (isConflict(error)) return null
        throw error
      })
    }
    rememberNodes(done)
  }
}

/** The resulting profiles, as text that does not depend on ids. */
async function clustersOf(tenantId: number): Promise<string[]> {
  const { rows } = await server.pool.query(
    `select string_agg(kind || ':' || value, ' ' order by kind, value) as names from identities
     where tenant_id = $1 and retired_at is null group by profile`,
    [tenantId],
  )
  return rows.map(row => row.names).sort()
}

/** The expected profiles of the groups, by a simple reference implementation. */
function expectedClusters(sightings: Identifier[][]): string[] {
  let groups: Set<string>[] = []
  for (const sighting of sightings) {
    const joined = new Set(sighting.map(({ kind, value }) => `${kind}:${value}`))
    const apart = groups.filter(group => {
      if (![...group].some(name => joined.has(name))) return true
      for (const name of group) joined.add(name)
      return false
    })
    groups = [...apart, joined]
  }
  return groups.map(group => [...group].sort().join(' ')).sort()
}

const sightingOf = (...kinds: Identifier['kind'][]) =>
  fc.uniqueArray(
    fc.record({
      kind: fc.constantFrom(...kinds),
      value: fc.constantFrom('1', '2', '3', '4', '5', '6'),
    }) as fc.Arbitrary<Identifier>,
    { minLength: 1, maxLength: 4, selector: ({ kind, value }) => kind + value },
  )
const cut = (sightings: Identifier[][], size: number) =>
  Array.from({ length: Math.ceil(sightings.length / size) }, (_, i) => sightings.slice(i * size, (i + 1) * size))

let lastTenant = 1_000

test('groups of records and servers give the same profiles in any order, in any batches, with concurrent workers', async () => {
  const history = fc.array(sightingOf('user', 'contact'), { minLength: 1, maxLength: 14 })
  await fc.assert(
    fc.asyncProperty(
      history.chain(sightings =>
        fc.record({
          first: fc.constant(sightings),
          second: fc.shuffledSubarray(sightings, { minLength: sightings.length }),
          size: fc.integer({ min: 1, max: 5 }),
        }),
      ),
      async ({ first, second, size }) => {
        const [tenantA, tenantB, tenantC] = [++lastTenant, ++lastTenant, ++lastTenant]
        await see(tenantA, cut(first, 1))
        await see(tenantB, cut(second, size))
        // three workers with a third of the groups each, and all of them with the first group
        await Promise.all(
          [0, 1, 2].map(worker => see(tenantC, cut([...first.filter((_, i) => i % 3 === worker), first[0]!], size))),
        )
        const expected = expectedClusters(first)
        for (const tenantId of [tenantA, tenantB, tenantC]) assert.deepEqual(await clustersOf(tenantId), expected)
      },
    ),
    { numRuns: runs(40) },
  )
})

test('events of a public tracking key never merge two identified people', async () => {
  const history = fc.array(sightingOf('visitor', 'user', 'email', 'contact'), {
    minLength: 1,
    maxLength: 14,
  })
  await fc.assert(
    fc.asyncProperty(history, fc.integer({ min: 1, max: 5 }), async (sightings, size) => {
      const tenantId = ++lastTenant
      await see(tenantId, cut(sightings, size), false)
      for (const names of await clustersOf(tenantId))
        assert.ok((names.match(/user:|contact:/g) ?? []).length <= 1, names)
    }),
    { numRuns: runs(40) },
  )
})

let lastId = 0
async function track(tenant: { trackingKey: string }, body: object): Promise<void> {
  const event = { event_id: `e-${++lastId}`, ...body }
  const { status } = await server.request('/v1/track/', {
    method: 'POST',
    key: tenant.trackingKey,
    body: json(event),
  })
  assert.equal(status, 200)
}

async function write(
  tenant: { privateKey: string },
  entityType: 'contact' | 'order',
  id: string,
  data: object | null,
  at = new Date().toISOString(),
): Promise<void> {
  const { status, body } = await server.request(`/v1/${entityType}s`, {
    method: data ? 'POST' : 'DELETE',
    key: tenant.privateKey,
    body: json({ entityType, id, sourceUpdatedAt: at, ...(data ? { data } : {}) }),
  })
  assert.equal(status, 202, json(body))
}

const byType = async (tenant: { privateKey: string }): Promise<Map<string, Row>> =>
  new Map((await rowsOf(server, 'events', { key: tenant.privateKey })).map(row => [row.event_type, row]))

test('later links show in earlier rows, and no event is rewritten', async () => {
  const tenant = await server.anotherTenant('later knowledge')
  await track(tenant, { event_type: 'on the phone', visitor: 'phone' })
  await track(tenant, { event_type: 'on the desk', visitor: 'desk' })
  const before = await byType(tenant)
  assert.notEqual(before.get('on the phone').profile_id, before.get('on the desk').profile_id)
  assert.equal(before.get('on the desk').contact_id, null)
  const places = () =>
    server.pool.query("select id, ctid, tableoid, xmin from events where event_type like 'on the %' order by id")
  const { rows: written } = await places()

  await track(tenant, { event_type: 'identify', visitor: 'phone', user_id: 'ada' })
  await track(tenant, {
    event_type: 'login',
    visitor: 'desk',
    user_id: 'ada',
    data: { email: ' Ada@Example.com ' },
  })
  // the contact second: otherwise a public tracking key would link an identified person
  await server.settled()
  await write(tenant, 'contact', 'c-1', { email: 'ada@example.com', name: 'Ada' })
  const after = await byType(tenant)
  const profiles = new Set([...after.values()].map(row => row.profile_id))
  assert.equal(profiles.size, 1)
  for (const row of after.values()) assert.equal(row.contact_id, 'c-1')
  assert.deepEqual((await places()).rows, written)
})

test('an id that looks like two identifiers does not prevent their link', async () => {
  const tenant = await server.anotherTenant('id with a line break')
  await track(tenant, { event_type: 'before', visitor: 'phone' })
  await server.settled()
  for (const visitor of ['phone\nuser ada', 'phone4 user ada', 'phoneuser3 ada']) {
    await track(tenant, { event_type: 'forged', visitor })
    await server.settled()
  }
  await track(tenant, { event_type: 'login', visitor: 'phone', user_id: 'ada' })
  await server.settled()
  await track(tenant, { event_type: 'elsewhere', visitor: 'desk', user_id: 'ada' })
  await server.settled()
  const rows = await byType(tenant)
  assert.equal(rows.get('elsewhere').profile_id, rows.get('before').profile_id)
})

test('the fields of a contact come from its record, however the conversion is linked to it', async () => {
  const tenant = await server.anotherTenant('contacts')
  const sales = async () =>
    new Map((await rowsOf(server, 'conversions', { key: tenant.privateKey })).map(row => [row.source_object_id, row]))
  await track(tenant, { event_type: 'convert', visitor: 'v', data: { order_id: 'o-visitor', amount: 1 } })
  await track(tenant, {
    event_type: 'convert',
    data: { order_id: 'o-email', email: 'ADA@example.com', amount: 2 },
  })
  await track(tenant, { event_type: 'convert', data: { order_id: 'o-id', contact_id: 'c-9', amount: 3 } })
  await write(tenant, 'order', 'o-order', { customerId: 'c-9', total: 4 })
  await write(tenant, 'order', 'o-mail', { email: 'ada@example.com', total: 4 })
  await track(tenant, { event_type: 'identify', visitor: 'v', data: { email: 'ada@example.com' } })
  // the billing system uses its own id for the person
  const billing = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const paid = { id: 'in_1', customer: 'cus_A', customer_email: 'ada@example.com' }
  const { status } = await server.request(`/ingest/inbound/${billing.id}`, {
    method: 'POST',
    key: billing.token,
    body: json({ inbound_event_id: 'in_1', event_type: 'invoice.paid', payload: paid }),
  })
  assert.equal(status, 200)
  for (const row of (await sales()).values()) assert.equal(row.contact_name, null)

  const data = { email: 'ada@example.com', firstName: 'Ada', last_name: 'Lovelace', companyName: 'Engines' }
  await write(tenant, 'contact', 'c-9', data, '2026-01-01T00:00:00Z')
  for (const [order, row] of await sales()) {
    const { contact_id, contact_name, contact_email, company_name } = row
    assert.deepEqual(
      { contact_id, contact_name, contact_email, company_name },
      {
        contact_id: 'c-9',
        contact_name: 'Ada Lovelace',
        contact_email: 'ada@example.com',
        company_name: 'Engines',
      },
      order,
    )
  }
  await write(tenant, 'contact', 'c-9', { ...data, name: 'Countess' }, '2026-01-02T00:00:00Z')
  for (const row of (await sales()).values()) assert.equal(row.contact_name, 'Countess')

  await write(tenant, 'contact', 'c-9', null, '2026-01-03T00:00:00Z')
  for (const row of (await sales()).values()) {
    assert.deepEqual([row.contact_name, row.contact_email, row.company_name], [null, null, null])
  }
  assert.equal((await sales()).size, 6)
})

test('placeholder identifiers link no one', async () => {
  const tenant = await server.anotherTenant('placeholders')
  const placeholders = ['null', 'undefined', 'anonymous', '0', '', ' ', 'N/A', '[object Object]', 'unknown', 'guest']
  for (const [i, id] of placeholders.entries()) {
    await track(tenant, { event_type: `visit ${i}`, visitor: `v-${i}`, user_id: id, data: { email: id } })
  }
  await track(tenant, { event_type: 'alone', user_id: 'null', visitor: 'undefined' })
  const rows = await byType(tenant)
  assert.equal(rows.get('alone').profile_id, null)
  const profiles = [...rows.values()].map(row => row.profile_id).filter(id => id !== null)
  assert.equal(new Set(profiles).size, placeholders.length)
})

test('two nodes with their own workers produce the same profiles', async () => {
  const tenant = await server.tenantWithServerKey('two nodes')
  const other = await startNode(server, 'worker')
  const people = 8
  const bodies = Array.from({ length: 400 }, (_, i) => {
    const person = i % people
    const step = Math.floor(i / people) % 5
    return [
      { event_type: 'visit', visitor: `v-${person}-${i % 3}` },
      { event_type: 'login', visitor: `v-${person}-${i % 3}`, user_id: `u-${person}` },
      { event_type: 'mail', user_id: `u-${person}`, data: { email: `p${person}@example.com` } },
      {
        event_type: 'form',
        visitor: `v-${person}-${(i + 1) % 3}`,
        data: { email: `p${person}@example.com` },
      },
      { event_type: 'sale', data: { contact_id: `c-${person}`, email: `p${person}@example.com` } },
    ][step]!
  })
  try {
    await Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        for (let i = lane; i < bodies.length; i += 8) await track(tenant, bodies[i]!)
      }),
    )
    await server.settled()
  } finally {
    await other.close()
  }
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  assert.equal(rows.length, bodies.length)
  assert.equal(new Set(rows.map(row => row.profile_id)).size, people)
  const contacts = new Map(rows.map(row => [row.profile_id, row.contact_id]))
  assert.equal(new Set(contacts.values()).size, people)
})

test('a restarted transaction first waits for the lock of its contended tenant', async () => {
  const [first, late] = [7_001, 7_002]
  const { lockFor } = openProfileLocks()
  const other = await server.pool.connect()
  try {
    await other.query('begin')
    await lockTenants(other, TENANT_LOCKS.profiles, [late])
    const attempt = () =>
      inTransaction(server.pool, async client => {
        const profileLock = lockFor(client, new Set([first, late]))
        await profileLock.take([first])
        await profileLock.take([late])
      })
    // It has already written for the first tenant, so it does not wait for the other.
    await assert.rejects(attempt(), RestartTransaction)
    const again = attempt()
    await eventually('it to wait', async () => {
      const { rowCount } = await server.pool.query(
        `select from pg_locks where locktype = 'advisory' and objid = $1 and not granted`,
        [late],
      )
      return rowCount === 1
    })
    await other.query('rollback')
    await again
  } finally {
    other.release()
  }
})

test('a worker that waits for the profile lock does not block others from its identifiers', async () => {
  const tenant = await server.anotherTenant('turns')
  const tenantId = Number(tenant.id.slice('ten_'.length))
  const client = await server.pool.connect()
  try {
    await client.query("begin; set local lock_timeout = '500ms'")
    await lockTenants(client, TENANT_LOCKS.profiles, [tenantId])
    const contact = { entityType: 'contact', id: 'c-1', sourceUpdatedAt: '2025-01-31T12:00:00Z' }
    const { status } = await server.request('/v1/contacts', {
      ...{ method: 'POST', key: tenant.privateKey },
      body: json({ ...contact, data: { email: 'c1@example.com' } }),
    })
    assert.equal(status, 202)
    await eventually('a worker that waits for its turn', async () => {
      const { rowCount } = await server.pool.query(
        `select from pg_locks where locktype = 'advisory' and not granted and classid = $1 and objid = $2`,
        [TENANT_LOCKS.profiles, tenantId],
      )
      return rowCount! > 0
    })
    // If the worker had created this identifier already, this would deadlock.
    await client.query(
      `insert into identities (tenant_id, kind, value, node, profile) values ($1, 'contact', 'c-1', -1, -1)`,
      [tenantId],
    )
  } finally {
    await client.query('rollback')
    client.release()
  }
  await server.settled()
  assert.deepEqual(await clustersOf(tenantId), ['contact:c-1 email:c1@example.com'])
})
