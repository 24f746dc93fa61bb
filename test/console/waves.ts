import type { Page, Route } from 'playwright-core'

const QUIET_MS = 100

/**
 * Opens a page and counts how often requests had to wait for the responses of others: each wave of responses is held
 * until no more requests come.
 */
export async function countWaves(page: Page, open: () => Promise<unknown>): Promise<number> {
  const held: Route[] = []
  let newest = performance.now()
  const pattern = /\/(v1|admin\/v1)\/|\/console\/session$/
  await page.route(pattern, route => {
    // A stream does not end.
    if (route.request().url().includes('/live')) return route.continue()
    held.push(route)
    newest = performance.now()
  })
  const opened = open()
  let isOpen = true
  opened.finally(() => {
    isOpen = false
  })
  let waves = 0
  const isQuiet = () => performance.now() - newest > QUIET_MS
  while (isOpen || held.length > 0 || !isQuiet()) {
    await new Promise(resolve => setTimeout(resolve, 20))
    if (held.length === 0 || !isQuiet()) continue
    waves++
    newest = performance.now()
    await Promise.all(held.splice(0).map(route => route.continue()))
  }
  await opened
  await page.unroute(pattern)
  return waves
}
