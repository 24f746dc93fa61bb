import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts'
import { dropPartitionsBefore } from '../../src/postgres/partitions.ts'
import { eventSeries } from '../../src/reports/series.ts'
import { dropEventSums, foldSeries, rebuildSeries } from '../../src/store/sums/fold.ts'
import { runs } from '../long.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { computeDays, computeDaysOf, foldSums } from './computed-days.ts'
import { json, type Row, rowsOf } from './rows.ts'

// Series always equal the count of the listed rows: docs/guides/events.md.

let server: TestServer
let adminKey: string
before(async () => {
  // Its own: the tests drop old events and rebuild the sums of all tenants.
  server = await startServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

const INTERVAL_MS = { minute: 60_000, hour: HOUR_MS, day: DAY_MS }
type Interval = keyof typeof INTERVAL_MS
type List = 'events' | 'conversions'

async function post(path: string, key: string, body: object): Promise<Row> {
  const answer = await server.request(path, { method: 'POST', key, body: json(body) })
  assert.ok([200, 201, 202].includes(answer.status), `${path} ${answer.status} ${json(answer.body)}`)
  return answer.body
}

async function series(tenant: TestTenant, list: List, query: string): Promise<Row> {
  const { status, body } = await server.request(`/v1/${list}/series?${query}`, { key: tenant.privateKey })
  assert.equal(status, 200, json(body))
  return body
}

/** The buckets that are not empty, counted from the rows of the list. */
function counted(rows: Row[], list: List, interval: Interval, groupBy: string | null): Map<string, Row> {
  const buckets = new Map<string, Row>()
  const sumOf = (sum: Row, row: Row) => {
    sum.count++
    if (list === 'conversions' && row.amount !== null && row.currency !== null)
      sum.amounts[row.currency] = (sum.amounts[row.currency] ?? 0) + row.amount
  }
  const nothing = () => (list === 'events' ? { count: 0 } : { count: 0, amounts: {} })
  for (const row of rows) {
    const length = INTERVAL_MS[interval]
    const at = new Date(Math.floor(Date.parse(row.occurred_at) / length) * length).toISOString()
    const bucket = buckets.get(at) ?? { at, ...nothing(), ...(groupBy && { groups: new Map() }) }
    buckets.set(at, bucket)
    sumOf(bucket, row)
    if (groupBy === null) continue
    const group = groupBy === 'source' ? row.source : (row.event_type ?? row.conversion_type)
    if (!bucket.groups.has(group)) bucket.groups.set(group, nothing())
    sumOf(bucket.groups.get(group), row)
  }
  return buckets
}

const asMaps = ({ groups, ...bucket }: Row) => ({
  ...bucket,
  ...(groups && { groups: new Map(Object.entries(groups)) }),
})

const OLD = { since: '2021-03-01T00:00:00.000Z', until: '2021-04-01T00:00:00.000Z' }

type Shape = [Interval, 'event_type' | 'source' | null, string | null]
const FEW: Shape[] = [['hour', 'event_type', null]]
const ALL: Shape[] = [
  ...FEW,
  ['day', null, null],
  ['day', 'source', null],
  ['day', null, 'view'],
  ['hour', 'event_type', 'order'],
]

async function assertEqualToRows(tenant: TestTenant, shapes: Shape[]): Promise<void> {
  const recently = { since: new Date(Date.now() - 45 * DAY_MS).toISOString(), until: '' }
  const listed = new Map<List, Row[]>()
  for (const list of ['events', 'conversions'] as const) {
    const rows = await rowsOf(server, list, { key: tenant.privateKey })
    listed.set(list, rows)
    for (const { since, until } of [recently, OLD])
      for (const [interval, groupBy, type] of shapes) {
        const own = rows.filter(
          row =>
            row.occurred_at >= since &&
            (until === '' || row.occurred_at < until) &&
            (type === null || [row.event_type, row.conversion_type].includes(type)),
        )
        const query = new URLSearchParams({
          ...{ interval, since, ...(until && { until }) },
          ...(groupBy && { group_by: groupBy }),
          ...(type && { event_type: type }),
        })
        const { results } = await series(tenant, list, String(query))
        const full = results.filter(({ count }: Row) => count !== 0)
        const shown = new Map(full.map((row: Row) => [row.at, asMaps(row)]))
        assert.deepEqual(shown, counted(own, list, interval, groupBy), `${list} ${query}`)
      }
  }
  const [events, sales] = [listed.get('events')!, listed.get('conversions')!]
  const isLast = shapes === ALL
  await assertVisitorsEqualRows(tenant, events, { interval: 'day', ...recently })
  if (isLast)
    for (const window of [recently, OLD]) await assertVisitorsEqualRows(tenant, events, { interval: 'hour', ...window })
  await assertFunnelsEqualRows(tenant, {
    events,
    sales,
    since: recently.since,
    funnels: isLast ? FUNNELS : FUNNELS.slice(0, 1),
  })
}

/** Distinct visitors by bucket, and in total, from the rows of the list. */
async function assertVisitorsEqualRows(
  tenant: TestTenant,
  rows: Row[],
  { interval, since, until = '' }: { interval: Interval; since: string; until?: string },
): Promise<void> {
  const own = rows.filter(
    row => row.visitor !== null && row.occurred_at >= since && (!until || row.occurred_at < until),
  )
  const buckets = new Map<string, Set<string>>()
  for (const { visitor, occurred_at } of own) {
    const length = INTERVAL_MS[interval]
    const at = new Date(Math.floor(Date.parse(occurred_at) / length) * length).toISOString()
    buckets.set(at, (buckets.get(at) ?? new Set()).add(visitor))
  }
  const query = new URLSearchParams({ interval, since, ...(until && { until }) })
  const { body } = await server.request(`/v1/events/visitors?${query}`, { key: tenant.privateKey })
  const shown = new Map(body.results.flatMap(({ at, count }: Row) => (count === 0 ? [] : [[at, count]])))
  assert.deepEqual(shown, new Map([...buckets].map(([at, visitors]) => [at, visitors.size])), String(query))
  assert.equal(body.total, new Set(own.map(({ visitor }) => visitor)).size, String(query))
}

const FUNNELS = [
  ['view', 'purchase'],
  ['purchase', 'view', 'order'],
  ['order', 'convert', 'view'],
  ['__proto__', 'view'],
]

/** People by step, from the rows of the lists: every pair of events is compared. */
async function assertFunnelsEqualRows(
  tenant: TestTenant,
  { events, sales, since, funnels }: { events: Row[]; sales: Row[]; since: string; funnels: string[][] },
): Promise<void> {
  const withinMs = 5 * DAY_MS
  type Event = { types: string[]; person: string | null; at: number; order: number }
  const toEvent = (row: Row, isSale: boolean) => ({
    ...{ types: [row.event_type, row.conversion_type], person: row.profile_id, at: Date.parse(row.occurred_at) },
    ...{ isSale, id: row.id },
  })
  const all: Event[] = [...events.map(row => toEvent(row, false)), ...sales.map(row => toEvent(row, true))]
    .sort((a, b) => a.at - b.at || Number(a.isSale) - Number(b.isSale) || (a.id < b.id ? -1 : 1))
    .map((event, order) => ({ ...event, order }))
    .filter(({ at, person }) => at >= Date.parse(since) && person !== null)
  for (const steps of funnels) {
    let before: (Event & { start: number })[] = []
    const expected = steps.map((type, step) => {
      const own = all.filter(({ types }) => types.includes(type))
      before = own.flatMap(event => {
        if (step === 0) return { ...event, start: event.at }
        const earlier = before.filter(({ person, order }) => person === event.person && order < event.order)
        const start = Math.max(...earlier.map(each => each.start))
        return earlier.length > 0 && event.at <= start + withinMs ? { ...event, start } : []
      })
      return new Set(before.map(({ person }) => person)).size
    })
    const query = new URLSearchParams({ steps: steps.join(), since, within_days: '5' })
    const { body } = await server.request(`/v1/funnel?${query}`, { key: tenant.privateKey })
    assert.deepEqual(
      body.steps?.map(({ people }: Row) => people),
      expected,
      `${query} ${json(all)} ${json(body)}`,
    )
  }
}

const moments = ['now', 'a minute ago', 'an hour ago', 'yesterday', 'last month', 'long ago'] as const
function timeOf(moment: (typeof moments)[number]): string {
  const ago = {
    now: 0,
    'a minute ago': 60_000,
    'an hour ago': HOUR_MS,
    yesterday: DAY_MS,
    'last month': 40 * DAY_MS,
  }
  if (moment === 'long ago') return '2021-03-05T23:59:59.999Z'
  return new Date(Date.now() - ago[moment]).toISOString()
}

const maybe = (...values: string[]) => fc.option(fc.constantFrom(...values), { nil: undefined })
const number = (max: number) => fc.integer({ min: 1, max })
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('event' as const),
      type: fc.constantFrom('view', '__proto__', 'convert', 'purchase'),
      at: fc.constantFrom(...moments),
      visitor: maybe('v1', 'v2'),
      user: maybe('u1', 'u2'),
      id: maybe('e1', 'e2', 'e3'),
      order: maybe('o1', 'o2'),
      amount: fc.option(number(9)),
      currency: fc.constantFrom('EUR', 'USD', undefined),
      isBad: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('order' as const),
      id: fc.constantFrom('o1', 'o2', 'o3'),
      at: fc.constantFrom(...moments),
      amount: fc.option(number(9)),
      currency: fc.constantFrom('EUR', 'USD', undefined),
      isDeleted: fc.boolean(),
    }),
  },
  fc.record({ do: fc.constant('purge' as const) }),
  fc.record({ do: fc.constant('erase' as const), visitor: fc.constantFrom('v1', 'v2') }),
  fc.record({ do: fc.constant('split' as const), visitor: fc.constantFrom('v1', 'v2') }),
  fc.record({ do: fc.constant('drop' as const) }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('fold' as const) }) },
  fc.record({ do: fc.constant('rebuild' as const) }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('compute' as const) }) },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

let tenants = 0
let changes = 0

async function play(steps: Step[]): Promise<void> {
  const tenant = await server.tenantWithServerKey(`series ${++tenants}`)
  const bad = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  for (const step of steps) {
    await carryOut(tenant, bad, step)
    await server.settled()
    await assertEqualToRows(tenant, FEW)
  }
  await assertEqualToRows(tenant, ALL)
  await foldSums(server.pool, tenant)
  await assertEqualToRows(tenant, ALL)
  await computeDays(server.pool)
  await assertEqualToRows(tenant, ALL)
}

async function carryOut(tenant: TestTenant, bad: { id: string; key: string }, step: Step): Promise<void> {
  if (step.do === 'event') {
    const { type, at, visitor, user, id, order, amount, currency, isBad } = step
    await post('/v1/track/', isBad ? bad.key : tenant.trackingKey, {
      ...{ event_type: type, occurred_at: timeOf(at), visitor, user_id: user, event_id: id },
      data: { order_id: order, amount, currency },
    })
  } else if (step.do === 'order') {
    const { id, at, amount, currency, isDeleted } = step
    const sourceUpdatedAt = new Date(Date.now() - DAY_MS + ++changes).toISOString()
    const body = {
      entityType: 'order',
      id,
      sourceUpdatedAt,
      data: { amount, currency, created_at: timeOf(at) },
    }
    if (!isDeleted) await post('/v1/orders', tenant.privateKey, body)
    else {
      const options = { method: 'DELETE', key: tenant.privateKey, body: json({ ...body, data: {} }) }
      assert.equal((await server.request('/v1/orders', options)).status, 202)
    }
  } else if (step.do === 'purge') {
    await post('/admin/v1/purges', adminKey, { tenant: tenant.id, key: bad.id, since: '2020-01-01' })
  } else if (step.do === 'erase' || step.do === 'split') {
    const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
    const id = rows.find(({ visitor }) => visitor === step.visitor)?.profile_id
    if (!id) return
    if (step.do === 'erase') await post('/admin/v1/erasures', adminKey, { tenant: tenant.id, profile: id })
    else {
      // A person with only one identifier cannot be split: the request is rejected.
      const body = json({ tenant: tenant.id, name: `visitor:${step.visitor}` })
      await server.request(`/admin/v1/people/${id}/split`, { method: 'POST', key: adminKey, body })
    }
  } else if (step.do === 'drop') {
    await dropPartitionsBefore(server.pool, 'events', new Date('2022-01-01'), dropEventSums)
  } else if (step.do === 'fold') await foldSeries(server.pool)
  else if (step.do === 'compute') await computeDays(server.pool)
  else await rebuildSeries(server.pool)
}

test('series, visitors and funnels equal the counted rows after any operations in any order', async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 16 }), play), {
    ...{ numRuns: runs(3), endOnFailure: true },
  })
})

test('buckets are complete, oldest first, including empty ones, and none is in the future', async () => {
  const tenant = await server.anotherTenant('buckets')
  const startsOf = async (query: string) => (await series(tenant, 'events', query)).results.map(({ at }: Row) => at)
  assert.deepEqual(await startsOf('interval=hour&since=2026-01-31T22:15:00Z&until=2026-02-01T00:00:01Z'), [
    ...['2026-01-31T22:00:00.000Z', '2026-01-31T23:00:00.000Z', '2026-02-01T00:00:00.000Z'],
  ])
  assert.deepEqual(await startsOf('interval=day&since=2026-01-31&until=2026-02-02'), [
    ...['2026-01-31T00:00:00.000Z', '2026-02-01T00:00:00.000Z', '2026-02-02T00:00:00.000Z'],
  ])
  assert.deepEqual(await startsOf('interval=day&since=2026-01-31&until=2026-01-31'), ['2026-01-31T00:00:00.000Z'])
  assert.deepEqual(await startsOf('interval=day&since=9000-01-01'), [])
  for (const [interval, count] of [...[['minute', 60] as const, ['hour', 24] as const, ['day', 30] as const]]) {
    const starts = await startsOf(`interval=${interval}`)
    assert.equal(starts.length, count)
    const age = Date.now() - Date.parse(starts.at(-1))
    assert.ok(age >= 0 && age < 2 * INTERVAL_MS[interval], `${interval} ${age}`)
  }
  assert.equal((await startsOf('interval=minute&since=2026-01-01&until=2026-01-02T01:00:00Z')).length, 1_500)
})

test('buckets are in the tenant’s time zone, also across a change to daylight saving time', async () => {
  const tenant = await server.anotherTenant('zones')
  const post = (occurred_at: string) =>
    server.request('/v1/track/', {
      ...{ method: 'POST', key: tenant.trackingKey },
      body: json({ event_type: 'view', occurred_at }),
    })
  for (const at of ['2026-03-28T22:59:59Z', '2026-03-28T23:00:00Z', '2026-03-29T21:59:59Z', '2026-03-29T22:00:00Z'])
    assert.equal((await post(at)).status, 200)
  await server.settled()
  const inZone = async (time_zone: string, query: string) => {
    await server.admin.policies.set(tenant.id, { time_zone })
    const { results } = await series(tenant, 'events', query)
    return results.map(({ at, count }: Row) => [at.slice(0, 16), count])
  }
  const days = 'interval=day&since=2026-03-28&until=2026-03-31'
  assert.deepEqual(await inZone('Europe/Berlin', days), [
    ...[
      ['2026-03-27T23:00', 1],
      ['2026-03-28T23:00', 2],
      ['2026-03-29T22:00', 1],
      ['2026-03-30T22:00', 0],
    ],
  ])
  assert.deepEqual(await inZone('Asia/Kolkata', days), [
    ...[
      ['2026-03-27T18:30', 0],
      ['2026-03-28T18:30', 2],
      ['2026-03-29T18:30', 2],
      ['2026-03-30T18:30', 0],
    ],
  ])
  assert.deepEqual(
    await inZone('Asia/Kolkata', 'interval=hour&since=2026-03-28T22:45:00Z&until=2026-03-29T00:30:00Z'),
    [
      ...[
        ['2026-03-28T22:30', 2],
        ['2026-03-28T23:30', 0],
      ],
    ],
  )
  assert.equal((await inZone('America/New_York', 'interval=day')).length, 30)
})

test('an empty event type matches nothing', async () => {
  const tenant = await server.anotherTenant('empty type')
  await server.request('/v1/orders', {
    ...{ method: 'POST', key: tenant.privateKey },
    body: json({
      ...{ entityType: 'order', id: 'o-1', sourceUpdatedAt: new Date().toISOString() },
      data: { total_price: 5, currency: 'EUR' },
    }),
  })
  await server.settled()
  const counted = async (query: string) =>
    (await series(tenant, 'conversions', query)).results.reduce((sum: number, { count }: Row) => sum + count, 0)
  assert.equal(await counted('interval=day'), 1)
  assert.equal(await counted('interval=day&event_type=order'), 1)
  assert.equal(await counted('interval=day&event_type='), 0)
})

test('an invalid query is rejected with a message', async () => {
  const rejected = async (query: string) => {
    const { status, body } = await server.request(`/v1/events/series?${query}`, {
      key: server.tenant.privateKey,
    })
    assert.equal(status, 400, query)
    return body.errors.map(({ pointer }: Row) => pointer)
  }
  assert.deepEqual(await rejected('interval=minute&since=2026-01-01&until=2026-01-02T01:00:01Z'), ['/since'])
  assert.deepEqual(await rejected('interval=day&since=0001-01-01'), ['/since'])
  assert.deepEqual(await rejected('since=2026-02-01&until=2026-01-01'), ['/since'])
  assert.deepEqual(await rejected('interval=week'), ['/interval'])
  assert.deepEqual(await rejected('group_by=visitor'), ['/group_by'])
})

test('amounts are exact, by currency; a conversion without a currency is counted but not summed', async () => {
  const tenant = await server.anotherTenant('amounts')
  const at = new Date().toISOString()
  const order = (id: string, data: object) =>
    post('/v1/orders', tenant.privateKey, { entityType: 'order', id, sourceUpdatedAt: at, data })
  await order('a', { amount: '9007199254740993.01', currency: 'EUR' })
  await order('b', { amount: 0.1, currency: 'EUR' })
  await order('c', { amount: 5 })
  await server.settled()
  const { body } = await server.request('/v1/conversions/series?interval=day', {
    ...{ key: tenant.privateKey, headers: { accept: 'application/json' } },
  })
  const text = await (
    await fetch(`${server.url}/v1/conversions/series?interval=day&group_by=source`, {
      headers: { authorization: `Bearer ${tenant.privateKey}` },
    })
  ).text()
  assert.equal(body.results.at(-1).count, 3)
  const sums = '"count":3,"amounts":{"EUR":9007199254740993.11}'
  assert.ok(text.includes(`${sums},"groups":{"orders":{${sums}}}`), text)
})

test('of many types the hundred largest are listed, and all are counted', async () => {
  const tenant = await server.anotherTenant('types')
  const batch = Array.from({ length: 150 }, (_, i) => ({
    type: 'track',
    event: `type ${i % 120}`,
    userId: 'u',
  }))
  await post('/v1/batch', tenant.trackingKey, { batch })
  await server.settled()
  const { results } = await series(tenant, 'events', 'interval=day&group_by=event_type')
  const groups = Object.entries<Row>(results.at(-1).groups)
  assert.equal(results.at(-1).count, 150)
  assert.equal(groups.length, 100)
  assert.deepEqual(
    groups
      .filter(([, { count }]) => count === 2)
      .map(([name]) => name)
      .toSorted(),
    Array.from({ length: 30 }, (_, i) => `type ${i}`).toSorted(),
  )
})

test('a series by minute of old events equals their rows, and they have no sums by minute', async () => {
  const tenant = await server.anotherTenant('old minutes')
  const at = (second: number) => new Date(Date.parse('2021-03-05T10:00:00Z') + second * 1_000).toISOString()
  const batch = Array.from({ length: 40 }, (_, index) => ({
    ...{ type: 'track', event: `type ${index % 3}`, userId: 'u', timestamp: at(index * 37) },
  }))
  await post('/v1/batch', tenant.trackingKey, { batch })
  await post('/v1/batch', tenant.trackingKey, { batch: [{ type: 'track', event: 'type 0', userId: 'u' }] })
  await server.settled()
  const period = `interval=minute&since=${at(0)}&until=${at(1_800)}`
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  const old = rows.filter(row => row.occurred_at < '2022')
  const assertEqual = async () => {
    for (const [query, groupBy, own] of [
      [period, null, old],
      [`${period}&group_by=event_type`, 'event_type', old],
      [`${period}&event_type=type 1`, null, old.filter(row => row.event_type === 'type 1')],
      ['interval=minute', null, rows.filter(row => !old.includes(row))],
    ] as const) {
      const { results } = await series(tenant, 'events', query)
      const full = results.filter(({ count }: Row) => count !== 0)
      const shown = new Map(full.map((row: Row) => [row.at, asMaps(row)]))
      assert.deepEqual(shown, counted(own, 'events', 'minute', groupBy), query)
    }
    // Sums of days, quarters of an hour and, of the last minutes, the events.
    for (const since of ['2021-03-01', '2021-03-05T09:30:00Z']) {
      const interval = since.length === 10 ? 'day' : 'hour'
      const { results } = await series(
        tenant,
        'events',
        `interval=${interval}&since=${since}&until=${at(1_290)}&cut=true`,
      )
      const total = results.reduce((sum: number, { count }: Row) => sum + count, 0)
      assert.equal(total, old.filter(row => row.occurred_at < at(1_320)).length, since)
    }
  }
  await assertEqual()
  await foldSums(server.pool, tenant)
  await assertEqual()
  const { rows: sums } = await server.pool.query(
    `select sum(count)::int as count from event_sums where tenant_id = $1 and grain = 'minute' and all_types`,
    [Number(tenant.id.slice(4))],
  )
  assert.deepEqual(sums, [{ count: 1 }])
})

test('a month by the hour reads only its own sums, and no events', async () => {
  const tenant = await server.anotherTenant('a long time')
  const [tenantId, now] = [Number(tenant.id.slice(4)), new Date('2026-03-31T00:00:00Z')]
  // The sums of ten million events: a year by quarters of an hour, of two sources, in total and by type.
  await server.pool.query(
    `insert into event_sums (tenant_id, grain, all_types, at, event_type, source, count)
     select $1, 'quarter', type = 0, h, case type when 0 then '' else 'type ' || type end, source, 142
     from generate_series($2::timestamptz - interval '365 days', $2, interval '15 minutes') h,
       unnest(array['tracking', 'cdp']) source, generate_series(0, 3) type`,
    [tenantId, now],
  )
  const client = await server.pool.connect()
  try {
    await client.query('begin')
    const request = { interval: 'hour' as const, since: new Date('2026-03-01T00:00:00Z'), until: null }
    const buckets = await eventSeries(client, tenantId, {
      ...{ ...request, now, timeZone: 'UTC', eventType: null, groupBy: null },
    })
    assert.equal(buckets!.length, 30 * 24 + 1)
    const { rows } = await client.query<{ name: string; read: number }>(
      `select relname::text as name, (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read
       from pg_stat_xact_user_tables where seq_tup_read + coalesce(idx_tup_fetch, 0) > 0 and relname like '%event%'`,
    )
    const read = new Map(rows.map(row => [row.name, row.read]))
    assert.deepEqual(
      [...read.keys()].filter(name => !name.startsWith('event_sums')),
      [],
    )
    assert.ok(read.get('event_sums')! <= 2 * 4 * (30 * 24 + 1), `${read.get('event_sums')} sums were read`)
  } finally {
    await client.query('rollback')
    client.release()
  }
})

test('the last bucket can end with a minute, to compare with a day in progress', async () => {
  const tenant = await server.anotherTenant('cut')
  for (const [order_id, occurred_at, amount] of [
    ['o-1', '2026-03-02T09:59:30Z', 10],
    ['o-2', '2026-03-02T10:00:30Z', 20],
    ['o-3', '2026-03-02T10:01:00Z', 40],
  ])
    await post('/v1/track/', tenant.trackingKey, {
      ...{ event_type: 'convert', visitor: 'v-1', occurred_at },
      data: { order_id, amount, currency: 'EUR' },
    })
  await server.settled()
  const day = 'interval=day&since=2026-03-02T00:00:00Z&until=2026-03-02T10:00:10Z'
  const whole = await series(tenant, 'conversions', day)
  assert.deepEqual(
    whole.results.map((row: Row) => row.amounts),
    [{ EUR: 70 }],
  )
  const cut = await series(tenant, 'conversions', `${day}&cut=true`)
  assert.deepEqual(
    cut.results.map((row: Row) => row.amounts),
    [{ EUR: 30 }],
  )
})

test('visitors are counted once per bucket and once in the period', async () => {
  const tenant = await server.anotherTenant('visitors')
  for (const [visitor, occurred_at] of [
    ['v-1', '2026-03-02T09:00:00Z'],
    ['v-1', '2026-03-02T10:00:00Z'],
    ['v-2', '2026-03-02T11:00:00Z'],
    ['v-1', '2026-03-03T09:00:00Z'],
  ])
    await post('/v1/track/', tenant.trackingKey, { event_type: 'page_view', visitor, occurred_at })
  await post('/v1/track/', tenant.trackingKey, { event_type: 'no_visitor', occurred_at: '2026-03-02T12:00:00Z' })
  await server.settled()
  const path = '/v1/events/visitors?interval=day&since=2026-03-02&until=2026-03-03'
  const { body } = await server.request(path, { key: tenant.privateKey })
  assert.equal(body.total, 2)
  assert.deepEqual(
    body.results.map((row: Row) => row.count),
    [2, 1],
  )
})

test('visitors of events that retention has just dropped are not counted after the sums are rebuilt', async () => {
  const tenant = await server.anotherTenant('dropped and rebuilt')
  const occurred_at = '2019-05-06T09:00:00Z'
  await post('/v1/track/', tenant.trackingKey, { event_type: 'page_view', visitor: 'v-1', occurred_at })
  await server.settled()
  await computeDaysOf(server.pool, tenant)
  const visitors = async () => {
    const path = '/v1/events/visitors?interval=day&since=2019-05-06&until=2019-05-07'
    return (await server.request(path, { key: tenant.privateKey })).body.total
  }
  assert.equal(await visitors(), 1)
  await dropPartitionsBefore(server.pool, 'events', new Date('2020-01-01'), dropEventSums)
  await rebuildSeries(server.pool)
  assert.equal(await visitors(), 0)
})

test('a key reads the time zone and the currencies of its tenant', async () => {
  const tenant = await server.anotherTenant('facts')
  const read = async () => (await server.request('/v1/tenant', { key: tenant.privateKey })).body
  assert.deepEqual(await read(), { id: tenant.id, time_zone: 'UTC', currencies: [], reporting_currency: null })
  await server.request(`/admin/v1/tenants/${tenant.id}/policy`, {
    ...{ method: 'PUT', key: adminKey },
    body: json({ time_zone: 'Europe/Berlin' }),
  })
  for (const currency of ['USD', 'EUR', 'EUR'])
    await post('/v1/track/', tenant.trackingKey, {
      ...{ event_type: 'convert', visitor: 'v-1' },
      data: { order_id: crypto.randomUUID(), amount: 1, currency },
    })
  await server.settled()
  await foldSums(server.pool, tenant)
  assert.deepEqual(await read(), {
    id: tenant.id,
    time_zone: 'Europe/Berlin',
    currencies: ['EUR', 'USD'],
    reporting_currency: null,
  })
})
