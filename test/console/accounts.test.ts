// People sign in to the console with a name and a password of their own, or with an admin key.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { launchChromium, openContext } from '../chromium.ts'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { startNode } from '../events/node.ts'
import { eventually } from '../eventually.ts'
import { startServer } from '../server.ts'

const server = await startServer()
after(server.close)
const { key: adminKey, id: adminKeyId } = await server.admin.keys.create({ kind: 'admin' })
const other = await server.anotherTenant('other')
const PASSWORD = 'correct horse battery'

/** A client that keeps the cookie and sends what the console sends. */
function openBrowser(base = server.url) {
  let cookie = ''
  return {
    get cookie() {
      return cookie
    },
    async call(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
      const response = await fetch(base + path, {
        method,
        headers: {
          'x-kontor-console': '1',
          origin: base,
          ...(cookie && { cookie }),
          ...(body && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body && { body: JSON.stringify(body) }),
      })
      const set = response.headers.getSetCookie()
      if (set[0]) cookie = set[0].split(';')[0]!
      const text = await response.text()
      return { status: response.status, set, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
    },
    /** The same session in another process. */
    adopt(from: { cookie: string }) {
      cookie = from.cookie
      return this
    },
  }
}

async function invited(name: string, more: object = {}) {
  const { invitation, id } = await server.admin.users.invite({ name, ...more })
  return { invitation, id }
}

/** A browser in which a new user is signed in. */
async function signedUp(name: string, more: object = {}) {
  const { invitation, id } = await invited(name, more)
  const browser = openBrowser()
  const { status, body } = await browser.call('POST', '/console/invitation/accept', {
    token: invitation,
    password: PASSWORD,
  })
  assert.equal(status, 204, JSON.stringify(body))
  return { ...browser, call: browser.call, id, browser }
}

const signIn = (browser: ReturnType<typeof openBrowser>, name: string, password = PASSWORD) =>
  browser.call('POST', '/console/session', { name, password })

test('an invited person sets a password, signs in by name, and the audit log shows the name', async () => {
  useDatabase(server.databaseUrl)
  const command = await kontor('user', 'invite', 'Ada@Example.com', '--role', 'admin')
  assert.equal(command.code, 0, command.err)
  const { link, name, state } = command.json() as Record<string, string>
  assert.deepEqual([name, state], ['ada@example.com', 'invited'])
  assert.equal((await kontor('user', 'invite', 'ada@example.com')).code, 1)
  const token = link!.split('#/invitation/')[1]!
  const ada = openBrowser()
  assert.deepEqual((await ada.call('POST', '/console/invitation', { token })).body, {
    name: 'ada@example.com',
    role: 'admin',
  })
  const short = await ada.call('POST', '/console/invitation/accept', { token, password: '123456789' })
  assert.equal(short.status, 400)
  const { status, set } = await ada.call('POST', '/console/invitation/accept', { token, password: PASSWORD })
  assert.equal(status, 204)
  assert.match(set[0]!, /^kontor_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
  const used = await openBrowser().call('POST', '/console/invitation/accept', { token, password: PASSWORD })
  assert.deepEqual([used.status, used.body.code], [404, 'invitation_expired'])

  const elsewhere = openBrowser()
  assert.equal((await signIn(elsewhere, ' ADA@example.com')).status, 204)
  assert.equal((await elsewhere.call('GET', '/console/session')).body.name, 'ada@example.com')
  assert.equal((await elsewhere.call('POST', '/admin/v1/tenants', { name: 'created by Ada' })).status, 201)
  const [row] = (await elsewhere.call('GET', '/admin/v1/audit?limit=1')).body.results
  assert.deepEqual([row.action, row.actor], ['tenant.create', 'user:ada@example.com'])
  const { rows } = await server.pool.query(
    'select password, row_to_json(s)::text as session from console_users, console_sessions s',
  )
  assert.match(rows[0].password, /^scrypt\$32768\$8\$3\$/)
  assert.ok(rows.every(({ session }) => !session.includes(elsewhere.cookie.split('=')[1]!)))
})

test('a session has the role and the tenant of its user, on the admin API and the data API', async () => {
  const { browser: vera } = await signedUp('vera', { role: 'viewer', tenant: server.tenant.id })
  const { body: seen } = await vera.call('GET', '/admin/v1/tenants')
  assert.deepEqual(
    seen.results.map(({ id }: { id: string }) => id),
    [server.tenant.id],
  )
  assert.equal((await vera.call('POST', '/admin/v1/tenants', { name: 'x' })).status, 403)
  assert.equal((await vera.call('POST', '/admin/v1/users', { name: 'x' })).status, 403)
  const read = (tenant: string, path = '/v1/events') => vera.call('GET', path, undefined, { 'x-kontor-tenant': tenant })
  assert.equal((await read(server.tenant.id)).status, 200)
  assert.equal((await read(server.tenant.id, '/v1/subscriptions/overview?currency=EUR')).status, 200)
  assert.equal((await read(other.id)).status, 404)
  assert.equal((await read('ten_x')).status, 404)
  assert.equal((await vera.call('GET', '/v1/events')).status, 401)
  const record = { entityType: 'contact', id: 'c', sourceUpdatedAt: '2026-01-01', data: {} }
  const write = await vera.call('POST', '/v1/contacts', record, { 'x-kontor-tenant': server.tenant.id })
  assert.deepEqual([write.status, write.body.code], [403, 'read_only'])
  const keys = await server.admin.keys.list(server.tenant.id)
  assert.equal(keys.length, 2, 'no key was created for the session')
})

test('after the browser has deleted the cookie, the console reads that the session has ended', async () => {
  const browser = openBrowser(server.url)
  for (const [method, path] of [
    ['GET', '/v1/events'],
    ['GET', '/admin/v1/tenants'],
    ['POST', '/admin/v1/tenants'],
  ] as const) {
    const body = method === 'POST' ? { name: 'x' } : undefined
    const answer = await browser.call(method, path, body, { 'x-kontor-tenant': server.tenant.id })
    assert.deepEqual([answer.status, answer.body.code], [401, 'session_ended'], `${method} ${path}`)
  }
  assert.equal((await browser.call('GET', '/console/session')).status, 204)
})

test('only pages of this server can sign in and use the cookie', async () => {
  const { browser } = await signedUp('olga', { role: 'admin' })
  for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, { origin: '' }]) {
    const forged = await browser.call('POST', '/admin/v1/tenants', { name: 'forged' }, headers)
    assert.deepEqual([forged.status, forged.body.code], [403, 'not_from_the_console'])
    const login = await browser.call('POST', '/console/session', { name: 'olga', password: PASSWORD }, headers)
    assert.equal(login.status, 403)
  }
  const plain = await fetch(`${server.url}/console/session`, {
    ...{ method: 'POST', body: JSON.stringify({ name: 'olga', password: PASSWORD }) },
    headers: { origin: server.url, 'content-type': 'application/json' },
  })
  assert.equal(plain.status, 403)
})

test('wrong names and passwords get the same response, and guessing is throttled by name and across processes', async () => {
  await signedUp('victim')
  const attempt = (name: string, password: string, base = server.url) =>
    openBrowser(base).call('POST', '/console/session', { name, password })
  const [wrong, unknown] = [await attempt('victim', 'wrong password'), await attempt('unknown-name', 'wrong password')]
  assert.deepEqual(
    [wrong.status, wrong.body.code, wrong.body.detail],
    [401, 'invalid_credentials', unknown.body.detail],
  )
  const node = await startNode(server, 'console')
  try {
    await server.pool.query('update sign_in_failures set failures = 8 where failures = 1')
    for (let i = 0; i < 2; i++) assert.equal((await attempt('victim', `guess ${i}`, node.url)).status, 401)
    const blocked = await attempt('victim', PASSWORD)
    assert.equal(blocked.status, 429)
    assert.ok(Number(blocked.headers.get('retry-after')) > 0)
  } finally {
    await node.close()
  }
  await server.pool.query('delete from sign_in_failures')
  assert.equal((await attempt('victim', PASSWORD)).status, 204)
})

test('a burst of wrong passwords does not exceed the limit, and a success does not count', async () => {
  await server.pool.query('delete from sign_in_failures')
  await signedUp('burst')
  const mostFailures = async () =>
    (await server.pool.query('select max(failures) as most from sign_in_failures')).rows[0].most
  assert.equal((await signIn(openBrowser(), 'burst')).status, 204)
  assert.equal(await mostFailures(), 0)
  await server.pool.query('update sign_in_failures set failures = 6')
  const guesses = await Promise.all(Array.from({ length: 20 }, (_, i) => signIn(openBrowser(), 'burst', `guess ${i}`)))
  const count = (status: number) => guesses.filter(guess => guess.status === status).length
  assert.deepEqual([count(401), count(429)], [4, 16])
  // Refused attempts do not count for the name elsewhere, nor for others at this address.
  assert.equal(await mostFailures(), 10)
  await server.pool.query('delete from sign_in_failures')
})

test('failures with other names block an address for a minute at most', async () => {
  await server.pool.query('delete from sign_in_failures')
  await signedUp('colleague')
  assert.equal((await signIn(openBrowser(), 'guessed')).status, 401)
  await server.pool.query('update sign_in_failures set failures = 50')
  const blocked = await signIn(openBrowser(), 'colleague')
  assert.equal(blocked.status, 429)
  const waitS = Number(blocked.headers.get('retry-after'))
  assert.ok(waitS > 0 && waitS <= 60, String(waitS))
  await server.pool.query(`update sign_in_failures set since = since - interval '1 minute'`)
  assert.equal((await signIn(openBrowser(), 'colleague')).status, 204)
  assert.equal((await signIn(openBrowser(), 'guessed')).status, 429)
  await server.pool.query('delete from sign_in_failures')
})

test('an expired invitation and a disabled user cannot sign in; a reset ends the sessions and the password', async () => {
  const late = await invited('late')
  await server.pool.query(`update console_users set invited_until = now() where id = $1`, [late.id])
  const expired = await openBrowser().call('POST', '/console/invitation/accept', {
    ...{ token: late.invitation, password: PASSWORD },
  })
  assert.equal(expired.status, 404)
  // The invitation is checked before anything is done with the password.
  const unusable = { token: late.invitation, password: 'short' }
  assert.equal((await openBrowser().call('POST', '/console/invitation/accept', unusable)).status, 404)

  const { browser: ben, id } = await signedUp('ben', { role: 'operator' })
  const isIn = async () => (await ben.call('GET', '/admin/v1/tenants')).status === 200
  assert.ok(await isIn())
  await server.admin.users.setDisabled(id, true)
  assert.equal(await isIn(), false)
  assert.equal((await signIn(openBrowser(), 'ben')).status, 401)
  await server.admin.users.setDisabled('ben', false)
  assert.equal((await signIn(ben, 'ben')).status, 204)
  const { invitation } = await server.admin.users.reset('ben')
  assert.equal(await isIn(), false)
  assert.equal((await signIn(openBrowser(), 'ben')).status, 401)
  const again = { token: invitation, password: 'another good password' }
  assert.equal((await ben.call('POST', '/console/invitation/accept', again)).status, 204)
  assert.ok(await isIn())
})

test('sessions are listed and ended: all by an admin, otherwise one’s own', async () => {
  useDatabase(server.databaseUrl)
  const { browser: sue } = await signedUp('sue')
  const { browser: tom } = await signedUp('tom')
  const { results } = (await sue.call('GET', '/admin/v1/sessions')).body
  assert.deepEqual(
    results.map(({ actor }: { actor: string }) => actor),
    ['user:sue'],
  )
  const all = (await kontor('session', 'list')).json() as { id: string; actor: string; user_agent: string }[]
  const ofTom = all.find(({ actor }) => actor === 'user:tom')!
  assert.equal((await sue.call('POST', `/admin/v1/sessions/${ofTom.id}/end`)).status, 404)
  assert.equal((await kontor('session', 'end', ofTom.id)).code, 0)
  assert.equal((await tom.call('GET', '/admin/v1/tenants')).status, 401)
  assert.equal((await sue.call('POST', `/admin/v1/sessions/${results[0].id}/end`)).status, 200)
  assert.equal((await sue.call('GET', '/console/session')).status, 204)
})

test('an ended session and a revoked key stop working in another process, and a session ends with its key', async () => {
  const node = await startNode(server, 'console,data')
  try {
    const { key, id, hint } = await server.admin.keys.create({ kind: 'admin', role: 'operator' })
    const { key: readKey, id: readKeyId } = await server.admin.keys.create({
      tenant: server.tenant.id,
      kind: 'private',
    })
    const here = openBrowser()
    assert.equal((await here.call('POST', '/console/session', { key })).status, 204)
    assert.equal((await here.call('GET', '/console/session')).body.name, `admin ${hint}`)
    const { browser: uma, id: umaId } = await signedUp('uma')
    const there = (from: { cookie: string }) => openBrowser(node.url).adopt(from).call('GET', '/admin/v1/tenants')
    const withKey = async (secret: string, path: string) =>
      (await fetch(node.url + path, { headers: { authorization: `Bearer ${secret}` } })).status
    assert.deepEqual([(await there(here)).status, (await there(uma)).status], [200, 200])
    assert.deepEqual([await withKey(key, '/admin/v1/tenants'), await withKey(readKey, '/v1/events')], [200, 200])

    await server.admin.users.setDisabled(umaId, true)
    assert.equal((await there(uma)).status, 401)
    await server.admin.keys.revoke(id)
    assert.equal((await there(here)).status, 401)
    await server.admin.keys.revoke(readKeyId)
    await eventually('the other process to reject the keys', async () => {
      const answers = [await withKey(key, '/admin/v1/tenants'), await withKey(readKey, '/v1/events')]
      return answers.every(status => status === 401)
    })
  } finally {
    await node.close()
  }
})

test('a key that is limited to networks gives no session elsewhere', async () => {
  const { key } = await server.admin.keys.create({ kind: 'admin', allowed_addresses: ['192.0.2.0/24'] })
  assert.equal((await openBrowser().call('POST', '/console/session', { key })).status, 401)
  const inside = await openBrowser().call('POST', '/console/session', { key: adminKey })
  assert.equal(inside.status, 204)
  const { key: narrowed, id } = await server.admin.keys.create({ kind: 'admin' })
  const moved = openBrowser()
  await moved.call('POST', '/console/session', { key: narrowed })
  await server.pool.query(`update api_keys set allowed_addresses = '{192.0.2.0/24}' where id = $1`, [id])
  assert.equal((await moved.call('GET', '/admin/v1/tenants')).status, 403)
  assert.equal((await openBrowser().call('POST', '/console/session', { key: server.tenant.privateKey })).status, 401)
  assert.match(adminKeyId, /^key_/)
})

test('in Chromium: invite, set a password, reload, open another tab, end the session', {
  timeout: 300_000,
}, async t => {
  const chromium = await launchChromium(t)
  if (!chromium) return
  const context = await openContext(t, chromium)
  const page = await context.newPage()
  const pageErrors: string[] = []
  page.on('pageerror', error => pageErrors.push(error.message))
  const heading = (name: string, on = page) => on.getByRole('heading', { level: 1, name, exact: true }).waitFor()

  await page.goto(`${server.url}/console#/users`)
  await page.getByLabel('Key').fill(adminKey)
  await page.getByRole('button', { name: 'Continue with the key' }).click()
  await heading('Users')
  await page.getByLabel('Name').fill('grace@example.com')
  await page.getByLabel('Role').selectOption('admin')
  await page.getByRole('button', { name: 'Create invitation' }).click()
  await page.getByRole('heading', { name: 'Invitation for grace@example.com' }).waitFor()
  const link = await page.locator('.once').getByText(`${server.url}/console#/invitation/`).first().innerText()
  await page.getByRole('button', { name: 'Sign out' }).click()
  // The end of the sign-out changes the address.
  await page.getByLabel('Key', { exact: true }).waitFor()

  await page.goto(link.trim())
  await page.getByText('You sign in as grace@example.com').waitFor()
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await page.getByLabel('Repeat the password').fill('something else')
  await page.getByRole('button', { name: 'Set password and sign in' }).click()
  await page.getByText('The two passwords differ.').waitFor()
  await page.getByLabel('Repeat the password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Set password and sign in' }).click()
  await heading('Overview')
  await page.getByText('grace@example.com (admin)').waitFor()
  await page.reload()
  await heading('Overview')
  const second = await context.newPage()
  await second.goto(`${server.url}/console#/users`)
  await heading('Users', second)
  const row = second.getByRole('row', { name: /grace@example\.com \(admin\) this session/ })
  await row.getByRole('button', { name: 'End session' }).click()
  await second.getByText('Your session has ended').waitFor()
  await second.getByLabel('Name').fill('grace@example.com')
  await second.getByLabel('Password').fill(PASSWORD)
  await second.getByRole('button', { name: 'Sign in', exact: true }).click()
  await heading('Users', second)
  assert.deepEqual(pageErrors, [])
})
