import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { ask, type Body, created, item, reportOf, send } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
  await send(
    server,
    Array.from({ length: 130 }, (_, i) =>
      created(`s${String(i).padStart(3, '0')}`, {
        items: [item(i + 1)],
        customer_name: i === 0 ? '=1+1,"x"' : `Name ${i}`,
      }),
    ),
  )
})
after(() => server.close())

const ROUTES = {
  overview: {},
  attention: {},
  acquisition: {},
  account: { customer: 'cus_s000' },
  movements: {},
  retention: {},
  history: {},
  breakdown: { by: 'plan' },
  cash: {},
  consolidated: {},
  exclusions: {},
  trials: {},
  dunning: {},
  'cash/facts': { date: '2026-01-31' },
}

test('every report requires the scope subscriptions:read', async () => {
  const { key } = await server.admin.keys.create({
    tenant: server.tenant.id,
    kind: 'private',
    scopes: ['events:read'],
  })
  for (const [report, query] of Object.entries(ROUTES)) {
    const tenant = { ...server.tenant, privateKey: key }
    const { status, body } = await ask(server, report, { currency: 'EUR', ...query }, { tenant })
    assert.deepEqual([status, body.code], [403, 'insufficient_scope'])
    assert.match(body.detail, /subscriptions:read/)
    const unauthenticated = await server.request(`/v1/subscriptions/${report}?currency=EUR`)
    assert.equal(unauthenticated.status, 401)
  }
})

test('currency is required, case-insensitive, and must be valid', async () => {
  for (const [report, query] of Object.entries(ROUTES)) {
    const missing = await ask(server, report, query)
    assert.deepEqual([missing.status, missing.body.errors], [400, [{ pointer: '/currency', message: 'is required' }]])
    for (const currency of ['', 'EURO', 'XXX', 'E R', '978']) {
      const { status, body } = await ask(server, report, { ...query, currency })
      assert.equal(status, 400, `${report} ${currency}`)
      assert.equal(body.errors[0].pointer, '/currency')
    }
    for (const currency of ['eur', 'EUR', 'Eur']) {
      const { status, body } = await ask(server, report, { ...query, currency })
      assert.deepEqual([status, body.currency], [200, 'EUR'])
    }
  }
})

test('every report contains the policy and as_of', async () => {
  for (const [report, query] of Object.entries(ROUTES)) {
    const body = await reportOf(server, report, { ...query, as_of: '2100-01-02' })
    assert.equal(body.as_of, '2100-01-02T00:00:00.000Z')
    assert.equal(body.policy.rounding, 'half_up')
    for (const as_of of ['0001-01-01', '9999-12-31T23:59:59Z']) {
      const { status } = await ask(server, report, { currency: 'EUR', ...query, as_of })
      assert.equal(status, report === 'account' && as_of < '2' ? 404 : 200, `${report} ${as_of}`)
    }
    const { status } = await ask(server, report, { currency: 'EUR', ...query, as_of: 'yesterday' })
    assert.equal(status, 400)
  }
})

test('page_size is 50 by default and at most 100; page and page_size are integers from 1', async () => {
  const { accounts } = await reportOf(server, 'overview')
  assert.deepEqual(
    [accounts.results.length, accounts.page, accounts.page_size, accounts.count, accounts.pages],
    [50, 1, 50, 130, 3],
  )
  const large = (await reportOf(server, 'overview', { page_size: 1_000 })).accounts
  assert.deepEqual([large.results.length, large.page_size, large.pages], [100, 100, 2])
  const wrong = [0, -1, 1.5, 'two', '']
  const parameters = {
    overview: ['page', 'acquisition_page', 'exclusion_page', 'page_size'],
    attention: ['issue_page', 'renewal_page', 'cancel_page', 'billing_page', 'page_size'],
    acquisition: ['page', 'page_size'],
    account: ['page', 'timeline_page', 'page_size'],
    movements: ['page', 'page_size'],
    retention: ['page', 'page_size'],
  }
  for (const [report, names] of Object.entries(parameters)) {
    for (const value of wrong) {
      const query = Object.fromEntries(names.map(name => [name, value]))
      const own = ROUTES[report as keyof typeof ROUTES]
      const { status, body } = await ask(server, report, { currency: 'EUR', ...own, ...query })
      assert.equal(status, 400)
      assert.deepEqual(
        body.errors.map((error: Body) => error.pointer.slice(1)).sort(),
        [...names].sort(),
        String(value),
      )
    }
  }
})

test('the pages of the accounts, read from either end, contain each account once', async () => {
  const whole = [
    ...(await reportOf(server, 'overview', { page_size: 100 })).accounts.results,
    ...(await reportOf(server, 'overview', { page_size: 100, page: 2 })).accounts.results,
  ]
  assert.deepEqual(
    whole.map(row => row.mrr),
    Array.from({ length: 130 }, (_, i) => 130 - i),
  )
  const found: Body[] = []
  for (let page = 1; page <= 19; page++) {
    found.push(...(await reportOf(server, 'overview', { page_size: 7, page })).accounts.results)
  }
  assert.deepEqual(found, whole)
  for (const page of [20, 1_000_000_000, '999999999999999999999']) {
    const { accounts } = await reportOf(server, 'overview', { page_size: 7, page })
    assert.deepEqual([accounts.results, accounts.count, accounts.pages], [[], 130, 19])
  }
})

test('unknown parameters are ignored', async () => {
  const { status } = await ask(server, 'overview', { currency: 'EUR', tenant: 'other', shape: 'round' })
  assert.equal(status, 200)
})

test('CSV contains the complete list with all digits, and formulas are escaped', async () => {
  const csv = async (report: string, query = {}) => {
    const answer = await ask(server, report, { currency: 'EUR', ...query }, { headers: { accept: 'text/csv' } })
    assert.equal(answer.status, 200)
    assert.match(answer.headers.get('content-type')!, /^text\/csv/)
    return (answer.body as string).trimEnd().split('\r\n')
  }
  const accounts = await csv('overview')
  assert.equal(accounts.length, 131)
  assert.match(accounts[0]!, /^customer,customer_name,customer_email,mrr,arr,committed_mrr,/)
  assert.match(accounts[1]!, /^cus_s129,Name 129,,130\.00,1560\.00,130\.00,1,1,active,Plan,unattributed,/)
  assert.match(accounts[130]!, /^cus_s000,"'=1\+1,""x""",,1\.00,/)
  assert.equal((await csv('overview', { page_size: 10, page: 2 })).length, 11)
  assert.match((await csv('overview', { list: 'acquisition_sources' }))[0]!, /^source,medium,campaign,/)
  assert.equal((await csv('overview', { list: 'exclusions' })).length, 1)
  const defaults = {
    attention: 'invoice_id',
    acquisition: 'source',
    account: 'subscription_id',
    movements: 'occurred_at',
    retention: 'cohort',
    history: 'date',
    breakdown: 'plan',
    cash: 'date',
    consolidated: 'currency',
    exclusions: 'subscription_id',
    trials: 'subscription_id',
    dunning: 'invoice_id',
    'cash/facts': 'occurred_at',
  }
  for (const [report, first] of Object.entries(defaults)) {
    const [header] = await csv(report, ROUTES[report as keyof typeof ROUTES])
    assert.equal(header!.split(',')[0], first)
  }
  assert.equal((await csv('movements')).length, 131)
  const wrong = await ask(
    server,
    'overview',
    { currency: 'EUR', list: 'timeline' },
    { headers: { accept: 'text/csv' } },
  )
  assert.deepEqual([wrong.status, wrong.body.errors[0].pointer], [400, '/list'])
})

test('the OpenAPI document has all reports, with examples that have every field of the response', async () => {
  const { body: document } = await server.request('/openapi.json')
  const resolve = (part: Body): Body => {
    const [, kind, name] = /^#\/components\/(\w+)\/(.+)$/.exec(part.$ref ?? '') ?? []
    return kind ? document.components[kind][name!] : part
  }
  for (const [report, query] of Object.entries(ROUTES)) {
    const operation = document.paths[`/v1/subscriptions/${report}`].get
    const { schema, example } = operation.responses['200'].content['application/json']
    const answer = await reportOf(server, report, query)
    assert.deepEqual(schema.required.toSorted(), Object.keys(answer).sort(), report)
    assert.deepEqual(Object.keys(example).sort(), Object.keys(answer).sort(), report)
    assert.ok(
      operation.parameters.map(resolve).some((parameter: Body) => parameter.name === 'currency' && parameter.required),
    )
    for (const [list, shown] of Object.entries<Body>(answer)) {
      const row = shown?.results?.[0]
      if (!row) continue
      assert.deepEqual(
        Object.keys(resolve(schema.properties[list].properties.results.items).properties),
        Object.keys(row),
      )
      assert.deepEqual(Object.keys(example[list].results[0] ?? row), Object.keys(row))
    }
  }
})
