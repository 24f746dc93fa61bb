// Files and webhooks of one shop describe the same records. In any order and with repeats, each record exists once and can be exported.
import assert from 'node:assert/strict'
import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { parquetReadObjects } from 'hyparquet'
import { chance, shuffle } from '../books/random.ts'
import { kontor, temporaryDirectory, useDatabase } from '../cli/kontor.ts'
import { startReceiver } from '../destinations/receiver.ts'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { startServer, TEST_SECRET_KEY, type TestTenant } from '../server.ts'

const receiver = await startReceiver()
const server = await startServer({ KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' })
after(async () => {
  await server.close()
  await receiver.close()
})
useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })

const SHOPIFY_PRODUCTS = `Handle,Title,Option1 Name,Option1 Value,Variant SKU,Variant Price,Status
shirt,Shirt,Size,S,SHIRT-S,19.90,active
shirt,,,M,SHIRT-M,19.90,
shirt,,,XL,SHIRT-XL,19.90,
mug,Mug,Title,Default Title,MUG,12.50,active
sock,Sock,Title,Default Title,SOCK,2.50,active
cap,Cap,Title,Default Title,CAP,9.00,active
`
const SHOPIFY_CUSTOMERS = `Customer ID,First Name,Last Name,Email,Default Address Company
'501,Ada,Lovelace,ada@example.com,Analytical Ltd
'502,Bob,Noyce,bob@example.com,
`
const SHOPIFY_ORDERS = `Name,Email,Financial Status,Paid at,Currency,Total,Created at,Lineitem quantity,Lineitem name,Lineitem price,Lineitem sku,Id
#1001,ada@example.com,paid,2026-01-15 10:24:00 +0100,EUR,57.20,2026-01-15 10:23:45 +0100,2,Shirt - S,19.90,SHIRT-S,1001
#1001,ada@example.com,,,,,2026-01-15 10:23:45 +0100,1,Mug,12.50,MUG,
#1002,bob@example.com,pending,,EUR,12.50,2026-02-01 00:00:00 +0000,1,Mug,12.50,MUG,1002
`
const WOOCOMMERCE_PRODUCTS = `ID,Type,SKU,Name,Published,"Regular price",Parent
10,variable,HOODIE,Hoodie,1,,
11,variation,HOODIE-B,Hoodie - Blue,1,45,HOODIE
12,variation,HOODIE-R,Hoodie - Red,1,45,HOODIE
13,simple,SCARF,Scarf,1,15,
`
// An export with only the type "variation": no row contains the parent product.
const WOOCOMMERCE_VARIATIONS = `ID,Type,SKU,Name,Published,"Regular price",Parent
11,variation,HOODIE-B,Hoodie - Blue,1,45,HOODIE
12,variation,HOODIE-R,Hoodie - Red,1,45,HOODIE
`
// Later than all webhooks except one. Copying a file preserves its time.
const FILE_TIME = new Date('2026-05-01T00:00:00Z')

type Action = { name: string; run(): Promise<void> }

async function buildActions(t: TestContext, tenant: TestTenant): Promise<Action[]> {
  const directory = await temporaryDirectory(t)
  const shopify = await makeSource(server, { tenant: tenant.id, preset: 'shopify' })
  const woocommerce = await makeSource(server, { tenant: tenant.id, preset: 'woocommerce' })
  const file = (table: string, preset: string, content: string, rejected = 0): Action => ({
    name: `${preset}${rejected}`,
    async run() {
      const path = join(directory, `${preset}${rejected}.csv`)
      await writeFile(path, content)
      await utimes(path, FILE_TIME, FILE_TIME)
      const words = ['--tenant', tenant.name, '--url', server.url, '--preset', preset]
      const { err, json } = await kontor('import', table, path, ...words)
      assert.equal((json() as Row).rejected, rejected, err)
    },
  })
  let deliveries = 0
  const hook = (source: typeof shopify, prefix: string, topic: string, body: object, more = {}): Action => {
    const id = `${prefix === 'x-wc' ? 'd' : 'w'}-${++deliveries}`
    const named = prefix === 'x-wc' ? 'x-wc-webhook-delivery-id' : 'x-shopify-webhook-id'
    const headers = {
      [prefix === 'x-wc' ? 'x-wc-webhook-topic' : 'x-shopify-topic']: topic,
      [named]: id,
      ...more,
    }
    return {
      name: `${topic} ${id}`,
      async run() {
        const { status, body: answer } = await source.post(body, { headers })
        assert.equal(status, 200, JSON.stringify(answer))
      },
    }
  }
  const shop = (topic: string, body: object, more = {}) => hook(shopify, 'x-shopify', topic, body, more)
  const woo = (topic: string, body: object) => hook(woocommerce, 'x-wc', topic, body)
  const product = (id: number, handle: string, updated_at: string, variants: object[]) => ({
    ...{ id, handle, title: handle, created_at: '2026-01-01T00:00:00Z', updated_at, variants },
  })
  const only = (id: number, sku: string) => [{ id, title: 'Default Title', sku, price: '3.00' }]
  const order = (id: number, email: string, total_price: string, updated_at: string) => ({
    ...{ id, name: `#${id}`, email, currency: 'EUR', total_price, updated_at },
    created_at: '2026-01-15T09:23:45Z',
  })
  const sale = (order_id: string): Action => ({
    name: `convert ${order_id}`,
    async run() {
      const body = JSON.stringify({
        event_type: 'convert',
        ...{ visitor: `v-${order_id}`, event_id: `c-${order_id}`, data: { order_id, amount: 1 } },
      })
      const answer = await server.request('/v1/track', { method: 'POST', key: tenant.trackingKey, body })
      assert.equal(answer.status, 200)
    },
  })
  const two = [
    { id: 61, title: 'S', sku: 'SHIRT-S', price: '20.00' },
    { id: 62, title: 'M', sku: 'SHIRT-M', price: '20.00' },
  ]
  return [
    file('products', 'shopify-products', SHOPIFY_PRODUCTS),
    file('contacts', 'shopify-customers', SHOPIFY_CUSTOMERS),
    file('orders', 'shopify-orders', SHOPIFY_ORDERS),
    file('products', 'woocommerce-products', WOOCOMMERCE_PRODUCTS),
    file('products', 'woocommerce-products', WOOCOMMERCE_VARIATIONS, 2),
    shop('products/create', product(600, 'shirt', '2026-02-01T00:00:00Z', two.slice(0, 1))),
    shop('products/update', product(600, 'shirt', '2026-03-01T00:00:00Z', two)),
    shop('products/update', product(601, 'sock', '2026-03-01T00:00:00Z', only(63, 'SOCK'))),
    shop('products/delete', { id: 601 }, { 'x-shopify-triggered-at': '2026-06-01T00:00:00Z' }),
    shop('products/create', product(602, 'cup', '2026-03-01T00:00:00Z', only(64, 'CUP'))),
    // it had another name earlier
    shop('products/create', product(603, 'cap', '2026-03-01T00:00:00Z', only(65, 'CAP'))),
    shop('products/update', product(603, 'hat', '2026-06-01T00:00:00Z', only(65, 'CAP'))),
    shop('customers/update', { id: 501, email: 'ada@example.com', updated_at: '2026-02-01T00:00:00Z' }),
    shop('customers/create', { id: 503, email: 'eve@example.com', updated_at: '2026-02-01T00:00:00Z' }),
    shop('orders/create', order(1001, 'ada@example.com', '57.20', '2026-01-15T09:23:45Z')),
    shop('orders/updated', order(1001, 'ada@example.com', '50.00', '2026-03-01T00:00:00Z')),
    shop('orders/create', order(1003, 'eve@example.com', '8.00', '2026-03-01T00:00:00Z')),
    sale('1001'),
    sale('1002'),
    woo('product.updated', {
      ...{ id: 10, type: 'variable', sku: 'HOODIE', name: 'Hoodie', parent_id: 0, variations: [11, 12] },
      date_modified_gmt: '2026-03-01T00:00:00',
    }),
    woo('product.updated', {
      ...{ id: 11, type: 'variation', sku: 'HOODIE-B', name: 'Hoodie - Blue', parent_id: 10, price: '40' },
      date_modified_gmt: '2026-03-01T00:00:00',
    }),
  ]
}

type Row = Record<string, unknown>

async function list(tenant: TestTenant, path: string): Promise<Row[]> {
  const { body } = await server.request(`/v1/${path}?limit=100`, { key: tenant.privateKey })
  assert.equal(body.next_cursor, null)
  return body.results
}

async function exported(tenant: TestTenant, path: string): Promise<Response> {
  const answer = await fetch(`${server.url}/v1/export/${path}`, {
    headers: { authorization: `Bearer ${tenant.privateKey}` },
  })
  assert.equal(answer.status, 200)
  return answer
}

const sorted = (rows: Row[]) => rows.toSorted((a, b) => (String(a.id) < String(b.id) ? -1 : 1))

/** A row of a Parquet file as the API shows it. */
function shown(row: Row, like: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      if (value instanceof Date) return [name, value.toISOString()]
      const isNested = typeof like[name] === 'object' && like[name] !== null
      return [name, isNested ? JSON.parse(value as string) : value]
    }),
  )
}

async function comesOutWhole(tenant: TestTenant): Promise<void> {
  for (const table of ['products', 'contacts', 'orders', 'events', 'conversions']) {
    const rows = sorted(await list(tenant, table))
    assert.ok(rows.length > 0, table)
    const text = await (await exported(tenant, table)).text()
    const lines = text.trimEnd().split('\n')
    assert.deepEqual(sorted(lines.map(line => JSON.parse(line))), rows, table)
    const file = await (await exported(tenant, `${table}?format=parquet`)).arrayBuffer()
    const stored = sorted((await parquetReadObjects({ file })) as Row[])
    assert.deepEqual(
      stored.map((row, i) => shown(row, rows[i] ?? {})),
      rows,
      table,
    )
  }
}

for (const seed of ['1', '2', '3', '4'])
  test(`files and webhooks of one shop, overlapping and in any order (${seed}): each record exists once and is exported`, async t => {
    const random = chance(seed)
    const tenant = await server.anotherTenant(`shop ${seed}`)
    const path = `/down-${seed}`
    const { destinations } = server.admin
    const destination = await destinations.create({
      ...{ tenant: tenant.id, url: receiver.url + path, what: ['conversions'] },
    })
    const delivered: Row[] = []
    let isDown = true
    receiver.answerWith(({ path: at, headers, body }, response) => {
      if (at === path && !isDown) delivered.push({ id: headers['webhook-id'], ...body })
      response.writeHead(isDown ? 503 : 204).end()
    })
    const actions = await buildActions(t, tenant)
    const again = actions.filter(() => random.happens(0.3))
    const waiting = shuffle([...actions, ...again], seed)
    const order = waiting.map(({ name }) => name).join(', ')
    while (waiting.length > 0) {
      const together = waiting.splice(0, random.between(1, 4))
      // one command after the other, because they share this process
      const files = together.filter(({ name }) => !name.includes(' '))
      await Promise.all([
        ...together.filter(action => !files.includes(action)).map(({ run }) => run()),
        (async () => {
          for (const { run } of files) await run()
        })(),
      ])
      if (random.happens(0.5)) await server.settled()
    }
    await server.settled()

    const ids = async (table: string) => (await list(tenant, table)).map(({ id }) => id).sort()
    assert.deepEqual(
      await ids('products'),
      ['10', '10/11', '10/12', '13', '600/61', '600/62', '602', '603', 'mug'],
      order,
    )
    assert.deepEqual(await ids('contacts'), ['501', '502', '503'], order)
    const orders = (await list(tenant, 'orders')).map(({ id, externalId }) => [id, externalId]).sort()
    assert.deepEqual(
      orders,
      ['1001', '1002', '1003'].map(id => [id, `#${id}`]),
      order,
    )
    const sales = (await list(tenant, 'conversions')).toSorted((a, b) =>
      String(a.source_object_id) < String(b.source_object_id) ? -1 : 1,
    )
    assert.deepEqual(
      sales.map(({ source_object_id, amount, visitor }) => [source_object_id, amount, visitor]),
      [
        ['1001', 50, 'v-1001'],
        ['1002', 12.5, 'v-1002'],
        ['1003', 8, null],
      ],
      order,
    )
    await comesOutWhole(tenant)

    isDown = false
    await eventually('everything to be delivered', async () => {
      await server.pool.query(
        'update delivery_queue set next_attempt_at = now() where destination_id = $1 and next_attempt_at > now()',
        [destination.id],
      )
      return (await destinations.show(destination.id)).health.pending === 0
    })
    const once = [...new Map(delivered.map(message => [message.id, message])).values()]
    const created = once.filter(({ type }) => type === 'conversion.created')
    assert.deepEqual(created.map(({ data }) => (data as Row).id).sort(), sales.map(({ id }) => id).sort(), order)
    assert.equal(delivered.length, once.length)
  })
