// Importing a Stripe account and comparing it with the ledger: what is imported is complete, dated and counted once, and
// every difference is found.
import assert from 'node:assert/strict'
import { readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { retryPauseMs } from '../../src/import/stripe-api.ts'
import { kontor, temporaryDirectory, useDatabase } from '../cli/kontor.ts'
import { startServer, TEST_SECRET_KEY, type TestTenant } from '../server.ts'
import { LIVE_KEY, type StripeServer, startStripe, tooManyRequests } from './stripe-api.ts'

const server = await startServer()
after(server.close)
useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
type Body = any

const DAY = 86_400
const NOW = Math.floor(Date.now() / 1000)
const iso = (seconds: number) => new Date(seconds * 1000).toISOString()

function subscription(id: string, more: object = {}): Body {
  return {
    ...{ object: 'subscription', id, customer: `cus_${id}`, status: 'active', currency: 'eur', livemode: true },
    ...{ created: NOW - 90 * DAY, start_date: NOW - 90 * DAY, cancel_at_period_end: false, cancel_at: null },
    ...{ pause_collection: null, discounts: [], items: { object: 'list', has_more: false, data: [item(id)] } },
    ...more,
  }
}

function item(id: string, more: object = {}): Body {
  return {
    ...{ object: 'subscription_item', id: `si_${id}`, subscription: id, quantity: 1 },
    ...{ current_period_start: NOW - 10 * DAY, current_period_end: NOW + 20 * DAY },
    price: {
      ...{ object: 'price', id: 'price_ten', product: 'prod_1', unit_amount: 1000, currency: 'eur', type: 'recurring' },
      recurring: { interval: 'month', interval_count: 1, usage_type: 'licensed' },
    },
    ...more,
  }
}

function invoice(id: string, more: object = {}): Body {
  return {
    ...{ object: 'invoice', id, customer: 'cus_sub_same', currency: 'eur', livemode: true, created: NOW - 5 * DAY },
    ...{ status: 'paid', total: 1000, amount_due: 1000, amount_paid: 1000, amount_remaining: 0, attempt_count: 1 },
    status_transitions: { finalized_at: NOW - 5 * DAY, paid_at: NOW - 5 * DAY },
    ...more,
  }
}

function refund(id: string, more: object = {}): Body {
  return {
    ...{ object: 'refund', id, charge: `ch_${id}`, payment_intent: `pi_${id}`, currency: 'eur', amount: 300 },
    ...{ created: NOW - 4 * DAY, status: 'succeeded' },
    ...more,
  }
}

const discount = (percent: number) => ({
  ...{ object: 'discount', id: `di_${percent}`, start: NOW - 30 * DAY, end: null },
  coupon: { object: 'coupon', id: `half_${percent}`, percent_off: percent, duration: 'forever' },
})

const page = (url: string, data: Body[], has_more = false) => ({ object: 'list', url: `/v1/${url}`, has_more, data })

async function save(t: TestContext, ...values: object[]): Promise<string> {
  const file = join(await temporaryDirectory(t), 'stripe.json')
  await writeFile(file, values.map(value => JSON.stringify(value)).join('\n'))
  return file
}

const importFile = (tenant: TestTenant, file: string, ...more: string[]) =>
  kontor('import', 'stripe', file, '--tenant', tenant.name, '--url', server.url, ...more)

async function importAt(t: TestContext, tenant: TestTenant, at: number, ...values: object[]) {
  const run = await importFile(tenant, await save(t, ...values), '--as-of', iso(at))
  assert.equal(run.code, 0, run.err)
  return run.json() as Body
}

async function reconcile(t: TestContext, tenant: TestTenant, values: object[], ...more: string[]) {
  const run = await kontor('reconcile', 'stripe', await save(t, ...values), '--tenant', tenant.name, ...more)
  const body = run.out === '' ? null : (run.json() as Body)
  const list = (body?.differences ?? []).map(({ kind, id, field, here, there }: Body) => [kind, id, field, here, there])
  return { ...run, compared: body?.compared, list }
}

const mrr = async (tenant: TestTenant) =>
  (await server.request('/v1/subscriptions/overview?currency=EUR', { key: tenant.privateKey })).body.mrr

async function withStripe<T>(stripe: StripeServer, work: () => Promise<T>): Promise<T> {
  process.env.KONTOR_STRIPE_API_URL = stripe.url
  try {
    return await work()
  } finally {
    delete process.env.KONTOR_STRIPE_API_URL
  }
}

async function startAccount(t: TestContext, account: Record<string, Body[]>): Promise<StripeServer> {
  const stripe = await startStripe(account)
  t.after(() => stripe.close())
  return stripe
}

test('each kind of planted difference is found, and nothing else', async t => {
  const tenant = await server.anotherTenant('planted')
  const ids = 'same status discount pause scheduled fixed customer item price gone coupon ended'.split(' ')
  const trial = { status: 'trialing', trial_start: NOW - DAY, trial_end: NOW + 10 * DAY }
  const subscriptions = [...ids.map(name => subscription(`sub_${name}`)), subscription('sub_trial', trial)]
  const invoices = ['same', 'total', 'paid', 'gone'].map(name => invoice(`in_${name}`))
  const statuses = ['pending', 'requires_action', 'failed', 'canceled', null]
  const refunds = ['same', 'amount', 'gone', ...statuses].map(name => refund(`re_${name}`))
  const lists = (changes: Record<string, object | null> = {}) => {
    const changed = (all: Body[]) =>
      all.flatMap(object => (changes[object.id] === null ? [] : [{ ...object, ...changes[object.id] }]))
    return [
      page('subscriptions', changed(subscriptions)),
      page('invoices', changed(invoices)),
      page('refunds', changed(refunds)),
    ]
  }
  await importAt(t, tenant, NOW - 60, ...lists())
  const same = await reconcile(t, tenant, lists())
  assert.deepEqual(same.list, [])
  assert.deepEqual(same.compared, { subscriptions: ids.length + 1, invoices: 4, refunds: 8 })
  assert.equal(same.code, 0)

  const cancelAt = NOW + 40 * DAY
  const planted = lists({
    sub_status: { status: 'unpaid' },
    sub_discount: { discounts: [discount(50)] },
    sub_pause: { pause_collection: { behavior: 'void', resumes_at: null } },
    sub_trial: { pause_collection: { behavior: 'void', resumes_at: null } },
    sub_scheduled: { cancel_at_period_end: true },
    sub_fixed: { cancel_at: cancelAt },
    sub_customer: { customer: 'cus_other' },
    sub_item: { items: { object: 'list', has_more: false, data: [item('sub_item', { quantity: 3 })] } },
    sub_price: {
      currency: 'usd',
      items: { data: [item('sub_price', { price: { ...item('x').price, currency: 'usd' } })] },
    },
    sub_gone: null,
    sub_ended: { status: 'canceled', ended_at: NOW - DAY },
    in_total: { total: 1500 },
    in_paid: { status: 'open', amount_paid: 0, amount_remaining: 1000 },
    in_gone: null,
    re_amount: { amount: 200 },
    re_gone: null,
    ...Object.fromEntries(statuses.map(status => [`re_${status}`, { status }])),
  })
  const added = [subscription('sub_new'), invoice('in_new'), refund('re_new')]
  // the discount of a customer applies to the subscription
  const customer = { object: 'customer', id: 'cus_sub_coupon', discount: discount(20) }
  const found = await reconcile(t, tenant, [...planted, ...added, customer])
  assert.equal(found.code, 1)
  const once = (price: string, n: number) => [`si_${price}: ${n} × 10 per month, price_ten`]
  assert.deepEqual(found.list, [
    ['subscription', 'sub_status', 'status', 'active', 'unpaid'],
    ['subscription', 'sub_status', 'mrr', 10, 0],
    ['subscription', 'sub_discount', 'mrr', 10, 5],
    ['subscription', 'sub_pause', 'status', 'active', 'paused'],
    ['subscription', 'sub_pause', 'mrr', 10, 0],
    ['subscription', 'sub_scheduled', 'cancel_at', null, iso(NOW + 20 * DAY)],
    ['subscription', 'sub_fixed', 'cancel_at', null, iso(cancelAt)],
    ['subscription', 'sub_customer', 'customer', 'cus_sub_customer', 'cus_other'],
    ['subscription', 'sub_item', 'mrr', 10, 30],
    ['subscription', 'sub_item', 'items', once('sub_item', 1), once('sub_item', 3)],
    ['subscription', 'sub_price', 'currency', 'EUR', 'USD'],
    ['subscription', 'sub_coupon', 'mrr', 10, 8],
    ['subscription', 'sub_ended', 'status', 'active', 'canceled'],
    ['subscription', 'sub_trial', 'collection_paused', false, true],
    ['subscription', 'sub_new', 'existence', null, 'active'],
    ['invoice', 'in_total', 'total', 10, 15],
    ['invoice', 'in_paid', 'status', 'paid', 'open'],
    ['invoice', 'in_paid', 'amount_paid', 10, 0],
    ['invoice', 'in_new', 'existence', null, 'paid'],
    ['refund', 're_amount', 'amount', 3, 2],
    ...statuses.map(status => ['refund', `re_${status}`, 'status', 'succeeded', status]),
    ['refund', 're_new', 'existence', null, 'succeeded'],
    ['subscription', 'sub_gone', 'existence', 'active', null],
    ['invoice', 'in_gone', 'existence', 'paid', null],
    ['refund', 're_gone', 'existence', 'succeeded', null],
  ])
})

test('a refund has the status of its newest version, and after an import there is no difference', async t => {
  const tenant = await server.anotherTenant('refund-status')
  const pending = refund('re_1', { status: 'pending' })
  await importAt(t, tenant, NOW - 3 * DAY, refund('re_1', { status: 'requires_action' }))
  assert.deepEqual((await reconcile(t, tenant, [pending])).list, [
    ['refund', 're_1', 'status', 'requires_action', 'pending'],
  ])
  await importAt(t, tenant, NOW - 2 * DAY, pending)
  assert.deepEqual((await reconcile(t, tenant, [pending])).list, [])
  // a pending refund counts already
  assert.deepEqual((await reconcile(t, tenant, [refund('re_1')])).list, [])
  assert.deepEqual((await reconcile(t, tenant, [invoice('in_1')])).list, [
    ['invoice', 'in_1', 'existence', null, 'paid'],
    ['refund', 're_1', 'existence', 'pending', null],
  ])
  const canceled = refund('re_1', { status: 'canceled' })
  await importAt(t, tenant, NOW - DAY, canceled)
  assert.deepEqual((await reconcile(t, tenant, [canceled])).list, [])
})

test('a pause during a trial is imported, and its end is a difference', async t => {
  const tenant = await server.anotherTenant('trial-pause')
  const trial = { status: 'trialing', trial_start: NOW - DAY, trial_end: NOW + 10 * DAY }
  const paused = subscription('sub_1', { ...trial, pause_collection: { behavior: 'void', resumes_at: null } })
  await importAt(t, tenant, NOW - 60, paused)
  assert.deepEqual((await reconcile(t, tenant, [paused])).list, [])
  assert.deepEqual((await reconcile(t, tenant, [subscription('sub_1', trial)])).list, [
    ['subscription', 'sub_1', 'collection_paused', true, false],
  ])
})

test('a kind that a file does not contain is not equal: its objects are missing there', async t => {
  const tenant = await server.anotherTenant('kinds')
  await importAt(t, tenant, NOW - 60, subscription('sub_same'), invoice('in_same'), refund('re_same'))
  const { list, code } = await reconcile(t, tenant, [subscription('sub_same')])
  assert.deepEqual(list, [
    ['invoice', 'in_same', 'existence', 'paid', null],
    ['refund', 're_same', 'existence', 'succeeded', null],
  ])
  assert.equal(code, 1)
})

test('comparing nothing is an error: an empty account, another account, a test mode key or file', async t => {
  const tenant = await server.anotherTenant('nothing')
  const stripe = await startAccount(t, {})
  const run = (key = LIVE_KEY) =>
    withStripe(stripe, () => kontor('reconcile', 'stripe', '--tenant', tenant.name, '--key', key))
  const empty = await run()
  assert.equal(empty.code, 1)
  assert.match(empty.err, /Nothing was compared: there is no subscription, invoice or refund on either side/)

  await importAt(t, tenant, NOW - 60, subscription('sub_here'))
  stripe.account.subscriptions = [subscription('sub_elsewhere')]
  const other = await run()
  assert.equal(other.code, 1)
  assert.match(other.err, /no object exists on both sides/)
  assert.deepEqual(
    (other.json() as Body).differences.map(({ id, field }: Body) => [id, field]),
    [
      ['sub_elsewhere', 'existence'],
      ['sub_here', 'existence'],
    ],
  )

  stripe.account.subscriptions = [subscription('sub_here', { livemode: false })]
  const inTestMode = await run()
  assert.equal(inTestMode.code, 1)
  assert.match(inTestMode.err, /Nothing was compared.*Ignored test mode objects: 1/)
  const testKey = await run('rk_test_reading')
  assert.equal(testKey.code, 2)
  assert.match(testKey.err, /test mode key/)
})

test('a state that returns is a new state, and an older state never overrides a newer one', async t => {
  const tenant = await server.anotherTenant('returning')
  const paused = subscription('sub_1', { pause_collection: { behavior: 'void', resumes_at: null } })
  await importAt(t, tenant, NOW - 3 * DAY, subscription('sub_1'))
  assert.equal(await mrr(tenant), 10)
  await importAt(t, tenant, NOW - 2 * DAY, paused)
  assert.equal(await mrr(tenant), 0)
  const third = await importAt(t, tenant, NOW - DAY, subscription('sub_1'))
  assert.deepEqual([third.accepted, third.duplicates], [1, 0])
  assert.equal(await mrr(tenant), 10)
  const again = await importAt(t, tenant, NOW - DAY, subscription('sub_1'))
  assert.deepEqual([again.accepted, again.duplicates], [0, 1])

  // a copy of the second file, written just now
  await importAt(t, tenant, NOW - 2 * DAY + 60, paused)
  assert.equal(await mrr(tenant), 10)
})

test('a file without times requires --as-of, and its own time does not matter', async t => {
  const tenant = await server.anotherTenant('dated')
  const file = await save(t, page('invoices', [invoice('in_1')]), subscription('sub_1'))
  const undated = await importFile(tenant, file)
  assert.equal(undated.code, 1)
  assert.match(undated.err, /Line 2: a subscription does not contain the time of its state. Set --as-of/)
  // nothing of the file was sent
  const { body } = await server.request('/v1/events', { key: tenant.privateKey })
  assert.deepEqual(body.results, [])

  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook', namespace: 'stripe' })
  const type = 'customer.subscription.deleted'
  const object = subscription('sub_1', { status: 'canceled', ended_at: NOW - DAY })
  const changed = subscription('sub_2', { items: { data: [item('sub_2', { quantity: 5 })] } })
  const event = (id: string, event_type: string, value: Body) => ({
    ...{ id, object: 'event', type: event_type, created: NOW - DAY, livemode: true, data: { object: value } },
  })
  await server.request(source.path, {
    method: 'POST',
    key: source.token!,
    body: JSON.stringify([event('evt_1', type, object), event('evt_2', 'customer.subscription.updated', changed)]),
  })
  await server.settled()
  assert.equal(await mrr(tenant), 50)
  const stale = await save(t, subscription('sub_1'), subscription('sub_2'))
  await utimes(stale, new Date(), new Date())
  const run = await importFile(tenant, stale, '--as-of', iso(NOW - 2 * DAY))
  assert.equal(run.code, 0, run.err)
  assert.equal(await mrr(tenant), 50)

  const future = await importFile(tenant, stale, '--as-of', iso(NOW + DAY))
  assert.equal(future.code, 2)
  const early = await importFile(tenant, stale, '--as-of', iso(NOW - 365 * DAY))
  assert.equal(early.code, 1)
  assert.match(early.err, /created is later than --as-of/)
})

test('objects with their own time need no --as-of', async t => {
  const tenant = await server.anotherTenant('own times')
  const ended = subscription('sub_1', { status: 'canceled', ended_at: NOW - DAY })
  const run = await importFile(tenant, await save(t, ended, invoice('in_1'), refund('re_1')))
  assert.equal(run.code, 0, run.err)
  assert.equal((run.json() as Body).accepted, 3)
})

test('an incomplete file is rejected before anything is sent', async t => {
  const tenant = await server.anotherTenant('incomplete')
  const pages = [
    page('subscriptions', [subscription('sub_1')], true),
    page('subscriptions', [subscription('sub_2')], true),
  ]
  const run = await importFile(tenant, await save(t, ...pages), '--as-of', iso(NOW - 60))
  assert.equal(run.code, 1)
  assert.match(run.err, /The list \/v1\/subscriptions is incomplete: its last page, at line 2, has "has_more": true/)
  const { body } = await server.request('/v1/events', { key: tenant.privateKey })
  assert.deepEqual(body.results, [])
  const compared = await reconcile(t, tenant, pages)
  assert.equal(compared.code, 1)
  assert.match(compared.err, /is incomplete/)

  await importAt(t, tenant, NOW - 60, pages[0]!, page('subscriptions', [subscription('sub_2')]))
  assert.equal(await mrr(tenant), 20)
})

test('the namespace of the only Stripe source applies; several require a choice', async t => {
  const tenant = await server.anotherTenant('namespaces')
  const create = (name: string, namespace: string) =>
    server.admin.sources.create({
      ...{ tenant: tenant.id, type: 'webhook', name, namespace, preset: 'stripe' },
      signing_secret: 'whsec_of_at_least_16_characters',
    })
  const source = await create('Stripe EU', 'eu')
  await importAt(t, tenant, NOW - 2 * DAY, subscription('sub_1'))
  const forwarded = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook', namespace: 'eu' })
  const event = { id: 'evt_1', object: 'event', type: 'customer.subscription.updated', created: NOW - DAY }
  await server.request(forwarded.path, {
    method: 'POST',
    key: forwarded.token!,
    body: JSON.stringify({ ...event, livemode: true, data: { object: subscription('sub_1') } }),
  })
  await server.settled()
  assert.equal(await mrr(tenant), 10)
  assert.deepEqual((await reconcile(t, tenant, [subscription('sub_1')])).list, [])

  await create('Stripe US', 'us')
  const file = await save(t, subscription('sub_1'))
  const ambiguous = await importFile(tenant, file, '--as-of', iso(NOW - 60))
  assert.equal(ambiguous.code, 2)
  assert.match(ambiguous.err, /different namespaces.*--source or --namespace[\s\S]*Stripe EU.*eu[\s\S]*Stripe US.*us/)
  assert.equal((await reconcile(t, tenant, [subscription('sub_1')])).code, 2)
  for (const choice of [
    ['--source', source.id],
    ['--source', 'Stripe EU'],
    ['--namespace', 'eu'],
  ]) {
    const run = await importFile(tenant, file, '--as-of', iso(NOW - 60), ...choice)
    assert.equal(run.code, 0, run.err)
    assert.equal(await mrr(tenant), 10)
    assert.equal((await reconcile(t, tenant, [subscription('sub_1')], ...choice)).code, 0)
  }
  const other = await reconcile(t, tenant, [subscription('sub_1')], '--namespace', 'us')
  assert.deepEqual(other.list, [['subscription', 'sub_1', 'existence', null, 'active']])
})

test('subscriptions of a plain webhook do not belong to the Stripe account', async t => {
  const tenant = await server.anotherTenant('plain')
  const source = await server.admin.sources.create({
    ...{ tenant: tenant.id, type: 'webhook', event_type_override: { set: 'subscription.updated' } },
  })
  await server.request(source.path, {
    method: 'POST',
    key: source.token!,
    body: JSON.stringify({
      ...{ id: 'sub_own', customer: 'me', status: 'active', currency: 'EUR', started_at: iso(NOW - DAY) },
      items: [{ id: 'a', quantity: 1, unit_amount: 7, interval: 'month' }],
    }),
  })
  await server.settled()
  await importAt(t, tenant, NOW - 60, subscription('sub_1'))
  assert.equal(await mrr(tenant), 17)
  const { list, code } = await reconcile(t, tenant, [subscription('sub_1')])
  assert.deepEqual(list, [])
  assert.equal(code, 0)
})

const account = (count: number) => ({
  customers: [{ object: 'customer', id: 'cus_sub_0', name: 'Ada', livemode: true, created: NOW - 90 * DAY }],
  subscriptions: Array.from({ length: count }, (_, i) => subscription(`sub_${i}`)),
  invoices: [invoice('in_1')],
  refunds: [refund('re_1')],
})

test('with a key, import reads every page of every list from Stripe', async t => {
  const tenant = await server.anotherTenant('backfill')
  const many = Array.from({ length: 25 }, (_, i) => item('sub_many', { id: `si_${i}` }))
  const stripe = await startAccount(t, {
    ...account(250),
    subscription_items: many,
  })
  stripe.account.subscriptions!.push(
    subscription('sub_many', { items: { object: 'list', has_more: true, data: many.slice(0, 10) } }),
  )
  const run = (command: string, ...more: string[]) =>
    withStripe(stripe, () => kontor(command, 'stripe', '--tenant', tenant.name, '--key', LIVE_KEY, ...more))
  const first = await run('import', '--url', server.url)
  assert.equal(first.code, 0, first.err)
  assert.equal((first.json() as Body).accepted, 254)
  assert.match(first.err, /Reading subscriptions from Stripe/)
  assert.equal(await mrr(tenant), 2750)
  const { compared, differences } = (await run('reconcile')).json() as Body
  assert.deepEqual([compared, differences], [{ subscriptions: 251, invoices: 1, refunds: 1 }, []])
  const wrong = await withStripe(stripe, () =>
    kontor('import', 'stripe', '--tenant', tenant.name, '--url', server.url, '--key', 'rk_live_wrong'),
  )
  assert.equal(wrong.code, 1)
  assert.match(wrong.err, /answered 401: Invalid API Key provided\./)
})

test('an import that Stripe interrupted continues at the page where it stopped', async t => {
  const tenant = await server.anotherTenant('interrupted')
  const stripe = await startAccount(t, account(650))
  const run = () =>
    withStripe(stripe, () =>
      kontor('import', 'stripe', '--tenant', tenant.name, '--url', server.url, '--key', LIVE_KEY),
    )
  stripe.intercept = ({ url }) =>
    url!.includes('starting_after=sub_499') ? { status: 403, body: '{"error":{"message":"Expired"}}' } : null
  const stopped = await run()
  assert.equal(stopped.code, 1)
  assert.match(stopped.err, /v1\/subscriptions answered 403: Expired\./)
  stripe.intercept = () => null
  stripe.requests.length = 0
  const resumed = await run()
  assert.equal(resumed.code, 0, resumed.err)
  assert.match(resumed.err, /Continuing after the first 501 rows/)
  assert.ok(stripe.requests.every(url => !url.startsWith('/v1/customers')))
  const { read, accepted, duplicates, rejected } = resumed.json() as Body
  assert.deepEqual({ read, accepted, duplicates, rejected }, { read: 653, accepted: 653, duplicates: 0, rejected: 0 })
  assert.equal(await mrr(tenant), 6500)
  assert.deepEqual(
    (await readdir('.')).filter(name => name.endsWith('.kontor-import')),
    [],
  )
})

test('Retry-After is honored', async t => {
  const tenant = await server.anotherTenant('limited')
  await importAt(t, tenant, NOW - 60, subscription('sub_1'))
  const stripe = await startAccount(t, { subscriptions: [subscription('sub_1')] })
  stripe.intercept = (_, count) => (count === 1 ? tooManyRequests('0') : null)
  const run = await withStripe(stripe, () => kontor('reconcile', 'stripe', '--tenant', tenant.name, '--key', LIVE_KEY))
  assert.equal(run.code, 0, run.err)
  assert.ok(stripe.requests.length > 1)

  stripe.intercept = () => tooManyRequests('86400')
  const closed = await withStripe(stripe, () =>
    kontor('reconcile', 'stripe', '--tenant', tenant.name, '--key', LIVE_KEY),
  )
  assert.equal(closed.code, 1)
  assert.match(closed.err, /answered 429: Too many requests/)
})

test('the pause before a retry is at least that of Retry-After, in seconds or as a date', () => {
  const now = Date.parse('2026-01-31T09:30:00Z')
  const pause = (retryAfter: string | null, attempt: number) =>
    retryPauseMs(new Headers(retryAfter === null ? {} : { 'retry-after': retryAfter }), attempt, now)
  assert.deepEqual([pause(null, 1), pause(null, 4), pause('0', 1), pause('soon', 1)], [500, 4_000, 500, 500])
  assert.deepEqual([pause('2', 1), pause('2', 5), pause('600', 1)], [2_000, 8_000, 600_000])
  assert.equal(pause('Sat, 31 Jan 2026 09:30:07 GMT', 1), 7_000)
  assert.equal(pause('Sat, 31 Jan 2026 09:29:00 GMT', 1), 500)
  assert.deepEqual([pause('86400', 1), pause('2', 8)], [null, null])
})

test('a malformed or endless page is an error message', async t => {
  const tenant = await server.anotherTenant('malformed')
  await importAt(t, tenant, NOW - 60, subscription('sub_1'))
  const stripe = await startAccount(t, { subscriptions: [subscription('sub_1')] })
  const bodies: [string, RegExp][] = [
    ['<html>maintenance</html>', /v1\/subscriptions did not return a page of a list: <html>maintenance/],
    ['null', /did not return a page of a list: null/],
    ['{"object":"list","data":{},"has_more":false}', /did not return a page of a list/],
    ['{"object":"list","data":[1],"has_more":false}', /did not return a page of a list/],
    ['{"object":"list","data":[],"has_more":true}', /returned an incomplete list/],
    [JSON.stringify(page('subscriptions', [subscription('sub_1')], true)), /returned an incomplete list/],
  ]
  for (const [body, message] of bodies) {
    stripe.intercept = () => ({ body })
    for (const command of [['reconcile'], ['import', '--url', server.url, '--dry-run']]) {
      const [name, ...more] = command as [string, ...string[]]
      const run = await withStripe(stripe, () =>
        kontor(name, 'stripe', '--tenant', tenant.name, '--key', LIVE_KEY, ...more),
      )
      assert.equal(run.code, 1)
      const expected = name === 'import' ? new RegExp(message.source.replace('subscriptions', 'coupons')) : message
      assert.match(run.err, expected)
      assert.doesNotMatch(run.err, /\n {4}at /)
    }
  }
  const inFile = await reconcile(t, tenant, [{ object: 'list', url: '/v1/invoices', data: null }])
  assert.equal(inFile.code, 1)
  assert.match(inFile.err, /Line 1: data is not an array/)
})

test('a compressed file and objects that are not from Stripe are rejected with the reason', async t => {
  const tenant = await server.anotherTenant('formats')
  const file = join(await temporaryDirectory(t), 'stripe.json.gz')
  await writeFile(file, gzipSync(JSON.stringify(subscription('sub_1'))))
  const compared = await kontor('reconcile', 'stripe', file, '--tenant', tenant.name)
  assert.match(compared.err, /gunzip -c FILE \| kontor reconcile stripe … -/)
  const imported = await importFile(tenant, file, '--as-of', iso(NOW))
  assert.match(imported.err, /gunzip -c FILE \| kontor import stripe … -/)
  const plain = await importFile(tenant, await save(t, { id: 'x' }, {}), '--as-of', iso(NOW))
  assert.equal(plain.code, 1)
  assert.match(plain.err, /Line 1: the object has no field "object"; expected a Stripe list or Stripe objects/)
  assert.match(plain.err, /Line 2: the object has no field "object"/)
  const other = await importFile(tenant, await save(t, { object: 'payout', id: 'po_1' }), '--as-of', iso(NOW))
  assert.match(other.err, /Line 1: object "payout" is not supported/)
})

test('refunds that the ledger knows only from the total of their charge are not missing', async t => {
  const tenant = await server.anotherTenant('totals')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook', namespace: 'stripe' })
  const charge = {
    object: 'charge',
    id: 'ch_1',
    payment_intent: 'pi_1',
    currency: 'eur',
    amount: 1000,
    created: NOW - DAY,
  }
  await server.request(source.path, {
    method: 'POST',
    key: source.token!,
    body: JSON.stringify({
      ...{ id: 'evt_1', object: 'event', type: 'charge.refunded', created: NOW - DAY, livemode: true },
      data: { object: { ...charge, status: 'succeeded', livemode: true, amount_refunded: 500 } },
    }),
  })
  await server.settled()
  const part = (id: string, amount: number) => refund(id, { charge: 'ch_1', payment_intent: 'pi_1', amount })
  assert.deepEqual((await reconcile(t, tenant, [part('re_1', 200), part('re_2', 300)])).list, [])
  const fewer = await reconcile(t, tenant, [part('re_1', 200)])
  assert.deepEqual(fewer.list, [['refund', 're_1', 'existence', null, 'succeeded']])
})
