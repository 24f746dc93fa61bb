import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstat, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { parse } from 'csv-parse/sync'
import { parquetReadObjects } from 'hyparquet'
import { kontor, temporaryDirectory, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer, TEST_SECRET_KEY, type TestTenant } from '../server.ts'

const server = await startServer()
after(server.close)
useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })

type Row = Record<string, unknown>

async function exported(tenant: TestTenant, path: string): Promise<Response> {
  return fetch(`${server.url}/v1/export/${path}`, {
    headers: { authorization: `Bearer ${tenant.privateKey}` },
  })
}

const lines = (text: string): Row[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line))

async function list(tenant: TestTenant, path: string): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor = ''; ; ) {
    const { body } = await server.request(`/v1/${path}?limit=100${cursor}`, { key: tenant.privateKey })
    rows.push(...body.results)
    if (body.next_cursor === null) return rows
    cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`
  }
}

const byId = (rows: Row[]) => [...rows].sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1))

async function send(tenant: TestTenant, batch: object[]): Promise<void> {
  const { status } = await server.request('/v1/batch', {
    method: 'POST',
    key: tenant.trackingKey,
    body: JSON.stringify({ batch }),
  })
  assert.equal(status, 200)
}

const events = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    event_type: 'visited',
    visitor: `v${(from + i) % 50}`,
    event_id: `e${from + i}`,
    occurred_at: new Date(Date.UTC(2026, 0, 1) + (from + i) * 1000).toISOString(),
    data: { n: from + i, 'a,"b': '=1+1\n\u2028' },
  }))

/** A tenant with data in every table. */
const shop = await server.anotherTenant('shop')
await send(shop, events(0, 1_200))
await send(shop, events(1_200, 1_300))
for (const type of ['product', 'contact', 'order']) {
  const records = Array.from({ length: 250 }, (_, i) => ({
    entityType: type,
    id: `${type}-${i}`,
    sourceUpdatedAt: '2026-01-01T00:00:00Z',
    data: {
      sku: `S${i}`,
      email: `p${i}@example.com`,
      name: `=P ${i}`,
      contactId: `contact-${i}`,
      total: 10.5 + i,
      currency: 'EUR',
      big: '@@',
    },
  }))
  const body = JSON.stringify({ records }).replaceAll('"@@"', '1.000000000000000000001')
  await server.request(`/v1/${type}s/batch`, { method: 'POST', key: shop.privateKey, body })
}
const source = await server.admin.sources.create({ tenant: shop.id, type: 'webhook' })
const subscription = (n: number, status: string) => ({
  inbound_event_id: `s${n}-${status}`,
  event_type: 'subscription.updated',
  payload: {
    ...{ id: `sub-${n}`, customer: `contact-${n}`, customer_name: `P ${n}`, status, currency: 'EUR' },
    ...{
      started_at: '2026-01-05T00:00:00Z',
      updated_at: status === 'active' ? '2026-01-05T00:00:00Z' : '2026-02-05T00:00:00Z',
    },
    ...(status === 'canceled' && { ended_at: '2026-02-05T00:00:00Z' }),
    items: [{ id: 'i', unit_amount: 12.34, quantity: 2, interval: 'month', interval_count: 1 }],
    discounts: [{ percent_off: 50, duration: 'forever' }],
  },
})
await server.request(source.path, {
  method: 'POST',
  key: source.token!,
  body: JSON.stringify([subscription(1, 'active'), subscription(2, 'active'), subscription(2, 'canceled')]),
})
await server.settled()

test('an export contains every row of the list once, with the same fields', async () => {
  for (const path of ['events', 'conversions', 'products', 'contacts', 'orders']) {
    const response = await exported(shop, path)
    assert.equal(response.status, 200)
    assert.match(response.headers.get('content-type')!, /^application\/x-ndjson/)
    const rows = lines(await response.text())
    assert.deepEqual(byId(rows), byId(await list(shop, path)), path)
  }
})

test('CSV, Parquet and NDJSON contain the same data', async () => {
  for (const path of ['events', 'conversions', 'products', 'subscriptions', 'movements']) {
    const rows = lines(await (await exported(shop, path)).text())
    assert.ok(rows.length > 0)
    const flat = rows.map(row =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          typeof value === 'object' && value !== null ? JSON.stringify(value) : value,
        ]),
      ),
    )
    const csv = parse(await (await exported(shop, `${path}?format=csv`)).text(), { columns: true }) as Record<
      string,
      string
    >[]
    assert.equal(csv.length, rows.length)
    const parquet = await parquetReadObjects({
      file: await (await exported(shop, `${path}?format=parquet`)).arrayBuffer(),
    })
    assert.equal(parquet.length, rows.length)
    for (const at of [0, rows.length - 1]) {
      for (const [name, value] of Object.entries(flat[at]!)) {
        const isNested = typeof rows[at]![name] === 'object' && value !== null
        const cell = csv[at]![name]!.replace(/^'(?==)/, '')
        assert.equal(isNested ? JSON.stringify(JSON.parse(cell)) : cell, String(value ?? ''), `${path} ${name}`)
        const field = parquet[at]![name]
        const shown = field instanceof Date ? field.toISOString() : isNested ? JSON.stringify(JSON.parse(field)) : field
        assert.equal(shown, value, `${path} ${name}`)
      }
    }
  }
  const text = await (await exported(shop, 'products?format=csv')).text()
  assert.match(text, /1\.000000000000000000001/)
})

test('bounds are inclusive, and invalid bounds are reported', async () => {
  const at = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString()
  const rows = lines(await (await exported(shop, `events?since=${at(10)}&until=${at(12)}`)).text())
  assert.deepEqual(
    rows.map(({ payload }) => (payload as Row).n),
    [10, 11, 12],
  )
  const [product] = await list(shop, 'products')
  const same = lines(
    await (await exported(shop, `products?since=${product!.updatedAt}&until=${product!.updatedAt}`)).text(),
  )
  assert.ok(same.some(({ id }) => id === product!.id))
  assert.equal(lines(await (await exported(shop, 'orders?until=2020-01-01')).text()).length, 0)
  assert.equal((await exported(shop, 'events?since=2026-02-01&until=2026-01-01')).status, 400)
  assert.equal((await exported(shop, 'events?format=xml')).status, 400)
  assert.equal((await exported(shop, 'keys')).status, 404)
})

test('an empty table is a file without rows', async () => {
  const empty = await server.anotherTenant('empty')
  assert.equal(await (await exported(empty, 'events')).text(), '')
  assert.match(await (await exported(empty, 'movements?format=csv')).text(), /^occurred_at,currency,[^\n]+\r\n$/)
  const file = await (await exported(empty, 'events?format=parquet')).arrayBuffer()
  assert.deepEqual(await parquetReadObjects({ file }), [])
})

test('subscriptions are exported in their latest version, movements with currency and customer', async () => {
  const subscriptions = lines(await (await exported(shop, 'subscriptions')).text())
  assert.deepEqual(
    subscriptions.map(({ id, customer, status, currency, items, discounts, updated_at }) => [
      ...[
        id,
        customer,
        status,
        currency,
        (items as Row[])[0]!.unit_amount,
        (discounts as Row[])[0]!.percent_off,
        updated_at,
      ],
    ]),
    [
      ['sub-1', 'contact-1', 'active', 'EUR', 12.34, 50, '2026-01-05T00:00:00.000Z'],
      ['sub-2', 'contact-2', 'canceled', 'EUR', 12.34, 50, '2026-02-05T00:00:00.000Z'],
    ],
  )
  const movements = lines(await (await exported(shop, 'movements')).text())
  assert.deepEqual(
    movements.map(({ customer, currency, movement_type, mrr_delta }) => [customer, currency, movement_type, mrr_delta]),
    [
      ['contact-1', 'EUR', 'new', 12.34],
      ['contact-2', 'EUR', 'new', 12.34],
      ['contact-2', 'EUR', 'churn', -12.34],
    ],
  )
})

test('movements are exported up to now, even if the window ends later: scheduled ones have not happened', async () => {
  const foretelling = await server.anotherTenant('foretelling')
  const source = await server.admin.sources.create({ tenant: foretelling.id, type: 'webhook' })
  const { payload, ...hook } = subscription(1, 'active')
  const discounts = [{ percent_off: 50, duration: 'repeating', ends_at: '2999-01-01T00:00:00Z' }]
  await server.request(source.path, {
    ...{ method: 'POST', key: source.token! },
    body: JSON.stringify({ ...hook, payload: { ...payload, discounts } }),
  })
  await server.settled()
  for (const window of ['', '?until=3000-01-01T00:00:00Z'])
    assert.deepEqual(
      lines(await (await exported(foretelling, `movements${window}`)).text()).map(row => row.movement_type),
      ['new'],
    )
})

test('with the netting policy, movements are exported as the report lists them, across pages of the export too', async () => {
  const netted = await server.anotherTenant('netted')
  const source = await server.admin.sources.create({ tenant: netted.id, type: 'cdp', billing: true })
  const change = (id: string, currency: string, updated_at: string, quantity: number) => ({
    type: 'track',
    event: 'subscription.updated',
    properties: {
      ...{ id, currency, updated_at, customer: 'cus_1', status: 'active', started_at: '2026-03-10T10:00:00Z' },
      items: [{ id: 'i', unit_amount: 10, quantity, interval: 'month', interval_count: 1 }],
    },
  })
  // An export reads 2,000 rows at a time. `euros` moves every 30 seconds on the 11th.
  const at = (n: number) => new Date(Date.UTC(2026, 2, 11) + n * 30_000).toISOString()
  const batch = [
    change('euros', 'EUR', '2026-03-10T10:00:00Z', 1),
    change('euros', 'EUR', '2026-03-10T16:00:00Z', 5),
    change('dollars', 'USD', '2026-03-10T10:00:00Z', 1),
    change('dollars', 'USD', '2026-03-10T16:00:00Z', 2),
    ...Array.from({ length: 2_100 }, (_, n) => change('euros', 'EUR', at(n), n % 2 === 0 ? 6 : 4)),
  ]
  const { status } = await server.request(source.path, {
    ...{ method: 'POST', key: source.token!, body: JSON.stringify({ batch }) },
  })
  assert.equal(status, 200)
  await server.settled()
  const movements = async () => lines(await (await exported(netted, 'movements')).text())
  assert.equal((await movements()).length, 2_104)

  await server.admin.policies.set(netted.id, { net_within_day: true })
  await eventually('the policy', async () => (await server.admin.policies.show(netted.id)).applied)
  const rows = await movements()
  assert.deepEqual(
    rows.map(row => [row.occurred_at, row.currency, row.movement_type, row.mrr_before, row.mrr_delta]),
    [
      ['2026-03-10T16:00:00.000Z', 'EUR', 'new', 0, 50],
      [at(2_099), 'EUR', 'contraction', 50, -10],
      ['2026-03-10T16:00:00.000Z', 'USD', 'new', 0, 20],
    ],
  )
  const report = await server.request('/v1/subscriptions/movements?currency=EUR&since=2026-03-01&until=2026-03-31', {
    key: netted.privateKey,
  })
  const inBoth = ({
    occurred_at,
    customer,
    movement_type,
    mrr_before,
    mrr_after,
    mrr_delta,
    cause,
    event_id,
  }: Row) => ({
    ...{ occurred_at, customer, movement_type, mrr_before, mrr_after, mrr_delta, cause, event_id },
  })
  assert.deepEqual(rows.filter(row => row.currency === 'EUR').map(inBoth), report.body.results.map(inBoth))
})

test('events that arrive during an export cause no duplicates and no gaps', async () => {
  const busy = await server.anotherTenant('busy')
  await send(busy, events(0, 2_500))
  await server.settled()
  const response = await exported(busy, 'events')
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = (await reader.read()).value!
  // before and after the current position
  await send(busy, events(-500, 500))
  await send(busy, events(2_500, 500))
  await server.settled()
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value
  const ids = lines(text).map(({ inbound_event_id }) => inbound_event_id as string)
  assert.equal(new Set(ids).size, ids.length)
  const first = new Set(ids)
  assert.ok(events(0, 2_500).every(({ event_id }) => first.has(event_id)))
})

test('a client that disconnects leaves no open connection or transaction', async () => {
  for (let i = 0; i < 17; i++) {
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${shop.privateKey}` }
    await fetch(`${server.url}/v1/export/events`, { headers, signal: leaving.signal })
    leaving.abort()
  }
  // More than the limit of concurrent exports.
  await eventually('room for another export', async () => {
    const response = await exported(shop, 'events?since=2026-01-01&until=2026-01-01')
    await response.text()
    return response.status === 200
  })
})

test('lists respond with CSV if the client accepts it', async () => {
  for (const path of ['events', 'conversions', 'products?limit=2', 'contacts?limit=2&include_deleted=true']) {
    const answer = await server.request(`/v1/${path}`, {
      key: shop.privateKey,
      headers: { accept: 'text/csv' },
    })
    assert.match(answer.headers.get('content-type')!, /^text\/csv/)
    const { body } = await server.request(`/v1/${path}`, { key: shop.privateKey })
    const rows = parse(answer.body, { columns: true }) as Row[]
    assert.deepEqual(
      rows.map(({ id }) => id),
      body.results.map(({ id }: Row) => id),
    )
    assert.deepEqual(Object.keys(rows[0]!).sort(), Object.keys(body.results[0]).sort())
    assert.equal(answer.headers.get('x-next-cursor'), body.next_cursor)
  }
})

test('lists of the admin API respond with CSV too, other routes do not', async () => {
  const { key } = await server.admin.keys.create({ kind: 'admin' })
  const headers = { accept: 'text/csv' }
  for (const path of [`keys?tenant=${shop.id}`, 'tenants', 'audit?limit=2']) {
    const answer = await server.request(`/admin/v1/${path}`, { key, headers })
    assert.match(answer.headers.get('content-type')!, /^text\/csv/, path)
    const { body } = await server.request(`/admin/v1/${path}`, { key })
    const rows = parse(answer.body, { columns: true }) as Row[]
    assert.equal(rows.length, (body.results ?? body).length, path)
  }
  const single = await server.request(`/admin/v1/tenants/${shop.id}`, { key, headers })
  assert.equal(single.body.name, 'shop')
  assert.equal((await server.request('/admin/v1/tenants', { headers })).status, 401)
})

test('the command writes the same file, and an import accepts it', async t => {
  const directory = await temporaryDirectory(t)
  const file = join(directory, 'events.ndjson')
  const run = await kontor('export', 'events', '--tenant', 'shop', '--out', file)
  assert.equal(run.code, 0, run.err)
  const { seconds: _, ...facts } = run.json() as Row
  const text = await readFile(file, 'utf8')
  assert.deepEqual(facts, { file, rows: 2_503, bytes: Buffer.byteLength(text) })
  assert.equal(text, await (await exported(shop, 'events')).text())
  const copy = await server.anotherTenant('copy')
  const back = await kontor('import', 'events', file, '--tenant', 'copy', '--url', server.url)
  assert.equal(back.code, 0, back.err)
  const what = ({ event_type, visitor, occurred_at, inbound_event_id, payload }: Row) => [
    ...[event_type, visitor, occurred_at, inbound_event_id, payload],
  ]
  assert.deepEqual(lines(await (await exported(copy, 'events')).text()).map(what), lines(text).map(what))
  assert.equal((await kontor('export', 'events', '--tenant', 'shop', '--since', 'yesterday')).code, 2)
  assert.match((await kontor('export', 'events', '--tenant', 'shopp')).err, /No such tenant/)
})

test('a file behind a symbolic link is written, and a device or pipe is never replaced', async t => {
  const directory = await temporaryDirectory(t)
  const [pipe, link, file] = [join(directory, 'pipe'), join(directory, 'link'), join(directory, 'file')]
  execFileSync('mkfifo', [pipe])
  await writeFile(file, 'old')
  await symlink(file, link)
  for (const words of [
    ['export', 'contacts', '--tenant', 'shop', '--out'],
    ['export', 'person', '--tenant', 'shop', '--email', 'a@example.com', '--out'],
    ['person', 'export', '--tenant', 'shop', 'a@example.com', '--out'],
    ['backup', '--to'],
  ]) {
    for (const path of [pipe, directory]) {
      const { code, err } = await kontor(...words, path)
      assert.deepEqual(
        [code, err.includes(`${path} is not a regular file. Choose another path for --`)],
        [2, true],
        err,
      )
    }
    assert.ok((await lstat(pipe)).isFIFO(), words.join(' '))
    assert.match((await kontor(...words, '-')).err, /requires the name of a file, not -\./)
  }
  const run = await kontor('export', 'contacts', '--tenant', 'shop', '--out', link)
  assert.equal(run.code, 0, run.err)
  assert.ok((await lstat(link)).isSymbolicLink())
  assert.equal(await readFile(file, 'utf8'), await (await exported(shop, 'contacts')).text())
})
