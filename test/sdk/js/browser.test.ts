import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import Fastify from 'fastify'
import type { Page } from 'playwright-core'
import { launchChromium, openContext } from '../../chromium.ts'
import { rowsOf } from '../../events/rows.ts'
import { eventually } from '../../eventually.ts'
import { sharedServer, type TestServer, type TestTenant } from '../../server.ts'
import { emptyProject, type Project } from './project.ts'

let server: TestServer
let project: Project
before(async () => {
  ;[server, project] = await Promise.all([sharedServer(), emptyProject()])
})
after(() => Promise.all([server.close(), project.remove()]))

/** A site on another origin than Kontor, which serves the installed package as files. */
async function openShop(t: TestContext): Promise<string> {
  const site = Fastify({ forceCloseConnections: true })
  site.get('/sdk/*', async (request, reply) => {
    const file = (request.params as { '*': string })['*']
    return reply.type('text/javascript').send(await readFile(join(project.installed, 'dist', file)))
  })
  site.get('/*', (_request, reply) => reply.type('text/html').send('<!doctype html><link rel="icon" href="data:,">'))
  t.after(() => site.close())
  return site.listen({ host: '127.0.0.1', port: 0 })
}

/** A page of the shop with a client on it: `kontor`. */
async function openPage(t: TestContext, tenant: TestTenant, options = '') {
  const browser = await launchChromium(t)
  if (!browser) return null
  const page = await (await openContext(t, browser)).newPage()
  await page.goto(await openShop(t))
  await page.evaluate(`(async () => {
    const { Kontor } = await import('/sdk/index.js')
    window.kontor = new Kontor({ url: '${server.url}', trackingKey: '${tenant.trackingKey}', ${options} })
  })()`)
  return page
}

async function names(tenant: TestTenant): Promise<string[]> {
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  return rows.map(row => row.event_type).sort()
}

async function arrived(tenant: TestTenant, name: string): Promise<void> {
  await eventually(`the event ${name}`, async () => (await names(tenant)).includes(name))
}

function track(page: Page, ...events: string[]): Promise<unknown> {
  return page.evaluate(`${JSON.stringify(events)}.forEach(event_type => kontor.track({ event_type, visitor: 'v-1' }))`)
}

test('in a browser, events go to Kontor on another origin, without a preflight', async t => {
  const tenant = await server.anotherTenant('browser')
  const page = await openPage(t, tenant)
  if (!page) return
  const session = await page.context().newCDPSession(page)
  await session.send('Network.enable')
  const methods: string[] = []
  session.on('Network.requestWillBeSent', ({ request }) => methods.push(request.method))
  await track(page, 'one', 'two')
  await page.evaluate('kontor.flush()')
  assert.deepEqual(await names(tenant), ['one', 'two'])
  assert.deepEqual(methods, ['POST'])
})

test('queued events arrive when the page is left', async t => {
  const tenant = await server.anotherTenant('leaving')
  const page = await openPage(t, tenant, 'flushIntervalMs: 1e9')
  if (!page) return
  await track(page, 'goodbye')
  await page.goto('about:blank')
  await arrived(tenant, 'goodbye')
  assert.deepEqual(await names(tenant), ['goodbye'])
})

test('an event sent when the page was hidden and again later is stored once', async t => {
  const tenant = await server.anotherTenant('hiding')
  const page = await openPage(t, tenant, 'flushIntervalMs: 1e9')
  if (!page) return
  await track(page, 'hidden')
  await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
  await arrived(tenant, 'hidden')
  await track(page, 'back')
  await page.evaluate('kontor.close()')
  assert.deepEqual(await names(tenant), ['back', 'hidden'])
})

test('requests in flight complete when the page is left', async t => {
  const tenant = await server.anotherTenant('under way')
  const page = await openPage(t, tenant, 'flushIntervalMs: 1e9')
  if (!page) return
  const many = Array.from({ length: 120 }, (_, n) => `event ${n}`)
  await track(page, ...many)
  await page.evaluate("kontor.flush(), location.assign('about:blank')")
  await eventually('all events', async () => (await names(tenant)).length === many.length)
})

/** Opens pages of one browser context, each with a client that keeps its queue in IndexedDB: `kontor`. */
async function openPagesWithStorage(t: TestContext, tenant: TestTenant) {
  const browser = await launchChromium(t)
  if (!browser) return null
  const [context, shop] = [await openContext(t, browser), await openShop(t)]
  const open = async (url: string, page?: Page) => {
    page ??= await context.newPage()
    await page.goto(shop)
    await page.evaluate(`(async () => {
      const { Kontor } = await import('/sdk/index.js')
      const { indexedDbStorage } = await import('/sdk/indexeddb.js')
      const storage = indexedDbStorage()
      const options = { trackingKey: '${tenant.trackingKey}', flushIntervalMs: 50, onError() {} }
      window.kontor = new Kontor({ ...options, url: '${url}', storage })
    })()`)
    return page
  }
  return open
}

function countStored(page: Page): Promise<unknown> {
  return page.evaluate(`new Promise((resolve, reject) => {
    const open = indexedDB.open('kontor', 1)
    open.onerror = () => reject(open.error)
    open.onsuccess = () => {
      const count = open.result.transaction('events').objectStore('events').count()
      count.onsuccess = () => { open.result.close(); resolve(count.result) }
    }
  })`)
}

const UNREACHABLE = 'http://127.0.0.1:1'

test('events that could not be sent survive the page in IndexedDB, and a later page sends them once', async t => {
  const tenant = await server.anotherTenant('offline')
  const open = await openPagesWithStorage(t, tenant)
  if (!open) return
  const page = await open(UNREACHABLE)
  assert.equal(await countStored(page), 0)
  const many = Array.from({ length: 100 }, (_, n) => `event ${n}`)
  await page.evaluate(`
    ${JSON.stringify(many)}.forEach(event_type => kontor.track({ event_type, visitor: 'v-1' }))
    location.assign('/left')`)
  await page.waitForURL('**/left')
  assert.deepEqual(await names(tenant), [])

  await open(server.url, page)
  await track(page, 'last')
  await eventually('nothing to be left', async () => (await countStored(page)) === 0)
  await eventually('all events', async () => (await names(tenant)).length > many.length)
  assert.deepEqual(await names(tenant), [...many, 'last'].sort())
})

test('events survive a page that ends before IndexedDB has written them', async t => {
  const tenant = await server.anotherTenant('slow storage')
  const open = await openPagesWithStorage(t, tenant)
  if (!open) return
  const [page, other] = [await open(UNREACHABLE), await open(UNREACHABLE)]
  assert.equal(await countStored(page), 0)
  // An open transaction of another page: writes wait for it.
  await other.evaluate(`new Promise(begun => {
    indexedDB.open('kontor', 1).onsuccess = ({ target }) => {
      const store = target.result.transaction('events', 'readwrite').objectStore('events')
      const next = () => { begun(); if (!window.isDone) store.count().onsuccess = next }
      next()
    }
  })`)
  await track(page, 'one', 'two')
  await page.evaluate("localStorage['kontor-left-damaged'] = '{'")
  await page.goto('about:blank')
  await other.evaluate('window.isDone = true')

  await open(server.url, page)
  await eventually('nothing to be left', async () => (await countStored(page)) === 0)
  await eventually('all events', async () => (await names(tenant)).length === 2)
  assert.deepEqual(await names(tenant), ['one', 'two'])
  assert.equal(await page.evaluate('localStorage.length'), 0)
})

test('signatures are created and verified in a browser', async t => {
  const page = await openPage(t, server.tenant)
  if (!page) return
  const results = await page.evaluate(`(async () => {
    const { signWebhook, verifyWebhook } = await import('/sdk/webhooks.js')
    const [secret, body] = ['whsec_c2VjcmV0', '{"ü":1}']
    const headers = new Headers({ 'x-service-signature': await signWebhook({ secret, body }) })
    return [await verifyWebhook({ secret, body, headers }), await verifyWebhook({ secret, body: '{}', headers })]
  })()`)
  assert.deepEqual(results, [true, false])
})
