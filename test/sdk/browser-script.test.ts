import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify from 'fastify'
import type { Page } from 'playwright-core'
import { scriptRoute } from '../../src/http/events/script.ts'
import { launchChromium, openContext } from '../chromium.ts'
import { eventually } from '../eventually.ts'
import { type Answer, type Sent, startShop } from './browser-shop.ts'

const guide = readFileSync(new URL('../../docs/guides/browser.md', import.meta.url), 'utf8')
const stub = /```html\n(<script>.*?<\/script>)/s.exec(guide)![1]!

const named = (name: string) => (event: Sent) => event.event_type === name
const isPageView = (page: string) => (event: Sent) => event.event_type === 'page_view' && event.data.page === page
const loaded = (page: Page) => page.waitForFunction('window.kontor && kontor.loaded')
const queueLength = "Object.keys(localStorage).filter(name => name.startsWith('kontor.q.')).length"
const queueEmpty = (page: Page) => page.waitForFunction(`${queueLength} === 0`)

/** The errors that the script writes to the console. */
function logged(page: Page): string[] {
  const errors: string[] = []
  page.on('console', message => message.text().startsWith('kontor:') && errors.push(message.text()))
  return errors
}

/** Retry timers do not fire automatically: `waits` contains their delays, and `waits[n].run()` fires one. */
const heldTimers = `
  window.waits = []
  const startTimer = window.setTimeout
  window.setTimeout = (run, ms) => (ms >= 500 && ms !== 15000 ? waits.push({ run, ms }) : startTimer(run, ms))`

test('the script is served compressed, cacheable and under 3 KB', async () => {
  const app = Fastify().withTypeProvider<TypeBoxTypeProvider>()
  scriptRoute(app)
  const get = (headers: Record<string, string>) => app.inject({ url: '/k.js', headers })

  const plain = await get({})
  const gzip = await get({ 'accept-encoding': 'gzip, deflate' })
  const brotli = await get({ 'accept-encoding': 'gzip, deflate, br' })

  assert.equal(plain.headers['content-type'], 'text/javascript; charset=utf-8')
  assert.equal(plain.headers['content-encoding'], undefined)
  assert.equal(gzip.headers['content-encoding'], 'gzip')
  assert.equal(brotli.headers['content-encoding'], 'br')
  assert.equal(gunzipSync(gzip.rawPayload).toString(), plain.body)
  assert.ok(gzip.rawPayload.length < 3000, `${gzip.rawPayload.length} bytes`)
  for (const answer of [plain, gzip, brotli]) {
    assert.equal(answer.headers['cache-control'], 'public, max-age=3600')
    assert.equal(answer.headers['access-control-allow-origin'], '*')
    assert.equal(answer.headers['cross-origin-resource-policy'], 'cross-origin')
    assert.equal(answer.headers.vary, 'accept-encoding')
  }
  const etags = [plain, gzip, brotli].map(answer => answer.headers.etag)
  assert.equal(new Set(etags).size, 3)
  assert.ok(etags.every(etag => /^"[\w-]+"$/.test(String(etag))))

  const again = await get({ 'accept-encoding': 'gzip', 'if-none-match': `"other", ${gzip.headers.etag}` })
  assert.equal(again.statusCode, 304)
  assert.equal(again.rawPayload.length, 0)
  assert.equal(again.headers.etag, gzip.headers.etag)
  const otherCoding = await get({ 'accept-encoding': 'br', 'if-none-match': String(gzip.headers.etag) })
  assert.equal(otherCoding.statusCode, 200)
  const refused = await get({ 'accept-encoding': 'br;q=0, gzip;q=0.5' })
  assert.equal(refused.headers['content-encoding'], 'gzip')
})

test('browser script in Chromium', { timeout: 900_000 }, async t => {
  const browser = await launchChromium(t)
  if (!browser) return

  await t.test('a page view on load and on every change of address, without preflight', async t => {
    const shop = await startShop(t)
    const page = await (await openContext(t, browser)).newPage()
    await page.goto(`${shop.url}/tea?utm_source=news#reviews`)
    const first = await shop.arrival(named('page_view'))
    const tea = `${shop.url}/tea?utm_source=news`
    assert.equal(first.url, '/v1/track/?key=trk_test')
    assert.match(String(first.headers['content-type']), /^text\/plain/)
    assert.match(first.event.visitor, /^\w{32}$/)
    assert.match(first.event.session_id, /^\w{32}$/)
    assert.match(first.event.event_id, /^\w{32}$/)
    assert.ok(Math.abs(Date.parse(first.event.occurred_at) - Date.now()) < 60_000)
    assert.deepEqual(first.event.data, { page: tea, referrer: '', title: 'Tea' })

    await page.evaluate(`
      history.replaceState({ scroll: 1 }, '')
      history.pushState({}, '', '#top')
      history.pushState({}, '', '/cart')
      history.pushState({ modal: true }, '')
      history.replaceState({}, '', '/cart?step=2')
      history.pushState({}, '', '#/pay')`)
    await shop.arrival(isPageView(`${shop.url}/cart?step=2#/pay`))
    await page.evaluate('history.go(-1)')
    await page.waitForFunction("location.href.endsWith('step=2')")
    await page.evaluate("kontor.track('last')")
    await shop.arrival(named('last'))

    const addresses = shop.arrivals.map(({ event }) => [event.event_type, event.data.page, event.data.referrer])
    const cart = `${shop.url}/cart`
    assert.deepEqual(addresses, [
      ['page_view', tea, ''],
      ['page_view', cart, tea],
      ['page_view', `${cart}?step=2`, cart],
      ['page_view', `${cart}?step=2#/pay`, `${cart}?step=2`],
      ['page_view', `${cart}?step=2`, `${cart}?step=2#/pay`],
      ['last', `${cart}?step=2`, `${cart}?step=2#/pay`],
    ])
    assert.equal(new Set(shop.arrivals.map(({ event }) => event.event_id)).size, 6)
    assert.equal(new Set(shop.arrivals.map(({ event }) => event.session_id)).size, 1)
    assert.equal(shop.preflights, 0)
  })

  await t.test('calls made before the script arrives are kept by the stub of the guide', async t => {
    const shop = await startShop(t)
    shop.head = `${stub}<script>kontor.track('early', { sku: 'TEA-1' }); kontor.identify('u1')</script>`
    const page = await (await openContext(t, browser)).newPage()
    await page.goto(shop.url)
    const early = await shop.arrival(named('early'))
    assert.equal(early.event.data.sku, 'TEA-1')
    assert.equal((await shop.arrival(named('identify'))).event.user_id, 'u1')
    assert.deepEqual(
      shop.arrivals.map(({ event }) => event.event_type),
      ['page_view', 'early', 'identify'],
    )
  })

  await t.test('identify adds the user to this and all later events, until reset', async t => {
    const shop = await startShop(t)
    const page = await (await openContext(t, browser)).newPage()
    await page.goto(shop.url)
    await loaded(page)
    await page.evaluate("kontor.identify(17, { email: 'ada@example.com' })")
    const { event } = await shop.arrival(named('identify'))
    assert.equal(event.user_id, '17')
    assert.equal(event.data.email, 'ada@example.com')
    await page.goto(`${shop.url}/next`)
    const next = (await shop.arrival(isPageView(`${shop.url}/next`))).event
    assert.deepEqual([next.user_id, next.visitor], ['17', event.visitor])

    await page.evaluate("kontor.reset(), kontor.track('anonymous')")
    const anonymous = (await shop.arrival(named('anonymous'))).event
    assert.equal(anonymous.user_id, undefined)
    assert.notEqual(anonymous.visitor, event.visitor)
    assert.notEqual(anonymous.session_id, event.session_id)
  })

  await t.test('a user id over 255 characters is reported and not stored, and tracking continues', async t => {
    const shop = await startShop(t)
    const page = await (await openContext(t, browser)).newPage()
    const errors = logged(page)
    await page.goto(shop.url)
    await loaded(page)
    await page.evaluate("kontor.identify('u'.repeat(256)), kontor.track('after')")
    assert.equal((await shop.arrival(named('after'))).event.user_id, undefined)
    await eventually('the error', async () => errors.length === 1)
    assert.match(errors[0]!, /255 characters/)
    await page.evaluate("kontor.identify('u'.repeat(255))")
    assert.equal((await shop.arrival(named('identify'))).event.user_id, 'u'.repeat(255))

    await page.evaluate("localStorage.setItem('kontor.u', 'u'.repeat(256))")
    await page.goto(`${shop.url}/next`)
    assert.equal((await shop.arrival(isPageView(`${shop.url}/next`))).event.user_id, undefined)
  })

  await t.test('with a full localStorage, identify replaces the earlier user', async t => {
    const shop = await startShop(t)
    const page = await (await openContext(t, browser)).newPage()
    await page.goto(shop.url)
    await loaded(page)
    await page.evaluate("kontor.identify('a')")
    await shop.arrival(named('identify'))
    await queueEmpty(page)
    await page.evaluate(`
      for (let size = 2 ** 22, n = 0; size >= 1; )
        try {
          localStorage.setItem('fill' + n++, 'x'.repeat(size))
        } catch {
          size = size > 1 ? size / 2 : 0
        }
      kontor.identify('another user', { plan: 'pro' })
      kontor.track('after')`)
    assert.equal((await shop.arrival(event => event.data.plan === 'pro')).event.user_id, 'another user')
    assert.equal((await shop.arrival(named('after'))).event.user_id, 'another user')
  })

  await t.test('tabs share visitor and session; a new session starts after 30 minutes without an event', async t => {
    const shop = await startShop(t)
    const context = await openContext(t, browser)
    const [firstTab, secondTab] = [await context.newPage(), await context.newPage()]
    const start = new Date('2026-03-01T09:00:00Z')
    for (const page of [firstTab, secondTab]) {
      await page.clock.install({ time: start })
      await page.goto(shop.url)
      await loaded(page)
    }
    const trackAt = async (page: Page, minute: number, name: string) => {
      await queueEmpty(page)
      await page.clock.setFixedTime(new Date(start.getTime() + minute * 60_000))
      await page.evaluate(`kontor.track('${name}')`)
      return (await shop.arrival(named(name))).event
    }
    const early = await trackAt(firstTab, 0, 'early')
    const inOtherTab = await trackAt(secondTab, 29, 'in other tab')
    const stillGoing = await trackAt(firstTab, 58, 'still going')
    const later = await trackAt(secondTab, 88, 'later')
    assert.equal(inOtherTab.session_id, early.session_id)
    assert.equal(stillGoing.session_id, early.session_id)
    assert.notEqual(later.session_id, early.session_id)
    assert.equal(new Set(shop.arrivals.map(({ event }) => event.visitor)).size, 1)
    assert.equal(later.occurred_at, '2026-03-01T10:28:00.000Z')
  })

  await t.test('events tracked offline arrive once, when the browser is online again', async t => {
    const shop = await startShop(t)
    const context = await openContext(t, browser)
    const page = await context.newPage()
    await page.addInitScript(heldTimers)
    await page.goto(shop.url)
    await shop.arrival(named('page_view'))
    await queueEmpty(page)
    await context.setOffline(true)
    await page.evaluate("kontor.track('one'), kontor.track('two')")
    await page.waitForFunction('waits.length === 1')
    await context.setOffline(false)
    await queueEmpty(page)
    assert.deepEqual(shop.arrivals.map(({ event }) => event.event_type).sort(), ['one', 'page_view', 'two'])
  })

  await t.test('the next page sends the unsent events of a closed page', async t => {
    const shop = await startShop(t)
    const context = await openContext(t, browser)
    const page = await context.newPage()
    await page.goto(shop.url)
    await shop.arrival(named('page_view'))
    await queueEmpty(page)
    await context.setOffline(true)
    await page.evaluate("kontor.track('unsent')")
    await page.close()
    await context.setOffline(false)
    await (await context.newPage()).goto(shop.url)
    const { event } = await shop.arrival(
      (event, headers) => event.event_type === 'unsent' && headers['sec-fetch-mode'] === 'cors',
    )
    assert.equal(event.visitor, shop.arrivals[0]!.event.visitor)
  })

  await t.test('429 and 5xx are retried under the same event_id, with back-off, after Retry-After', async t => {
    const shop = await startShop(t)
    const answers: Answer[] = [{ status: 500 }, { status: 503 }, { status: 429, headers: { 'retry-after': '120' } }]
    shop.answer = () => answers.shift() ?? { status: 200 }
    const page = await (await openContext(t, browser)).newPage()
    await page.addInitScript(heldTimers)
    await page.goto(shop.url)
    for (const [index, from, to] of [
      [0, 500, 1000],
      [1, 1000, 2000],
      [2, 122_000, 124_000],
    ] as const) {
      await page.waitForFunction(`waits.length === ${index + 1}`)
      const waitMs = Number(await page.evaluate(`waits[${index}].ms`))
      assert.ok(waitMs >= from && waitMs <= to, `retry ${index + 1} after ${waitMs} ms`)
      assert.equal(await page.evaluate(queueLength), 1)
      await page.evaluate(`waits[${index}].run()`)
    }
    await queueEmpty(page)
    assert.equal(shop.arrivals.length, 4)
    assert.equal(new Set(shop.arrivals.map(({ event }) => event.event_id)).size, 1)
  })

  await t.test('an event without a response is sent again with the same event_id', async t => {
    const shop = await startShop(t)
    shop.answer = () => 'hang up'
    const page = await (await openContext(t, browser)).newPage()
    await page.addInitScript(heldTimers)
    await page.goto(shop.url)
    await page.waitForFunction('waits.length === 1')
    const before = shop.arrivals.length
    shop.answer = () => ({ status: 200 })
    await page.evaluate('waits[0].run()')
    await queueEmpty(page)
    assert.equal(shop.arrivals.length, before + 1)
    assert.equal(new Set(shop.arrivals.map(({ event }) => event.event_id)).size, 1)
  })

  await t.test('an event that the server rejects is dropped and does not block others', async t => {
    const shop = await startShop(t)
    shop.answer = event => ({ status: event.event_type === 'bad' ? 400 : 200 })
    const page = await (await openContext(t, browser)).newPage()
    await page.goto(shop.url)
    await loaded(page)
    await page.evaluate("kontor.track('bad'), kontor.track('good')")
    await shop.arrival(named('good'))
    await queueEmpty(page)
    assert.equal(shop.arrivals.filter(({ event }) => event.event_type === 'bad').length, 1)
  })

  await t.test('when the page is left, queued events are sent by beacon', async t => {
    const shop = await startShop(t)
    shop.answer = event => (event.event_type === 'page_view' ? new Promise(() => {}) : { status: 200 })
    const page = await (await openContext(t, browser)).newPage()
    await page.goto(shop.url)
    await shop.arrival(named('page_view'))
    await page.evaluate("kontor.track('goodbye')")
    await page.goto('about:blank')
    const { event, headers, url } = await shop.arrival(named('goodbye'))
    assert.equal(url, '/v1/track/?key=trk_test')
    assert.equal(headers['sec-fetch-mode'], 'no-cors')
    assert.match(String(headers['content-type']), /^text\/plain/)
    assert.ok(event.event_id)
    assert.equal(shop.preflights, 0)
  })

  await t.test(
    'the queue keeps 1,000 events of the page, the newest 50 on disk, and reports dropped events',
    async t => {
      const shop = await startShop(t)
      const context = await openContext(t, browser)
      const page = await context.newPage()
      const errors = logged(page)
      await page.addInitScript(heldTimers)
      await page.goto(shop.url)
      await shop.arrival(named('page_view'))
      await queueEmpty(page)
      await page.evaluate("for (let i = 1; i <= 60; i++) kontor.track('online ' + i)")
      await shop.arrival(named('online 60'))
      await queueEmpty(page)
      const names = shop.arrivals.map(({ event }) => event.event_type)
      assert.deepEqual(names, ['page_view', ...Array.from({ length: 60 }, (_, i) => `online ${i + 1}`)])

      await context.setOffline(true)
      await page.evaluate("for (let i = 1; i <= 1000; i++) kontor.track('offline ' + i)")
      await page.waitForFunction('waits.length === 1')
      assert.equal(await page.evaluate(queueLength), 50)
      assert.deepEqual(errors, [])
      await page.evaluate("kontor.track('one more')")
      await eventually('the dropped event to be reported', async () => errors.length === 1)
      assert.match(errors[0]!, /queue is full/)
    },
  )

  await t.test('Do-Not-Track and Global Privacy Control: nothing is sent or stored', async t => {
    const shop = await startShop(t)
    shop.head = `${stub}<script>kontor.track('early')</script>`
    for (const signal of ["doNotTrack', { get: () => '1' }", "globalPrivacyControl', { get: () => true }"]) {
      const context = await openContext(t, browser)
      const before = await context.newPage()
      await before.goto(shop.url)
      await loaded(before)
      await queueEmpty(before)
      assert.notEqual(await before.evaluate('localStorage.length'), 0)
      await before.close()

      const page = await context.newPage()
      const requests: string[] = []
      page.on('request', request => requests.push(new URL(request.url()).pathname))
      await page.addInitScript(`Object.defineProperty(Navigator.prototype, '${signal})`)
      await page.goto(shop.url)
      await loaded(page)
      await page.evaluate("kontor.track('x'), kontor.identify('u'), history.pushState({}, '', '/y')")
      assert.equal(await page.evaluate('localStorage.length'), 0)
      assert.equal(await page.evaluate('document.cookie'), '')
      await page.goto('about:blank')
      assert.deepEqual(
        requests.filter(path => path.startsWith('/v1/')),
        [],
      )
    }
    assert.deepEqual(
      shop.arrivals.map(({ event }) => event.event_type),
      ['page_view', 'early', 'page_view', 'early'],
    )
  })

  await t.test('without localStorage the visitor id is stored in a cookie, and without cookies in memory', async t => {
    const shop = await startShop(t)
    const page = await (await openContext(t, browser)).newPage()
    const errors: Error[] = []
    page.on('pageerror', error => errors.push(error))
    const forbidden = "{ get() { throw new DOMException('no', 'SecurityError') } }"
    await page.addInitScript(`Object.defineProperty(window, 'localStorage', ${forbidden})`)
    await page.goto(`${shop.url}/1`)
    const first = (await shop.arrival(isPageView(`${shop.url}/1`))).event
    await page.goto(`${shop.url}/2`)
    const second = (await shop.arrival(isPageView(`${shop.url}/2`))).event
    assert.deepEqual([second.visitor, second.session_id], [first.visitor, first.session_id])

    await page.addInitScript(`Object.defineProperty(Document.prototype, 'cookie', ${forbidden})`)
    await page.goto(`${shop.url}/3`)
    const third = (await shop.arrival(isPageView(`${shop.url}/3`))).event
    await page.evaluate("kontor.track('same page')")
    const fourth = (await shop.arrival(named('same page'))).event
    assert.notEqual(third.visitor, first.visitor)
    assert.deepEqual([fourth.visitor, fourth.session_id], [third.visitor, third.session_id])
    assert.deepEqual(errors, [])
  })

  await t.test('data-auto="false" disables automatic page views, and data-host changes the event host', async t => {
    const shop = await startShop(t)
    const elsewhere = await startShop(t)
    shop.attributes = `data-key="trk_test" data-auto="false" data-host="${elsewhere.eventHost}/"`
    const page = await (await openContext(t, browser)).newPage()
    await page.goto(shop.url)
    await loaded(page)
    await page.evaluate("history.pushState({}, '', '/cart'), kontor.track('mine')")
    await elsewhere.arrival(named('mine'))
    await queueEmpty(page)
    assert.deepEqual(
      elsewhere.arrivals.map(({ event }) => event.event_type),
      ['mine'],
    )
    assert.equal(shop.arrivals.length, 0)
  })

  await t.test('the script defines one global and never throws', async t => {
    const shop = await startShop(t)
    const page = await (await openContext(t, browser)).newPage()
    await page.addInitScript('window.before = Object.keys(window)')
    await page.goto(shop.url)
    await loaded(page)
    const added = "Object.keys(window).filter(name => !before.includes(name) && name !== 'before')"
    assert.deepEqual(await page.evaluate(added), ['kontor'])
    await page.evaluate("kontor.track('cyclic', { window }), kontor.push(['nonsense']), kontor.track('fine')")
    await shop.arrival(named('fine'))
    await queueEmpty(page)
    assert.deepEqual(
      shop.arrivals.map(({ event }) => event.event_type),
      ['page_view', 'fine'],
    )
  })
})
