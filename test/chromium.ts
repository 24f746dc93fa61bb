import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core'

const executablePath = '/usr/bin/chromium'
const LIMIT_MS = 120_000 // for what hangs: on a busy machine a page takes seconds where it takes none on an idle one
const howToGetIt = `needs ${executablePath} (apt-get install chromium)`

/**
 * A real Chromium, closed when the test ends. Where none is installed the test is skipped and null returned;
 * with KONTOR_TEST_REQUIRE_ALL=1 that is a failure.
 */
export async function launchChromium(t: TestContext): Promise<Browser | null> {
  if (!existsSync(executablePath)) {
    assert.notEqual(process.env.KONTOR_TEST_REQUIRE_ALL, '1', howToGetIt)
    t.skip(howToGetIt)
    return null
  }
  const browser = await chromium.launch({
    executablePath,
    timeout: LIMIT_MS,
    args: [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
  t.after(() => browser.close())
  return browser
}

/** A browser of its own, as far as pages can tell. */
export async function openContext(
  t: TestContext,
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<BrowserContext> {
  const context = await browser.newContext(options)
  context.setDefaultTimeout(LIMIT_MS)
  t.after(() => context.close())
  return context
}
