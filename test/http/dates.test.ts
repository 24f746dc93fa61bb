// A date without a time includes that whole day, on every route and in every command that has a window of time.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { kontor, temporaryDirectory, useDatabase } from '../cli/kontor.ts'
import { startServer, TEST_SECRET_KEY } from '../server.ts'
import { created, invoice, send } from '../subscriptions/shop.ts'

const server = await startServer()
after(server.close)
useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })

/** The day of all rows with a time of their own; the last half second of it. */
const DAY = '2026-02-10'
const MOMENT = `${DAY}T23:59:59.500Z`
/** The day of rows that have the time of receipt. */
let today: string
let adminKey: string
let trackingKeyId: string

before(async () => {
  const { tenant } = server
  const post = (path: string, key: string, body: object) =>
    server.request(path, { method: 'POST', key, body: JSON.stringify(body) })
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
  const tracking = await server.admin.keys.create({ kind: 'tracking', tenant: tenant.id })
  trackingKeyId = tracking.id
  for (const kind of ['product', 'contact', 'order']) {
    const record = { entityType: kind, id: `${kind}-1`, sourceUpdatedAt: MOMENT, data: { name: 'x' } }
    assert.ok((await post(`/v1/${kind}s`, tenant.privateKey, record)).status < 300)
  }
  const event = { event_type: 'order.completed', event_id: 'e-1', occurred_at: MOMENT, visitor: 'v-1' }
  const sale = { properties: { order_id: 'o-9', amount: 12, currency: 'EUR' } }
  assert.ok((await post('/v1/track/', tracking.key, { ...event, ...sale })).status < 300)
  const trial = { status: 'trialing', started_at: MOMENT, updated_at: MOMENT, trial_end: '2026-02-20T00:00:00Z' }
  const ended = { ended_at: MOMENT, updated_at: MOMENT, cancellation_reason: 'too_expensive' }
  await send(server, [
    created('paid', { customer: 'c-1', started_at: MOMENT, updated_at: MOMENT }),
    created('trial', { customer: 'c-2', ...trial }),
    created('gone', { customer: 'c-3', status: 'canceled', started_at: '2026-01-01T00:00:00Z', ...ended }),
    invoice('payment_failed', 'in-1', {
      ...{ subscription: 'paid', customer: 'c-1', status: 'open', total: 10, amount_due: 10, amount_remaining: 10 },
      ...{ finalized_at: MOMENT, updated_at: MOMENT, failure_code: 'card_declined', attempt_count: 1 },
    }),
  ])
  await server.settled()
  const { body } = await server.request('/v1/products', { key: tenant.privateKey })
  today = body.results[0].updatedAt.slice(0, 10)
})

type Names = readonly [from: string, to: string]
const SINCE: Names = ['since', 'until']
const FROM: Names = ['from', 'to']

/** Every route with a window. `own`: its rows have a time of their own. `buckets`: its rows are days. */
const ROUTES: Record<string, { query?: string; names?: Names; own?: true; buckets?: true; admin?: true }> = {
  '/v1/events': { own: true },
  '/v1/conversions': { own: true },
  '/v1/customers': {},
  '/v1/channels': {},
  '/v1/funnel': { query: 'steps=order.completed,refund', own: true },
  '/v1/subscriptions/churn-reasons': { query: 'currency=EUR', names: FROM, own: true, buckets: true },
  '/v1/events/series': { query: 'interval=hour', own: true },
  '/v1/events/visitors': { own: true },
  '/v1/conversions/series': { query: 'interval=hour', own: true },
  '/v1/subscriptions/movements': { query: 'currency=EUR', own: true },
  '/v1/subscriptions/history': { query: 'currency=EUR&interval=day', names: FROM, own: true, buckets: true },
  '/v1/subscriptions/cash': { query: 'currency=EUR&interval=day', names: FROM, own: true, buckets: true },
  '/v1/subscriptions/revenue': { query: 'currency=EUR', names: FROM, own: true, buckets: true },
  '/v1/subscriptions/trials': { query: 'currency=EUR', own: true },
  '/v1/subscriptions/dunning': { query: 'currency=EUR', own: true },
  '/v1/export/products': {},
  '/v1/export/contacts': {},
  '/v1/export/orders': {},
  '/v1/export/customers': {},
  '/v1/export/events': { own: true },
  '/v1/export/conversions': { own: true },
  '/v1/export/subscriptions': { own: true },
  '/v1/export/movements': { own: true },
  '/admin/v1/receipts': { admin: true },
  '/admin/v1/audit': { admin: true },
}

const dayBefore = (day: string) => new Date(Date.parse(day) - 1).toISOString()

/** A response without the fields that repeat the window. */
function withoutWindow(body: unknown): string {
  return JSON.stringify(body, (name, value) => (/^(since|until|from|to|as_of|window)$/.test(name) ? undefined : value))
}

test('every route with a window of time is in the table', async () => {
  const { body } = await server.request('/openapi.json')
  type Parameter = { name: string; $ref?: string }
  const nameOf = ({ name, $ref }: Parameter) => ($ref ? body.components.parameters[$ref.split('/').at(-1)!].name : name)
  const found = Object.entries<Record<string, { parameters?: Parameter[] }>>(body.paths).flatMap(([path, methods]) =>
    methods.get?.parameters?.some(parameter => ['until', 'to'].includes(nameOf(parameter))) ? [path] : [],
  )
  // The exports of the admin API have the same code as those of the data API.
  const others = found.filter(path => !path.startsWith('/admin/v1/tenants/{id}/export/'))
  assert.deepEqual(others.toSorted(), Object.keys(ROUTES).toSorted())
})

for (const [path, { query = '', names = SINCE, own, buckets, admin }] of Object.entries(ROUTES))
  test(`${path}: a date includes that day`, async () => {
    const day = own ? DAY : today
    const read = async (from: string, to: string) => {
      const window = `${names[0]}=${encodeURIComponent(from)}&${names[1]}=${encodeURIComponent(to)}`
      const key = admin ? adminKey : server.tenant.privateKey
      const response = await fetch(`${server.url}${path}?${[query, window].filter(Boolean).join('&')}`, {
        headers: { authorization: `Bearer ${key}`, prefer: 'wait=10' },
      })
      const text = await response.text()
      assert.equal(response.status, 200, `${from} to ${to}: ${text}`)
      return path.startsWith('/v1/export/') ? text : withoutWindow(JSON.parse(text))
    }
    const bare = await read(day, day)
    // the start of a report's window is exclusive
    const start = /(movements|trials|dunning)$/.test(path) ? dayBefore(day) : `${day}T00:00:00Z`
    assert.equal(bare, await read(start, `${day}T23:59:59.999Z`))
    // the rows are later than the first moment of the day
    if (!buckets) assert.notEqual(bare, await read(dayBefore(day), `${day}T00:00:00Z`))
    else assert.match(bare, new RegExp(day.slice(0, 7)))
  })

test('whether a window ends before it starts is determined in its time zone', async () => {
  const tenant = await server.anotherTenant('tokyo')
  await send(server, [created('tokyo', { started_at: MOMENT, updated_at: MOMENT })], tenant)
  await server.settled()
  const statuses = async (time_zone: string, from: string, to: string) => {
    await server.admin.policies.set(tenant.id, { time_zone })
    const found: Record<string, number> = {}
    for (const [path, { query = '', names = SINCE, admin }] of Object.entries(ROUTES)) {
      if (admin) continue
      const window = `${names[0]}=${from}&${names[1]}=${to}`
      const { status } = await server.request(`${path}?${query}&${window}`, { key: tenant.privateKey })
      found[path] = status
    }
    return Object.entries(found)
  }
  // In reports and series, days are in the time zone of the tenant; in lists and exports, in UTC.
  const isZoned = (path: string) => /^\/v1\/(subscriptions|channels|funnel)|(customers|series|visitors)$/.test(path)
  for (const [path, status] of await statuses('Asia/Tokyo', '2026-02-12', '2026-02-11T20:00:00Z'))
    assert.equal(status, isZoned(path) ? 200 : 400, `${path} in Tokyo`)
  for (const [path, status] of await statuses('America/New_York', '2026-02-12', '2026-02-12T03:00:00Z'))
    assert.equal(status, isZoned(path) ? 400 : 200, `${path} in New York`)
})

test('a purge, and the commands export, audit list and events purge: a date includes that day', async t => {
  const next = new Date(Date.parse(today) + 86_400_000).toISOString()
  const purge = async (until: string) => {
    const body = JSON.stringify({ tenant: server.tenant.id, key: trackingKeyId, since: today, until, dry_run: true })
    const answer = await server.request('/admin/v1/purges', { method: 'POST', key: adminKey, body })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body.would_purge.events
  }
  assert.deepEqual([await purge(today), await purge(next)], [1, 1])
  const run = async (...words: string[]) => {
    const { code, out, err } = await kontor(...words)
    assert.equal(code, 0, err)
    return out
  }
  const tenant = ['--tenant', server.tenant.id]
  const directory = await temporaryDirectory(t)
  const exported = async (since: string, until: string) => {
    const file = join(directory, 'events.ndjson')
    await run('export', 'events', ...tenant, '--since', since, '--until', until, '--out', file)
    return readFile(file, 'utf8')
  }
  assert.equal(await exported(DAY, DAY), await exported(dayBefore(DAY), `${DAY}T23:59:59.999Z`))
  assert.match(await exported(DAY, DAY), /order\.completed/)
  const audited = (until: string) => run('audit', 'list', '--since', today, '--until', until)
  assert.equal(await audited(today), await audited(`${today}T23:59:59.999Z`))
  assert.match(await audited(today), /key/)
  const purged = await run(
    'events',
    'purge',
    ...tenant,
    '--key',
    trackingKeyId,
    '--since',
    today,
    '--until',
    today,
    '--dry-run',
  )
  assert.equal(JSON.parse(purged).would_purge.events, 1)
})

test('a cursor with a time that PostgreSQL does not read, and a NUL in a filter, are 400 or match nothing', async () => {
  const { privateKey: key } = server.tenant
  const cursor = (...parts: string[]) => Buffer.from(JSON.stringify(parts)).toString('base64url')
  const id = '01890000-0000-7000-8000-000000000000'
  for (const at of ['2026-01-01T00:00:00,5Z', '2026-02-30T00:00:00Z', '2026-01-01', 'now', '\u0000'])
    for (const path of ['/v1/events', '/v1/conversions', '/v1/products', '/v1/contacts', '/v1/orders']) {
      const { status } = await server.request(`${path}?cursor=${cursor(at, id)}`, { key })
      assert.ok(status === 400 || status === 200, `${path} ${JSON.stringify(at)}: ${status}`)
    }
  for (const path of ['/v1/events', '/v1/conversions', '/v1/events/series', '/v1/events/live?seconds=1&x=']) {
    const { status } = await server.request(`${path}${path.includes('?') ? '&' : '?'}event_type=a%00b`, { key })
    assert.ok(status === 400 || status === 200, `${path}: ${status}`)
  }
})
