import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { verifyWebhook } from '../../sdk/js/src/webhooks.ts'
import { launchChromium } from '../chromium.ts'
import { startReceiver } from '../destinations/receiver.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer } from '../server.ts'
import { goTo, openTab, signIn } from './tab.ts'

/** What people come to the console for, told as they would do it. */

let server: TestServer
let adminKey: string
let receiver: Awaited<ReturnType<typeof startReceiver>>
before(async () => {
  server = await startServer({ KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' })
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
  receiver = await startReceiver()
})
after(async () => {
  await server.close()
  await receiver.close()
})

const heading = (page: Page, name: string | RegExp) =>
  page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
const text = (page: Page, words: string | RegExp) => page.locator('main').getByText(words).first().waitFor()
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const track = (event: object) =>
  server.request('/v1/track/', {
    method: 'POST',
    key: server.tenant.trackingKey,
    body: JSON.stringify(event),
  })

test('stories in Chromium', { timeout: 900_000 }, async t => {
  const browser = await launchChromium(t)
  if (!browser) return
  const { page, faults, close } = await openTab(browser, server.url)
  await signIn(page, adminKey)
  await heading(page, 'Overview')

  await t.test('a destination is made, tested, sent to, replayed, and disabled', async () => {
    await page.getByRole('link', { name: 'Destinations' }).click()
    await page.getByRole('link', { name: 'New destination' }).click()
    await page.getByLabel('Address').fill(`${receiver.url}/hooks`)
    await page.getByLabel('Name').fill('warehouse')
    await page.getByLabel('Conversions').uncheck()
    await page.getByLabel('Headers to send along').fill('X-Team: data')
    await press(page, 'Make the destination')
    await page.getByRole('heading', { name: 'warehouse is made' }).waitFor()
    const secret = String(await page.locator('.once code').first().textContent())
    await page.getByRole('link', { name: 'Open the destination' }).click()
    await heading(page, 'warehouse')

    await press(page, 'Send a test message')
    await text(page, 'The test message was delivered.')
    const [sent] = receiver.on('/hooks')
    assert.equal(sent!.headers['x-team'], 'data')
    assert.equal(await verifyWebhook({ secret, body: sent!.text, headers: sent!.headers }), true)

    await track({ event_type: 'signup', visitor: 'v-1' })
    await eventually('the event to be sent', async () =>
      receiver.received.some(({ body }) => body.type === 'event.signup'),
    )
    await eventually('the delivery to be listed', async () => {
      await goTo(page, '#/destinations')
      await page.getByRole('link', { name: 'warehouse' }).click()
      await heading(page, 'warehouse')
      return (await page.getByRole('row', { name: /event\.signup.*delivered 204/ }).count()) === 1
    })
    await press(page, 'event.signup')
    await page.getByRole('dialog').getByRole('link').click()
    await heading(page, 'signup')
    assert.equal(await page.getByRole('dialog').count(), 0)

    await page.goBack()
    await page.getByLabel('Since').fill('2020-01-01T00:00')
    await press(page, 'Replay')
    await text(page, '1 message will be sent again.')
    await press(page, 'Disable')
    await page.getByRole('button', { name: 'Enable', exact: true }).waitFor()
    const [destination] = await server.admin.destinations.list(server.tenant.id)
    assert.equal(destination!.enabled, false)
    assert.deepEqual(destination!.what, ['events'])
  })

  await t.test('all this without a script error', async () => {
    assert.deepEqual(faults, [])
    await close()
  })
})
