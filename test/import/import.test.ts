import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { kontor, startKontor, startProgram, temporaryDirectory, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer, TEST_SECRET_KEY, type TestTenant } from '../server.ts'

type Result = { read: number; accepted: number; duplicates: number; rejected: number; seconds: number }

const server = await startServer()
after(server.close)
useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })

/** Writes a string to a file and imports it into a tenant with the command. */
async function imported(t: TestContext, tenant: TestTenant, table: string, content: string, ...options: string[]) {
  const file = join(await temporaryDirectory(t), table === 'stripe' || /^\s*\{/.test(content) ? 'in.ndjson' : 'in.csv')
  await writeFile(file, content)
  const again = (...more: string[]) =>
    kontor('import', table, file, '--tenant', tenant.name, '--url', server.url, ...options, ...more)
  return { file, again, ...(await again()) }
}

const counts = ({ json }: { json: () => never }) => {
  const { seconds, ...rest } = json() as Result
  assert.equal(typeof seconds, 'number')
  return rest
}

async function get(tenant: TestTenant, path: string) {
  const { status, body } = await server.request(path, { key: tenant.privateKey })
  return status === 200 ? body : status
}

test('columns become fields; a dot nests, an empty cell omits the field, and values stay strings', async t => {
  const tenant = await server.anotherTenant('columns')
  const run = await imported(
    t,
    tenant,
    'products',
    'id,externalId,sourceUpdatedAt,sku,name,size.height,note\r\n' +
      '007,x-7,2026-01-31T09:30:00Z,MUG,"Mug, ""large""\nblue",12,\r\n',
  )
  assert.equal(run.code, 0, run.err)
  assert.deepEqual(counts(run), { read: 1, accepted: 1, duplicates: 0, rejected: 0 })
  const { data, id, externalId, sourceUpdatedAt } = await get(tenant, '/v1/products/MUG')
  assert.deepEqual(
    { id, externalId, sourceUpdatedAt },
    { id: '007', externalId: 'x-7', sourceUpdatedAt: '2026-01-31T09:30:00.000Z' },
  )
  assert.deepEqual(data, { sku: 'MUG', name: 'Mug, "large"\nblue', size: { height: '12' } })
})

test('the same file twice adds nothing, for records and for events', async t => {
  const tenant = await server.anotherTenant('twice')
  const contacts = await imported(
    t,
    tenant,
    'contacts',
    'id,sourceUpdatedAt,email\nc1,2026-01-01,a@b.example\nc2,2026-01-01,c@d.example\n',
  )
  assert.deepEqual(counts(contacts), { read: 2, accepted: 2, duplicates: 0, rejected: 0 })
  assert.deepEqual(counts(await contacts.again()), { read: 2, accepted: 0, duplicates: 2, rejected: 0 })
  const events = await imported(
    t,
    tenant,
    'events',
    'event_type,visitor,occurred_at,data.page,amount\npage_view,v1,2019-03-01 10:00:00 +0100,/a,\npage_view,v1,2019-03-01 10:00:00 +0100,/a,\nsignup,v2,2019-03-02,,7\n',
  )
  assert.equal(events.code, 0, events.err)
  assert.deepEqual(counts(events), { read: 3, accepted: 2, duplicates: 1, rejected: 0 })
  assert.deepEqual(counts(await events.again()), { read: 3, accepted: 0, duplicates: 3, rejected: 0 })
  const { results } = await get(tenant, '/v1/events')
  assert.deepEqual(
    results.map(({ event_type, visitor, occurred_at, source, payload, meta }: Record<string, { bot?: true }>) => [
      ...[event_type, visitor, occurred_at, source, payload, meta!.bot],
    ]),
    [
      ['signup', 'v2', '2019-03-02T00:00:00.000Z', 'tracking', { amount: '7' }, undefined],
      ['page_view', 'v1', '2019-03-01T09:00:00.000Z', 'tracking', { page: '/a' }, undefined],
    ],
  )
})

test('invalid rows are rejected with their line, and the others are imported', async t => {
  const tenant = await server.anotherTenant('bad')
  const rows = Array.from({ length: 1_000 }, (_, i) => `o${i},2026-01-01T00:00:00Z,"line\n${i}"`)
  for (let i = 50; i < 1_000; i += 100)
    rows[i] = [`,2026-01-01,x`, `o${i},soon,x`, `o${i},2026-01-01,x,y`, `o${i},2026-01-01,a\0b`][((i / 50) % 4) >> 0]!
  const errors = join(await temporaryDirectory(t), 'errors.ndjson')
  const run = await imported(t, tenant, 'orders', `id,sourceUpdatedAt,note\n${rows.join('\n')}\n`, '--errors', errors)
  assert.equal(run.code, 1)
  assert.deepEqual(counts(run), { read: 1_000, accepted: 990, duplicates: 0, rejected: 10 })
  const rejected = (await readFile(errors, 'utf8'))
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.equal(rejected.length, 10)
  // after the header and 50 rows of two lines each
  assert.equal(rejected[0].line, 102)
  assert.equal(rejected[1].line, 102 + 1 + 99 * 2)
  assert.ok(rejected.every(({ reason }) => typeof reason === 'string' && reason !== ''))
})

test('a value in a column without a name rejects its row, unless a map names the columns; an empty column is ignored', async t => {
  const tenant = await server.anotherTenant('unnamed')
  for (const [table, header, row] of [
    ['products', 'id,sourceUpdatedAt,sku', '1,2026-01-01,A'],
    ['contacts', 'id,sourceUpdatedAt,email', '1,2026-01-01,a@b.example'],
    ['orders', 'id,sourceUpdatedAt,note', '1,2026-01-01,a'],
    ['events', 'event_type,visitor,occurred_at', 'signup,v1,2026-01-01'],
  ] as const) {
    const run = await imported(t, tenant, table, `${header},\n${row},\n${row}, \n${row},lost\n`, '--dry-run')
    assert.deepEqual(counts(run), { read: 3, accepted: 2, duplicates: 0, rejected: 1 })
    assert.match(run.err, /^Line 4: has a value in column 4, which has no name$/m)
  }
  const map = join(await temporaryDirectory(t), 'map.json')
  await writeFile(map, '{"id": "id", "sourceUpdatedAt": "now", "data": {"sku": "sku"}}')
  const mapped = await imported(t, tenant, 'products', ',id,sku\n0,1,A\n', '--map', map)
  assert.deepEqual(counts(mapped), { read: 1, accepted: 1, duplicates: 0, rejected: 0 }, mapped.err)
})

test('a row of another type is rejected, and the reason does not repeat the column', async t => {
  const tenant = await server.anotherTenant('other types')
  const body = (entityType: string, id: string) =>
    JSON.stringify({ entityType, id, sourceUpdatedAt: '2026-01-01T00:00:00Z', data: { sku: id } })
  const records = await imported(t, tenant, 'products', `${body('contact', 'A')}\n${body('product', 'B')}\n`)
  assert.deepEqual(counts(records), { read: 2, accepted: 1, duplicates: 0, rejected: 1 })
  assert.match(records.err, /^Line 1: entityType must be "product"$/m)
  assert.equal(await get(tenant, '/v1/products/A'), 404)
  const events = await imported(t, tenant, 'events', '{"event_type":"signup","data":[1]}\n', '--dry-run')
  assert.match(events.err, /^Line 1: data must be an object$/m)
})

test('a dry run checks and sends nothing', async t => {
  const tenant = await server.anotherTenant('dry')
  const run = await imported(t, tenant, 'contacts', 'id,sourceUpdatedAt\na,2026-01-01\n,2026-01-01\n', '--dry-run')
  assert.equal(run.code, 1)
  assert.deepEqual(counts(run), { read: 2, accepted: 1, duplicates: 0, rejected: 1 })
  assert.match(run.err, /Line 3: id is missing/)
  assert.deepEqual((await get(tenant, '/v1/contacts')).results, [])
})

test('a file that is not CSV or lacks a column is rejected with a reason', async t => {
  const tenant = await server.anotherTenant('refused')
  const refusals: [string, RegExp][] = [
    ['id;sourceUpdatedAt;sku\n1;2026-01-01;x\n', /separated by semicolons/],
    ['id\tsourceUpdatedAt\n1\t2\n', /separated by tabs/],
    ['id,id,sourceUpdatedAt\n1,1,2\n', /two columns named "id"/],
    ['id,sourceUpdatedAt,a,a.b\n1,2026-01-01,1,2\n', /"a" and "a\.b" conflict/],
    ['Handle,Title\na,b\n', /no column "id", "sourceUpdatedAt".*--map/s],
    ['', /empty/],
    [`${Array.from({ length: 20_000 }, (_, i) => `c${i}`).join(',')}\n`, /20000 columns\. At most 10000/],
    [`id,sourceUpdatedAt,n\n1,2026-01-01,${'x'.repeat(9_000_000)}\n`, /line 2 is longer than 8 MiB/],
    ['id,sourceUpdatedAt,n\n1,2026-01-01,"never\n2,2026-01-01,x\n', /line 2.*unclosed quote/],
  ]
  for (const [content, words] of refusals) {
    const run = await imported(t, tenant, 'products', content)
    assert.equal(run.code, 1, content)
    assert.match(run.err, words)
    assert.equal(run.out, '')
  }
  const empty = join(await temporaryDirectory(t), 'empty.ndjson')
  for (const content of ['', ' \n\n']) {
    await writeFile(empty, content)
    for (const what of ['events', 'products', 'stripe']) {
      const run = await kontor('import', what, empty, '--tenant', tenant.name, '--url', server.url)
      assert.deepEqual([run.code, run.out], [1, ''], what)
      assert.match(run.err, /The file is empty\./)
    }
  }
  const { file } = await imported(t, tenant, 'products', 'id,sourceUpdatedAt\n')
  await writeFile(file, Buffer.from([0x69, 0x64, 0x2c, 0xe4, 0x0a]))
  assert.match(
    (await kontor('import', 'products', file, '--tenant', tenant.name, '--url', server.url)).err,
    /not UTF-8/,
  )
})

test('the errors file contains no spreadsheet formulas, and a directory is rejected as a file', async t => {
  const tenant = await server.anotherTenant('formulas')
  const errors = join(await temporaryDirectory(t), 'errors.csv')
  const map = join(await temporaryDirectory(t), 'map.json')
  await writeFile(map, JSON.stringify({ id: 'a', sourceUpdatedAt: 'now', data: { n: { from: '=1+1', as: 'number' } } }))
  const run = await imported(t, tenant, 'products', 'a,=1+1\nx,=2\n', '--map', map, '--errors', errors)
  assert.equal(run.code, 1)
  const [, row] = (await readFile(errors, 'utf8')).split('\r\n')
  assert.match(row!, /^2,'=1\+1,"is not a number/)
  const { code, err } = await kontor('import', 'products', dirname(map), '--tenant', tenant.name)
  assert.deepEqual([code, err], [1, `${dirname(map)} is a directory. Specify a file.\n`])
})

test('if a proxy rejects large bodies, the import sends smaller ones', async t => {
  const tenant = await server.anotherTenant('proxied')
  const proxy = createServer(async (request, response) => {
    const body = await buffer(request)
    if (body.length > 20_000) return void response.writeHead(413).end('<html>413 Too Large</html>')
    const headers = request.headers as Record<string, string>
    const answer = await fetch(server.url + request.url, {
      method: 'POST',
      headers: { authorization: headers.authorization!, 'content-type': headers['content-type']! },
      body,
    })
    response.writeHead(answer.status).end(await answer.text())
  }).listen(0, '127.0.0.1')
  t.after(() => proxy.close())
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo
  const rows = Array.from({ length: 300 }, (_, i) => `c${i},2026-01-01,${'x'.repeat(i === 7 ? 30_000 : 200)}`)
  const run = await imported(
    t,
    tenant,
    'contacts',
    `id,sourceUpdatedAt,n\n${rows.join('\n')}\n`,
    '--url',
    `http://127.0.0.1:${port}`,
  )
  assert.deepEqual(counts(run), { read: 300, accepted: 299, duplicates: 0, rejected: 1 })
  assert.match(run.err, /Line 9: was rejected with status 413/)
})

test('a map renames and converts columns; "now" is the time of the file', async t => {
  const tenant = await server.anotherTenant('mapped')
  const map = join(await temporaryDirectory(t), 'map.json')
  const price = { from: 'Variant Price', as: 'number' }
  await writeFile(
    map,
    JSON.stringify({
      id: 'Handle',
      sourceUpdatedAt: 'now',
      data: { sku: 'Variant SKU', price, shop: { value: 'x' } },
    }),
  )
  const csv = 'Handle,Variant SKU,Variant Price\nmug,MUG,12.900000000000000001\ncup,CUP,cheap\n'
  const run = await imported(t, tenant, 'products', csv, '--map', map)
  assert.match(run.err, /Line 3: Variant Price is not a number: "cheap"/)
  assert.deepEqual(counts(run), { read: 2, accepted: 1, duplicates: 0, rejected: 1 })
  const response = await fetch(`${server.url}/v1/products/MUG`, {
    headers: { authorization: `Bearer ${tenant.privateKey}` },
  })
  assert.match(await response.text(), /"price": ?12\.900000000000000001/)
  const at = new Date('2025-05-05T05:05:05Z')
  await utimes(run.file, at, at)
  assert.equal(counts(await run.again()).accepted, 1)
  await writeFile(map, JSON.stringify({ id: 'Handel', color: 'x', data: { a: 5 } }))
  const invalid = await run.again()
  assert.match(invalid.err, /color is not a field/)
  assert.match(invalid.err, /data\.a must be/)
})

test('NDJSON has the format of the API and of exports, and numbers keep all their digits', async t => {
  const tenant = await server.anotherTenant('lines')
  const lines = [
    '{"id":"1","sourceUpdatedAt":"2026-01-01T00:00:00Z","data":{"sku":"A","n":1.00000000000000000001}}',
    '{"entityType":"product","id":"2","externalId":null,"sourceUpdatedAt":"2026-01-01T00:00:00Z","data":{"sku":"B"},"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"}',
    '{"id":3,"sourceUpdatedAt":"2026-01-01T00:00:00Z","sku":"C"}',
    '{"id":"4"',
  ]
  const run = await imported(t, tenant, 'products', `${lines.join('\n')}\n`)
  assert.deepEqual(counts(run), { read: 4, accepted: 3, duplicates: 0, rejected: 1 })
  assert.match(run.err, /Line 4: /)
  assert.equal((await get(tenant, '/v1/products/B')).externalId, null)
  assert.equal((await get(tenant, '/v1/products/C')).id, '3')
  const response = await fetch(`${server.url}/v1/products/A`, {
    headers: { authorization: `Bearer ${tenant.privateKey}` },
  })
  assert.match(await response.text(), /1\.00000000000000000001/)
})

test('the later of two rows of one record wins, also with concurrent requests', async t => {
  const tenant = await server.anotherTenant('order')
  const rows = Array.from({ length: 3_000 }, (_, i) => `c${i % 700},2026-01-01,${i}`)
  const run = await imported(t, tenant, 'contacts', `id,sourceUpdatedAt,n\n${rows.join('\n')}\n`)
  assert.deepEqual(counts(run), { read: 3_000, accepted: 3_000, duplicates: 0, rejected: 0 })
  for (const id of [0, 199, 200, 699]) {
    const last = rows.findLastIndex(row => row.startsWith(`c${id},`))
    assert.equal((await get(tenant, `/v1/contacts/c${id}`)).data.n, String(last))
  }
})

test('paths in rows are only data: an import writes beside its file and nowhere else, readable only by its user', async t => {
  const tenant = await server.anotherTenant('paths')
  const rows = ['../../outside', '/etc/passwd', '..\\\\outside', 'file:///etc/passwd', '%2e%2e%2foutside']
  const csv = `id,sourceUpdatedAt,name,image\n${rows.map(row => `${row},2026-01-01,${row},${row}`).join('\n')}\nx,no time,,\n`
  const directory = await temporaryDirectory(t)
  const errors = join(directory, 'errors.csv')
  const { file, json } = await imported(t, tenant, 'products', csv, '--errors', errors)
  assert.equal((json() as Result).accepted, rows.length)
  assert.equal((await stat(errors)).mode & 0o777, 0o600)
  assert.deepEqual(await readdir(directory), ['errors.csv'])
  assert.deepEqual(await readdir(dirname(file)), ['in.csv'])
  for (const row of rows) {
    const found = await get(tenant, `/v1/products/${encodeURIComponent(row)}`)
    assert.equal(found.data.image, row)
  }
})

test('the keys of an import are revoked at its end', async t => {
  const tenant = await server.anotherTenant('keys')
  await imported(t, tenant, 'contacts', 'id,sourceUpdatedAt\na,2026-01-01\n')
  const keys = await server.admin.keys.list(tenant.name)
  assert.equal(keys.length, 3)
  assert.equal(keys.filter(({ revoked_at }) => revoked_at === null).length, 2)
})

test('a killed import continues where it stopped, and every row is imported once', async t => {
  const tenant = await server.anotherTenant('killed')
  const directory = await temporaryDirectory(t)
  const [file, errors] = [join(directory, 'many.csv'), join(directory, 'errors.csv')]
  const rows = Array.from({ length: 8_000 }, (_, i) => (i % 100 === 7 ? `,v${i}` : `visited,v${i}`))
  await writeFile(file, `event_type,visitor\n${rows.join('\n')}\n`)
  const words = ['import', 'events', file, '--tenant', tenant.name, '--url', server.url, '--errors', errors]
  const first = startKontor(t, words, {})
  await eventually('the journal', async () => (await readdir(directory)).some(name => name.endsWith('.kontor-import')))
  first.child.kill('SIGKILL')
  await first.ended
  const second = await kontor(...words)
  assert.match(second.err, /Continuing after the first [\d,]+ rows/)
  const { read, accepted, duplicates, rejected } = counts(second)
  assert.deepEqual({ read, rejected, rest: accepted + duplicates }, { read: 8_000, rejected: 80, rest: 7_920 })
  const lines = (await readFile(errors, 'utf8')).trimEnd().split('\r\n')
  assert.deepEqual([lines.length, new Set(lines).size, lines[1]?.split(',')[0]], [81, 81, '9'])
  assert.deepEqual(await readdir(directory), ['errors.csv', 'many.csv'])
  const { rows: found } = await server.pool.query(
    `select count(*)::int as all, count(distinct visitor)::int as visitors from events where event_type = 'visited'`,
  )
  assert.deepEqual(found, [{ all: 7_920, visitors: 7_920 }])
})

const SHOPIFY_PRODUCTS = `Handle,Title,Body (HTML),Vendor,Product Category,Type,Tags,Published,Option1 Name,Option1 Value,Option2 Name,Option2 Value,Option3 Name,Option3 Value,Variant SKU,Variant Grams,Variant Price,Variant Compare At Price,Variant Barcode,Image Src,Image Position,Status
shirt,Shirt,<p>Soft</p>,Acme,Apparel,Shirts,"new, cotton",TRUE,Size,S,Color,Red,,,SHIRT-S-R,200,19.90,25.00,'4006381333931,https://cdn.example/1.jpg,1,active
shirt,,,,,,,,,M,,Red,,,SHIRT-M-R,210,19.90,,,https://cdn.example/2.jpg,2,
shirt,,,,,,,,,,,,,,,,,,,https://cdn.example/3.jpg,3,
mug,Mug,,Acme,,,,TRUE,Title,Default Title,,,,,MUG,300,12.50,,,,,draft
`
const SHOPIFY_CUSTOMERS = `Customer ID,First Name,Last Name,Email,Accepts Email Marketing,Default Address Company,Default Address City,Default Address Country Code,Default Address Zip,Phone,Total Spent,Total Orders,Tags
'6543210987654,Ada,Lovelace,ada@example.com,yes,Analytical Ltd,London,GB,'01234,'+442071234567,104.50,2,vip
`
const SHOPIFY_ORDERS = `Name,Email,Financial Status,Paid at,Fulfillment Status,Fulfilled at,Currency,Subtotal,Shipping,Taxes,Total,Discount Code,Discount Amount,Created at,Lineitem quantity,Lineitem name,Lineitem price,Lineitem sku,Shipping Country,Cancelled at,Refunded Amount,Id,Tags,Source
#1001,ada@example.com,paid,2024-01-15 10:24:00 +0100,fulfilled,2024-01-16 08:00:00 +0100,EUR,52.30,4.90,9.13,57.20,,0.00,2024-01-15 10:23:45 +0100,2,Shirt - S / Red,19.90,SHIRT-S-R,GB,,0.00,5432109876543,,web
#1001,ada@example.com,,,,,,,,,,,,2024-01-15 10:23:45 +0100,1,Mug,12.50,MUG,,,,,,
#1002,bob@example.com,pending,,unfulfilled,,EUR,12.50,0.00,2.00,12.50,,0.00,2024-02-01 00:00:00 +0000,1,Mug,12.50,MUG,DE,,0.00,5432109876544,,web
`
const WOOCOMMERCE_PRODUCTS = `\ufeffID,Type,SKU,Name,Published,"Regular price","Sale price","In stock?",Categories,Parent,"Attribute 1 name","Attribute 1 value(s)"
10,variable,HOODIE,Hoodie,1,,,1,"Clothing, Clothing > Hoodies",,Color,"Blue, Red"
11,variation,HOODIE-B,Hoodie - Blue,1,45,42,1,,id:10,Color,Blue
`

test('exports of a shop become records, and several rows of one order become one record', async t => {
  const tenant = await server.anotherTenant('shop')
  const runs: [string, string, string, number][] = [
    ['products', 'shopify-products', SHOPIFY_PRODUCTS, 3],
    ['contacts', 'shopify-customers', SHOPIFY_CUSTOMERS, 1],
    ['orders', 'shopify-orders', SHOPIFY_ORDERS, 2],
    ['products', 'woocommerce-products', WOOCOMMERCE_PRODUCTS, 2],
  ]
  for (const [table, preset, content, count] of runs) {
    const run = await imported(t, tenant, table, content, '--preset', preset)
    assert.equal(run.code, 0, run.err)
    assert.deepEqual(counts(run), { read: count, accepted: count, duplicates: 0, rejected: 0 })
    assert.deepEqual(counts(await run.again()), { read: count, accepted: 0, duplicates: count, rejected: 0 })
  }
  const shirt = await get(tenant, '/v1/products/SHIRT-M-R')
  assert.equal(shirt.id, 'shirt/M/Red')
  const { name, price, vendor, options, tags, image } = shirt.data
  assert.deepEqual(
    { name, price, vendor, options, tags, image },
    {
      name: 'Shirt - M / Red',
      price: 19.9,
      vendor: 'Acme',
      options: { Size: 'M', Color: 'Red' },
      tags: ['new', 'cotton'],
      image: 'https://cdn.example/1.jpg',
    },
  )
  assert.equal((await get(tenant, '/v1/products/MUG')).id, 'mug')
  assert.equal((await get(tenant, '/v1/products/HOODIE-B')).id, '10/11')
  assert.equal((await get(tenant, '/v1/contacts/6543210987654')).data.company, 'Analytical Ltd')
  const order = await get(tenant, '/v1/orders/5432109876543')
  assert.equal(order.sourceUpdatedAt, '2024-01-16T07:00:00.000Z')
  assert.deepEqual(
    order.data.line_items.map(({ sku }: { sku: string }) => sku),
    ['SHIRT-S-R', 'MUG'],
  )
  const { results } = await get(tenant, '/v1/conversions')
  assert.deepEqual(
    results.map((row: Record<string, unknown>) => [
      row.source_object_id,
      row.amount,
      row.currency,
      row.occurred_at,
      row.company_name,
    ]),
    [
      ['5432109876544', 12.5, 'EUR', '2024-02-01T00:00:00.000Z', null],
      ['5432109876543', 57.2, 'EUR', '2024-01-15T09:23:45.000Z', 'Analytical Ltd'],
    ],
  )
  const wrong = await imported(t, tenant, 'orders', SHOPIFY_PRODUCTS, '--preset', 'shopify-orders')
  assert.match(wrong.err, /not the export format of the preset/)
})

test('a file with another delimiter and encoding is read, and imported events have no address of the importer', async t => {
  const tenant = await server.anotherTenant('excel')
  const file = join(await temporaryDirectory(t), 'events.csv')
  await writeFile(file, Buffer.from('event_type;visitor;city\nsigned_up;v-1;K\u00f6ln\n', 'latin1'))
  const words = ['import', 'events', file, '--tenant', tenant.name, '--url', server.url, '--delimiter', ';']
  assert.match((await kontor(...words)).err, /not UTF-8.*--encoding windows-1252/)
  const run = await kontor(...words, '--encoding', 'cp1252')
  assert.equal(run.code, 0, run.err)
  await server.settled()
  const [event] = (await get(tenant, '/v1/events')).results
  assert.deepEqual([event.event_type, event.payload.city], ['signed_up', 'Köln'])
  assert.doesNotMatch(JSON.stringify(event), /127\.0\.0\.1|user-agent/)
  for (const wrong of [
    ['--delimiter', ';;'],
    ['--encoding', 'ebcdic'],
  ])
    assert.equal((await kontor(...words.slice(0, -2), ...wrong)).code, 2)
  assert.match((await kontor(...words, '--format', 'ndjson')).err, /--delimiter requires a CSV file/)
  const help = (await kontor('import', 'events', '--help')).out
  for (const word of ['event_type', 'identify', '--delimiter', '--encoding', 'ndjson'])
    assert.ok(help.includes(word), word)
})

test('--errors never overwrites a file that the command reads', async t => {
  const tenant = await server.anotherTenant('same-file')
  const directory = await temporaryDirectory(t)
  const [file, map, link] = [join(directory, 'in.csv'), join(directory, 'map.json'), join(directory, 'link.csv')]
  const content = 'id,sourceUpdatedAt,sku\nc1,2026-01-01,b\n'
  await writeFile(file, content)
  await writeFile(map, '{}')
  await symlink(file, link)
  const words = ['import', 'products', file, '--tenant', tenant.name, '--url', server.url]
  for (const errors of [file, link, map]) {
    const { code, err } = await kontor(...words, '--map', map, '--errors', errors)
    assert.deepEqual([code, err.includes('is read by this command. Choose another file for --errors.')], [2, true], err)
  }
  assert.deepEqual([await readFile(file, 'utf8'), await readFile(map, 'utf8')], [content, '{}'])
  const stripe = await kontor(
    'import',
    'stripe',
    file,
    '--tenant',
    tenant.name,
    '--as-of',
    '2026-01-01',
    '--errors',
    link,
  )
  assert.deepEqual([stripe.code, await readFile(file, 'utf8')], [2, content])
  for (const [exitCode, options, message] of [
    [2, ['--errors', directory], /is not a regular file\. Choose another path for --errors\./],
    [1, ['--errors', join(directory, 'none/errors.csv')], /cannot be written: no such file or directory\./],
    [2, ['--map', directory], /cannot be read: illegal operation on a directory\./],
    [2, ['--map', join(directory, 'none.json')], /cannot be read: no such file or directory\./],
  ] as const) {
    const { code, err } = await kontor(...words, ...options)
    assert.equal(code, exitCode, err)
    assert.match(err, message)
  }
})

/** Runs a command that cannot write a byte to any file, as on a full disk. */
async function withoutSpace(t: TestContext, ...words: string[]) {
  const main = fileURLToPath(new URL('../../src/main.mjs', import.meta.url))
  const run = startProgram(t, 'sh', ['-c', 'ulimit -f 0; exec "$@"', 'sh', process.execPath, main, ...words], {})
  return { code: await run.ended, out: run.out(), err: run.err() }
}

test('on a full disk, an export and an import with an errors file end with a message, and can be repeated', async t => {
  const tenant = await server.anotherTenant('full-disk')
  const directory = await temporaryDirectory(t)
  const content = 'id,sourceUpdatedAt,email\nc1,2026-01-01,a@b.example\nc2,soon,c@d.example\n'
  const [file, errors, target] = [join(directory, 'in.csv'), join(directory, 'errors'), join(directory, 'contacts')]
  await writeFile(file, content)
  const words = ['import', 'contacts', file, '--tenant', tenant.name, '--url', server.url]
  const stopped = await withoutSpace(t, ...words, '--errors', errors)
  assert.deepEqual(
    [stopped.code, stopped.err],
    [
      1,
      `${errors} cannot be written: file too large.\nAccepted rows are stored. Run the same command again to continue.\n`,
    ],
  )
  await server.settled()
  assert.equal((await get(tenant, '/v1/contacts/c1')).id, 'c1')
  const again = await kontor(...words, '--errors', errors)
  assert.deepEqual(counts(again), { read: 2, accepted: 0, duplicates: 1, rejected: 1 })
  assert.match(await readFile(errors, 'utf8'), /^{"line":3,"column":"sourceUpdatedAt",[^\n]*}\n$/)

  const exported = await withoutSpace(t, 'export', 'contacts', '--tenant', tenant.name, '--out', target)
  assert.deepEqual([exported.code, exported.err], [1, `${target} cannot be written: file too large.\n`])
  assert.deepEqual((await readdir(directory)).sort(), ['errors', 'in.csv'])
})

test('an import whose progress file cannot be written reports it and continues', async t => {
  const tenant = await server.anotherTenant('no-progress')
  const directory = await temporaryDirectory(t)
  const file = join(directory, 'in.csv')
  await writeFile(file, 'id,sourceUpdatedAt,email\nc1,2026-01-01,a@b.example\n')
  const run = await withoutSpace(t, 'import', 'contacts', file, '--tenant', tenant.name, '--url', server.url)
  assert.equal(run.code, 0, run.err)
  assert.match(
    run.err,
    /^The progress file \S.*\.kontor-import cannot be written: file too large\. After an interruption, /,
  )
  assert.equal(JSON.parse(run.out).accepted, 1)
  assert.deepEqual(await readdir(directory), ['in.csv'])
})

test('a file in UTF-16 is recognized with and without a byte order mark', async t => {
  const tenant = await server.anotherTenant('utf-16')
  const file = join(await temporaryDirectory(t), 'events.ndjson')
  const words = ['import', 'events', file, '--tenant', tenant.name, '--url', server.url]
  const little = Buffer.from('{"event_type":"signed_up","visitor":"v-1","event_id":"e-1"}\n', 'utf16le')
  for (const [bytes, encoding] of [
    [little, 'utf-16le'],
    [Buffer.concat([Buffer.from([0xff, 0xfe]), little]), 'utf-16le'],
    [Buffer.from(little).swap16(), 'utf-16be'],
    [Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(little).swap16()]), 'utf-16be'],
  ] as const) {
    await writeFile(file, bytes)
    assert.match((await kontor(...words)).err, new RegExp(`The file is UTF-16\\..*--encoding ${encoding}`))
    const run = await kontor(...words, '--encoding', encoding)
    assert.equal(run.code, 0, run.err)
  }
  await writeFile(file, little)
  const stripe = await kontor('import', 'stripe', file, '--tenant', tenant.name, '--as-of', '2026-01-01')
  assert.match(stripe.err, /The file is UTF-16\. Save it as UTF-8\.$/m)
})

test('a price that is not a number rejects its order instead of losing the amount', async t => {
  const tenant = await server.anotherTenant('prices')
  const file = 'Name,Email,Created at,Currency,Total,Lineitem name,Lineitem price,Lineitem quantity,Id\n'
  const row = (id: string, total: string) =>
    `#${id},a@example.com,2026-01-01 10:00:00 +0000,EUR,${total},Mug,5,1,${id}\n`
  const run = await imported(
    t,
    tenant,
    'orders',
    file + row('1', '"1,299.00"') + row('2', '12.50'),
    '--preset',
    'shopify-orders',
  )
  assert.deepEqual(counts(run), { read: 2, accepted: 1, duplicates: 0, rejected: 1 })
  assert.match(run.err, /Line 2: Total is not a number: "1,299\.00"/)
})
