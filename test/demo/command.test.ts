import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ShopCounts } from '../../demo/shop.ts'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { sharedServer } from '../server.ts'

const server = await sharedServer()
after(() => server.close())
useDatabase(server.databaseUrl)

type DemoResult = {
  tenant: string
  private_key: string
  keys_expire_at: string | null
  source: string
  url: string | null
  console: string | null
  end: string
  counts: ShopCounts & { already_there: number }
}

async function demo(...words: string[]): Promise<DemoResult> {
  const { code, out, err } = await kontor('demo', '--scale', '0.1', ...words)
  assert.equal(code, 0, err)
  assert.equal(out.trimEnd().split('\n').length, 1, 'one JSON value on stdout')
  return JSON.parse(out) as DemoResult
}

async function countRows(tenant: string): Promise<Record<string, number>> {
  const id = Number(tenant.slice('ten_'.length))
  const tables = ['records', 'events', 'conversions', 'identities', 'receipts', 'dead_letters']
  const counted = tables.map(table => `(select count(*) from ${table} where tenant_id = $1) as ${table}`)
  const { rows } = await server.pool.query(`select ${counted.join(', ')}`, [id])
  return rows[0]
}

const first = await demo('--url', server.url)

test('creates a tenant with keys that work on the running server', async () => {
  assert.equal(first.keys_expire_at, null)
  const { status, body } = await server.request('/v1/orders?limit=1', { key: first.private_key })
  assert.equal(status, 200)
  assert.equal(body.results[0].entityType, 'order')
})

test('prints the address of the console with the tenant', () => {
  assert.equal(first.console, `${server.url}/console#/overview?tenant=${first.tenant}`)
})

test('when the command ends, everything is processed', async () => {
  const rows = await countRows(first.tenant)
  const { products, contacts, orders, events, billing_events } = first.counts
  // a discontinued product leaves a tombstone
  assert.equal(rows.records, products + 2 + contacts + orders)
  assert.equal(rows.events, events + billing_events)
  assert.equal(rows.dead_letters, 0)
})

test('events have the times at which they occurred', async () => {
  const since = new Date(Date.parse(first.end) - 300 * 86_400_000).toISOString()
  const { body } = await server.request(`/v1/events?limit=1&until=${since}`, { key: first.private_key })
  assert.equal(body.results.length, 1)
})

test('a sale on the site and its order are one conversion', async () => {
  const { body } = await server.request('/v1/conversions?limit=100&event_type=order', {
    key: first.private_key,
  })
  const orders = body.results.map((row: { source_object_id: string }) => row.source_object_id)
  assert.ok(orders.length > 0)
  assert.equal(new Set(orders).size, orders.length)
  assert.ok(body.results.some((row: { visitor: string | null }) => row.visitor !== null))
})

test('the reports are not empty, and their rows add up to the total', async () => {
  const path = '/v1/subscriptions/overview?currency=EUR&page_size=100'
  const { status, body } = await server.request(path, { key: first.private_key })
  assert.equal(status, 200)
  assert.ok(body.mrr > 0 && body.invoiced.amount > 0)
  assert.equal(body.coverage.subscriptions_seen, first.counts.subscriptions)
  const rows = body.accounts.results.map((row: { mrr: number }) => Math.round(row.mrr * 100))
  assert.equal(
    rows.reduce((sum: number, cents: number) => sum + cents, 0),
    Math.round(body.mrr * 100),
  )
})

test('a second run adds nothing, also with a temporary server, and its keys expire after a day', async () => {
  const before = await countRows(first.tenant)
  const { url, keys_expire_at, source, counts, ...again } = await demo()
  assert.deepEqual({ tenant: again.tenant, source, url }, { tenant: first.tenant, source: first.source, url: null })
  assert.ok(keys_expire_at !== null && counts.already_there > 0)
  const after = await countRows(first.tenant)
  // duplicates are acknowledged, and only their receipts are new
  assert.deepEqual({ ...after, receipts: 0 }, { ...before, receipts: 0 })
})

test('another seed adds a second shop to the same tenant', async () => {
  const before = await countRows(first.tenant)
  const { counts } = await demo('--seed', '2', '--url', server.url)
  const after = await countRows(first.tenant)
  assert.equal(after.events! - before.events!, counts.events + counts.billing_events)
})

test('the same seed with another end is rejected in a tenant that has it', async () => {
  const { code, out, err } = await kontor('demo', '--scale', '0.1', '--end', '2020-01-31', '--url', server.url)
  assert.deepEqual({ code, out }, { code: 2, out: '' })
  assert.match(err, /already has the demo data of seed 1 for the year that ends on /)
})

test('a tenant with other data is left alone', async () => {
  const tenant = await server.anotherTenant('real')
  const body = JSON.stringify({ event_type: 'page_view', visitor: 'v-1' })
  const sent = await server.request('/v1/track', { method: 'POST', key: tenant.trackingKey, body })
  assert.equal(sent.status, 200)
  await server.settled()
  const before = await countRows(tenant.id)
  assert.equal(before.events, 1)
  const { code, out, err } = await kontor('demo', '--scale', '0.1', '--tenant', tenant.id, '--url', server.url)
  assert.deepEqual({ code, out }, { code: 2, out: '' })
  assert.match(err, /contains other data, and demo data cannot be removed from a tenant\. Use another --tenant\./)
  assert.deepEqual(await countRows(tenant.id), before)
  assert.deepEqual(await server.admin.sources.list(tenant.id), [])
})

test('an invalid option is explained', async () => {
  for (const [flag, value, message] of [
    ['--seed', 'x', 'Expected a number from 1 to 1000000000.'],
    ['--seed', '0', 'Expected a number from 1 to 1000000000.'],
    ['--scale', '0', 'Expected a number from 0.05 to 100.'],
    ['--scale', '-1', 'Expected a number from 0.05 to 100.'],
    ['--end', '31.12.2025', 'Expected a date, for example 2025-12-31.'],
    ['--end', '2999-01-01', 'The date must not be in the future.'],
  ] as const) {
    const { code, out, err } = await kontor('demo', `${flag}=${value}`)
    assert.deepEqual({ code, out }, { code: 2, out: '' }, `${flag} ${value}`)
    const [line] = err.split('\n')
    assert.ok(line!.startsWith(`Invalid value "${value}" for ${flag} <`) && line!.endsWith(`>. ${message}`), err)
  }
})

test('a server without the required surfaces is reported', async () => {
  const { code, err } = await kontor('demo', '--scale', '0.1', '--url', `${server.url}/elsewhere`)
  assert.equal(code, 1)
  assert.match(err, /answered 404/)
})
