import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { launchChromium } from '../chromium.ts'
import { peopleOf } from '../customers/people.ts'
import { eventually } from '../eventually.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { created, inDays, item, send } from '../subscriptions/shop.ts'
import { goTo, openTab, signIn } from './tab.ts'

/** Questions about customers, as a head of growth asks them. */

let server: TestServer
let adminKey: string
let tenant: Awaited<ReturnType<TestServer['tenantWithServerKey']>>
before(async () => {
  server = await sharedServer()
  tenant = await server.tenantWithServerKey('growth')
  adminKey = (await server.admin.keys.create({ kind: 'admin', tenant: tenant.id })).key
  const people = peopleOf(server, tenant)
  const visit = (visitor: string, query: string) =>
    people.track({
      event_type: 'page_view',
      visitor,
      occurred_at: inDays(-5),
      data: { page: `https://shop.example/pricing${query}` },
    })
  await visit('v-ada', '?utm_source=google&utm_medium=cpc')
  await visit('v-bob', '?utm_source=google&utm_medium=cpc')
  await visit('v-eve', '?utm_source=letter&utm_medium=email')
  await people.contact('c-ada', { name: 'Ada Lovelace', email: 'ada@example.com', country: 'GB' })
  await people.track({
    event_type: 'sign_up',
    visitor: 'v-ada',
    occurred_at: inDays(-4),
    data: { email: 'ada@example.com' },
  })
  await people.track({
    event_type: 'purchase',
    visitor: 'v-ada',
    occurred_at: inDays(-3),
    data: { order_id: 'o-1', amount: 40, currency: 'EUR' },
  })
  await people.order('o-1', { total: 40, currency: 'EUR', contactId: 'c-ada', placedAt: inDays(-3) })
  await send(
    server,
    [
      created('small', { status: 'past_due', customer_name: 'Small Risk', items: [item(10)] }),
      created('large', { status: 'past_due', customer_name: 'Large Risk', items: [item(90)] }),
      created('safe', { customer_name: 'Safe Customer', items: [item(500)] }),
    ],
    tenant,
  )
  await people.settled()
})
after(() => server.close())

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
const rowNames = (page: Page) => page.locator('tbody th a').allTextContents()

test('stories about growth in Chromium', { timeout: 900_000 }, async t => {
  const browser = await launchChromium(t)
  if (!browser) return
  const { page, pageErrors, close } = await openTab(browser, server.url)
  await signIn(page, adminKey)
  await heading(page, 'Overview')

  await t.test('the customers at risk with the most money', async () => {
    await page.getByRole('link', { name: 'Customers', exact: true }).click()
    await heading(page, 'Customers')
    // Two clicks: this segment starts with the most money.
    await page.getByRole('button', { name: 'At risk' }).click()
    await page.waitForURL(/segment=at_risk.*sort=mrr/)
    await eventually('only customers at risk', async () => (await rowNames(page)).join() === 'Large Risk,Small Risk')
    await page.getByText('At risk: Has a past-due or unpaid subscription').waitFor()
    await page.getByText('Columns', { exact: true }).click()
    await page.getByRole('button', { name: 'Plan', exact: true }).click()
    await page.getByRole('columnheader', { name: 'Plan' }).waitFor()
    assert.match(page.url(), /columns=[^&]*plan/)
  })

  await t.test('the currency is offered only for an order by an amount, and each filter is explained', async () => {
    await goTo(page, '#/customers?sort=revenue')
    await page.getByText('Sorted by amounts in EUR. People without an amount in EUR are not listed.').waitFor()
    assert.equal(await page.locator('#currency').count(), 1)
    await page.getByLabel('Sort by').selectOption('name')
    await eventually('no currency', async () => (await page.locator('#currency').count()) === 0)
    await page.getByText('What these filters mean').click()
    await page.getByText('First purchase or payment in the last 30 days').waitFor()
  })

  await t.test('the page of an account leads back if the address names none', async () => {
    await goTo(page, '#/subscriptions/account')
    await page.getByText('No account selected.').waitFor()
    await page.getByRole('link', { name: 'All accounts' }).click()
    await heading(page, 'Subscriptions')
  })

  await t.test('a customer is found by name, and the page shows their value and each sale once', async () => {
    await goTo(page, '#/customers')
    await page.getByLabel('Customer', { exact: true }).fill('lovel')
    await page.getByRole('button', { name: 'Find' }).click()
    await page.getByRole('link', { name: 'Ada Lovelace' }).click()
    await heading(page, 'Ada Lovelace')
    const tiles = (await page.locator('.tiles li').allTextContents()).map(tile => tile.replace(/\s+/g, ' ').trim())
    assert.match(tiles[0]!, /Total revenue ?€40\.00 ?1 purchase/)
    assert.ok(
      tiles.some(tile => /Channel ?Paid search/.test(tile)),
      tiles.join('; '),
    )
    await page.getByRole('row', { name: /order o-1/ }).waitFor()
    assert.equal(await page.getByRole('row', { name: /o-1|purchase/ }).count(), 1)
  })

  await t.test('the best channel by paying customers, and the people behind it', async () => {
    await page.getByRole('link', { name: 'Acquisition', exact: true }).click()
    await heading(page, 'Acquisition')
    const row = page.getByRole('row', { name: /^Paid search/ })
    await row.waitFor()
    assert.match(String(await row.textContent()), /Paid search\s*2\s*1 50%\s*1/)
    await page.getByRole('link', { name: 'Paid search' }).click()
    await heading(page, 'Customers')
    assert.deepEqual(await rowNames(page), ['Ada Lovelace'])
  })

  await t.test('the funnel from the pricing page to the sale, by channel', async () => {
    await goTo(page, '#/acquisition/funnel')
    await page.getByLabel('Step 1').fill('page:/pricing*')
    await page.getByLabel('Step 2').fill('sign_up')
    await page.getByLabel('Step 3').fill('purchase')
    await page.getByLabel('Breakdown').selectOption('channel')
    await page.getByRole('button', { name: 'Show funnel' }).click()
    await page.getByRole('row', { name: /^Paid search 2 1 1/ }).waitFor()
    await page.getByRole('row', { name: /^page:\/pricing\* 3/ }).waitFor()
    await page.getByRole('row', { name: /^E-mail 1 0 0/ }).waitFor()
    // The visits of this test were sent without a user agent.
    await page.getByLabel('Device at start').selectOption('Phones')
    await page.getByRole('button', { name: 'Show funnel' }).click()
    await page.getByText('No one did “page:/pricing*” in this period').waitFor()
    await page.getByLabel('Device at start').selectOption('Unknown')
    await page.getByRole('button', { name: 'Show funnel' }).click()
    await page.getByRole('row', { name: /^page:\/pricing\* 3/ }).waitFor()
  })

  await t.test('the period of a list of people is in days of the time zone of the tenant', async () => {
    await server.admin.policies.set(tenant.id, { time_zone: 'Europe/Berlin' })
    await page.reload()
    await goTo(page, '#/customers?since=2026-01-31T23:00:00.000Z&until=2026-02-28T22:59:59.999Z')
    await page.getByText(/^People acquired in Feb 1\D+28, 2026\.$/).waitFor()
  })

  assert.deepEqual(pageErrors, [])
  await close()
})
