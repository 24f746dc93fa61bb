import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newEntryId } from '../../src/domain/ids.ts'
import { headersWithoutAddresses, keptAddress, withoutAddresses } from '../../src/domain/tenants/ip-addresses.ts'
import { openSuppressions, writeSuppressed } from '../../src/pipeline/identity/suppressions.ts'
import { giveUp } from '../../src/pipeline/transaction.ts'
import type { Kind, Transaction, Unit } from '../../src/pipeline/unit.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { json, rowsOf, tracesOf } from './rows.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await startServer({ KONTOR_TRUST_PROXY: '127.0.0.1/32' })
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

const ADDRESS = '203.0.113.77'

test('addresses in any notation are truncated to their network', () => {
  for (const [address, network] of [
    ['203.0.113.77', '203.0.113.0'],
    ['::ffff:203.0.113.77', '203.0.113.0'],
    ['::FFFF:cb00:714d', '203.0.113.0'],
    ['2001:DB8:1:2:3:4:5:6', '2001:db8:1::'],
    ['2001:db8::7', '2001:db8::'],
    ['fe80::1%eth0', 'fe80::'],
    ['::1', '::'],
    ['2002:cb00:714d::1', '2002:cb00:7100::'],
    ['not an address', null],
  ] as const)
    assert.equal(keptAddress('truncate', address), network, address)
  assert.equal(keptAddress('drop', ADDRESS), null)
  assert.equal(keptAddress('keep', ADDRESS), ADDRESS)
})

test('only address fields with an address change, everything else stays unchanged', () => {
  const text = `{"version":"1.2.3.4", "ip" : "${ADDRESS}","n":1.10,"a":[{"clientIp":"2001:db8:1:2::3"}],"x-forwarded-for":"${ADDRESS}, 10.1.2.3",
    "note":"\\"ip\\":\\"${ADDRESS}\\"","tip":"1.2.3.4","ip_name":"office","browser_ip":"${ADDRESS}:4711", "q":["x", ":", "y"]}`
  assert.equal(
    withoutAddresses('truncate', text),
    text
      .replace(`"ip" : "${ADDRESS}"`, '"ip" : "203.0.113.0"')
      .replace('2001:db8:1:2::3', '2001:db8:1::')
      .replace(`${ADDRESS}, 10.1.2.3`, '203.0.113.0, 10.1.2.0')
      .replace(`"${ADDRESS}:4711"`, '"203.0.113.0"'),
  )
  const dropped = JSON.parse(withoutAddresses('drop', text))
  assert.deepEqual(
    [dropped.ip, dropped.a, dropped['x-forwarded-for'], dropped.browser_ip, dropped.version, dropped.tip],
    [null, [{ clientIp: null }], null, null, '1.2.3.4', '1.2.3.4'],
  )
  assert.equal(withoutAddresses('keep', text), text)
})

test('addresses in lists, objects, escapes and proxy headers are removed, in every mode', () => {
  const body = {
    ips: [ADDRESS, `${ADDRESS}:80`],
    ip: { v4: ADDRESS, all: [{ value: ADDRESS }], country: 'DE' },
    client: { address: ADDRESS, version: '1.2.3.4' },
    'network.peer.address': '2001:db8:1:2::3',
    context: {
      ip: [ADDRESS],
      IPAddress: ADDRESS,
      clientIP: ADDRESS,
      userip: ADDRESS,
      remoteAddr: ADDRESS,
      via: `1.1 ${ADDRESS}`,
    },
    forwarded: `for=${ADDRESS};proto=https, for="[2001:db8:1:2::3]:4711"`,
    address: { street: 'Ring 1.2.3.4', city: 'Bonn' },
    app_version: '1.2.3.4',
    at: '12:30:45',
  }
  // "ip" written as \u0069p, and a dot as \u002e
  const text = JSON.stringify(body)
    .replace('"userip"', '"user\\u0069p"')
    .replace(/\.77"\],"IPA/, '\\u002e77"],"IPA')
  for (const mode of ['truncate', 'drop'] as const) {
    const without = withoutAddresses(mode, text)
    assert.doesNotMatch(without, /113\.77|\\u002e77|1:2::3/, mode)
    const { client, address, app_version, at, ip } = JSON.parse(without)
    assert.deepEqual([client.version, address, app_version, at], ['1.2.3.4', body.address, '1.2.3.4', '12:30:45'])
    assert.equal(ip.country, 'DE')
    assert.deepEqual(JSON.parse(without).ips, mode === 'drop' ? [null, null] : ['203.0.113.0', '203.0.113.0'])
    const proxies = [
      'x-forwarded-for',
      'x-real-ip',
      'cf-connecting-ip',
      'true-client-ip',
      'forwarded',
      'x-client-ip',
      'x-original-forwarded-for',
      'x-envoy-external-address',
      'x-any-name',
    ]
    const headers = {
      ...Object.fromEntries(proxies.map(name => [name, name === 'forwarded' ? `for=${ADDRESS}` : ADDRESS])),
      ...{
        via: `1.1 proxy, 1.1 ${ADDRESS}`,
        'x-forwarded-proto': 'https',
        'x-app-version': '1.2.3.4',
        'user-agent': 'Chrome/91.0.1.2',
      },
    }
    const kept = headersWithoutAddresses(mode, headers)
    assert.doesNotMatch(JSON.stringify(kept), /113\.77/, mode)
    const { 'x-forwarded-proto': proto, 'x-app-version': version, 'user-agent': agent } = kept
    assert.deepEqual([proto, version, agent], ['https', '1.2.3.4', 'Chrome/91.0.1.2'])
  }
  for (const mode of ['truncate', 'drop'] as const) {
    const put = mode === 'drop' ? '-' : '203.0.113.0'
    const agent = 'Chrome/91.0.1.2 (+http://203.0.113.77/bot; for 203.0.113.77:80, 2001:db8:1:2::3)'
    const kept = headersWithoutAddresses(mode, {
      'x-amzn-note': `client ${ADDRESS}.`,
      'x-trace': `client/${ADDRESS} at 12:30:45 in Net::bad`,
      'user-agent': agent,
      origin: `http://${ADDRESS}`,
      'sec-ch-ua': '"Chromium";v="91.0.1.2"',
    })
    assert.deepEqual(kept, {
      'x-amzn-note': mode === 'drop' ? 'client -' : 'client 203.0.113.0',
      'x-trace': `client/${put} at 12:30:45 in Net::bad`,
      'user-agent': `Chrome/91.0.1.2 (+http://${put}/bot; for ${put}, ${mode === 'drop' ? '-' : '2001:db8:1::'})`,
      origin: `http://${ADDRESS}`,
      'sec-ch-ua': '"Chromium";v="91.0.1.2"',
    })
  }
  // In a field for addresses, any value may be an address.
  const odd =
    '{"ip":"0xCB00714D","client_ip": 3405803853,"ips":[-1e3, "x"],"ip_v4":"","ip":true,"ip_name":"office","n":[1.10,2]}'
  assert.equal(
    withoutAddresses('drop', odd),
    '{"ip":null,"client_ip": null,"ips":[null, null],"ip_v4":null,"ip":true,"ip_name":"office","n":[1.10,2]}',
  )
  assert.equal(withoutAddresses('truncate', odd), odd)
  for (const broken of ['{"ip":--5}', '{"ip":012}', '{"ip":1.2.3.4}', '{"ip":-}'])
    assert.throws(() => JSON.parse(withoutAddresses('drop', broken)))
  for (const broken of ['{"ip":"203.0.113.77', '"\\', '}]{"ip', '{"ip":"\\u00', ']]]],"', ''])
    assert.doesNotThrow(() => withoutAddresses('drop', broken))
})

async function sendEverywhere(mode: string) {
  const tenant = await server.anotherTenant(`addresses ${mode}`)
  const source = await server.admin.sources.create({
    tenant: tenant.id,
    type: 'webhook',
    headers: ['x-forwarded-for', 'x-real-ip', 'forwarded', 'via', 'cf-connecting-ip'],
    allowed_addresses: ['203.0.0.0/16'],
  })
  if (mode !== 'keep') {
    const path = `/admin/v1/tenants/${tenant.id}`
    const set = { method: 'PATCH', key: adminKey, body: json({ ip_addresses: mode }) }
    assert.equal((await server.request(path, set)).body.ip_addresses, mode)
  }
  const from = (address: string) => ({
    'x-forwarded-for': address,
    'x-real-ip': address,
    forwarded: `for=${address}`,
    via: `1.1 ${address}`,
    'cf-connecting-ip': address,
  })
  const post = (path: string, key: string, body: object, address = ADDRESS) =>
    server.request(path, { method: 'POST', key, body: json(body), headers: from(address) })
  const page = (n: number) => ({ event_type: `page ${n}`, visitor: 'v', data: { ip: ADDRESS, n } })
  // The node caches keys, so the setting reaches it a moment later.
  let tries = 0
  await eventually(`the setting ${mode} to take effect`, async () => {
    await post('/v1/track', tenant.trackingKey, page(tries++))
    await server.settled()
    const [row] = await rowsOf(server, 'events', { key: tenant.privateKey })
    return mode === 'keep' || row!.meta.ip !== ADDRESS
  })
  await server.pool.query('delete from events where tenant_id = $1', [Number(tenant.id.slice(4))])
  await server.pool.query('delete from log where tenant_id = $1', [Number(tenant.id.slice(4))])
  await post('/v1/track', tenant.trackingKey, page(-1))
  const context = { ip: ADDRESS, page: { url: 'https://shop.example/' } }
  const item = { type: 'track', event: 'Seen', anonymousId: 'v', context }
  await post('/v1/batch', tenant.trackingKey, { batch: [item, { type: 'bad', context }], context })
  await post('/v1/t', tenant.trackingKey, item)
  const hook = {
    inbound_event_id: 'h',
    event_type: 'order',
    payload: { browser_ip: ADDRESS, version: '1.2.3.4', client: { address: ADDRESS }, ips: [ADDRESS] },
  }
  assert.equal((await post(`/ingest/inbound/${source.id}`, source.token, hook)).status, 200)
  assert.equal((await post(`/ingest/inbound/${source.id}`, source.token, [])).status, 400)
  assert.equal((await post(`/ingest/inbound/${source.id}`, source.token, hook, '198.51.100.9')).status, 403)
  await server.settled()
  // Rejections are written a moment later.
  await eventually('the rejections', async () => {
    const { rows } = await server.pool.query('select count(*) from rejections where source_id = $1', [source.id])
    return Number(rows[0].count) === 2
  })
  return { tenant, rows: await rowsOf(server, 'events', { key: tenant.privateKey }) }
}

test('if a tenant drops addresses, no table contains any, and nothing else is lost', async () => {
  const { tenant, rows } = await sendEverywhere('drop')
  assert.equal(rows.length, 4)
  for (const row of rows) assert.equal(row.meta.ip, undefined)
  assert.equal(rows.find(row => row.event_type === 'order')!.payload.version, '1.2.3.4')
  assert.deepEqual(await tracesOf(server, tenant, ADDRESS), [])
  assert.deepEqual(await tracesOf(server, tenant, '198.51.100.9'), [])
  assert.deepEqual(await tracesOf(server, tenant, '203.0.113.0'), [], 'no network either')
})

test('if a tenant truncates addresses, networks are stored instead', async () => {
  const { tenant, rows } = await sendEverywhere('truncate')
  assert.equal(rows.length, 4)
  for (const row of rows) assert.equal(row.meta.ip, '203.0.113.0')
  const order = rows.find(row => row.event_type === 'order')!
  assert.equal(order.payload.browser_ip, '203.0.113.0')
  assert.equal(order.headers['x-forwarded-for'], '203.0.113.0')
  assert.equal(order.headers.forwarded, undefined)
  assert.deepEqual(await tracesOf(server, tenant, ADDRESS), [])
  assert.deepEqual(await tracesOf(server, tenant, '198.51.100.9'), [])
})

test('addresses are kept by default, and a change of the setting is in the audit log', async () => {
  const { tenant, rows } = await sendEverywhere('keep')
  for (const row of rows) assert.equal(row.meta.ip, ADDRESS)
  await server.admin.tenants.update(tenant.id, { ip_addresses: 'drop' })
  const [change] = await server.admin.audit.list({ tenant: tenant.id, limit: 1 })
  assert.equal(change!.action, 'tenant.update')
  assert.deepEqual(
    [change!.before, change!.after].map(view => (view as { ip_addresses: string }).ip_addresses),
    ['keep', 'drop'],
  )
  await assert.rejects(server.admin.tenants.update(tenant.id, { ip_addresses: 'hide' }), { kind: 'invalid' })
})

const post = async (path: string, key: string, body: object, status = 200) => {
  const answer = await server.request(path, { method: 'POST', key, body: json(body) })
  assert.equal(answer.status, status, json(answer.body))
  return answer.body
}

async function comeBack(tenant: TestTenant, source: { id: string; token: string }, n: number) {
  const email = 'ada.lovelace@example.com'
  const track = (body: object) => post('/v1/track', tenant.trackingKey, body)
  await track({ event_type: 'page_view', visitor: 'visitor-of-ada', data: { n } })
  await track({ event_type: 'login', visitor: `visitor-${n}`, user_id: 'user-of-ada', data: { email } })
  await track({ event_type: 'page_view', visitor: 'visitor-of-ben', data: { n } })
  const sale = { order_id: `sale-${n}`, amount: 12.5, currency: 'EUR', email }
  await track({ event_type: 'convert', visitor: 'visitor-of-ada', data: sale })
  const subscription = {
    ...{
      id: 'sub-ada',
      customer: 'cus-ada',
      customer_email: email,
      customer_name: 'Ada Lovelace',
      status: 'active',
    },
    ...{ currency: 'EUR', started_at: '2026-01-01T00:00:00Z', updated_at: `2026-02-0${n}T00:00:00Z` },
    items: [{ id: 'i', quantity: n, unit_amount: 10, interval: 'month', interval_count: 1 }],
  }
  const hook = { inbound_event_id: `hook-${n}`, event_type: 'subscription.updated', payload: subscription }
  await post(`/ingest/inbound/${source.id}`, source.token, hook)
  const sourceUpdatedAt = new Date(Date.now() + n * 1000).toISOString()
  const record = (entityType: string, id: string, data: object) =>
    post(`/v1/${entityType}s`, tenant.privateKey, { entityType, id, sourceUpdatedAt, data }, 202)
  await record('contact', 'cus-ada', { email, name: 'Ada Lovelace' })
  await record('order', `order-${n}`, {
    email,
    total: 49.9,
    currency: 'EUR',
    address: { name: 'Ada Lovelace' },
  })
  await server.settled()
}

test('nothing is stored when an erased and suppressed person returns, and revenue stays correct', async () => {
  const tenant = await server.tenantWithServerKey('suppressing')
  const other = await server.tenantWithServerKey('not suppressing')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const sourceOfOther = await server.admin.sources.create({ tenant: other.id, type: 'webhook' })
  await comeBack(tenant, source, 1)
  const erasure = { tenant: tenant.id, email: 'Ada.Lovelace@example.com', suppress: true }
  const receipt = await post('/admin/v1/erasures', adminKey, erasure, 201)
  assert.ok(receipt.suppressed_names >= 4, json(receipt))
  // Raw requests from before the erasure stay in the log for its retention time.
  await server.pool.query('delete from log where tenant_id = $1', [Number(tenant.id.slice(4))])
  await comeBack(tenant, source, 2)
  await comeBack(other, sourceOfOther, 2)
  for (const name of ['ada.lovelace', 'visitor-of-ada', 'user-of-ada', 'Ada Lovelace'])
    assert.deepEqual(await tracesOf(server, tenant, name), [], name)

  const events = await rowsOf(server, 'events', { key: tenant.privateKey })
  assert.deepEqual(
    events.map(row => row.visitor),
    ['visitor-of-ben', 'visitor-of-ben'],
  )
  const sales = await rowsOf(server, 'conversions', { key: tenant.privateKey })
  assert.deepEqual(sales.map(row => [row.source_object_id, row.amount, row.profile_id, row.contact_email]).sort(), [
    ['order-1', 49.9, null, null],
    ['order-2', 49.9, null, null],
    ['sale-1', 12.5, null, null],
    ['sale-2', 12.5, null, null],
  ])
  assert.equal((await server.request('/v1/contacts/cus-ada', { key: tenant.privateKey })).status, 404)
  const order = await server.request('/v1/orders/order-2', { key: tenant.privateKey })
  assert.deepEqual(order.body.data, { total: 49.9, currency: 'EUR' })
  const overview = await server.request('/v1/subscriptions/overview?currency=EUR', { key: tenant.privateKey })
  assert.equal(overview.body.mrr, 20, 'the ledger is unchanged')
  const receipts = await server.request(`/admin/v1/receipts?source=${source.id}&limit=10`, { key: adminKey })
  assert.deepEqual(
    receipts.body.results.map((row: { outcome: string }) => row.outcome),
    ['suppressed', 'processed'],
  )
  const ofOther = await rowsOf(server, 'events', { key: other.privateKey })
  assert.equal(ofOther.length, 4, 'another tenant records the same person')

  const list = await server.request(`/admin/v1/suppressions?tenant=${tenant.id}`, { key: adminKey })
  assert.equal(list.body.results[0].id, receipt.id)
  assert.ok(list.body.results[0].names.some((name: { hash: string }) => name.hash === receipt.subject_hash))
  assert.deepEqual([list.body.not_recorded.events, list.body.not_recorded.records], [4, 2])
  useDatabase(server.databaseUrl)
  const listed = await kontor('suppress', 'list', '--tenant', tenant.id)
  assert.deepEqual(listed.json(), list.body.results, 'an array, like every list')
  assert.match(listed.err, /Not recorded due to suppressions: 4 events and 2 records/)
  const removal = `/admin/v1/suppressions/ada.lovelace@example.com?tenant=`
  const remove = { method: 'DELETE', key: adminKey }
  assert.equal((await server.request(removal + other.id, remove)).status, 404, 'of another tenant')
  // including the browser with which the person returned
  assert.equal((await server.request(removal + tenant.id, remove)).body.names, receipt.suppressed_names + 1)
  assert.equal((await server.request(removal + tenant.id, remove)).status, 404, 'once')
  await comeBack(tenant, source, 3)
  assert.equal((await rowsOf(server, 'events', { key: tenant.privateKey })).length, 6)
})

test('an unknown person can be suppressed by e-mail, and repeats of a suppressed event stay duplicates', async () => {
  const tenant = await server.tenantWithServerKey('suppressing ahead')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const erasure = { tenant: tenant.id, email: 'new@example.com' }
  await post('/admin/v1/erasures', adminKey, erasure, 404)
  await post('/admin/v1/erasures', adminKey, { ...erasure, suppress: true }, 201)
  const hook = { inbound_event_id: 'once', event_type: 'ticket', payload: { email: 'new@example.com' } }
  for (let i = 0; i < 2; i++) {
    await post(`/ingest/inbound/${source.id}`, source.token, hook)
    await server.settled()
  }
  await server.admin.suppressions.remove({ tenant: tenant.id, id: 'new@example.com' })
  await post(`/ingest/inbound/${source.id}`, source.token, hook)
  assert.deepEqual(await rowsOf(server, 'events', { key: tenant.privateKey }), [])
})

test('a suppressed address is detected in every form, in every field, and in rejected items', async () => {
  const tenant = await server.tenantWithServerKey('suppressing forms')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const cdp = await server.admin.sources.create({ tenant: tenant.id, type: 'cdp' })
  const email = 'grace.hopper@example.com'
  await post('/admin/v1/erasures', adminKey, { tenant: tenant.id, email, suppress: true }, 201)
  const forms = [
    'GRACE.Hopper@Example.com',
    `Grace <${email}>`,
    `mailto:${email}`,
    `${email}.`,
    `${email} `,
    'grace.hopper＠example.com',
  ]
  for (const [i, form] of forms.entries()) {
    await post('/v1/track', tenant.trackingKey, {
      event_type: 'seen',
      visitor: `form-${i}`,
      data: { email: form },
    })
    const hook = { inbound_event_id: `form-${i}`, event_type: 'seen', payload: { email: form } }
    await post(`/ingest/inbound/${source.id}`, source.token, hook)
    const data = { email: form, name: 'Hopper' }
    const record = { entityType: 'contact', id: `form-${i}`, sourceUpdatedAt: new Date().toISOString(), data }
    await post('/v1/contacts', tenant.privateKey, record, 202)
  }
  const named = { inbound_event_id: `${email}/1`, event_type: 'seen', payload: { email } }
  await post(`/ingest/inbound/${source.id}`, source.token, named)
  const asIds = { type: 'track', event: 'Seen', anonymousId: email, userId: 'form-user' }
  const bad = { type: 'no such type', traits: { about: { email } } }
  const other = { type: 'track', event: 'Seen', anonymousId: 'of another person' }
  await post('/v1/batch', tenant.trackingKey, { batch: [asIds, bad, other] })
  await post(`/ingest/inbound/${cdp.id}`, cdp.token, { batch: [bad, other] })
  await server.settled()
  for (const text of ['grace.hopper', 'GRACE.Hopper', 'Hopper', 'grace.hopper＠', 'form-user'])
    assert.deepEqual(await tracesOf(server, tenant, text), [], text)
  const events = await rowsOf(server, 'events', { key: tenant.privateKey })
  assert.deepEqual(
    events.map(row => row.visitor),
    ['of another person', 'of another person'],
  )

  const found = await server.request('/v1/events/lookup?event_id=form-1', { key: tenant.privateKey })
  assert.deepEqual([found.status, found.body.status, found.body.event], [200, 'suppressed', null])
  const byAddress = await server.request(`/v1/events/lookup?event_id=${email}/1`, { key: tenant.privateKey })
  assert.equal(byAddress.body.status, 'suppressed')
  const own = await server.request(`/v1/events/${found.body.id}`, { key: tenant.privateKey })
  assert.deepEqual(own.body, found.body)
  assert.doesNotMatch(json(own.body), /hopper|example/i)
})

test('a failed event of a suppressed person does not become a dead letter', async () => {
  const tenant = await server.tenantWithServerKey('suppressing failures')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const email = 'mary.jackson@example.com'
  await post('/admin/v1/erasures', adminKey, { tenant: tenant.id, email, suppress: true }, 201)
  const failing = (about: string) => {
    const receivedAt = new Date()
    const id = newEntryId(receivedAt.getTime())
    const facts = {
      tenantId: Number(tenant.id.slice(4)),
      kind: 'events' as const,
      orderingKey: '',
      receivedAt,
    }
    const context = json({ route: 'inbound', sourceId: source.id, sourceType: 'webhook' })
    const body = json({ inbound_event_id: about, event_type: 'seen', payload: { email: about } })
    return { id, ...facts, context, body }
  }
  const kind = {
    deadLetter: ({ entry }: Unit, error: string, attempts: number) =>
      ({
        ...{ id: entry.id, entry, sourceId: source.id, inboundEventId: 'x' },
        reason: 'failed',
        error,
        attempts,
      }) as const,
    recordFailure: async () => {},
  } as unknown as Kind
  await inTransaction(server.pool, async client => {
    const transaction: Transaction = { client, now: new Date(), configVersion: -1 }
    const failure = {
      message: `violates: ${email}`,
      attempts: 6,
      suppressions: openSuppressions(),
      logger: { warn: () => {} },
    }
    for (const about of [`Mary <${email}>`, 'another.person@example.com'])
      await giveUp(
        transaction,
        kind,
        { entry: failing(about), partition: 'x', parked: null, work: {} } as never,
        failure,
      )
    await writeSuppressed(transaction)
  })
  const letters = await server.admin.deadLetters.list({ tenant: tenant.id, limit: 10 })
  assert.equal(letters.length, 1)
  assert.match((await server.admin.deadLetters.show(letters[0]!.id, tenant.id)).body, /another\.person/)
  const { results } = (await server.request(`/admin/v1/receipts?source=${source.id}`, { key: adminKey })).body
  assert.deepEqual(
    results.map((row: { outcome: string }) => row.outcome),
    ['suppressed'],
  )
  assert.deepEqual(await server.admin.suppressions.list(tenant.id).then(list => list.not_recorded.events), 1)
  await server.pool.query(`delete from dead_letters where tenant_id = $1`, [Number(tenant.id.slice(4))])
  assert.deepEqual(await tracesOf(server, tenant, 'mary.jackson'), [])
})

test('a request that is being stored while its person is suppressed is not stored', async () => {
  const tenant = await server.tenantWithServerKey('suppressing meanwhile')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const email = 'joan.clarke@example.com'
  const hook = (n: number) =>
    post(`/ingest/inbound/${source.id}`, source.token, {
      ...{ inbound_event_id: `meanwhile-${n}`, event_type: 'seen', payload: { email } },
    })
  const erasing = post('/admin/v1/erasures', adminKey, { tenant: tenant.id, email, suppress: true }, 201)
  const sent: Promise<unknown>[] = []
  let isOver = false
  erasing.finally(() => {
    isOver = true
  })
  while (!isOver) {
    sent.push(hook(sent.length))
    if (sent.length % 5 === 0) await sent.at(-1)
  }
  await erasing
  await Promise.all(sent)
  await server.settled()
  const { rows } = await server.pool.query('select count(*) as kept from inbound_requests where source_id = $1', [
    source.id,
  ])
  assert.equal(rows[0].kept, 0)
})

test('the command line exports all data of a person as JSON, by e-mail', async () => {
  const tenant = await server.tenantWithServerKey('exporting')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  await comeBack(tenant, source, 1)
  useDatabase(server.databaseUrl)
  const done = await kontor('export', 'person', '--tenant', tenant.name, '--email', 'Ada.Lovelace@example.com')
  assert.equal(done.code, 0, done.err)
  const types = new Set(JSON.parse(done.out).map((item: { type: string }) => item.type))
  for (const type of ['person', 'contact', 'conversion', 'order', 'billing_account', 'event'])
    assert.ok(types.has(type), `${type} in ${[...types]}`)
  assert.doesNotMatch(done.out, /visitor-of-ben/)
  assert.equal((await kontor('export', 'person', '--tenant', tenant.name)).code, 2)
  const ada = ['export', 'person', '--tenant', tenant.name, '--email', 'ada.lovelace@example.com']
  for (const option of [
    ['--format', 'ndjson'],
    ['--since', '2026-01-01'],
  ])
    assert.match((await kontor(...ada, ...option)).err, /not valid for kontor export person/, option.join(' '))
  const nowhere = ['--out', '/no-such-folder/ada.json', '--email']
  const unwritten = await kontor('export', 'person', '--tenant', tenant.name, ...nowhere, 'ada.lovelace@example.com')
  assert.deepEqual([unwritten.code, unwritten.err.includes('cannot be written: no such file or directory')], [1, true])
})
