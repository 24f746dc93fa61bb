import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { launchChromium, openContext } from '../chromium.ts'
import { hears, startProgram, temporaryDirectory, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer, TEST_SECRET_KEY } from '../server.ts'
import { parseBlocks, readFileName } from './blocks.ts'

const run = promisify(execFile)
const folder = fileURLToPath(new URL('../../examples/', import.meta.url))
const hook = new URL('sdk-from-source.ts', import.meta.url).href
const node = (file: string) => ['--import', hook, join(folder, file)]

const server = await startServer({ KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' })
after(server.close)
useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })
const environment = {
  PATH: process.env.PATH,
  KONTOR_URL: server.url,
  KONTOR_PRIVATE_KEY: server.tenant.privateKey,
  KONTOR_TRACKING_KEY: server.tenant.trackingKey,
}

test('no example is longer than 60 lines', () => {
  const files = globSync('**/*.*', { cwd: folder })
  assert.ok(files.length >= 6)
  for (const file of files) assert.ok(readFileSync(join(folder, file), 'utf8').split('\n').length <= 61, file)
})

test('shop.ts: an order, its event and its visitor are one sale, even if it runs twice', async () => {
  const runShop = async () => {
    const { stdout } = await run(process.execPath, node('shop.ts'), { env: environment })
    await server.settled()
    return stdout
  }
  await runShop()
  assert.match(await runShop(), /^o-1 25\.9 EUR v-1\n/)
  const { body } = await server.request('/v1/conversions', { key: server.tenant.privateKey })
  assert.deepEqual(
    body.results.map((sale: Record<string, unknown>) => [sale.source_object_id, sale.amount, sale.visitor]),
    [['o-1', 25.9, 'v-1']],
  )
})

test('webhook-receiver.ts: a signed message is accepted once, any other is rejected', async t => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const env = { WEBHOOK_SECRET: secret, PORT: '0' }
  const receiver = startProgram(t, process.execPath, node('webhook-receiver.ts'), env)
  const [, port] = await hears(receiver, /"port":(\d+)/)
  const body = JSON.stringify({
    id: 'msg_1',
    type: 'conversion.created',
    timestamp: new Date(),
    data: { amount: 5 },
  })
  const post = async (headers: Record<string, string>) =>
    (await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body, headers })).status
  const at = new Date()
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': new Webhook(secret).sign('msg_1', at, body),
  }
  assert.deepEqual([await post(headers), await post(headers), await post({})], [204, 204, 401])
  await eventually('it to print', () => receiver.out().includes('\n'))
  assert.equal(receiver.out(), 'conversion.created {"amount":5}\n')

  process.env.KONTOR_WEBHOOK_SECRET = secret
  await import(hook)
  const { POST } = (await import(join(folder, 'nextjs/app/api/kontor/route.ts'))) as {
    POST(request: Request): Promise<Response>
  }
  const request = (headers: Record<string, string>) => new Request('http://x/', { method: 'POST', body, headers })
  assert.equal((await POST(request(headers))).status, 204)
  assert.equal((await POST(request({}))).status, 401)
})

// Next.js routes are functions of the standard Request and Response, so the test calls them directly. Next.js is not installed
// because its packages and one build take minutes. Only the layout with the script would need it.
test('the routes of the Next.js guide work: a sale with its visitor, a product, metrics', async t => {
  const guide = await readFile(new URL('../../docs/guides/nextjs.md', import.meta.url), 'utf8')
  const shop = await temporaryDirectory(t)
  for (const block of parseBlocks(guide)) {
    const file = readFileName(block)
    if (file === null) continue
    await mkdir(join(shop, dirname(file)), { recursive: true })
    await writeFile(join(shop, file), block.text)
  }
  Object.assign(process.env, environment)
  await import(hook)
  type Route = { POST(request: Request): Promise<Response> }
  const post = async (file: string, body: object) => {
    const { POST } = (await import(join(shop, file))) as Route
    return POST(new Request('http://shop.example/', { method: 'POST', body: JSON.stringify(body) }))
  }
  const order = { id: 'next-1', total: 12, currency: 'EUR', email: 'ada@example.com', visitor: 'v-next' }
  for (let times = 0; times < 2; times++)
    assert.deepEqual(await (await post('app/api/checkout/route.ts', order)).json(), { ok: true })
  const product = { id: 'next-p', sku: 'NEXT', name: 'Cup', price: 5, updatedAt: '2026-01-31T09:30:00Z' }
  assert.equal((await post('app/api/products/route.ts', product)).status, 202)
  await server.settled()
  const { key } = { key: server.tenant.privateKey }
  const { body: sales } = await server.request('/v1/conversions', { key })
  const own = sales.results.filter((sale: Record<string, unknown>) => sale.source_object_id === 'next-1')
  assert.deepEqual(
    own.map((sale: Record<string, unknown>) => [sale.amount, sale.visitor]),
    [[12, 'v-next']],
  )
  assert.equal((await server.request('/v1/products/NEXT', { key })).body.data.name, 'Cup')
  const { numbers } = (await import(join(shop, 'lib/numbers.ts'))) as {
    numbers(currency: string): Promise<{ mrr: number; sales: number }>
  }
  assert.ok((await numbers('EUR')).sales >= 1)
  const { kontor: client } = (await import(join(shop, 'lib/kontor.ts'))) as {
    kontor: { close(): Promise<void> }
  }
  await client.close()
})

test('send-webhook.py: the event is accepted, the second time as a duplicate', async () => {
  const made = await server.admin.sources.create({
    tenant: server.tenant.id,
    type: 'webhook',
    signing_secret: 'generate',
  })
  const env = {
    ...environment,
    SOURCE_URL: `${server.url}/ingest/inbound/${made.id}`,
    TOKEN: made.token!,
    SECRET: made.signing_secret!,
  }
  const send = async () => JSON.parse((await run('python3', [join(folder, 'send-webhook.py')], { env })).stdout)
  assert.equal((await send()).accepted, 1)
  await server.settled()
  assert.equal((await send()).duplicates, 1)
})

test('browser.html: page views, an event and a sale', async t => {
  const browser = await launchChromium(t)
  if (!browser) return
  const html = (await readFile(join(folder, 'browser.html'), 'utf8'))
    .replace('http://localhost:8080', server.url)
    .replace('trk_…', server.tenant.trackingKey)
  const shop = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html))
  await once(shop.listen(0, '127.0.0.1'), 'listening')
  t.after(() => shop.close())
  const page = await (await openContext(t, browser)).newPage()
  await page.goto(`http://127.0.0.1:${(shop.address() as AddressInfo).port}`)
  await page.getByRole('button', { name: 'Add to cart' }).click()
  await page.getByRole('button', { name: 'Buy' }).click()
  const types = await eventually('the events of the page', async () => {
    const rows = await server.pool.query<{ event_type: string }>(
      `select distinct event_type from events where event_type in ('page_view', 'add_to_cart', 'identify', 'convert')`,
    )
    return rows.rows.length === 4 && rows.rows
  })
  assert.equal(types.length, 4)
  await page.close()
  shop.closeAllConnections()
})
