import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { launchChromium, openContext } from '../chromium.ts'
import { eventually } from '../eventually.ts'
import { type OwnServer, startServer } from '../server.ts'
import { openFlakyProxy } from './flaky.ts'
import { type Row, rowsOf } from './rows.ts'

let server: OwnServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

const STANDALONE = readFileSync(
  new URL('../../node_modules/@segment/analytics-next/dist/umd/standalone.js', import.meta.url),
)

/** A shop on a separate origin. Every path is a page with this head. */
async function openShop(t: TestContext, head: string): Promise<string> {
  const shop = createServer((request, response) => {
    if (request.url === '/analytics.js') response.setHeader('content-type', 'text/javascript').end(STANDALONE)
    else
      response
        .setHeader('content-type', 'text/html')
        .end(`<!doctype html><title>Tea</title><link rel="icon" href="data:,">${head}<p>Tea`)
  })
  await new Promise<void>(resolve => shop.listen(0, '127.0.0.1', resolve))
  t.after(() => new Promise(resolve => shop.close(resolve).closeAllConnections()))
  return `http://127.0.0.1:${(shop.address() as AddressInfo).port}`
}

/** Shortens the delays between retries. */
const shortDelays = `
  const startTimer = window.setTimeout
  window.setTimeout = (run, ms, ...rest) => startTimer(run, Math.min(ms ?? 0, 30), ...rest)`

async function openPage(t: TestContext): Promise<{ page: Page; pageErrors: string[] } | null> {
  const browser = await launchChromium(t)
  if (!browser) return null
  const page = await (await openContext(t, browser)).newPage()
  await page.addInitScript(shortDelays)
  const pageErrors: string[] = []
  page.on('pageerror', error => pageErrors.push(String(error)))
  return { page, pageErrors }
}

/** Polls the lists until they have at least this number of rows. The caller checks for duplicates. */
function arrived(key: string, count: number): Promise<Row[]> {
  return eventually(`${count} events and conversions`, async () => {
    const rows = await rowsOf(server, 'events', { key })
    rows.push(...(await rowsOf(server, 'conversions', { key })))
    return rows.length >= count && rows
  })
}

test('@segment/analytics-next in Chromium: its settings point to this server, and every call is stored once despite 503s and lost responses', {
  timeout: 600_000,
}, async t => {
  const tenant = await server.anotherTenant('segment browser')
  const opened = await openPage(t)
  if (!opened) return
  const { page, pageErrors } = opened
  const proxy = await openFlakyProxy(t, () => server.url)
  // the state that Segment's snippet creates: a queue, the key and the CDN
  const shop = await openShop(
    t,
    `<script>
       window.analytics = Object.assign([], { _writeKey: '${tenant.trackingKey}', _cdn: '${proxy.url}' })
       analytics.push(['page'])
     </script><script src="/analytics.js"></script>`,
  )
  const requests: string[] = []
  page.on('request', request => requests.push(request.url()))
  await page.goto(`${shop}/tea?utm_source=letter&utm_medium=email`)
  await page.waitForFunction('window.analytics && analytics.initialized')
  proxy.failures.push('busy', 'lost', 'busy')
  await page.evaluate(`(async () => {
    await analytics.identify('u-1', { email: 'ada@example.com' })
    for (let n = 0; n < 5; n++) await analytics.track('Signed Up', { n })
    await analytics.group('g-1')
    await analytics.screen('Home')
    await analytics.alias('u-2')
    await analytics.track('Order Completed', { order_id: 'o-9', total: 49.9, currency: 'EUR' })
  })()`)
  const rows = await arrived(tenant.privateKey, 11)
  assert.deepEqual(pageErrors, [])
  assert.deepEqual(proxy.failures, [], 'every failure occurred')
  assert.deepEqual(
    rows.map(row => row.event_type).sort(),
    ['Order Completed', ...Array(5).fill('Signed Up'), 'alias', 'group', 'identify', 'page', 'screen'].sort(),
  )
  assert.equal(new Set(rows.map(row => row.profile_id)).size, 1)
  const first = rows.find(row => row.event_type === 'page')
  assert.equal(first.payload.context.page.url, `${shop}/tea?utm_source=letter&utm_medium=email`)
  const sale = rows.find(row => row.source_object_id === 'o-9')
  assert.equal(sale.amount, 49.9)
  // It contacted no other host and loaded no further code.
  for (const url of requests) assert.ok(url.startsWith(shop) || url.startsWith(proxy.url), url)
  assert.deepEqual(
    requests.filter(url => /bundle|integrations/.test(url)),
    [],
  )
  const { rows: touches } = await server.pool.query(
    "select source, medium from touches t join tenants n on n.id = t.tenant_id where n.name = 'segment browser'",
  )
  assert.deepEqual(touches, [{ source: 'letter', medium: 'email' }])
})

test('/k.js in Chromium: page views, events and a person are stored once despite 503s and a restart', {
  timeout: 600_000,
}, async t => {
  const tenant = await server.anotherTenant('own script')
  const opened = await openPage(t)
  if (!opened) return
  const { page, pageErrors } = opened
  const proxy = await openFlakyProxy(t, () => server.url)
  const shop = await openShop(t, `<script src="${proxy.url}/k.js" data-key="${tenant.trackingKey}"></script>`)
  await page.goto(`${shop}/tea`)
  await page.waitForFunction('window.kontor && kontor.loaded')
  proxy.failures.push('busy', 'lost', 'busy')
  await page.evaluate(`
    history.pushState({}, '', '/cart')
    kontor.identify('u-1', { email: 'ada@example.com' })
    for (let n = 0; n < 5; n++) kontor.track('added', { n })`)
  await server.restart()
  await page.evaluate(`kontor.track('convert', { order_id: 'o-1', amount: 12.5, currency: 'EUR' })`)
  // the page is left before its last event is sent
  await page.evaluate(`kontor.track('leaving')`)
  await page.goto('about:blank')
  const rows = await arrived(tenant.privateKey, 10)
  assert.deepEqual(pageErrors, [])
  assert.deepEqual(proxy.failures, [], 'every failure occurred')
  assert.deepEqual(
    rows.map(row => row.event_type).sort(),
    [...Array(5).fill('added'), 'convert', 'identify', 'leaving', 'page_view', 'page_view'].sort(),
  )
  assert.equal(new Set(rows.map(row => row.profile_id)).size, 1)
  const views = rows.filter(row => row.event_type === 'page_view')
  assert.deepEqual(views.map(row => row.payload.page).sort(), [`${shop}/cart`, `${shop}/tea`])
  assert.equal(new Set(rows.flatMap(row => row.session_id ?? [])).size, 1)
  assert.equal(rows.find(row => row.event_type === 'convert').amount, 12.5)
})
