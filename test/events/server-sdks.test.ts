import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { jitsuAnalytics } from '@jitsu/js'
import RudderAnalytics from '@rudderstack/rudder-sdk-node'
import { Analytics as SegmentAnalytics } from '@segment/analytics-node'
import { eventually } from '../eventually.ts'
import { type OwnServer, startServer, type TestTenant } from '../server.ts'
import { openFlakyProxy } from './flaky.ts'
import { type Row, rowsOf } from './rows.ts'

let server: OwnServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

const SOLD = { order_id: 'o-1', revenue: 49.9, currency: 'EUR' }

async function everything(tenant: TestTenant): Promise<Row[]> {
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  return [...rows, ...(await rowsOf(server, 'conversions', { key: tenant.privateKey }))]
}

/** Asserts that all calls of an SDK are stored once, and belong to one person. */
async function assertArrived(tenant: TestTenant, tracked: number, kinds: string[]): Promise<void> {
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  const counts = Object.fromEntries(
    [...Map.groupBy(rows, row => row.event_type)].map(([type, { length }]) => [type, length]).sort(),
  )
  assert.deepEqual(counts, Object.fromEntries([...kinds.map(kind => [kind, 1]), ['Signed Up', tracked]].sort()))
  assert.equal(new Set(rows.map(row => row.inbound_event_id)).size, rows.length)
  assert.equal(new Set(rows.map(row => row.profile_id)).size, 1)
  for (const row of rows) {
    assert.equal(row.source, 'cdp')
    assert.equal(row.meta.bot, undefined)
    assert.ok(row.inbound_event_id)
    const late = Date.parse(row.received_at) - Date.parse(row.occurred_at)
    assert.ok(late >= -5 && late < 60_000, `${late} ms`)
  }
  const sales = await rowsOf(server, 'conversions', { key: tenant.privateKey })
  assert.deepEqual(
    sales.map(({ event_type, source_object_id, amount, currency, source, profile_id }) => ({
      event_type,
      source_object_id,
      amount,
      currency,
      source,
      profile_id,
    })),
    [
      {
        event_type: 'Order Completed',
        source_object_id: 'o-1',
        amount: 49.9,
        currency: 'EUR',
        source: 'cdp',
        profile_id: rows[0].profile_id,
      },
    ],
  )
}

test('@segment/analytics-node: every call is stored once despite 503s, lost responses and a restart', async t => {
  const tenant = await server.anotherTenant('segment node')
  const proxy = await openFlakyProxy(t, () => server.url)
  const analytics = new SegmentAnalytics({
    writeKey: tenant.trackingKey,
    host: proxy.url,
    flushAt: 3,
    flushInterval: 50,
  })
  const errors: unknown[] = []
  analytics.on('error', error => errors.push(error))
  const who = { anonymousId: 'a-1', userId: 'u-1' }
  analytics.identify({ ...who, traits: { email: 'ada@example.com' } })
  analytics.page({ ...who, name: 'Home' })
  analytics.screen({ ...who, name: 'Home' })
  analytics.group({ ...who, groupId: 'g-1' })
  analytics.alias({ userId: 'u-1', previousId: 'a-1' })
  proxy.failures.push('busy', 'lost', 'busy')
  for (let n = 0; n < 10; n++) analytics.track({ ...who, event: 'Signed Up', properties: { n } })
  const restarting = server.restart()
  for (let n = 10; n < 20; n++) analytics.track({ ...who, event: 'Signed Up', properties: { n } })
  analytics.track({ ...who, event: 'Order Completed', properties: SOLD })
  await restarting
  await analytics.closeAndFlush({ timeout: 120_000 })
  assert.deepEqual(errors, [])
  assert.deepEqual(proxy.failures, [], 'every failure occurred')
  await assertArrived(tenant, 20, ['identify', 'page', 'screen', 'group', 'alias'])
})

test('@rudderstack/rudder-sdk-node: every call is stored once despite 503s, lost responses and a restart', async t => {
  const tenant = await server.anotherTenant('rudder node')
  const proxy = await openFlakyProxy(t, () => server.url)
  const errors: unknown[] = []
  const analytics = new RudderAnalytics(tenant.trackingKey, {
    dataPlaneUrl: proxy.url,
    flushAt: 3,
    flushInterval: 50,
    logLevel: 'silent',
    retryCount: 20,
    errorHandler: error => errors.push(error),
  })
  const who = { anonymousId: 'a-1', userId: 'u-1' }
  analytics.identify({ ...who, traits: { email: 'ada@example.com' } })
  analytics.page({ ...who, name: 'Home' })
  analytics.screen({ ...who, name: 'Home' })
  analytics.group({ ...who, groupId: 'g-1' })
  analytics.alias({ userId: 'u-1', previousId: 'a-1' })
  proxy.failures.push('busy', 'lost', 'busy')
  for (let n = 0; n < 10; n++) analytics.track({ ...who, event: 'Signed Up', properties: { n } })
  const restarting = server.restart()
  for (let n = 10; n < 20; n++) analytics.track({ ...who, event: 'Signed Up', properties: { n } })
  analytics.track({ ...who, event: 'Order Completed', properties: SOLD })
  await restarting
  await eventually('26 calls', async () => {
    await analytics.flush()
    return (await everything(tenant)).length >= 26
  })
  await analytics.flush()
  assert.deepEqual(errors, [])
  assert.deepEqual(proxy.failures, [], 'every failure occurred')
  await assertArrived(tenant, 20, ['identify', 'page', 'screen', 'group', 'alias'])
})

test('@jitsu/js: every call is stored once. It does not retry, so the test passes it a fetch that does', async t => {
  const tenant = await server.anotherTenant('jitsu')
  const proxy = await openFlakyProxy(t, () => server.url)
  const retrying: typeof fetch = (url, init) =>
    eventually('a response below 500', async () => {
      const answer = await fetch(url, init).catch(() => null)
      return answer && answer.status < 500 && answer
    })
  const analytics = jitsuAnalytics({
    host: proxy.url,
    // Jitsu requires a key with a secret; only the part before the colon is used
    writeKey: `${tenant.trackingKey}:secret`,
    fetch: retrying,
    s2s: true,
  })
  const who = { anonymousId: 'a-1', userId: 'u-1' }
  await analytics.identify('u-1', { email: 'ada@example.com' }, who)
  await analytics.page({ name: 'Home' }, who)
  await analytics.group('g-1', {}, who)
  proxy.failures.push('busy', 'lost', 'busy')
  for (let n = 0; n < 5; n++) await analytics.track('Signed Up', { n }, who)
  const restarting = server.restart()
  for (let n = 5; n < 10; n++) await analytics.track('Signed Up', { n }, who)
  await restarting
  await analytics.track('Order Completed', SOLD, who)
  assert.deepEqual(proxy.failures, [], 'every failure occurred')
  await assertArrived(tenant, 10, ['identify', 'page', 'group'])
})
