import type { Page, Request, Route } from 'playwright-core'

const API = /\/(v1|admin\/v1)\/|\/console\/session$/

/**
 * Opens a page and counts how often requests had to wait for the responses of others: each wave of responses is held
 * until the page has nothing left to do without them.
 */
export async function countWaves(page: Page, open: () => Promise<unknown>): Promise<number> {
  const held: Route[] = []
  await page.route(API, route => {
    // A stream does not end.
    if (route.request().url().includes('/live')) return route.continue()
    held.push(route)
  })
  const files = watchFiles(page)
  let isOpen = true
  const opened = open().finally(() => {
    isOpen = false
  })
  let waves = 0
  while (isOpen || held.length > 0) {
    const known = held.length
    if (!(await isIdle(page)) || files.loading > 0 || held.length > known || known === 0) continue
    waves++
    await Promise.all(held.splice(0).map(route => route.continue()))
  }
  await opened
  files.stop()
  await page.unroute(API)
  return waves
}

/** Whether the page has run all its scripts. False while it is replaced by another one. */
function isIdle(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(WAIT_UNTIL_IDLE).catch(() => false)
}

const WAIT_UNTIL_IDLE = `new Promise(resolve => {
  requestIdleCallback(() => requestIdleCallback(() => setTimeout(() => resolve(document.readyState !== 'loading'))))
})`

/** Counts the scripts, styles and documents that are loading. */
function watchFiles(page: Page) {
  const loading = new Set<Request>()
  const start = (request: Request) => {
    if (!API.test(request.url())) loading.add(request)
  }
  const end = (request: Request) => loading.delete(request)
  page.on('request', start).on('requestfinished', end).on('requestfailed', end)
  return {
    get loading() {
      return loading.size
    },
    stop: () => page.off('request', start).off('requestfinished', end).off('requestfailed', end),
  }
}
