import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { parseRoute } from '../../console/router.ts'
import { deliver } from '../../demo/deliver.ts'
import { shopYear } from '../../demo/shop.ts'
import { createYear, DAY_MS } from '../../demo/year.ts'
import { launchChromium } from '../chromium.ts'
import { startServer, type TestServer } from '../server.ts'
import { crawl, type Visit } from './links.ts'
import { goTo, openTab, signIn } from './tab.ts'

const LONG = '12345678901234567890'
const REPORTS = [
  'subscriptions',
  'subscriptions/movements',
  'subscriptions/attention',
  'subscriptions/acquisition',
  'subscriptions/cohorts',
  'subscriptions/excluded',
]

const WIDE = { width: 1200, height: 800 }
const SMALL = { width: 390, height: 800 }

let server: TestServer
let adminKey: string
let end: number
before(async () => {
  server = await startServer({ KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' })
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
  end = Math.floor(Date.now() / DAY_MS) * DAY_MS
  await fillShop()
  await server.settled()
})
after(() => server.close())

/** A small shop, and one of each failure and edge case. */
async function fillShop(): Promise<void> {
  const { id: tenant, privateKey, trackingKey } = server.tenant
  const rate_limit = { events: 1_000_000, per_seconds: 60 }
  const source = await server.admin.sources.create({ tenant, type: 'webhook', name: 'Billing', rate_limit })
  const doors = { url: server.url, privateKey, trackingKey, source }
  await deliver(shopYear(createYear({ seed: 1, scale: 0.05, end })), doors, () => {})

  const post = (path: string, key: string, body: string) => server.request(path, { method: 'POST', key, body })
  const convert = (currency: string, amount: string) =>
    `{"event_type":"convert","visitor":"v-1","data":{"order_id":"${currency}","amount":${amount},"currency":"${currency}"}}`
  await post('/v1/track/', trackingKey, convert('JPY', LONG))
  await post('/v1/track/', trackingKey, convert('KWD', `"${LONG}.125"`))
  await post('/v1/track/', trackingKey, '{"event_type":"no amount"}')
  const turned = { event_type: 'open invoice\u202Efdp.exe', visitor: `v\u202E${'x'.repeat(200)}` }
  await post('/v1/track/', trackingKey, JSON.stringify(turned))
  const endless = { name: `Ada \u202E${'Lovelace'.repeat(500)}`, email: 'ada@example.com' }
  await post(
    '/v1/contacts',
    privateKey,
    JSON.stringify({ entityType: 'contact', id: 'c-endless', sourceUpdatedAt: new Date(), data: endless }),
  )
  await post(
    '/v1/batch',
    trackingKey,
    '{"batch":[{"type":"track","event":"Fine","messageId":"m-1"},{"type":"track","messageId":"m-2"}]}',
  )
  await post(
    '/v1/orders',
    privateKey,
    `{"entityType":"order","id":"long","sourceUpdatedAt":"2026-01-31T09:30:00Z","data":{"total":${LONG}.5,"currency":"JPY"}}`,
  )
  await post(source.path, 'not-its-token', '{}')
  // No server listens there, so deliveries keep failing.
  await server.admin.destinations.create({
    tenant,
    name: 'warehouse',
    url: 'http://127.0.0.1:9/',
    what: ['records'],
  })
  const subscription = (currency: string, unit_amount: number) =>
    JSON.stringify({
      inbound_event_id: `e-${currency}`,
      event_type: 'subscription.created',
      payload: {
        ...{ id: `sub-${currency}`, customer: `c-${currency}`, status: 'active', currency },
        started_at: new Date(end - 200 * DAY_MS),
        items: [{ id: 'i-1', name: 'Team', quantity: 3, unit_amount, interval: 'year', interval_count: 1 }],
      },
    })
  for (const [currency, unitAmount] of [
    ['JPY', 12_345_678_901],
    ['KWD', 1.234],
  ] as const) {
    const contact = { entityType: 'contact', id: `c-${currency}`, sourceUpdatedAt: '2026-01-31T09:30:00Z' }
    await post('/v1/contacts', privateKey, JSON.stringify(contact))
    await post(source.path, source.token, subscription(currency, unitAmount))
  }
}

/** Signs of a broken page. None of these strings is in the data. */
const BROKEN = `(() => {
  const texts = [document.body.innerText, ...[...document.querySelectorAll('[href], [title], [aria-label], [value]')]
    .flatMap(element => ['href', 'title', 'aria-label', 'value'].map(name => element.getAttribute(name) ?? ''))]
  return [
    ...texts.filter(text => /\\bundefined\\b|\\bNaN\\b|\\[object Object\\]|Invalid Date/.test(text)),
    ...texts.filter(text => /[\\u202a-\\u202e]/.test(text)),
    ...[...document.querySelectorAll('.problem, [role=alert]')].map(notice => notice.innerText),
    ...(document.documentElement.scrollWidth > innerWidth ? ['wider than the screen'] : []),
    ...(document.querySelectorAll('h1').length === 1 ? [] : ['not one title']),
  ]
})()`

/** The rules that depend on colors and sizes; the others give the same result on every screen. */
const LOOKS = ['color-contrast', 'scrollable-region-focusable', 'target-size', 'link-in-text-block']

/** Rows are built alike, so a few are enough (all of them took half of the time of this test). */
const ALIKE = { exclude: ['tbody tr:nth-child(n + 5)'] }

/** Serious accessibility violations found by axe-core. */
async function accessViolations(page: Page, rules?: string[]): Promise<string[]> {
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(axe.source)
  const options = { resultTypes: ['violations'], preload: false, ...(rules && { runOnly: rules }) }
  const run = `axe.run(${JSON.stringify(ALIKE)}, ${JSON.stringify(options)})`
  const found = (await page.evaluate(run)) as axe.AxeResults
  return found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, help, nodes }) =>
        `${id}: ${help}: ${nodes
          .map(({ html }) => html)
          .slice(0, 3)
          .join(' ')}`,
    )
}

/** Currencies with 0, 2 and 3 decimals, now and on a past date. */
function reportAddresses(): string[] {
  const then = new Date(end - 150 * DAY_MS).toISOString().slice(0, 10)
  const scopes = [
    'currency=USD',
    'currency=JPY&compare=year',
    'currency=KWD&period=12m',
    `currency=EUR&period=${then}..${then}`,
  ]
  return scopes.flatMap(scope => REPORTS.map(report => `#/${report}?${scope}`))
}

test('every page and link in Chromium', { timeout: 900_000 }, async t => {
  const browser = await launchChromium(t)
  if (!browser) return

  await t.test(
    'no page shows an error, a missing value or an accessibility violation, light and dark, wide and small',
    async () => {
      const tab = await openTab(browser, server.url)
      const { page } = tab
      await page.getByLabel('Key', { exact: true }).waitFor()
      assert.deepEqual(await accessViolations(page), [], 'sign in')
      await signIn(page, adminKey)
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
      const visit = async ({ address, isFirst, isFirstPage }: Visit) => {
        assert.deepEqual(await page.evaluate(BROKEN), [], address)
        if (isFirstPage) assert.deepEqual(await accessViolations(page), [], address)
        if (!isFirst) return
        await page.setViewportSize(SMALL)
        assert.deepEqual(await page.evaluate(BROKEN), [], `${address}, small`)
        if (isFirstPage) {
          await page.emulateMedia({ colorScheme: 'dark' })
          assert.deepEqual(await accessViolations(page, LOOKS), [], `${address}, dark and small`)
          await page.emulateMedia({ colorScheme: 'light' })
        }
        await page.setViewportSize(WIDE)
      }
      const seen = await crawl(page, { starts: reportAddresses(), objects: 2, visit })
      const routes = new Set(seen.map(address => parseRoute(address)?.name))
      for (const name of [
        'event',
        'record',
        'person',
        'account',
        'source',
        'newSource',
        'destination',
        'newDestination',
        'connect',
        'tenants',
        'deadLetter',
        'conversion',
        'excluded',
      ] as const)
        assert.ok(routes.has(name), `no link leads to ${name}`)
      assert.deepEqual(tab.pageErrors, [])
      await tab.close()
    },
  )

  await t.test('long numbers are shown with all their digits', async () => {
    const tab = await openTab(browser, server.url)
    await signIn(tab.page, server.tenant.privateKey)
    await tab.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    const digits = async (address: string, row: string) => {
      await goTo(tab.page, address)
      const shown = await tab.page.getByRole('row').filter({ hasText: row }).first().textContent()
      return String(shown).replace(/\D/g, '')
    }
    assert.match(await digits('#/conversions?event_type=convert', 'JPY'), new RegExp(LONG))
    assert.match(await digits('#/conversions?event_type=convert', 'KWD'), new RegExp(`${LONG}125`))
    await goTo(tab.page, '#/records/orders/long')
    await tab.page.getByText(`"total": ${LONG}.5`).waitFor()
    assert.deepEqual(tab.pageErrors, [])
    await tab.close()
  })
})
