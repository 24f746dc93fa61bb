import assert from 'node:assert/strict'
import { test } from 'node:test'
import axe from 'axe-core'
import { launchChromium, openContext } from '../chromium.ts'
import { listen, openShell } from './shell.ts'

const nothing = () => {}
const namesIn = (page: string) => [...page.matchAll(/href="\/docs\/guides\/([\w-]+)"/g)].map(([, name]) => name!)

test('every document is a page, and none of its links is broken', async t => {
  const { app } = await openShell(t, nothing)
  const index = await app.inject('/docs/guides')
  const names = [...new Set(namesIn(index.body))]
  assert.ok(names.includes('webhooks') && names.includes('operations') && names.length > 20, String(names))
  const pages = new Map<string, string>()
  for (const name of names) {
    const answer = await app.inject(`/docs/guides/${name}`)
    assert.equal(answer.statusCode, 200, name)
    assert.match(String(answer.headers['content-security-policy']), /^default-src 'none'; style-src 'self'/)
    assert.doesNotMatch(answer.body, /<script|style="/)
    pages.set(name, answer.body)
  }
  for (const [name, body] of pages)
    for (const [, target, id] of body.matchAll(/href="(?:\/docs\/guides\/([\w-]+))?(?:#([^"]+))?"/g)) {
      const page = pages.get(target ?? name)
      assert.ok(page, `${name} links to ${target}, which does not exist`)
      if (id) assert.ok(page.includes(`id="${id}"`), `${name} links to ${target ?? name}#${id}, which does not exist`)
    }
})

test('the pictures of a guide are served, and no other file', async t => {
  const { app } = await openShell(t, nothing)
  const { body } = await app.inject('/docs/guides/console')
  const pictures = [...body.matchAll(/<img src="([^"]+)" alt="[^"]+"/g)].map(([, src]) => src!)
  assert.ok(pictures.length > 3, String(pictures))
  for (const picture of pictures) {
    const answer = await app.inject(picture)
    assert.deepEqual([answer.statusCode, answer.headers['content-type']], [200, 'image/png'], picture)
  }
  for (const name of ['..%2f..%2fpackage.json', 'console.md', '__proto__', '%00'])
    assert.equal((await app.inject(`/docs/guides/pictures/${name}`)).statusCode, 404, name)
})

test('a search finds sections, best match first, and shows the query as plain text', async t => {
  const { app } = await openShell(t, nothing)
  const found = async (query: string) =>
    (await app.inject(`/docs/guides?q=${encodeURIComponent(query)}`)).body.split('<main>')[1]!.split('</main>')[0]!
  assert.match(await found('idempotency key'), /<ol class="results"><li><a href="\/docs\/guides\/records#idempotency">/)
  assert.match(await found('Dead Letters'), /<mark>Dead<\/mark> <mark>letters<\/mark>/i)
  assert.match(await found('qwertyuiop'), /No section contains all of these words/)
  for (const query of ['<img src=x onerror=alert(1)>', '"><script>', '$(.*+[', '\u0000', 'a'.repeat(5_000), '. . .'])
    assert.doesNotMatch(await found(query), /<img|<script|"><s/)
  assert.equal((await app.inject('/docs/guides?q=a&q=b')).statusCode, 200)
  assert.equal((await app.inject('/docs/guides/..%2f..%2fpackage')).statusCode, 404)
  assert.equal((await app.inject('/docs/guides/__proto__')).statusCode, 404)
})

test('a page is compressed, and a browser that has it gets 304', async t => {
  const { app } = await openShell(t, nothing)
  for (const url of ['/docs/guides', '/docs/guides/records', '/docs/guides/style.css']) {
    const headers = { 'accept-encoding': 'gzip' }
    const first = await app.inject({ url, headers })
    assert.equal(first.headers['content-encoding'], 'gzip')
    const again = await app.inject({
      url,
      headers: { ...headers, 'if-none-match': String(first.headers.etag) },
    })
    assert.equal(again.statusCode, 304)
  }
})

test('pages are accessible and fit the screen, narrow and wide, light and dark', async t => {
  const browser = await launchChromium(t)
  if (!browser) return
  const { app } = await openShell(t, nothing)
  const origin = `http://127.0.0.1:${await listen(app)}`
  for (const [width, colorScheme] of [
    [390, 'dark'],
    [1200, 'light'],
  ] as const) {
    const context = await openContext(t, browser, { viewport: { width, height: 800 }, colorScheme })
    const page = await context.newPage()
    const errors: string[] = []
    page.on('console', message => message.type() === 'error' && errors.push(message.text()))
    for (const path of ['/docs/guides?q=mrr', '/docs/guides/webhooks']) {
      await page.goto(origin + path)
      await page.evaluate(axe.source)
      const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
        [],
        `${path} at ${width}`,
      )
      const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
      assert.ok((overflow as number) <= 0, `${path} is wider than ${width}`)
    }
    await page.getByRole('searchbox').fill('signature')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('heading', { name: 'Search: signature' }).waitFor()
    assert.deepEqual(errors, [])
  }
})
