import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { get } from 'node:http'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { visible } from '../../console/format.ts'
import { literal, quoted } from '../../console/shell-text.ts'
import { launchChromium } from '../chromium.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer } from '../server.ts'
import { goTo, openTab, signIn } from './tab.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await startServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

/** The paths in the page: styles, modules, the icon. */
function pathsIn(page: Raw): string[] {
  return [...page.body.toString().matchAll(/(?:src|href)="(\/console\/[^"]+)"/g)].map(match => match[1]!)
}

type Raw = { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }

/** Sends the path as written; `fetch` would normalize it and decompress the body. */
function raw(path: string, headers: Record<string, string> = {}): Promise<Raw> {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    get({ hostname, port, path, headers, agent: false }, async response => {
      const chunks = []
      for await (const chunk of response) chunks.push(chunk)
      resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) })
    }).on('error', reject)
  })
}

test('secrets in sample commands reach the shell unchanged', () => {
  for (const secret of ["it's", '$HOME', '$(id)', '`id`', '"; id; "', "'; id; '", '$A', 'a\\', '!x', 'x$TOKEN y'])
    assert.equal(execFileSync('sh', ['-c', `printf %s ${literal(secret)}`]).toString(), secret)
  assert.equal(quoted('Authorization: Bearer $TOKEN'), '"Authorization: Bearer $TOKEN"')
  for (const text of ['Bearer `id` $TOKEN', 'Bearer $(id)$TOKEN', 'Bearer $TOKEN"'])
    assert.equal(execFileSync('sh', ['-c', `printf %s ${quoted(text)}`]).toString(), text)
})

test('invisible characters are written out; languages, emoji and white space stay unchanged', () => {
  assert.equal(visible('invoice\u202Efdp.exe'), 'invoice‹U+202E›fdp.exe')
  assert.equal(visible('a\u0000b\u001bc\u200bd\ufeff'), 'a‹U+0000›b‹U+001B›c‹U+200B›d‹U+FEFF›')
  for (const text of ['שלום עולם', 'نمی\u200cخواهم', '👩‍👩‍👧', 'line\n\ttab\r\n', 'naïve café'])
    assert.equal(visible(text), text)
})

test('files are served without types, compressed on request, and cacheable forever', async () => {
  const page = await raw('/console')
  assert.equal(page.status, 200)
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  assert.equal(page.headers['cache-control'], 'no-cache')
  const policy = String(page.headers['content-security-policy'])
  assert.match(policy, /default-src 'none'.*trusted-types 'none'/)
  const [, importMap] = /<script type="importmap">(.*?)<\/script>/.exec(page.body.toString())!
  assert.ok(policy.includes(`script-src 'self' 'sha256-${hash('sha256', importMap!, 'base64')}';`))
  assert.deepEqual((await raw('/console/')).body, page.body)

  const paths = [
    ...pathsIn(page),
    ...Object.values((JSON.parse(importMap!) as { imports: Record<string, string> }).imports),
  ]
  assert.ok(paths.length >= 10)
  const types: Record<string, string> = {
    ts: 'text/javascript; charset=utf-8',
    js: 'text/javascript; charset=utf-8',
    css: 'text/css; charset=utf-8',
    svg: 'image/svg+xml',
  }
  for (const path of paths) {
    const plain = await raw(path)
    const gzipped = await raw(path, { 'accept-encoding': 'gzip, br' })
    assert.equal(plain.status, 200, path)
    assert.equal(plain.headers['content-type'], types[path.split('.').pop()!])
    assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.equal(plain.headers['content-encoding'], undefined)
    assert.equal(gzipped.headers['content-encoding'], 'gzip')
    assert.deepEqual(gunzipSync(gzipped.body), plain.body)
    assert.notEqual(gzipped.headers.etag, plain.headers.etag)

    const known = await raw(path, { 'if-none-match': `"other", ${plain.headers.etag}` })
    assert.equal(known.status, 304)
    assert.equal(known.body.length, 0)
    const refused = await raw(path, { 'accept-encoding': 'gzip;q=0' })
    assert.equal(refused.headers['content-encoding'], undefined)
  }
})

test('only files of the console are served, and none is in the API document', async () => {
  const otherPaths = [
    '/package.json',
    '/../package.json',
    '/%2e%2e/package.json',
    '/..%2fpackage.json',
    '/pages',
    '/app.ts',
    '/tsconfig.json',
    '/index.html',
  ]
  const [, base] = /src="(\/console\/[^/]+)\/app\.ts"/.exec((await raw('/console')).body.toString())!
  for (const path of otherPaths) {
    assert.equal((await raw(`/console${path}`)).status, 404, path)
    if (path !== '/app.ts') assert.equal((await raw(base + path)).status, 404, base + path)
  }
  const { body } = await server.request('/openapi.json')
  assert.deepEqual(
    Object.keys(body.paths).filter(path => path.startsWith('/console')),
    [],
  )
})

/** Opens a view by its address. */
async function open(page: Page, path: string, title: string) {
  await goTo(page, `#/${path}`)
  await heading(page, title)
}

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
const text = (page: Page, words: string) => page.locator('main').getByText(words).first().waitFor()
const post = (path: string, key: string, body: unknown) =>
  server.request(path, { method: 'POST', key, body: JSON.stringify(body) })
const keysOfTenant = () => server.admin.keys.list(server.tenant.id)

test('console in Chromium', { timeout: 900_000 }, async t => {
  const browser = await launchChromium(t)
  if (!browser) return
  const { page, pageErrors, close } = await openTab(browser, server.url)

  await t.test('a wrong key shows an explanation', async () => {
    const wrong = await openTab(browser, server.url, { failing: /\/console\/session/ })
    await signIn(wrong.page, server.tenant.trackingKey)
    await wrong.page.getByRole('alert').getByText('This is a tracking key').waitFor()
    await signIn(wrong.page, 'adm_not-a-key')
    await wrong.page.getByRole('alert').getByText('Unknown key.').waitFor()
    assert.match(String(await wrong.page.getByRole('alert').textContent()), /Request req_/)
    assert.equal(await wrong.page.evaluate('sessionStorage.length'), 0)
    assert.deepEqual(wrong.pageErrors, [])
    await wrong.close()
  })

  await t.test('a private key shows its data and no administration', async () => {
    const other = await openTab(browser, server.url)
    await signIn(other.page, server.tenant.privateKey)
    await heading(other.page, 'Overview')
    assert.equal(await other.page.getByRole('navigation', { name: 'Data' }).isVisible(), true)
    assert.equal(await other.page.getByRole('navigation', { name: 'Administration' }).count(), 0)
    await open(other.page, 'keys', 'Keys')
    await other.page.getByRole('alert').getByText('This page requires an admin key').waitFor()
    assert.deepEqual(other.pageErrors, [])
    await other.close()
  })

  await t.test('with an admin key the console reads with a session and creates no key', async () => {
    const before = await keysOfTenant()
    await signIn(page, adminKey)
    await heading(page, 'Overview')
    assert.deepEqual(
      (await keysOfTenant()).map(({ id }) => id),
      before.map(({ id }) => id),
    )
    assert.doesNotMatch(String(await page.evaluate('JSON.stringify({ ...sessionStorage, ...localStorage })')), /adm_/)
  })

  await t.test('events appear without a reload, can be looked up, and are shown as text', async () => {
    await text(page, 'Send an event, to do')
    const markup = '<img src=x onerror="document.title=1"><b>bold</b>'
    const sent = { event_type: markup, event_id: 'e-1', visitor: 'v-1', data: { page: markup } }
    await post('/v1/track/', server.tenant.trackingKey, sent)
    await page.getByRole('link', { name: markup }).click()
    await heading(page, markup)
    await text(page, '"page": "<img src=x onerror=')
    assert.equal(await page.locator('main b, main img').count(), 0)

    await page.evaluate(`location.hash = '#/events/lookup?id=e-1'`)
    await text(page, 'Stored as an event')
    await open(page, 'events?event_type=nothing', 'Events')
    await text(page, 'No results match these filters.')
    await page.getByLabel('Type').fill(markup)
    await page.getByLabel('Type').press('Enter')
    await page.getByRole('link', { name: markup }).waitFor()
  })

  await t.test('a list loads page by page', async () => {
    const batch = Array.from({ length: 70 }, (_, index) => ({
      ...{ type: 'track', event: 'Listed', messageId: `listed-${index}`, anonymousId: 'v-1' },
    }))
    await post('/v1/batch', server.tenant.trackingKey, { batch })
    await server.settled()
    await page.evaluate(`location.hash = '#/events?event_type=Listed'`)
    await page.getByRole('button', { name: 'Show more' }).waitFor()
    assert.equal(await page.locator('.live-list tbody tr').count(), 50)
    await page.getByRole('button', { name: 'Show more' }).click()
    await page.locator('.live-list tbody tr').nth(69).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Show more' }).count(), 0)
    await page.locator('.live-list tbody tr').nth(69).scrollIntoViewIfNeeded()
    // The header of the table stays in view, below the bar.
    await page.waitForFunction(`Math.abs(
      document.querySelector('.live-list thead th').getBoundingClientRect().top -
      document.querySelector('.bar').getBoundingClientRect().bottom) < 2`)
  })

  await t.test('a source is created, receives an event, is tested and disabled', async () => {
    await page.getByRole('link', { name: 'Sources' }).click()
    await page.getByRole('link', { name: 'New source' }).click()
    await page.getByLabel('Name').fill('shop')
    await page.getByRole('button', { name: 'Create source' }).click()
    await page.getByRole('heading', { name: 'Source shop created' }).waitFor()
    const command = String(await page.locator('.copyable code', { hasText: 'curl' }).textContent())
    const path = /\/ingest\/inbound\/src_\w+/.exec(command)![0]
    const token = /tok_\w+/.exec(command)![0]
    const body = /-d '(.*)'/.exec(command)![1]!
    await page.getByRole('link', { name: 'Open the source' }).click()
    await heading(page, 'shop')
    await text(page, 'No events received yet.')
    const answer = await server.request(path, { method: 'POST', key: token, body })
    assert.deepEqual([answer.status, answer.body.accepted], [200, 1])
    // Without a reload.
    await page.getByRole('row', { name: /ticket\.opened.*processed/ }).waitFor()
    await page.getByRole('button', { name: 'Send test event' }).click()
    await text(page, 'The test event was processed.')

    await page.getByRole('button', { name: 'Disable' }).click()
    await page.getByRole('button', { name: 'Enable' }).waitFor()
    const [source] = await server.admin.sources.list(server.tenant.id)
    assert.equal(source!.enabled, false)
  })

  await t.test('a source of another tenant is not shown under the selected tenant', async () => {
    const { id: tenant } = await server.admin.tenants.create({ name: 'elsewhere' })
    const { id } = await server.admin.sources.create({ tenant, type: 'webhook', name: 'source of another tenant' })
    await goTo(page, `#/sources/${id}?tenant=${server.tenant.id}`)
    await text(page, 'The selected tenant has nothing with this id.')
  })

  await t.test('a new token stays visible when the page cannot be refreshed', async () => {
    const [source] = await server.admin.sources.list(server.tenant.id)
    const {
      page: other,
      pageErrors: failures,
      close: closeOther,
    } = await openTab(browser, server.url, {
      failing: /\/admin\/v1\/receipts/,
    })
    await signIn(other, adminKey)
    await heading(other, 'Overview')
    await open(other, `sources/${source!.id}`, 'shop')
    await other.route('**/admin/v1/receipts?**', route => route.abort())
    await other.getByRole('button', { name: 'Rotate token' }).click()
    await other.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    await other.getByRole('alert').getByText('The server cannot be reached').waitFor()
    const token = String(await other.locator('.once code').first().textContent())
    assert.match(token, /^tok_/)
    const body = JSON.stringify({ event_type: 'by_the_new_token' })
    await server.admin.sources.setEnabled(source!.id, true)
    // The server learns of the change a moment later.
    await eventually('the source to accept the new token', async () => {
      const { status } = await server.request(source!.path, { method: 'POST', key: token, body })
      return status === 200
    })
    await other.getByRole('button', { name: 'Sign out' }).click()
    await other.getByLabel('Key', { exact: true }).waitFor()
    assert.deepEqual(failures, [])
    await closeOther()
  })

  await t.test('a dead letter shows its body and is replayed', async () => {
    const good = { type: 'track', event: 'Signed Up', messageId: 'good', anonymousId: 'v-2' }
    const bad = { type: 'track', messageId: 'bad', anonymousId: 'v-2', properties: { plan: 'pro' } }
    const { body } = await post('/v1/batch', server.tenant.trackingKey, { batch: [good, bad] })
    assert.equal(body.rejected.length, 1)
    await server.settled()
    await open(page, 'overview', 'Overview')
    await page.locator('main').getByRole('link', { name: '1 dead letter' }).click()
    await heading(page, 'Dead letters')
    await page.getByRole('row').getByRole('link').click()
    await heading(page, 'Dead letter')
    assert.match(await page.getByRole('textbox', { name: 'Body' }).inputValue(), /"plan": "pro"/)
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await text(page, 'Replayed as')
    await text(page, '"plan": "pro"')
    assert.equal(await page.getByRole('button', { name: 'Replay' }).count(), 0)
    const id = await page.evaluate(`location.hash.split('/').pop()`)
    const letter = await server.request(`/admin/v1/dead-letters/${id}`, { key: adminKey })
    assert.notEqual(letter.body.replayed_at, null)
  })

  await t.test('live events appear, expand, and are held while paused', async () => {
    await open(page, 'events', 'Events')
    const track = (event_type: string) =>
      post('/v1/track/', server.tenant.trackingKey, {
        event_type,
        visitor: 'v-live',
        data: { seen: event_type },
      })
    await track('came_in')
    await page.getByRole('button', { name: 'Payload of came_in' }).click()
    await text(page, '"seen": "came_in"')
    await page.getByRole('button', { name: 'Pause' }).click()
    await track('came_later')
    await page.getByRole('button', { name: 'Resume (1 new event)' }).click()
    await page.getByRole('link', { name: 'came_later' }).waitFor()
    await page.getByLabel('Visitor, contact or source').fill('v-live')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL(/#\/events\?with=v-live/)
    await page.getByRole('link', { name: 'came_later' }).waitFor()
  })

  await t.test('a person is found by an identifier, has a timeline, and is erased after confirmation', async () => {
    await post('/v1/identify', server.tenant.trackingKey, {
      anonymousId: 'v-ada',
      userId: 'ada',
      traits: { plan: 'pro' },
    })
    await server.settled()
    await open(page, 'customers', 'Customers')
    await page.getByLabel('Customer', { exact: true }).fill('visitor:v-ada')
    await page.getByRole('button', { name: 'Find' }).click()
    await page.getByRole('row', { name: /^ada unverified user/ }).waitFor()
    await page.getByRole('link', { name: 'identify' }).waitFor()
    await page.getByRole('button', { name: 'Preview erasure' }).click()
    const title = String(await page.locator('h1').textContent())
    const confirmation = page.getByLabel(`Type ${title} to confirm`)
    const erase = page.getByRole('button', { name: 'Erase permanently' })
    await confirmation.fill('prof_0')
    assert.ok(await erase.isDisabled())
    await confirmation.fill(title)
    await erase.click()
    await page.getByRole('heading', { name: 'Erased' }).waitFor()
    const gone = `/admin/v1/people/visitor:v-ada?tenant=${server.tenant.id}`
    assert.equal((await server.request(gone, { key: adminKey })).status, 404)
  })

  await t.test('a record is listed and opened', async () => {
    const data = { sku: 'MUG 01/a', name: 'Mug', price: 12.9 }
    const product = { entityType: 'product', id: 'p-1', sourceUpdatedAt: '2026-01-31T09:30:00Z', data }
    await post('/v1/products', server.tenant.privateKey, product)
    await server.settled()
    await page.getByRole('link', { name: 'Records' }).click()
    await page.getByRole('link', { name: 'p-1' }).click()
    await heading(page, 'Mug')
    await text(page, '"sku": "MUG 01/a"')
    assert.equal(await page.locator('time').first().getAttribute('title'), '2026-01-31 09:30:00 UTC')
  })

  await t.test('a key is created, works and is revoked', async () => {
    await open(page, 'keys?kind=tracking', 'Keys')
    await page.getByLabel('Name').fill('Newsletter')
    await page.getByRole('button', { name: 'Create key' }).click()
    const made = String(await page.locator('.once code').first().textContent())
    assert.match(made, /^trk_/)
    assert.equal((await post('/v1/track/', made, { event_type: 'by_the_new_key' })).status, 200)
    await page.evaluate(`location.hash = '#/keys'`)
    const row = page.getByRole('row', { name: `Newsletter tracking …${made.slice(-4)}` })
    const ends = (await keysOfTenant()).find(({ hint }) => made.endsWith(hint.slice(1)))!.expires_at
    assert.equal(Math.round((Date.parse(ends!) - Date.now()) / 86_400_000), 90)
    await row.getByRole('button', { name: 'Rotate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    const another = page.locator('.once code', { hasText: /^trk_/, hasNotText: made }).first()
    const replaced = String(await another.textContent())
    assert.notEqual(replaced, made)
    for (const key of [made, replaced])
      assert.equal((await post('/v1/track/', key, { event_type: 'during_the_overlap' })).status, 200)
    await server.admin.keys.revoke((await keysOfTenant()).find(({ hint }) => replaced.endsWith(hint.slice(1)))!.id)
    await row.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await row.waitFor({ state: 'detached' })
    const key = (await keysOfTenant()).find(({ hint }) => made.endsWith(hint.slice(1)))
    assert.notEqual(key!.revoked_at, null)
  })

  await t.test('a viewer reads which keys the role can create, and creates one', async () => {
    const { key } = await server.admin.keys.create({ kind: 'admin', role: 'viewer' })
    const other = await openTab(browser, server.url)
    await signIn(other.page, key)
    await heading(other.page, 'Overview')
    await open(other.page, 'keys', 'Keys')
    await text(other.page, 'Your role can create private keys that have only read scopes and expire in one day.')
    for (const scope of ['products:write', 'contacts:write', 'orders:write'])
      await other.page.getByLabel(scope, { exact: true }).uncheck()
    await other.page.getByLabel('Expires', { exact: true }).selectOption('In 1 day')
    await other.page.getByRole('button', { name: 'Create key' }).click()
    const made = String(await other.page.locator('.once code').first().textContent())
    assert.equal((await server.request('/v1/products', { key: made })).status, 200)
    await other.page.getByRole('button', { name: 'Sign out' }).click()
    await other.page.getByLabel('Key', { exact: true }).waitFor()
    assert.deepEqual(other.pageErrors, [])
    await other.close()
  })

  await t.test('on a small screen every view fits, has one title and labeled controls', async () => {
    await page.setViewportSize({ width: 360, height: 740 })
    for (const [path, title] of VIEWS) {
      await open(page, path, title)
      const found = await page.evaluate(`({
        overflows: document.documentElement.scrollWidth > innerWidth,
        titles: document.querySelectorAll('h1').length,
        unnamed: [...document.querySelectorAll('input, select, textarea')].filter(c => !c.labels.length).length,
        current: document.querySelectorAll('.menu [aria-current=page]').length,
      })`)
      assert.deepEqual(found, { overflows: false, titles: 1, unnamed: 0, current: 1 }, path)
    }
  })

  await t.test('the menu works with the keyboard, and the new title has the focus', async () => {
    const menu = page.getByRole('button', { name: 'Menu' })
    const events = page.getByRole('navigation', { name: 'Data' }).getByRole('link', { name: 'Events' })
    assert.equal(await events.isVisible(), false)
    await menu.press('Enter')
    await events.press('Enter')
    await heading(page, 'Events')
    assert.equal(await page.evaluate('document.activeElement.tagName'), 'H1')
    assert.equal(await menu.getAttribute('aria-expanded'), 'false')
  })

  await t.test('signing out ends the session and clears the tab', async () => {
    const countSessions = async () => (await server.admin.sessions.list()).length
    assert.equal(await countSessions(), 1)
    // “Key” alone would also match this label of the list, before the session has ended.
    await page.getByLabel('Payload of by_the_new_key').waitFor()
    await page.getByRole('button', { name: 'Menu' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Key', { exact: true }).waitFor()
    assert.equal(await page.evaluate('sessionStorage.length + localStorage.length'), 0)
    assert.equal(await countSessions(), 0)
  })

  await t.test('no script error and no request to another server occurred', async () => {
    assert.deepEqual(pageErrors, [])
    await close()
  })
})

const VIEWS = [
  ['overview', 'Overview'],
  ['events', 'Events'],
  ['conversions', 'Conversions'],
  ['records/products', 'Records'],
  ['subscriptions', 'Subscriptions'],
  ['sources', 'Sources'],
  ['sources/new', 'New source'],
  ['destinations', 'Destinations'],
  ['destinations/new', 'New destination'],
  ['keys', 'Keys'],
  ['dead-letters', 'Dead letters'],
  ['audit', 'Audit log'],
] as const
