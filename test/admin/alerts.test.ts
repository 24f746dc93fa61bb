import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import {
  measureSilence,
  nextAlertState,
  type OpenState,
  type Rhythm,
  updateRhythm,
} from '../../src/domain/alerts/rules.ts'
import { evaluateAlerts } from '../../src/jobs/alerts.ts'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await startServer({ KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' })
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

/** The states of an alert for a list of values. */
function alertStates(values: number[], threshold: number | null = 10): string[] {
  let before: OpenState | null = null
  return values.map(value => {
    const next = nextAlertState(before, value, threshold)
    before = next === null || next.state === 'resolved' ? null : (next as OpenState)
    return next?.state ?? '-'
  })
}

test('an alert needs two evaluations in a row to be raised and three well below the threshold to be resolved', () => {
  assert.deepEqual(alertStates([10, 9, 10, 0, 11]), ['pending', '-', 'pending', '-', 'pending'], 'flapping')
  assert.deepEqual(alertStates([10, 12, 9, 10, 9, 8, 9]), ['pending', ...Array(6).fill('raised')], 'hovering')
  assert.deepEqual(alertStates([10, 10, 7, 7, 8, 7, 7, 7]), ['pending', ...Array(6).fill('raised'), 'resolved'])
  assert.deepEqual(alertStates([1e9, 1e9], null), ['-', '-'], 'off')
  assert.deepEqual(nextAlertState({ state: 'raised', streak: 0 }, 99, null), { state: 'resolved', streak: 0 })
})

test('a source is silent relative to its own rhythm, and never before the rhythm is known', () => {
  const minutes = (rhythm: Rhythm | null, count: number, day: string, news = false) => {
    let now = rhythm
    for (let i = 0; i < count; i++) now = updateRhythm(now, news, day, 60)
    return now!
  }
  let busy = minutes(null, 100, '2026-01-01', true)
  assert.equal(measureSilence(minutes(busy, 10_000, '2026-01-01')).times, 0, 'one day is not enough')
  busy = minutes(busy, 100, '2026-01-02', true)
  assert.ok(measureSilence(minutes(busy, 29, '2026-01-03')).times < 3)
  assert.ok(measureSilence(minutes(busy, 30, '2026-01-03')).times >= 3, 'the usual pause is at least ten minutes')
  // closed overnight: 14 hours
  let nightly = busy
  for (const day of ['2026-01-03', '2026-01-04']) nightly = minutes(minutes(nightly, 14 * 60, day), 1, day, true)
  assert.ok(measureSilence(minutes(nightly, 20 * 60, '2026-01-05')).times < 3)
  assert.ok(measureSilence(minutes(nightly, 43 * 60, '2026-01-05')).times >= 3)
  const later = minutes(nightly, 10, '2026-01-06', true)
  for (let day = 10; day < 19; day++) Object.assign(later, minutes(later, 2, `2026-01-${day}`, true))
  assert.ok(measureSilence(minutes(later, 30, '2026-01-20')).times >= 3, 'old pauses no longer count')
})

const evaluate = () => evaluateAlerts({ pool: server.pool, log: server.log, everyS: 0 })
const listed = async (tenant: TestTenant, state = 'raised') => {
  const path = `/admin/v1/alerts?tenant=${tenant.id}&state=${state}`
  const { body } = await server.request(path, { key: adminKey })
  return body.results as {
    rule: string
    subject: string | null
    state: string
    summary: string
    id: string
  }[]
}

async function hook(source: { id: string; token: string }, body: object, token = source.token) {
  return server.request(`/ingest/inbound/${source.id}`, {
    method: 'POST',
    key: token,
    body: JSON.stringify(body),
  })
}

test('dead letters raise one alert, destinations are notified once, and the alert resolves after a replay', async t => {
  const got: { type: string; data: { rule: string; state: string } }[] = []
  const receiver = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    got.push(JSON.parse(text))
    response.end()
  })
  await once(receiver.listen(0, '127.0.0.1'), 'listening')
  t.after(() => receiver.close())
  const tenant = await server.anotherTenant('letters')
  const other = await server.anotherTenant('no letters')
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  await server.admin.destinations.create({ tenant: tenant.id, url, what: ['alerts'] })
  await server.admin.destinations.create({ tenant: other.id, url, what: ['alerts'] })
  const batch = {
    batch: [
      { type: 'track', event: 'Good', anonymousId: 'v' },
      { type: 'track', anonymousId: 'v' },
    ],
  }
  await server.request('/v1/batch', { method: 'POST', key: tenant.trackingKey, body: JSON.stringify(batch) })
  await server.settled()
  await evaluate()
  assert.deepEqual(await listed(tenant), [], 'not immediately')
  for (let i = 0; i < 4; i++) await evaluate()
  const [alert, ...more] = await listed(tenant)
  assert.deepEqual(more, [])
  assert.equal(alert!.rule, 'dead_letters')
  assert.equal(alert!.summary, '1 dead letter needs attention.')
  assert.deepEqual(await listed(other), [])
  const bound = await server.admin.keys.create({ kind: 'admin', tenant: other.id })
  const seen = await server.request('/admin/v1/alerts?state=all', { key: bound.key })
  assert.deepEqual(seen.body.results, [], 'another tenant’s operator does not see it')

  await server.pool.query('update dead_letters set replayed_at = now() where tenant_id = $1', [
    Number(tenant.id.slice(4)),
  ])
  for (let i = 0; i < 4; i++) await evaluate()
  assert.deepEqual(await listed(tenant), [])
  assert.deepEqual(
    (await listed(tenant, 'all')).map(({ id, state }) => [id, state]),
    [[alert!.id, 'resolved']],
  )
  await eventually('both messages', () => got.length >= 2)
  assert.deepEqual(
    got.map(({ type, data }) => [type, data.rule, data.state]),
    [
      ['alert.raised', 'dead_letters', 'raised'],
      ['alert.resolved', 'dead_letters', 'resolved'],
    ],
  )
})

test('rejected webhooks and lost MRR raise alerts at the thresholds of the tenant', async () => {
  const tenant = await server.anotherTenant('thresholds')
  const lenient = await server.anotherTenant('lenient')
  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString()
  for (const { id } of [tenant, lenient]) {
    const source = await server.admin.sources.create({ tenant: id, type: 'webhook' })
    assert.equal((await hook(source, [] as object)).status, 400)
    const subscription = (updated_at: string, mrr: number) => ({
      ...{ id: 'sub', customer: 'cus', status: 'active', currency: 'EUR', started_at: day(60), updated_at },
      items: [{ id: 'i', quantity: 1, unit_amount: mrr, interval: 'month', interval_count: 1 }],
    })
    await hook(source, { event_type: 'subscription.created', payload: subscription(day(60), 100) })
    await hook(source, { event_type: 'subscription.updated', payload: subscription(day(2), 90) })
  }
  await server.settled()
  const path = `/admin/v1/tenants/${lenient.id}/alert-rules`
  const change = { refused_share: null, mrr_drop: 0.5 }
  const set = await server.request(path, { method: 'PATCH', key: adminKey, body: JSON.stringify(change) })
  assert.deepEqual([set.body.refused_share, set.body.mrr_drop, set.body.lag], [null, 0.5, 300])
  const bad = { method: 'PATCH', key: adminKey, body: JSON.stringify({ mrr_drop: -1 }) }
  assert.equal((await server.request(path, bad)).status, 400)
  const unknown = { method: 'PATCH', key: adminKey, body: JSON.stringify({ mrr_dorp: 1 }) }
  assert.equal((await server.request(path, unknown)).status, 400)
  // Rejections are written with a short delay; similar ones are only counted.
  await eventually('the refusals', async () => {
    const { rowCount } = await server.pool.query('update rejections set suppressed = 11')
    return rowCount === 2
  })
  for (let i = 0; i < 2; i++) await evaluate()
  const raised = (await listed(tenant)).sort((a, b) => (a.rule < b.rule ? -1 : 1))
  assert.deepEqual(
    raised.map(({ rule, subject }) => [rule, subject]),
    [
      ['mrr_drop', 'EUR'],
      ['refused_share', null],
    ],
  )
  assert.match(raised[0]!.summary, /MRR in EUR is 10% lower/)
  assert.deepEqual(await listed(lenient), [])
  // Turning a rule off resolves its alert.
  useDatabase(server.databaseUrl)
  const off = await kontor('alert', 'rules', tenant.name, '--set', 'mrr_drop=off,refused_share=off')
  assert.equal(off.code, 0, off.err)
  await evaluate()
  assert.deepEqual(await listed(tenant), [])
  const { out } = await kontor('alert', 'list', '--tenant', tenant.name, '--all')
  assert.equal(JSON.parse(out).length, 2)
})

test('an unauthenticated caller who knows the URL of a source raises no alert', async () => {
  const tenant = await server.anotherTenant('watched')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const stripe = await server.admin.sources.create({
    ...{ tenant: tenant.id, type: 'webhook', preset: 'stripe', signing_secret: 'generate' },
  })
  assert.equal((await hook(source, { event_type: 'x', payload: {} }, 'wrong')).status, 401)
  const large = { method: 'POST', body: JSON.stringify('x'.repeat(3_000_000)) }
  assert.equal((await server.request(`/ingest/inbound/${stripe.id}`, large)).status, 413)
  await eventually('the refusals', async () => {
    const { rowCount } = await server.pool.query('update rejections set suppressed = 600 where source_id in ($1, $2)', [
      source.id,
      stripe.id,
    ])
    return rowCount === 2
  })
  for (let i = 0; i < 2; i++) await evaluate()
  assert.deepEqual(await listed(tenant), [])
})

test('a threshold out of range is rejected with an explanation; so is a duplicate rule', async () => {
  const tenant = await server.anotherTenant('picky')
  useDatabase(server.databaseUrl)
  const path = `/admin/v1/tenants/${tenant.id}/alert-rules`
  const set = (change: object) => server.request(path, { method: 'PATCH', key: adminKey, body: JSON.stringify(change) })
  const bad: [string, number][] = [
    ...([
      ['refused_share', 5],
      ['refused_share', 0],
      ['mrr_drop', 7],
      ['source_silent', 1e-7],
    ] as [string, number][]),
    ...([
      ['source_silent', 1e6],
      ['lag', 0.5],
      ['lag', 1e9],
      ['dead_letters', 0.2],
    ] as [string, number][]),
  ]
  for (const [rule, value] of bad) {
    const { status, body } = await set({ [rule]: value })
    assert.deepEqual([status, body.errors?.[0]?.pointer], [400, `/${rule}`])
    assert.match(body.errors[0].message, /^must be a number from [\d.]+ to \d+, null \(off\) or "default"$/)
  }
  const cli = (text: string) => kontor('alert', 'rules', tenant.name, '--set', text)
  assert.match((await cli('mrr_drop=7')).err, /mrr_drop must be a number from 0.001 to 1, off or default/)
  const twice = await cli('lag=off, lag=3')
  assert.deepEqual([twice.code, /lag is given twice/.test(twice.err)], [2, true])
  assert.equal((await set({ refused_share: 1, mrr_drop: 0.001, source_silent: 1, lag: 1 })).status, 200)
})

test('only one of several nodes evaluates, and a clock jump makes no source silent', async () => {
  const tenant = await server.anotherTenant('quiet')
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  await hook(source, { event_type: 'x', payload: {} })
  await server.settled()
  await evaluate()
  const longest = JSON.stringify({ '2026-01-01': 60, '2026-01-02': 60 })
  await server.pool.query('update source_silences set longest = $2 where source_id = $1', [source.id, longest])
  const quiet = async () => {
    const { rows } = await server.pool.query('select quiet_s from source_silences where source_id = $1', [source.id])
    return rows[0].quiet_s as number
  }
  // As if the clock had jumped a year ahead since the previous evaluation, and then back.
  await server.pool.query(`update alert_clock set evaluated_at = now() - interval '1 year'`)
  await evaluate()
  await server.pool.query(`update alert_clock set evaluated_at = now() + interval '1 year'`)
  await evaluate()
  assert.ok((await quiet()) <= 120, String(await quiet()))
  assert.deepEqual(await listed(tenant), [])

  await server.pool.query('update alert_clock set evaluated_at = now()')
  const before = await quiet()
  await Promise.all([1, 2, 3].map(() => evaluateAlerts({ pool: server.pool, log: server.log })))
  assert.equal(await quiet(), before, 'a minute has not passed')

  await server.pool.query('update source_silences set quiet_s = 1900 where source_id = $1', [source.id])
  for (let i = 0; i < 2; i++) await evaluate()
  assert.deepEqual(
    (await listed(tenant)).map(({ rule, subject }) => [rule, subject]),
    [['source_silent', source.id]],
  )
  await hook(source, { event_type: 'x', payload: {} })
  await server.settled()
  for (let i = 0; i < 3; i++) await evaluate()
  assert.deepEqual(await listed(tenant), [], 'it receives events again')
})
