// Every string that a sender, a provider or an operator can store is shown as text, on every page, in a real browser.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { parseRoute } from '../../console/router.ts'
import { launchChromium } from '../chromium.ts'
import { startServer } from '../server.ts'
import { crawl, type Visit } from './links.ts'
import { openTab, signIn } from './tab.ts'

const server = await startServer({ KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' })
after(server.close)
const { key: adminKey } = await server.admin.keys.create({ kind: 'admin' })

let count = 0
/** Markup that would leave an element of the class `injected`, or run a script, wherever it is not escaped. `at` names the field. */
const evil = (at: string) =>
  `${at}-${++count}"'><img class=injected src=x onerror=globalThis.xss=1><svg class=injected onload=globalThis.xss=1></svg>\${globalThis.xss=1}{{7*7}}</script><script class=injected>globalThis.xss=1</script>`
/** The same without spaces, for names. */
const evilWord = (at: string) => evil(at).replaceAll(' ', '/')
const URL_SCRIPT = 'javascript:globalThis.xss=1//'

/** Replaces every string of a value, also the names of fields that senders choose. */
const filled = (fields: string[]) => Object.fromEntries(fields.map(field => [field, evil(field)]))

async function fill(): Promise<void> {
  const { id: tenant, privateKey, trackingKey } = server.tenant
  const post = async (path: string, key: string, body: object, headers: Record<string, string> = {}) => {
    const answer = await server.request(path, { method: 'POST', key, body: JSON.stringify(body), headers })
    return answer.status
  }
  const at = new Date().toISOString()
  const person = filled(['name', 'firstName', 'lastName', 'company', 'country', 'phone', 'title', 'address'])
  const record = (entityType: string, id: string, data: object) =>
    post(`/v1/${entityType}s`, privateKey, {
      ...{ entityType, id, externalId: evil('externalId').slice(0, 250), sourceUpdatedAt: at, data },
    })
  const contactId = evil('contactId').slice(0, 250)
  const email = `"${evilWord('mail').slice(0, 60)}"@example.com`
  assert.equal(await record('contact', contactId, { ...person, email, [evil('field')]: evil('value') }), 202)
  assert.equal(
    await record('product', 'p', { sku: evil('sku').slice(0, 200), ...filled(['name', 'status', 'image']) }),
    202,
  )
  const order = { contactId, total: 5, currency: 'EUR', ...filled(['status', 'state', 'number', 'note']) }
  assert.equal(await record('order', evil('orderId').slice(0, 250), { ...order, url: URL_SCRIPT }), 202)

  const visit = { visitor: evil('visitor').slice(0, 250), session_id: evil('session').slice(0, 250) }
  const page = {
    page: URL_SCRIPT,
    referrer: URL_SCRIPT,
    title: evil('title'),
    [evil('data')]: { deep: [evil('deep')] },
  }
  const agent = { 'user-agent': evil('agent') }
  const utm = { utm_source: evil('source'), utm_medium: evil('medium'), utm_campaign: evil('campaign') }
  for (const event of [
    {
      event_type: evil('type').slice(0, 200),
      event_id: evil('event').slice(0, 250),
      ...visit,
      data: { ...page, ...utm },
    },
    { event_type: 'login', ...visit, user_id: evil('user').slice(0, 250), data: { email: 'ada@example.com' } },
    {
      event_type: 'convert',
      ...visit,
      data: { order_id: evil('sale').slice(0, 250), amount: 3, currency: 'EUR', ...utm },
    },
  ])
    assert.equal(await post('/v1/track/', trackingKey, event, agent), 200)
  const call = {
    type: 'track',
    anonymousId: evil('anonymous').slice(0, 250),
    context: { campaign: utm, userAgent: evil('ua') },
  }
  const batch = [
    { ...call, event: evil('name').slice(0, 200), messageId: 'm-1' },
    { ...call, messageId: evil('bad') },
  ]
  assert.equal(await post('/v1/batch', trackingKey, { batch }), 200)

  const source = await server.admin.sources.create({ tenant, type: 'webhook', name: evil('source name').slice(0, 90) })
  const hook = (type: string, payload: object) =>
    post(`/ingest/inbound/${source.id}`, source.token, {
      inbound_event_id: evil('hook').slice(0, 250),
      event_type: type,
      payload,
    })
  const item = { id: 'i', name: evil('plan'), quantity: 1, unit_amount: 20, interval: 'month', interval_count: 1 }
  const customer = { customer: contactId.slice(0, 200), customer_name: evil('customer'), customer_email: email }
  const dates = { started_at: at, updated_at: at, created_at: at }
  const acquisition = { source: evil('acquired'), medium: evil('by'), campaign: evil('in') }
  const subscription = {
    id: 'sub',
    ...customer,
    status: 'active',
    currency: 'EUR',
    ...dates,
    acquisition,
    items: [item],
  }
  assert.equal(
    await hook('subscription.created', {
      ...subscription,
      cancellation_reason: evil('reason'),
      cancel_at_period_end: true,
      current_period_end: new Date(Date.now() + 864e6).toISOString(),
    }),
    200,
  )
  assert.equal(
    await hook('subscription.created', { ...subscription, id: evil('sub').slice(0, 200), status: evil('status') }),
    200,
  )
  const invoice = {
    id: 'inv',
    number: evil('number'),
    subscription: 'sub',
    ...customer,
    status: 'open',
    currency: 'EUR',
    total: 20,
    amount_due: 20,
    amount_remaining: 20,
    attempt_count: 1,
    due_date: '2026-01-01',
    ...dates,
  }
  assert.equal(
    await hook('invoice.payment_failed', { ...invoice, failure_code: evil('code'), failure_message: evil('message') }),
    200,
  )
  await hook('', { text: evil('rejected') })
  await post(`/ingest/inbound/${source.id}`, evilWord('token'), {}, agent)
  await post('/v1/products', privateKey, { entityType: evil('entity') })
  await server.admin.destinations.create({
    ...{
      tenant,
      name: evil('destination').slice(0, 90),
      url: `http://127.0.0.1:9/${encodeURIComponent(evil('path'))}`,
    },
    ...{ what: ['events', 'records'], event_types: [evil('filter').slice(0, 90)] },
  })
  await server.admin.keys.create({ tenant, kind: 'private', name: evil('key').slice(0, 100) })
  const rules = { channels: [{ channel: 'partners', source: [evil('pattern').slice(0, 90)] }] }
  const plans = { plan_groups: { [evil('group').slice(0, 90)]: [evil('grouped').slice(0, 90)] } }
  for (const settings of [rules, plans]) await server.admin.policies.set(tenant, settings)
  await server.admin.tenants.create({ name: evilWord('tenant').slice(0, 60) }).catch(() => undefined)
  await server.admin.users.invite({ name: evilWord('user').slice(0, 250).toLowerCase() })
  const session = { 'x-kontor-console': '1', origin: server.url, ...agent }
  assert.equal(await post('/console/session', '', { key: adminKey }, session), 204)
  await server.settled()
}

const FOUND = `[
  ...document.querySelectorAll('.injected, img[src=x], a[href^="javascript:" i], iframe, object'),
].map(element => element.outerHTML.slice(0, 200)).concat(globalThis.xss === undefined ? [] : ['a script ran'])`

test('no stored string becomes markup or script on any page', { timeout: 600_000 }, async t => {
  const browser = await launchChromium(t)
  if (!browser) return
  await fill()
  const { page, pageErrors, close } = await openTab(browser, server.url, { failing: /./ })
  await signIn(page, adminKey)
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  const view = JSON.stringify([{ name: evil('view'), href: '#/overview' }])
  await page.evaluate(
    ([name, value]) => localStorage.setItem(name!, value!),
    [`kontor.views.${server.tenant.id}`, view],
  )
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  const shown = new Set<string>()
  const visit = async ({ address }: Visit) => {
    // Details that are closed at first are part of the page too.
    await page.evaluate(`for (const details of document.querySelectorAll('details')) details.open = true`)
    assert.deepEqual(await page.evaluate(FOUND), [], address)
    const text = String(await page.evaluate('document.body.innerText'))
    for (const [field] of text.matchAll(/[\w ]+-\d+"'><img/g)) shown.add(field)
  }
  const funnel = `#/acquisition/funnel?steps=${encodeURIComponent(`login,${evil('step')}`)}`
  const addresses = await crawl(page, { starts: [funnel], objects: 6, visit })
  const visited = new Set(addresses.map(address => parseRoute(address)?.name))
  for (const name of [
    'event',
    'record',
    'person',
    'source',
    'destination',
    'deadLetters',
    'issues',
    'users',
    'audit',
    'tenants',
    'conversions',
    ...(['account', 'alerts', 'channels', 'customers', 'funnel', 'keys', 'payers', 'privacy', 'settings'] as const),
  ] as const)
    assert.ok(visited.has(name), `${name} was not visited`)
  // Otherwise the test would prove nothing.
  assert.ok(shown.size > 15, `only ${[...shown]}`)
  for (const field of ['key', 'view'])
    assert.ok(
      [...shown].some(name => name.startsWith(`${field}-`)),
      `${field} is on no page: ${[...shown]}`,
    )
  assert.deepEqual(
    pageErrors.filter(error => !/Failed to load resource|Content Security|Trusted/i.test(error)),
    [],
  )
  await close()
})
