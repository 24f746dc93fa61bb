// People sign in to the console at an OpenID Connect provider.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { launchChromium, openContext } from '../chromium.ts'
import { startServer } from '../server.ts'
import { CLIENT_SECRET, freePort, startProvider } from './provider.ts'

const port = await freePort()
const home = `http://localhost:${port}`
const provider = await startProvider(`${home}/console/oidc/callback`)
after(provider.close)
provider.people = {
  ada: { email: 'Ada@example.com', email_verified: true, groups: ['staff', 'admins'] },
  vera: { email: 'vera@example.com', groups: ['support', 'admins-of-nothing'] },
  olga: { email: 'olga@example.com', email_verified: true, groups: 'shop-team' },
  mallory: { email: 'ada@example.com', email_verified: false, groups: ['support'] },
  norman: { email: 'norman@example.com', groups: ['guests', '<script>'] },
  gone: { groups: ['closed-shop'] },
}
const server = await startServer({
  KONTOR_PORT: String(port),
  KONTOR_PUBLIC_URL: home,
  KONTOR_OIDC_ISSUER: provider.issuer,
  KONTOR_OIDC_CLIENT_ID: 'kontor',
  KONTOR_OIDC_CLIENT_SECRET: CLIENT_SECRET,
  KONTOR_OIDC_ROLES: 'admins=admin,support=viewer,shop-team=operator@default,closed-shop=viewer@never-was-there',
})
after(server.close)
const otherTenant = await server.anotherTenant('otherTenant')

type Cookies = Map<string, string>

/** A client that keeps cookies by host and does not follow redirects. */
function openBrowser() {
  const jar = new Map<string, Cookies>()
  async function visit(address: string, init: RequestInit = {}) {
    const url = new URL(address, home)
    const cookies = jar.get(url.hostname) ?? new Map()
    jar.set(url.hostname, cookies)
    const headers = new Headers(init.headers)
    if (cookies.size > 0) headers.set('cookie', [...cookies].map(pair => pair.join('=')).join('; '))
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      if (value === '') cookies.delete(name!)
      else cookies.set(name!, value!)
    }
    return {
      status: response.status,
      location: response.headers.get('location') ?? '',
      set: response.headers.getSetCookie(),
      headers: response.headers,
      text: await response.text(),
    }
  }
  /** Returns the callback address without visiting it. */
  async function comeBackAs(who: string, start = '/console/oidc/start') {
    let { status, location, text } = await visit(start)
    assert.equal(status, 303, text)
    while (!location.startsWith(`${home}/console/oidc/callback`)) {
      const next = new URL(location, provider.issuer)
      if (next.pathname.startsWith('/interaction/')) next.searchParams.set('as', who)
      ;({ status, location, text } = await visit(next.href))
      assert.match(String(status), /^30[23]$/, text)
    }
    return location
  }
  return {
    cookies: jar,
    own: () => jar.get('localhost')!,
    visit,
    comeBackAs,
    signInAs: async (who: string, start?: string) => visit(await comeBackAs(who, start)),
    /** As the console sends it. */
    call: async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
      const answer = await visit(path, {
        method,
        headers: {
          'x-kontor-console': '1',
          ...(method !== 'GET' && { origin: home }),
          ...(body && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      return { ...answer, body: answer.text === '' ? null : JSON.parse(answer.text) }
    },
  }
}

const session = 'kontor_session'

test('an unavailable provider is reported, and contacted again by the next sign-in', async () => {
  provider.isUnavailable = true
  const browser = openBrowser()
  const refused = await browser.visit('/console/oidc/start')
  assert.equal(refused.status, 503)
  assert.match(refused.headers.get('content-type')!, /text\/html/)
  assert.match(refused.headers.get('content-security-policy')!, /default-src 'none'/)
  assert.match(refused.text, /127\.0\.0\.1:\d+ is unreachable/)
  assert.equal((await server.request('/console')).status, 200)

  provider.isUnavailable = false
  const back = await browser.comeBackAs('ada')
  provider.isUnavailable = true
  const lost = await browser.visit(back)
  assert.equal(lost.status, 503)
  assert.match(lost.text, /Try again/)
  provider.isUnavailable = false
})

test('a person has the role of their group: allowed actions are recorded under their name, others are rejected', async () => {
  const ada = openBrowser()
  const { status, location, set } = await ada.signInAs('ada')
  assert.deepEqual([status, location], [303, `${home}/console`])
  const [, cookie] = set
  assert.match(cookie!, /^kontor_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
  const who = await ada.call('GET', '/console/session')
  assert.deepEqual(
    { ...who.body, expires_at: null },
    { name: 'ada@example.com', actor: 'oidc:ada@example.com', role: 'admin', tenant: null, expires_at: null },
  )
  const made = await ada.call('POST', '/admin/v1/tenants', { name: 'made by Ada' })
  assert.equal(made.status, 201, made.text)
  const { body: audit } = await ada.call('GET', '/admin/v1/audit?limit=2')
  assert.deepEqual(
    audit.results.map(({ actor, action }: Record<string, string>) => [actor, action]),
    [
      ['oidc:ada@example.com', 'tenant.create'],
      ['oidc:ada@example.com', 'session.begin'],
    ],
  )

  const vera = openBrowser()
  await vera.signInAs('vera')
  assert.equal((await vera.call('GET', '/admin/v1/tenants')).status, 200)
  const refused = await vera.call('POST', '/admin/v1/tenants', { name: 'made by Vera' })
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_role'])

  const olga = openBrowser()
  await olga.signInAs('olga')
  const { body: seen } = await olga.call('GET', '/admin/v1/tenants')
  assert.deepEqual(
    seen.results.map(({ id }: { id: string }) => id),
    [server.tenant.id],
  )
  assert.equal((await olga.call('GET', `/admin/v1/tenants/${otherTenant.id}`)).status, 404)

  const mallory = openBrowser()
  await mallory.signInAs('mallory')
  assert.equal((await mallory.call('GET', '/console/session')).body.name, 'mallory')
})

test('only the console’s own pages can use the cookie', async () => {
  const ada = openBrowser()
  await ada.signInAs('ada')
  const attempts: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: `${home}.evil.example` },
    { origin: 'null' },
    { origin: '' },
  ]
  for (const headers of attempts) {
    const { status, body } = await ada.call('POST', '/admin/v1/tenants', { name: 'forged' }, headers)
    assert.deepEqual([status, body.code], [403, 'not_from_the_console'], JSON.stringify(headers))
  }
  const bare = { method: 'POST', headers: { origin: home, 'content-type': 'application/json' } }
  for (const path of ['/admin/v1/tenants', '/console/sign-out'])
    assert.equal((await ada.visit(path, { ...bare, body: '{"name":"forged"}' })).status, 403)
  assert.equal((await ada.visit('/admin/v1/tenants')).status, 403)
  const preflight = await ada.visit('/admin/v1/tenants', {
    method: 'OPTIONS',
    headers: { origin: 'https://evil.example', 'access-control-request-headers': 'x-kontor-console' },
  })
  assert.equal(preflight.headers.get('access-control-allow-origin'), null)
  const { results } = (await ada.call('GET', '/admin/v1/tenants')).body
  assert.ok(!results.some(({ name }: { name: string }) => name === 'forged'))
  // A key takes precedence over the cookie. The data API accepts the cookie only with the name of a tenant.
  const withKey = await ada.call('GET', '/admin/v1/tenants', undefined, { authorization: 'Bearer adm_no' })
  assert.equal(withKey.status, 401)
  assert.equal((await ada.call('GET', '/v1/events')).status, 401)
})

test('a person without a role is rejected, and one who lost it loses their sessions at the next sign-in', async () => {
  const norman = openBrowser()
  const refused = await norman.signInAs('norman')
  assert.equal(refused.status, 403)
  assert.match(refused.text, /You are signed in at 127\.0\.0\.1:\d+ as norman@example\.com, but have no role in Kontor/)
  assert.equal(norman.own().has(session), false)
  assert.equal((await openBrowser().signInAs('gone')).status, 403)

  const old = openBrowser()
  await old.signInAs('vera')
  provider.people.vera!.groups = ['admins']
  const renewed = openBrowser()
  await renewed.signInAs('vera')
  assert.equal((await renewed.call('GET', '/console/session')).body.role, 'admin')
  assert.equal((await old.call('GET', '/admin/v1/tenants')).status, 401)
  provider.people.vera!.groups = []
  assert.equal((await openBrowser().signInAs('vera')).status, 403)
  assert.equal((await renewed.call('GET', '/admin/v1/tenants')).status, 401)
  provider.people.vera!.groups = ['support']
})

test('a callback works once, in the browser that started it, with unchanged parameters', async () => {
  const ada = openBrowser()
  const back = await ada.comeBackAs('ada')
  const kept = new Map(ada.own())
  const otherBrowser = openBrowser()
  assert.equal((await otherBrowser.visit(back)).status, 400)
  // A browser with another sign-in in progress is rejected too.
  await otherBrowser.comeBackAs('vera')
  assert.equal((await otherBrowser.visit(back)).status, 400)

  assert.equal((await ada.visit(back)).status, 303)
  const again = await ada.visit(back)
  assert.equal(again.status, 400)
  assert.match(again.text, /This sign-in is complete, has expired/)
  // With the cookie restored, the provider reports that its code was used.
  const replayer = openBrowser()
  replayer.cookies.set('localhost', new Map(kept))
  assert.equal((await replayer.visit(back)).status, 400)
  assert.equal(replayer.own().has(session), false)

  for (const change of [
    (url: URL) => url.searchParams.set('iss', 'https://evil.example'),
    (url: URL) => url.searchParams.set('code', 'x'.repeat(5_000)),
    (url: URL) => url.searchParams.delete('code'),
    (url: URL) => url.searchParams.append('state', 'second'),
    (url: URL) => url.searchParams.set('code', '\u0000'),
  ]) {
    const browser = openBrowser()
    const url = new URL(await browser.comeBackAs('ada'))
    change(url)
    const { status, text } = await browser.visit(url.href)
    assert.equal(status, 400, `${url.search} ${text}`)
    assert.equal(browser.own().has(session), false)
  }
  const unwilling = openBrowser()
  const refused = await unwilling.visit(await unwilling.comeBackAs('declined'))
  assert.equal(refused.status, 403)
  assert.match(refused.text, /rejected the sign-in: access_denied/)
})

test('clocks may differ by a minute but not by an hour', async () => {
  provider.idTokenTtlS = -30
  const forgiven = await openBrowser().signInAs('ada')
  provider.idTokenTtlS = -3_600
  const refused = await openBrowser().signInAs('ada')
  provider.idTokenTtlS = 3_600
  assert.deepEqual([forgiven.status, refused.status], [303, 400])
  assert.match(refused.text, /Synchronize the clocks of the two servers/)
})

test('a sign-in returns to the same console page and nowhere else', async () => {
  const ends = async (to: string) => {
    const start = `/console/oidc/start?to=${encodeURIComponent(to)}`
    return (await openBrowser().signInAs('ada', start)).location
  }
  assert.equal(await ends('#/events?limit=5&since=2026-01-01'), `${home}/console#/events?limit=5&since=2026-01-01`)
  for (const to of [
    'https://evil.example',
    '//evil.example',
    '.evil.example',
    '#/\r\nset-cookie: a=b',
    '@evil.example',
  ])
    assert.equal(await ends(to), `${home}/console`)
})

test('a session survives a restart and ends by sign-out, by expiry and with another provider', async () => {
  const ada = openBrowser()
  await ada.signInAs('ada')
  await server.restart()
  const isIn = async (browser = ada) => (await browser.call('GET', '/admin/v1/tenants')).status === 200
  assert.ok(await isIn())

  const late = openBrowser()
  await late.signInAs('ada')
  const change = (set: string, browser: ReturnType<typeof openBrowser>) =>
    server.pool.query(`update console_sessions set ${set} where hash = sha256(convert_to($1, 'UTF8'))`, [
      browser.own().get(session),
    ])
  await change(`expires_at = now() - interval '1 second'`, late)
  const ended = await late.call('GET', '/admin/v1/tenants')
  assert.deepEqual([ended.status, ended.body.code], [401, 'session_ended'])
  const elsewhere = openBrowser()
  await elsewhere.signInAs('ada')
  await change(`issuer = 'https://other.example'`, elsewhere)
  assert.equal(await isIn(elsewhere), false)
  for (const token of ['A'.repeat(43), '', "'; drop table console_sessions", 'x'.repeat(8_000)]) {
    const forger = openBrowser()
    forger.cookies.set('localhost', new Map([[session, token]]))
    assert.equal((await forger.call('GET', '/admin/v1/tenants')).status, 401)
  }

  const left = await ada.call('POST', '/console/sign-out')
  assert.equal(left.status, 204)
  assert.match(left.set[0]!, /^kontor_session=; Path=\/; Max-Age=0;/)
  assert.equal(await isIn(), false)
  assert.equal((await ada.call('POST', '/console/sign-out')).status, 401)
})

test('in Chromium: sign in, act, be rejected, return, sign out', { timeout: 300_000 }, async t => {
  const chromium = await launchChromium(t)
  if (!chromium) return
  const context = await openContext(t, chromium)
  const page = await context.newPage()
  const pageErrors: string[] = []
  page.on('pageerror', error => pageErrors.push(error.message))
  const source = await server.admin.sources.create({
    tenant: server.tenant.id,
    type: 'webhook',
    name: 'Till',
  })
  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor()

  await page.goto(`${home}/console#/sources/${source.id}`)
  await page.getByRole('link', { name: `Sign in with 127.0.0.1` }).click()
  await page.getByRole('link', { name: 'olga' }).click()
  await heading('Till')
  await page.getByText('olga@example.com (operator)').waitFor()
  await page.getByRole('button', { name: 'Disable' }).click()
  await page.getByRole('button', { name: 'Enable' }).waitFor()
  assert.equal((await server.admin.sources.show(source.id)).enabled, false)

  await t.test('the page offers only the actions that the role allows', async () => {
    assert.equal(await page.getByRole('button', { name: 'Send test event' }).count(), 1)
    for (const name of ['Rotate token', 'Delete'])
      assert.equal(await page.getByRole('button', { name }).count(), 0, name)
    await page.getByText('Edit settings').click()
    await page.getByText('Requires the role admin.').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled(), true)
    await page.goto(`${home}/console#/keys`)
    await heading('Keys')
    assert.equal(await page.getByRole('button', { name: 'Create key' }).count(), 1)
    assert.equal(await page.getByRole('button', { name: 'Revoke' }).count(), 0, 'the keys of others')
    await page.goto(`${home}/console#/alerts`)
    await heading('Alerts')
    assert.equal(await page.getByRole('button', { name: 'Preview' }).count(), 1)
    assert.equal(await page.getByRole('button', { name: 'Set schedule' }).isDisabled(), true)
  })
  await t.test('an action that the role does not allow shows an explanation', async () => {
    await page.goto(`${home}/console#/overview`)
    await heading('Overview')
    const refused = await page.evaluate(
      `fetch('/admin/v1/tenants', { method: 'POST', headers: { 'x-kontor-console': '1', 'content-type': 'application/json' }, body: '{"name":"x"}' }).then(r => r.json())`,
    )
    assert.equal((refused as { code: string }).code, 'insufficient_role')
  })
  await t.test('a page of another site cannot use the cookie', async () => {
    const evil = await context.newPage()
    await evil.goto(`${provider.issuer}/.well-known/openid-configuration`)
    const enable = `${home}/admin/v1/sources/${source.id}/enable`
    await evil.evaluate(`Promise.allSettled([
      fetch('${enable}', { method: 'POST', credentials: 'include', mode: 'no-cors' }),
      fetch('${enable}', { method: 'POST', credentials: 'include', headers: { 'x-kontor-console': '1' } }),
    ])`)
    const [answer] = await Promise.all([
      evil.waitForResponse(enable),
      evil.evaluate(`{
        const form = document.createElement('form')
        form.method = 'post'
        form.action = '${enable}'
        document.body.append(form)
        form.submit()
      }`),
    ])
    assert.equal(answer.status(), 401)
    assert.equal((await server.admin.sources.show(source.id)).enabled, false)
    // It closes with the context: closing a page while it navigates hangs in Chromium's headless shell now and then.
  })
  await t.test('an expired session leads to the sign-in page and back', async () => {
    await server.pool.query('delete from console_sessions')
    await page.goto(`${home}/console#/sources`)
    await page.getByText('Your session has ended').waitFor()
    await page.getByRole('link', { name: 'Sign in with' }).click()
    await heading('Sources')
    assert.equal(page.url(), `${home}/console#/sources?tenant=${server.tenant.id}`)
  })
  await t.test('a page that shows live data notices that the session has ended', async () => {
    await page.goto(`${home}/console#/sources/${source.id}`)
    await heading('Till')
    await server.pool.query('delete from console_sessions')
    await page.getByText('Your session has ended').waitFor()
    await page.getByRole('link', { name: 'Sign in with' }).click()
    await heading('Till')
  })
  await t.test('another tab shares the session and the sign-out', async () => {
    const other = await context.newPage()
    await other.goto(`${home}/console#/events`)
    await other.getByRole('heading', { level: 1, name: 'Events' }).waitFor()
    const keyCount = async () => (await server.admin.keys.list(server.tenant.id)).length
    const before = await keyCount()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('link', { name: 'Sign in with' }).waitFor()
    await other.getByRole('link', { name: 'Sign in with' }).waitFor()
    assert.equal(await keyCount(), before)
    assert.equal((await server.pool.query('select from console_sessions')).rowCount, 0)
  })
  assert.deepEqual(pageErrors, [])
})
