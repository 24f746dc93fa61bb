import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium, type Page } from 'playwright-core'

/**
 * Takes screenshots of the main pages of the console with a sample shop, for docs/images or the folder given as the
 * first argument. `npm run screenshots` takes a minute and needs Debian's Chromium.
 */

const MAIN = new URL('../src/main.mjs', import.meta.url).pathname
const IMAGES = process.argv[2] ?? new URL('../docs/images/', import.meta.url).pathname
const SCREEN = { width: 1200, height: 800 }
const PHONE = { width: 390, height: 844 }

type Shop = {
  url: string
  adminKey: string
  privateKey: string
  trackingKey: string
  source: { id: string; token: string }
}

const LOOKS = {
  light: { viewport: SCREEN, colorScheme: 'light' },
  dark: { viewport: SCREEN, colorScheme: 'dark' },
  phone: { viewport: PHONE, colorScheme: 'light' },
} as const
type Look = keyof typeof LOOKS

type Shot = { name: string; address: string; look?: Look }

/** A time zone in which it is evening now, so that most of today has passed. */
function eveningZone(): string {
  const ahead = ((18 - new Date().getUTCHours() + 36) % 24) - 12
  return `Etc/GMT${ahead > 0 ? '-' : '+'}${Math.abs(ahead)}`
}

function listShots({ source }: Shop, customer: string): Shot[] {
  return [
    { name: 'overview', address: '#/overview' },
    { name: 'overview-dark', address: '#/overview', look: 'dark' },
    { name: 'subscriptions', address: '#/subscriptions?currency=EUR' },
    { name: 'movements', address: '#/subscriptions/movements?currency=EUR' },
    { name: 'movements-phone', address: '#/subscriptions/movements?currency=EUR', look: 'phone' },
    { name: 'cohorts', address: '#/subscriptions/cohorts?currency=EUR' },
    { name: 'person', address: `#/customers/contact:${customer}` },
    { name: 'events', address: '#/events' },
    { name: 'event', address: '#/events/lookup?id=ticket-1' },
    { name: 'issues', address: '#/issues' },
    { name: 'source', address: `#/sources/${source.id}` },
    { name: 'connect', address: '#/connect/browser' },
  ]
}

const directory = mkdtempSync(join(tmpdir(), 'kontor-screenshots-'))
// When root starts it, PostgreSQL runs as another user, who needs access.
chmodSync(directory, 0o755)
const server = spawn(process.execPath, [MAIN, 'start', '--data', directory], {
  env: {
    ...process.env,
    KONTOR_PORT: '0',
    KONTOR_OPS_PORT: 'off',
    KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true',
  },
  stdio: ['ignore', 'ignore', 'inherit'],
})
try {
  const url = await readAddress(directory)
  const demo = JSON.parse(await output(['demo', '--data', directory]))
  const shop = {
    ...{ url, adminKey: /ADMIN_KEY=(.+)/.exec(readFileSync(join(directory, 'keys'), 'utf8'))![1]! },
    ...{ privateKey: demo.private_key, trackingKey: demo.tracking_key },
    ...{ source: { id: demo.source, token: demo.source_token } },
  }
  await addActivity(shop)
  mkdirSync(IMAGES, { recursive: true })
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  const shots = listShots(shop, await largestCustomer(shop))
  for (const look of Object.keys(LOOKS) as Look[]) await takeShots(browser, shop, look, shots)
  await browser.close()
} finally {
  server.kill('SIGTERM')
  await once(server, 'exit')
  rmSync(directory, { recursive: true, force: true })
}

async function takeShots(browser: Browser, shop: Shop, look: Look, shots: Shot[]): Promise<void> {
  const context = await browser.newContext({ ...LOOKS[look], timezoneId: eveningZone() })
  const page = await context.newPage()
  await page.goto(`${shop.url}/console`)
  await page.getByLabel('Key').fill(shop.adminKey)
  await page.getByRole('button', { name: 'Continue with the key' }).click()
  if (look === 'phone') await page.getByRole('button', { name: 'Menu' }).click()
  await page.locator('#tenant').selectOption({ label: 'demo' })
  for (const { name, address, look: wanted = 'light' } of shots) {
    if (wanted !== look) continue
    await open(page, address)
    await page.screenshot({ path: join(IMAGES, `${name}.png`) })
    console.error(join(IMAGES, `${name}.png`))
  }
  await context.close()
}

/** Opens a page and waits for its plots, which are drawn after it. */
async function open(page: Page, address: string): Promise<void> {
  await page.evaluate(`location.hash = ${JSON.stringify(address)}`)
  await page.locator('main:not([aria-busy]) h1').waitFor()
  await page.waitForLoadState('networkidle', { timeout: 3_000 }).catch(() => {})
  await page.waitForTimeout(1_000)
}

/** Adds events of today and some failures; the sample shop ends yesterday. */
async function addActivity({ url, adminKey, trackingKey, source }: Shop): Promise<void> {
  const post = async (path: string, key: string, body: unknown) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const destination = { tenant: 'demo', name: 'warehouse', url: 'http://127.0.0.1:9/hooks', what: ['events'] }
  await post('/admin/v1/destinations', adminKey, destination)
  const midnight = new Date().setUTCHours(0, 0, 0, 0)
  const at = (part: number) => new Date(midnight + part * (Date.now() - midnight)).toISOString()
  const batch = Array.from({ length: 90 }, (_, index) => ({
    ...{ type: 'track', event: ['Product Viewed', 'Cart Viewed', 'Signed Up'][index % 3] },
    ...{ messageId: `today-${index}`, anonymousId: `v-${index % 17}`, timestamp: at(index / 90) },
  }))
  await post('/v1/batch', trackingKey, { batch: [...batch, { type: 'track', messageId: 'nameless' }] })
  for (let index = 0; index < 7; index++)
    await post('/v1/track/', trackingKey, {
      ...{ event_type: 'convert', visitor: `v-${index}`, occurred_at: at(index / 7) },
      data: { order_id: `today-${index}`, amount: 19.9 + 12 * index, currency: 'EUR' },
    })
  const path = `/ingest/inbound/${source.id}`
  const ticket = {
    inbound_event_id: 'ticket-1',
    event_type: 'ticket.opened',
    payload: { subject: 'Cold coffee' },
  }
  for (let again = 0; again < 2; again++) await post(path, source.token, ticket)
  await post(path, 'not-its-token', ticket)
}

async function largestCustomer({ url, privateKey }: Shop): Promise<string> {
  const path = '/v1/subscriptions/overview?currency=EUR&page_size=1'
  const answer = await fetch(url + path, { headers: { authorization: `Bearer ${privateKey}` } })
  const { accounts } = (await answer.json()) as { accounts: { results: { customer: string }[] } }
  return accounts.results[0]!.customer
}

/** A running server writes its address into its data directory. */
async function readAddress(folder: string): Promise<string> {
  const file = join(folder, 'server.json')
  while (!existsSync(file)) {
    if (server.exitCode !== null) throw new Error('The server did not start.')
    await sleep(200)
  }
  return (JSON.parse(readFileSync(file, 'utf8')) as { url: string }).url
}

async function output(parameters: string[]): Promise<string> {
  const child = spawn(process.execPath, [MAIN, ...parameters], { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  for await (const chunk of child.stdout) text += chunk
  return text
}
