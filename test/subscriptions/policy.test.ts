import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../eventually.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { created, inDays, item, reportOf, send, updated } from './shop.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await sharedServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

function setPolicy(tenant: TestTenant, settings: object) {
  const path = `/admin/v1/tenants/${tenant.id}/policy`
  return server.request(path, { method: 'PUT', key: adminKey, body: JSON.stringify(settings) })
}

const DEFAULTS = {
  version: 1,
  pause: 'churn',
  trial_on_paying: 'churn',
  past_due_grace_days: 'none',
  time_zone: 'UTC',
  net_within_day: false,
  retention_base: 'first_instant',
}

function settingsIn(policy: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.keys(DEFAULTS).map(name => [name, policy[name]]))
}

test('without a change the policy is version 1, and reports contain it', async () => {
  const tenant = await server.anotherTenant('unchanged')
  const { policy } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual(settingsIn(policy), DEFAULTS)
  const shown = await server.admin.policies.show(tenant.id)
  assert.deepEqual([settingsIn(shown), shown.applied, shown.set_at, shown.set_by], [DEFAULTS, true, null, null])
})

test('a change creates a version and an audit row; a request without changes creates neither', async () => {
  const tenant = await server.anotherTenant('zoned')
  const { status, body } = await setPolicy(tenant, { time_zone: 'europe/berlin', net_within_day: true })
  assert.equal(status, 200)
  const expected = { ...DEFAULTS, version: 2, time_zone: 'Europe/Berlin', net_within_day: true }
  assert.deepEqual([settingsIn(body), body.applied, body.applied_version], [expected, true, 2])
  assert.deepEqual(settingsIn((await reportOf(server, 'movements', {}, tenant)).policy), expected)
  await setPolicy(tenant, { time_zone: 'Europe/Berlin' })
  await server.admin.policies.set(tenant.id, { retention_base: 'end_of_month' })
  const { results } = (await server.request(`/admin/v1/audit?tenant=${tenant.id}`, { key: adminKey })).body
  const rows = results.filter(({ action }: { action: string }) => action === 'policy.set')
  assert.deepEqual(
    rows.map(({ before, after }: { before: object; after: object }) => [before, after]),
    [
      [
        { version: 2, retention_base: 'first_instant' },
        { version: 3, retention_base: 'end_of_month' },
      ],
      [
        { version: 1, time_zone: 'UTC', net_within_day: false },
        { version: 2, time_zone: 'Europe/Berlin', net_within_day: true },
      ],
    ],
  )
})

test('unknown settings and invalid values are rejected together, each with a message', async () => {
  const { status, body } = await setPolicy(server.tenant, {
    pause: 'maybe',
    past_due_grace_days: -1,
    time_zone: '+02:00',
    net_within_day: 1,
    grace: 3,
  })
  assert.equal(status, 400)
  assert.deepEqual(
    body.errors.map(({ pointer }: { pointer: string }) => pointer),
    ['/pause', '/past_due_grace_days', '/time_zone', '/net_within_day', '/grace'],
  )
  assert.match(body.errors[0].message, /churn or keep/)
  assert.match(body.errors[4].message, /not a policy setting.*pause, trial_on_paying/)
  for (const settings of [{}, [], { pause: { toString: 'keep' } }, { time_zone: 'Europe/\u0000Berlin' }])
    assert.equal((await setPolicy(server.tenant, settings)).status, 400)
  assert.deepEqual(settingsIn(await server.admin.policies.show(server.tenant.id)), DEFAULTS)
})

test('a date is a day in the time zone of the policy', async () => {
  const tenant = await server.anotherTenant('dated')
  const startedAt = '2026-01-31T23:30:00Z'
  await send(server, [created('d1', { started_at: startedAt })], tenant)
  const mrrAt = async (as_of: string) => (await reportOf(server, 'overview', { as_of }, tenant)).mrr
  assert.equal(await mrrAt('2026-02-01'), 10)
  await setPolicy(tenant, { time_zone: 'Europe/Berlin' })
  const { as_of, mrr } = await reportOf(server, 'overview', { as_of: '2026-02-01' }, tenant)
  assert.deepEqual([as_of, mrr], ['2026-01-31T23:00:00.000Z', 0])
  assert.equal(await mrrAt('2026-02-01T00:00:00'), 10)
  const window = { since: '2026-02-01', until: '2026-02-02' }
  const movements = await reportOf(server, 'movements', window, tenant)
  assert.deepEqual([movements.since, movements.totals.new], ['2026-01-31T22:59:59.999Z', 10])
})

/** 1: paused; 2: in trial after paying; 3: past due for 40 days; 4: unchanged. Each started 100 days ago at 10, 20, 30, 40. */
const CHANGED = [
  created('p1'),
  updated('p1', { status: 'paused', updated_at: inDays(-50) }),
  created('p2', { items: [item(20)] }),
  updated('p2', { items: [item(20)], status: 'trialing', updated_at: inDays(-20), trial_end: inDays(10) }),
  created('p3', { items: [item(30)] }),
  updated('p3', { items: [item(30)], status: 'past_due', updated_at: inDays(-40) }),
  created('p4', { items: [item(40)] }),
  // neither was paying before, so there is no MRR to keep
  created('p5', { items: [item(50)], status: 'trialing', trial_end: inDays(10) }),
  created('p6', { items: [item(60)], status: 'trialing', trial_end: inDays(-90) }),
  updated('p6', { items: [item(60)], status: 'paused', trial_end: inDays(-90), updated_at: inDays(-90) }),
]

async function applied(tenant: TestTenant, settings: Record<string, unknown>) {
  const { version } = await server.admin.policies.set(tenant.id, settings)
  await eventually('the policy', async () => (await server.admin.policies.show(tenant.id)).applied)
  const report = await reportOf(server, 'overview', {}, tenant)
  assert.equal(report.policy.version, version)
  return report
}

test('paused, again trialing and long past due subscriptions count according to the policy, at any time', async () => {
  const tenant = await server.anotherTenant('restated')
  await send(server, CHANGED, tenant)
  const mrrAt = async (days: number) => (await reportOf(server, 'overview', { as_of: inDays(days) }, tenant)).mrr
  assert.deepEqual([await mrrAt(-60), await mrrAt(0)], [100, 70])
  assert.equal((await applied(tenant, { pause: 'keep' })).mrr, 80)
  assert.equal((await applied(tenant, { trial_on_paying: 'keep' })).mrr, 100)
  const { mrr, exclusions, policy } = await applied(tenant, { past_due_grace_days: 30 })
  assert.deepEqual([mrr, await mrrAt(-11), await mrrAt(-9)], [70, 100, 70])
  assert.deepEqual(policy.kept_statuses, ['trialing', 'paused'])
  assert.deepEqual(
    exclusions.results.map((row: { subscription_id: string; reason_code: string }) => [
      row.subscription_id,
      row.reason_code,
    ]),
    [
      ['p3', 'past_due'],
      ['p6', 'paused'],
      ['p5', 'trialing'],
    ],
  )
  const movements = (await reportOf(server, 'movements', {}, tenant)).results.map((row: Record<string, unknown>) => [
    row.customer,
    row.movement_type,
    row.cause,
  ])
  assert.deepEqual(movements.at(-1), ['cus_p3', 'churn', 'cancellation_failed_payment'])
  assert.equal(movements.length, 5)
  assert.equal(
    (await applied(tenant, { pause: 'churn', trial_on_paying: 'churn', past_due_grace_days: 'none' })).mrr,
    70,
  )
})

test('a policy change is listed in the history with its effect on MRR, and is never a movement', async () => {
  const tenant = await server.anotherTenant('lined')
  await send(server, CHANGED, tenant)
  await applied(tenant, { pause: 'keep' })
  await applied(tenant, { time_zone: 'Asia/Tokyo' })
  const { policy_changes, results } = await reportOf(server, 'history', {}, tenant)
  assert.deepEqual(
    policy_changes.map(({ at, ...change }: { at: string }) => change),
    [
      {
        kind: 'policy',
        version: 2,
        settings: { pause: { before: 'churn', after: 'keep' } },
        mrr_before: 70,
        mrr_after: 80,
        mrr_delta: 10,
      },
      {
        kind: 'policy',
        version: 3,
        settings: { time_zone: { before: 'UTC', after: 'Asia/Tokyo' } },
        mrr_before: null,
        mrr_after: null,
        mrr_delta: null,
      },
    ],
  )
  assert.equal(results.at(-1).mrr, 80)
  const { totals } = await reportOf(server, 'movements', {}, tenant)
  assert.deepEqual([totals.new, totals.churn, totals.reactivation, totals.closing_mrr], [100, 20, 0, 80])
})

test('with the netting policy, movements of an account on one day of the time zone are one', async () => {
  const tenant = await server.anotherTenant('netted')
  const seats = (id: string, at: string, amount: number) =>
    updated(id, { started_at: '2026-01-05T10:00:00Z', updated_at: at, items: [item(amount)] })
  await send(
    server,
    [
      seats('n1', '2026-01-05T10:00:00Z', 10),
      // up and down on the 10th; up twice within one day in Berlin that spans two days in UTC
      seats('n1', '2026-01-10T10:00:00Z', 30),
      seats('n1', '2026-01-10T18:00:00Z', 10),
      seats('n1', '2026-01-11T23:30:00Z', 20),
      seats('n1', '2026-01-12T09:00:00Z', 40),
    ],
    tenant,
  )
  const moved = async () => {
    const { totals, results, count } = await reportOf(server, 'movements', {}, tenant)
    const history = await reportOf(server, 'history', { interval: 'day', from: '2026-01-12', to: '2026-01-12' }, tenant)
    const rows = results.map((row: Record<string, unknown>) => [row.occurred_at, row.movement_type, row.mrr_delta])
    assert.equal(count, rows.length)
    assert.equal(totals.opening_mrr + totals.new + totals.expansion - totals.contraction, totals.closing_mrr)
    return {
      rows: rows.slice(1),
      expansion: totals.expansion,
      contraction: totals.contraction,
      day: history.results[0].expansion,
    }
  }
  assert.deepEqual((await moved()).rows.length, 4)
  await applied(tenant, { net_within_day: true, time_zone: 'Europe/Berlin' })
  assert.deepEqual(await moved(), {
    rows: [['2026-01-12T09:00:00.000Z', 'expansion', 30]],
    expansion: 30,
    contraction: 0,
    day: 30,
  })
  await applied(tenant, { time_zone: 'UTC' })
  const { rows, day } = await moved()
  assert.deepEqual([rows.map((row: unknown[]) => row[2]), day], [[10, 20], 20])
})

test('while the ledger is restated, every report uses either policy completely, and includes new events', async () => {
  const tenant = await server.anotherTenant('beside')
  const paused = (id: string) => [created(id), updated(id, { status: 'paused', updated_at: inDays(-5) })]
  const ids = Array.from({ length: 120 }, (_, n) => `b${n}`)
  await send(server, ids.flatMap(paused), tenant)
  const { version } = await server.admin.policies.set(tenant.id, { pause: 'keep' })
  const late = send(
    server,
    [...paused('late'), ...ids.slice(0, 40).map(id => updated(id, { updated_at: inDays(-1) }))],
    tenant,
  )
  await eventually('reports to follow the new policy', async () => {
    const { policy, mrr } = await reportOf(server, 'overview', {}, tenant)
    const isNew = policy.version === version
    assert.ok((isNew ? [1200, 1210] : [0, 400]).includes(mrr), `${mrr} by ${policy.version}`)
    return isNew
  })
  await late
  const { mrr, policy } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual([mrr, policy.pause], [1210, 'keep'])
})
