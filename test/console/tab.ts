import type { Browser, Page } from 'playwright-core'

type Tab = {
  page: Page
  /** Script errors, and requests to other servers. */
  pageErrors: string[]
  close(): Promise<void>
}

type TabOptions = {
  /** Failures that the test expects. */
  failing?: RegExp
  width?: number
  colorScheme?: 'light' | 'dark'
  locale?: string
  timezoneId?: string
}

/** Opens a tab with the console of the server at `url`. */
export async function openTab(
  browser: Browser,
  url: string,
  { failing, width = 1200, ...look }: TabOptions = {},
): Promise<Tab> {
  // Without transitions and pulsing skeletons a page takes a quarter less processor time.
  const context = await browser.newContext({ viewport: { width, height: 800 }, reducedMotion: 'reduce', ...look })
  context.setDefaultTimeout(120_000)
  const page = await context.newPage()
  const pageErrors: string[] = []
  page.on('pageerror', error => pageErrors.push(error.message))
  page.on('console', message => {
    const words = `${message.text()} ${message.location().url}`
    if (message.type() === 'error' && !failing?.test(words)) pageErrors.push(words)
  })
  page.on('request', request => {
    if (new URL(request.url()).origin !== new URL(url).origin) pageErrors.push(`leaves: ${request.url()}`)
  })
  await page.goto(`${url}/console`)
  return { page, pageErrors, close: () => context.close() }
}

export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('Key').fill(key)
  await page.getByRole('button', { name: 'Continue with the key' }).click()
}

/** Opens an address and waits until the page is loaded. */
export async function goTo(page: Page, address: string): Promise<void> {
  await page.evaluate(`new Promise(resolve => {
    if (location.hash === ${JSON.stringify(address)}) return resolve()
    addEventListener('hashchange', () => setTimeout(resolve), { once: true })
    location.hash = ${JSON.stringify(address)}
  })`)
  await page.locator('main:not([aria-busy]) h1').waitFor()
}
