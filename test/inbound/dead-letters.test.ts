import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DAY_MS } from '../../src/domain/time.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { dropPartitionsBefore } from '../../src/postgres/partitions.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer } from '../server.ts'
import { eventsOf, makeSource, rows } from './source.ts'

let server: TestServer
let key: string
before(async () => {
  server = await startServer()
  key = (await server.admin.keys.create({ kind: 'admin' })).key
  // An event whose processing fails until the test removes the cause.
  await server.pool.query(`
    create table poison (word text primary key);
    create function refuse_poison() returns trigger language plpgsql as $$
    begin
      if exists (select 1 from poison where word = new.payload::jsonb ->> 'word') then
        raise exception 'poison: %', new.payload::jsonb ->> 'word';
      end if;
      return new;
    end $$;
    create trigger refuse_poison before insert on events for each row execute function refuse_poison()`)
})
after(() => server.close())

// Entries are read after all older transactions of the PostgreSQL server have ended, also those of other tests.
const replay = (body: object) =>
  server.request('/admin/v1/dead-letters/replay', {
    ...{ method: 'POST', key, body: JSON.stringify({ wait_seconds: 20, ...body }) },
  })
const lettersOf = async (source: string) =>
  (await server.request(`/admin/v1/dead-letters?source=${source}`, { key })).body.results as Record<string, string>[]

const replayResult = (replayed: number, { applied = replayed, failed_again = 0, waiting = 0 } = {}) => ({
  ...{ replayed, applied, failed_again, waiting },
  remaining: 0,
})

/** Makes all retries due now. */
async function givenUp(source: string, letters: number): Promise<void> {
  await eventually(`${letters} dead letters`, async () => {
    await server.pool.query('update parked_entries set next_attempt_at = now()')
    return (await lettersOf(source)).length === letters
  })
}

test('a failing entry is retried and becomes a dead letter, the rest of its batch is applied; a replay takes effect once', async () => {
  const source = await makeSource(server)
  await server.pool.query(`insert into poison values ('one')`)
  const item = (id: string, word: string) => ({ inbound_event_id: id, event_type: 'x', payload: { word } })
  await source.post([item('a', 'fine'), item('b', 'one'), item('c', 'fine')])
  await givenUp(source.id, 1)
  assert.deepEqual(
    (await eventsOf(server, source.id)).map(event => event.inbound_event_id),
    ['a', 'c'],
  )
  const [letter] = await lettersOf(source.id)
  assert.equal(letter?.reason, 'failed')
  assert.equal(letter?.inbound_event_id, 'b')
  assert.match(letter!.error!, /poison: one/)
  const own = await server.request(`/v1/dead-letters?source_config_id=${source.id}`, { key: server.tenant.privateKey })
  assert.deepEqual(own.body, { results: [letter], next_cursor: null })
  const other = await server.anotherTenant('without dead letters')
  const others = await server.request('/v1/dead-letters', { key: other.privateKey })
  assert.deepEqual(others.body, { results: [], next_cursor: null })
  const [receipt] = await rows(server, `select outcome, detail from receipts where id = $1`, [letter!.id])
  assert.equal(receipt?.outcome, 'dead_letter')

  await server.pool.query(`delete from poison`)
  const answers = await Promise.all(Array.from({ length: 8 }, () => replay({ id: letter!.id })))
  assert.equal(
    answers.reduce((sum, answer) => sum + answer.body.replayed, 0),
    1,
  )
  const events = await eventsOf(server, source.id)
  assert.deepEqual(events.map(event => event.inbound_event_id).sort(), ['a', 'b', 'c'])
  assert.deepEqual(await lettersOf(source.id), [])
  const shown = await server.request(`/admin/v1/dead-letters/${letter!.id}`, { key })
  assert.equal(
    shown.body.replayed_as.slice(0, 31),
    (events.find(e => e.inbound_event_id === 'b')!.id as string).slice(0, 31),
  )
  assert.equal((await replay({ id: letter!.id })).body.replayed, 0)
})

test('a replay of an event that was received again changes nothing', async () => {
  const source = await makeSource(server)
  await server.pool.query(`insert into poison values ('two')`)
  const event = { inbound_event_id: 'again', event_type: 'x', payload: { word: 'two' } }
  await source.post(event)
  await givenUp(source.id, 1)
  await server.pool.query(`delete from poison`)
  assert.equal((await source.post(event)).body.accepted, 1)
  await server.settled()
  assert.deepEqual((await replay({ source: source.id })).body, replayResult(1))
  assert.equal((await eventsOf(server, source.id)).length, 1)
})

test('a replay that fails again is a dead letter again, and is not replayed in a loop', async () => {
  const source = await makeSource(server)
  await server.pool.query(`insert into poison values ('three')`)
  await source.post({ inbound_event_id: 'p', event_type: 'x', payload: { word: 'three' } })
  await givenUp(source.id, 1)
  assert.deepEqual((await replay({ source: source.id })).body, replayResult(1, { applied: 0, waiting: 1 }))
  await givenUp(source.id, 1)
  await server.pool.query(`delete from poison`)
  assert.deepEqual((await replay({ source: source.id, reason: 'failed' })).body, replayResult(1))
  assert.equal((await eventsOf(server, source.id)).length, 1)
})

test('a rejected event is applied once the source is fixed, with its original time', async () => {
  const source = await makeSource(server)
  const { body } = await source.post([{ event_type: 'x' }, { payload: { n: 1 } }, { payload: { n: 2 } }])
  assert.equal(body.rejected.length, 2)
  await server.settled()
  assert.deepEqual((await replay({ source: source.id })).body, replayResult(2, { applied: 0, failed_again: 2 }))
  assert.equal((await lettersOf(source.id)).length, 2, 'still without a type')

  await server.pool.query(
    `update dead_letters set received_at = received_at - interval '3 days' where source_id = $1`,
    [source.id],
  )
  await server.pool.query(
    `update dead_letters set context = (context::jsonb - 'firstReceivedAt')::text where source_id = $1`,
    [source.id],
  )
  await server.admin.sources.update(source.id, { event_type_override: { set: 'fixed' } })
  assert.deepEqual((await replay({ source: source.id, reason: 'rejected' })).body, replayResult(2))
  const events = (await eventsOf(server, source.id)).filter(event => event.event_type === 'fixed')
  assert.deepEqual(
    events.map(event => event.payload),
    [{ payload: { n: 1 } }, { payload: { n: 2 } }].map(({ payload }) => payload),
  )
  for (const event of events)
    assert.ok(Date.now() - (event.occurred_at as Date).getTime() > 2 * 86_400_000, 'counts from its first receipt')
})

test('bulk replay by tenant, by reason, or all; other dead letters stay', async () => {
  const other = await server.anotherTenant('other')
  const source = await makeSource(server)
  const theirs = await makeSource(server, { tenant: other.id })
  // At most 100 per request are stored.
  const bad = Array.from({ length: 100 }, (_, n) => ({ payload: { n } }))
  for (let n = 0; n < 12; n++)
    await Promise.all([source, theirs].map(each => each.post([{ event_type: 'good' }, ...bad])))
  await server.settled()
  await server.admin.sources.update(source.id, { event_type_override: { set: 'late' } })
  assert.equal((await lettersOf(source.id)).length, 50)
  assert.deepEqual((await replay({ tenant: server.tenant.id, all: true })).body.remaining, 0)
  assert.equal((await eventsOf(server, source.id)).length, 1212)
  const { results: changes } = (await server.request(`/admin/v1/audit?tenant=${server.tenant.id}`, { key })).body
  const [replayed] = changes.filter(({ action }: { action: string }) => action === 'dead_letter.replay')
  assert.ok(replayed.after.dead_letters >= 1200, 'one row for the three portions of a replay')
  const { count } = (
    await rows<{ count: number }>(
      server,
      'select count(*) from dead_letters where source_id = $1 and replayed_at is null',
      [theirs.id],
    )
  )[0]!
  assert.equal(count, 1200)
  let seen = 0
  for (let cursor = ''; ; ) {
    const page = await server.request(`/admin/v1/dead-letters?tenant=${other.id}&limit=100${cursor}`, { key })
    seen += page.body.results.length
    if (page.body.next_cursor === null) break
    cursor = `&cursor=${page.body.next_cursor}`
  }
  assert.equal(seen, 1200)
})

test('failures are grouped by cause, and one cause can be replayed; other causes and tenants are unaffected', async () => {
  const [tenant, other] = [await server.anotherTenant('causes'), await server.anotherTenant('neighbors')]
  const batch = [
    ...Array.from({ length: 3 }, (_, i) => ({ type: 'track', messageId: `nameless-${i}` })),
    { type: 'track', event: 'x'.repeat(201), messageId: 'long' },
    { type: 'track', event: 'good', messageId: 'good' },
  ]
  for (const { trackingKey } of [tenant, other])
    await server.request('/v1/batch', { method: 'POST', key: trackingKey, body: JSON.stringify({ batch }) })
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  await server.request(source.path, { method: 'POST', key: 'not-its-token', body: '{}' })
  await server.settled()
  const issuesOf = async (id: string) =>
    (await server.request(`/admin/v1/tenants/${id}/issues`, { key })).body.results as Record<string, string>[]
  await eventually('the refusal', async () => (await issuesOf(tenant.id)).length === 3)
  const issues = await issuesOf(tenant.id)
  const shown = issues.map(({ kind, cause, count }) => ({ kind, cause, count }))
  assert.deepEqual(
    shown.toSorted((a, b) => (a.cause! < b.cause! ? -1 : 1)),
    [
      { kind: 'dead_letters', cause: 'event is required', count: 3 },
      { kind: 'dead_letters', cause: 'event must not be longer than … characters', count: 1 },
      { kind: 'refused', cause: 'invalid_credentials', count: 1 },
    ],
  )
  const { example_id } = issues.find(({ cause }) => cause === 'event is required')!
  assert.equal((await server.request(`/admin/v1/dead-letters/${example_id}`, { key })).status, 200)
  const listed = await server.request(
    `/admin/v1/dead-letters?tenant=${tenant.id}&cause=${encodeURIComponent('event is required')}`,
    { key },
  )
  assert.equal(listed.body.results.length, 3)
  const { body } = await replay({ tenant: tenant.id, cause: 'event is required' })
  assert.deepEqual(body, replayResult(3, { applied: 0, failed_again: 3 }))
  assert.equal((await replay({ tenant: tenant.id, cause: 'nothing like it' })).body.replayed, 0)
  assert.equal((await issuesOf(other.id)).find(({ cause }) => cause === 'event is required')!.count, 3)
})

test('the operation of a record is failed before the replay and applied after it', async () => {
  await server.pool.query(`
    create function refuse_record() returns trigger language plpgsql as $$
    begin
      if exists (select 1 from poison where word = new.id) then raise exception 'poison'; end if;
      return new;
    end $$;
    create trigger refuse_record before insert or update on records for each row execute function refuse_record();
    insert into poison values ('p-1')`)
  const written = await server.request('/v1/products', {
    method: 'POST',
    key: server.tenant.privateKey,
    body: JSON.stringify({ entityType: 'product', id: 'p-1', sourceUpdatedAt: '2025-01-01T00:00:00Z' }),
  })
  const operation = async () =>
    (await server.request(`/v1/operations/${written.body.operationId}`, { key: server.tenant.privateKey })).body.status
  await eventually('the operation to fail', async () => {
    await server.pool.query('update parked_entries set next_attempt_at = now()')
    return (await operation()) === 'failed'
  })
  await server.pool.query(`delete from poison`)
  assert.deepEqual((await replay({ id: written.body.operationId })).body, replayResult(1))
  await server.settled()
  assert.equal(await operation(), 'applied')

  // The shop has sent it again with the same source time: a replay of the first version does not undo that.
  const later = await server.request('/v1/products', {
    method: 'POST',
    key: server.tenant.privateKey,
    body: JSON.stringify({
      ...{ entityType: 'product', id: 'p-1', sourceUpdatedAt: '2025-01-01T00:00:00Z' },
      data: { sku: 'later' },
    }),
  })
  await server.settled()
  await server.pool.query('update dead_letters set replayed_at = null where id = $1', [written.body.operationId])
  await replay({ id: written.body.operationId })
  await server.settled()
  assert.equal(await operation(), 'superseded')
  const [row] = await rows(server, `select entry_id from records where id = 'p-1'`)
  assert.equal(row!.entry_id, later.body.operationId)
})

test('a replay requires a filter, and the filter must match something that exists', async () => {
  assert.equal((await replay({})).status, 400)
  assert.equal((await replay({ all: false })).status, 400)
  assert.equal((await replay({ id: 'x' })).status, 400)
  assert.equal((await replay({ reason: 'other' })).status, 400)
  assert.equal((await replay({ id: '01900000-0000-7000-8000-000000000000' })).status, 404)
  assert.equal((await replay({ tenant: 'nobody', all: true })).status, 404)
})

/** Blocks the workers until `run` has finished. */
const whileWorkersWait = (work: () => Promise<unknown>) =>
  inTransaction(server.pool, async client => {
    await client.query('select from log_cursors for update')
    await work()
  })

/** The state after a retention that was too short, or that ran while the clock was ahead. */
async function dropEverything(): Promise<void> {
  for (const table of ['operations', 'receipts', 'archive', 'events', 'processed_events'] as const)
    await dropPartitionsBefore(server.pool, table, new Date(Date.now() + 90 * DAY_MS))
}

test('a backlog whose time partitions were dropped is still applied, and so are later events', async () => {
  const source = await makeSource(server)
  const send = async (n: number) => {
    const wrote = await server.request('/v1/products', {
      method: 'POST',
      key: server.tenant.privateKey,
      body: JSON.stringify({
        ...{ entityType: 'product', id: `late ${n}`, sourceUpdatedAt: '2026-01-01T00:00:00Z' },
        data: { sku: `late ${n}` },
      }),
    })
    await source.post([{ inbound_event_id: `late ${n}`, event_type: 'x' }, { inbound_event_id: `bad ${n}` }])
    return wrote.body.operationId as string
  }
  const operations: string[] = []
  await server.settled()
  await whileWorkersWait(async () => {
    operations.push(await send(1))
    await dropEverything()
  })
  await server.settled()
  // The workers have cached the months that they created; these are dropped again.
  await dropEverything()
  operations.push(await send(2))
  assert.equal((await eventsOf(server, source.id)).length, 1)
  for (const id of operations.slice(1)) {
    const { body } = await server.request(`/v1/operations/${id}`, { key: server.tenant.privateKey })
    assert.equal(body.status, 'applied')
  }
  const letters = await lettersOf(source.id)
  assert.deepEqual(
    letters.map(({ reason }) => reason),
    ['rejected', 'rejected'],
  )
})

test('a failure that cannot be recorded in a receipt is a dead letter', async () => {
  const source = await makeSource(server)
  await server.pool.query(`
    insert into poison values ('four');
    create function refuse_receipt() returns trigger language plpgsql as $$
    begin raise exception 'no receipt'; end $$;
    create trigger refuse_receipt before insert on receipts for each row
      when (new.inbound_event_id = 'unwritten') execute function refuse_receipt()`)
  const inbound_event_id = 'unwritten'
  await source.post({ inbound_event_id, event_type: 'x', payload: { word: 'four' } })
  await source.post([{ inbound_event_id }, { inbound_event_id: 'good', event_type: 'x' }])
  await givenUp(source.id, 2)
  assert.deepEqual(
    (await eventsOf(server, source.id)).map(event => event.inbound_event_id),
    ['good'],
  )
  await server.pool.query(`delete from poison; drop trigger refuse_receipt on receipts`)
})

test('an invalid item in a request that waits behind a failing one leaves one receipt', async () => {
  const source = await makeSource(server)
  await server.pool.query(`insert into poison values ('five')`)
  const item = (id: string, word: string) => ({
    inbound_event_id: id,
    event_type: 'x',
    payload: { id: 'sub_1', word },
  })
  await source.post(item('first', 'five'))
  const parked = async () => (await rows(server, 'select from parked_entries')).length
  await eventually('the first to wait for its retry', async () => (await parked()) === 1)
  await server.pool.query(`update parked_entries set next_attempt_at = now() + interval '30 minutes'`)
  await source.post([item('behind', 'fine'), { inbound_event_id: 'bad' }])
  await eventually('the second to wait behind it', async () => (await parked()) === 2)
  await givenUp(source.id, 2)
  await server.settled()
  const receipts = await rows(server, 'select outcome from receipts where source_id = $1 and inbound_event_id = $2', [
    source.id,
    'bad',
  ])
  assert.deepEqual(receipts, [{ outcome: 'dead_letter' }])
  await server.pool.query(`delete from poison`)
})

test('accepted and rejected events of a source are counted by hour', async () => {
  const source = await makeSource(server)
  await source.post([{ event_type: 'x' }, { event_type: 'y' }])
  await server.request(source.path, { method: 'POST', key: 'not-its-token', body: '{}' })
  await server.settled()
  const path = `/admin/v1/sources/${source.id}/activity`
  // Rejections are written asynchronously.
  await eventually('the refusal to be counted', async () => {
    return (await server.request(path, { key })).body.refused.last_24_hours === 1
  })
  const { body } = await server.request(path, { key })
  assert.equal(body.received.last_24_hours, 2)
  assert.equal(body.received.by_hour.length, 24)
  // A new hour may have started.
  assert.equal(
    body.received.by_hour.slice(-2).reduce((sum: number, count: number) => sum + count),
    2,
  )
  const { id: other } = await server.admin.tenants.create({ name: 'of another' })
  const { key: bound } = await server.admin.keys.create({ kind: 'admin', tenant: other })
  assert.equal((await server.request(path, { key: bound })).status, 404)
})

test('an edited dead letter is replayed: the edited body takes effect, the original stays unchanged', async () => {
  const { trackingKey } = server.tenant
  const bad = { type: 'track', messageId: 'edited-1', anonymousId: 'v-1', properties: { plan: 'pro' } }
  const batch = { batch: [{ ...bad, event: 'Fine', messageId: 'fine-1' }, bad] }
  await server.request('/v1/batch', { method: 'POST', key: trackingKey, body: JSON.stringify(batch) })
  await server.settled()
  const { body: list } = await server.request('/admin/v1/dead-letters?reason=rejected', { key })
  const letters = list.results as { id: string; inbound_event_id: string }[]
  const letter = letters.find(({ inbound_event_id }) => inbound_event_id === 'edited-1')
  const edited = (body: unknown) => replay({ id: letter!.id, body })
  for (const wrong of ['{', '[]', 'null', JSON.stringify({ text: 'x'.repeat(65_536) })])
    assert.equal((await edited(wrong)).status, 400, wrong.slice(0, 10))
  assert.equal((await replay({ all: true, body: '{}' })).status, 400)
  const body = JSON.stringify({ ...bad, event: 'Signed Up', properties: { plan: 'team' } })
  const operator = (await server.admin.keys.create({ kind: 'admin', role: 'operator' })).key
  const asOperator = await server.request('/admin/v1/dead-letters/replay', {
    ...{ method: 'POST', key: operator, body: JSON.stringify({ id: letter!.id, body }) },
  })
  assert.deepEqual([asOperator.status, asOperator.body.code], [403, 'insufficient_role'])
  assert.deepEqual((await edited(body)).body, replayResult(1))
  assert.deepEqual((await edited(body)).body, replayResult(0))
  await server.settled()
  const found = await rows(server, `select event_type from events where event_type = 'Signed Up'`, [])
  assert.equal(found.length, 1)
  const { body: kept } = await server.request(`/admin/v1/dead-letters/${letter!.id}`, { key })
  assert.equal(JSON.parse(kept.body).event, undefined)
  assert.notEqual(kept.replayed_as, null)
  const { body: audit } = await server.request(`/admin/v1/audit?tenant=${server.tenant.id}`, { key })
  const { after, actor } = audit.results.find((row: { target: string }) => row.target === letter!.id)
  assert.deepEqual([after.edited, after.changed], [true, ['properties.plan', 'event']])
  assert.doesNotMatch(JSON.stringify(after), /Signed Up|"pro"|team/)
  const requestOf = async (id: string) =>
    (await server.request(`/admin/v1/events/${id}/request?tenant=${server.tenant.id}`, { key })).body
  const { edited: mark, body: shown } = await requestOf(kept.replayed_as)
  assert.equal(shown, body)
  assert.deepEqual([mark.dead_letter, mark.by], [letter!.id, actor])
  assert.ok(Date.parse(mark.at) > 0)
  const [fine] = await rows<{ id: string }>(server, `select id from events where event_type = 'Fine'`, [])
  assert.equal((await requestOf(fine!.id)).edited, null)
})

test('a resolved group is no longer open, is not replayed, and has the time of its resolution', async () => {
  const { trackingKey, id: tenant } = await server.anotherTenant('resolving')
  const bad = (id: string) => ({ type: 'track', messageId: id, anonymousId: 'v-1' })
  const batch = { batch: [{ ...bad('r-0'), event: 'Fine' }, bad('r-1'), bad('r-2')] }
  await server.request('/v1/batch', { method: 'POST', key: trackingKey, body: JSON.stringify(batch) })
  await server.settled()
  const issues = async () =>
    (await server.request(`/admin/v1/tenants/${tenant}/issues`, { key })).body.results as {
      cause: string
      count: number
      example_id: string
    }[]
  const group = (await issues()).find(({ cause }) => cause === 'event is required')!
  assert.equal(group.count, 2)
  const resolve = (order: object) =>
    server.request('/admin/v1/dead-letters/resolve', { method: 'POST', key, body: JSON.stringify(order) })
  assert.equal((await resolve({})).status, 400)
  const order = { tenant, cause: group.cause }
  assert.deepEqual((await resolve(order)).body, { resolved: 2, remaining: 0 })
  assert.deepEqual((await resolve(order)).body, { resolved: 0, remaining: 0 })
  const listed = async (closed: boolean) =>
    (await server.request(`/admin/v1/dead-letters?tenant=${tenant}&closed=${closed}`, { key })).body.results.length
  assert.deepEqual([await listed(true), await listed(false)], [2, 0])
  assert.equal((await issues()).filter(({ cause }) => cause === group.cause).length, 0)
  assert.deepEqual((await replay({ id: group.example_id })).body, replayResult(0))
  const { body: letter } = await server.request(`/admin/v1/dead-letters/${group.example_id}`, { key })
  assert.deepEqual([letter.replayed_at, letter.replayed_as], [null, null])
  assert.notEqual(letter.resolved_at, null)
})
