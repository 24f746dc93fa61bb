import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import type { TestContext } from 'node:test'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type LaunchOptions,
} from 'playwright-core'

// The headless shell has no address bar, profile or extensions, so it needs less processor time than the whole browser.
const INSTALLED = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']
export const CHROMIUM = INSTALLED.find(path => existsSync(path)) ?? INSTALLED[0]!
/** `npm test` starts one Chromium for the run; this variable holds its address. */
export const SHARED_BROWSER_VARIABLE = 'KONTOR_TEST_BROWSER'
const LIMIT_MS = 120_000 // for a page that hangs; on a busy machine a page takes seconds
const howToInstall = `needs ${CHROMIUM} (apt-get install chromium-headless-shell)`

// Chromium uses only the last list of disabled features, so this one repeats Playwright's. The last two load the suggestions of the
// address bar as two pages in every context, which takes as much processor time as our pages.
const DISABLED_FEATURES = [
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'LensOverlay',
  'MediaRouter',
  'PaintHolding',
  'ThirdPartyStoragePartitioning',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'OptimizationHints',
  'NetworkTimeServiceQuerying',
  'AimEnabled',
  'PreconnectToSearch',
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
]

export const CHROMIUM_OPTIONS: LaunchOptions = {
  executablePath: CHROMIUM,
  timeout: LIMIT_MS,
  args: [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--font-render-hinting=slight', // as in the whole browser, so that images are the same
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    `--disable-features=${DISABLED_FEATURES.join()}`,
  ],
}

/**
 * A real Chromium: the one of the run, or a new one that is closed when the test ends. If none is installed, skips the test and returns
 * null; with KONTOR_TEST_REQUIRE_ALL=1 the test fails instead.
 */
export async function launchChromium(t: TestContext): Promise<Browser | null> {
  if (!existsSync(CHROMIUM)) {
    assert.notEqual(process.env.KONTOR_TEST_REQUIRE_ALL, '1', howToInstall)
    t.skip(howToInstall)
    return null
  }
  const shared = process.env[SHARED_BROWSER_VARIABLE]
  const browser = shared ? await chromium.connect(shared) : await chromium.launch(CHROMIUM_OPTIONS)
  t.after(() => browser.close())
  return browser
}

/** A separate browser context: it shares no cookies or storage with others. */
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
