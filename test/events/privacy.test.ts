import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { keptAddress, withoutAddresses } from '../../src/domain/tenants/ip-addresses.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer } from '../server.ts'
import { json, rowsOf } from './rows.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await startServer({ KONTOR_TRUST_PROXY: '127.0.0.1/32' })
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

const ADDRESS = '203.0.113.77'

test('addresses are cut to their network, in whatever spelling', () => {
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

test('only fields that are named after addresses and hold nothing else change; the rest stays to the digit', () => {
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

/** Whether a text stands in anything that belongs to the tenant. */
async function traces(tenantId: string, text: string): Promise<string[]> {
  const { rows: tables } = await server.pool.query(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
     where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace order by 1`,
  )
  const found: string[] = []
  for (const { name } of tables) {
    const { rows } = await server.pool.query(
      `select count(*) as count from ${name} t where tenant_id = $1 and t::text like $2`,
      [Number(tenantId.slice(4)), `%${text}%`],
    )
    if (rows[0].count > 0) found.push(name)
  }
  return found
}

async function sendEverywhere(mode: string) {
  const tenant = await server.anotherTenant(`addresses ${mode}`)
  const source = await server.admin.sources.create({
    tenant: tenant.id,
    type: 'webhook',
    headers: ['x-forwarded-for', 'x-real-ip', 'forwarded'],
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
  })
  const post = (path: string, key: string, body: object, address = ADDRESS) =>
    server.request(path, { method: 'POST', key, body: json(body), headers: from(address) })
  const page = (n: number) => ({ event_type: `page ${n}`, visitor: 'v', data: { ip: ADDRESS, n } })
  // Until the setting has reached the node, which remembers keys.
  let tries = 0
  await eventually(`${mode} to count`, async () => {
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
    payload: { browser_ip: ADDRESS, version: '1.2.3.4' },
  }
  assert.equal((await post(`/ingest/inbound/${source.id}`, source.token, hook)).status, 200)
  assert.equal((await post(`/ingest/inbound/${source.id}`, source.token, [])).status, 400)
  assert.equal((await post(`/ingest/inbound/${source.id}`, source.token, hook, '198.51.100.9')).status, 403)
  await server.settled()
  // Refusals are written a moment later.
  await eventually('the refusals', async () => {
    const { rows } = await server.pool.query('select count(*) from rejections where source_id = $1', [
      source.id,
    ])
    return Number(rows[0].count) === 2
  })
  return { tenant, rows: await rowsOf(server, 'events', { key: tenant.privateKey }) }
}

test('a tenant that drops addresses has none of them in any table, and loses nothing else', async () => {
  const { tenant, rows } = await sendEverywhere('drop')
  assert.equal(rows.length, 4)
  for (const row of rows) assert.equal(row.meta.ip, undefined)
  assert.equal(rows.find(row => row.event_type === 'order')!.payload.version, '1.2.3.4')
  assert.deepEqual(await traces(tenant.id, ADDRESS), [])
  assert.deepEqual(await traces(tenant.id, '198.51.100.9'), [])
  assert.deepEqual(await traces(tenant.id, '203.0.113.0'), [], 'no network either')
})

test('a tenant that truncates has networks in place of addresses', async () => {
  const { tenant, rows } = await sendEverywhere('truncate')
  assert.equal(rows.length, 4)
  for (const row of rows) assert.equal(row.meta.ip, '203.0.113.0')
  const order = rows.find(row => row.event_type === 'order')!
  assert.equal(order.payload.browser_ip, '203.0.113.0')
  assert.equal(order.headers['x-forwarded-for'], '203.0.113.0')
  assert.equal(order.headers.forwarded, undefined)
  assert.deepEqual(await traces(tenant.id, ADDRESS), [])
  assert.deepEqual(await traces(tenant.id, '198.51.100.9'), [])
})

test('without the setting addresses are kept, and the change of it is audited', async () => {
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
