import assert from 'node:assert/strict'
import test from 'node:test'
import { formatPlan, parseQuestion, planFor, ratePossible } from '../../bench/plan.ts'
import { listFigures, movesSince, type Result } from '../../bench/result.ts'
import type { KindCost, StageFacts } from '../../bench/scenarios/stages.ts'

const stage = (nodeUs: number, postgresUs: number) => ({ nodeUs, postgresUs, walBytes: 500, syncs: 0.01, parts: {} })
const single: KindCost = {
  count: 1_000,
  accept: stage(100, 50),
  process: stage(40, 60),
  kept: { log: 400, events: 600, identities: 100 },
  keptParts: {},
}
const batched: KindCost = { ...single, accept: stage(20, 5), process: stage(15, 30) }
const costs: StageFacts = { single, batched, record: single }
const question = {
  eventsPerSecond: 10_000,
  retentionDays: 30,
  tenants: 10,
  singleShare: 0,
  averageShare: 0.5,
}

test('a plan is the cost of one event times the rate, plus headroom', () => {
  const plan = planFor(question, costs)
  assert.deepEqual([plan.httpCores, plan.workerCores, plan.postgresCores], [0.2, 0.15, 0.35])
  assert.deepEqual([plan.httpProcesses, plan.workers, plan.installations], [1, 1, 1])
  assert.equal(plan.walMegabytesPerSecond, 10)
  // 700 bytes per event are kept, and 400 bytes stay in the log for a week
  assert.equal(plan.keptGigabytesPerDay, (700 * 5_000 * 86_400) / 1e9)
  assert.equal(Math.round(plan.diskGigabytes), Math.round(((700 * 30 + 400 * 7) * 5_000 * 86_400 * 1.3) / 1e9))
  assert.match(
    formatPlan(question, plan),
    /^10,000 events per second in the busiest hour, 5,000 on average, of 10 tenants/,
  )
})

test('more events never need fewer machines, and several installations share the tenants', () => {
  const rates = [1, 1_000, 50_000, 1_000_000, 10_000_000].map(eventsPerSecond =>
    planFor({ ...question, eventsPerSecond }, costs),
  )
  for (const [i, plan] of rates.entries()) {
    const next = rates[i + 1]
    if (!next) continue
    for (const part of ['httpProcesses', 'workers', 'installations', 'diskGigabytes'] as const)
      assert.ok(next[part] >= plan[part], part)
  }
  const { installations, tenantsPerInstallation } = rates.at(-1)!
  assert.ok(installations > 1)
  assert.ok(installations * tenantsPerInstallation >= question.tenants)
})

test('a plan shows the resource that requires several installations, and reports an impossible plan', () => {
  const words = (given: Partial<typeof question>) => {
    const asked = { ...question, ...given }
    return formatPlan(asked, planFor(asked, costs))
  }
  const one = words({ retentionDays: 1 })
  assert.match(one, /1 installation, 10 tenants$/m)
  assert.doesNotMatch(one, /limited by|each|per installation/)
  const several = words({ retentionDays: 365 })
  assert.match(several, /5 installations \(limited by disk: at most 30,000 GB per server\), 2 tenants each$/m)
  assert.match(several, /: 1 worker per installation,/)
  assert.match(
    words({ eventsPerSecond: 1e6, retentionDays: 1, averageShare: 0.01 }),
    /installations \(limited by WAL: at most 200 MB/,
  )
  assert.match(words({ eventsPerSecond: 1e9, tenants: 1 }), /Not possible: a tenant is stored in one installation/)
})

test('invalid input is explained', () => {
  const errors = (words: Parameters<typeof parseQuestion>[0]) => parseQuestion({ events: '100', ...words }).errors
  assert.deepEqual(errors({ retention: '30', tenants: '1', single: '1', average: '1' }), [])
  for (const events of ['0', '-5', 'abc', 'Infinity', '']) assert.match(errors({ events })[0]!, /--events/)
  for (const tenants of ['0', '1.5', '-1']) assert.match(errors({ tenants })[0]!, /--tenants/)
  assert.match(errors({ single: '5' })[0]!, /--single/)
  assert.match(errors({ average: '0' })[0]!, /--average/)
  assert.match(errors({ retention: '-1' })[0]!, /--retention/)
})

test('the rate of a number of cores is the rate for which the plan needs these cores', () => {
  const rate = ratePossible(batched, 2)
  const { httpCores, workerCores, postgresCores } = planFor({ ...question, eventsPerSecond: rate }, costs)
  assert.ok(Math.abs(httpCores + workerCores + postgresCores - 2) < 1e-9)
})

test('changed figures are listed with their direction, the worst first; variation is ignored', () => {
  const run = (share: number, nodeUs: number, p99: number): Result[] => [
    {
      scenario: 'track',
      at: '2026-01-01T00:00:00Z',
      machine: { cores: 2, cpu: 'x', node: 'v24' },
      generator: 'wrk',
      coresBusyBefore: 0,
      bars: [
        { what: 'share', value: share, atLeast: 0.3, held: true },
        { what: 'p99', value: p99, atMost: 5, held: true },
      ],
      facts: { full: { nodeUs, perSecond: 1 } },
    },
  ]
  const moves = movesSince(run(0.4, 100, 3), run(0.3, 110, 1))
  assert.deepEqual(
    moves.map(({ what, before, value }) => [what, before, value]),
    [
      ['share', 0.4, 0.3],
      ['p99', 3, 1],
    ],
  )
  assert.deepEqual(
    listFigures(run(1, 2, 3)[0]!).map(({ what, value }) => [what, value]),
    [
      ['share', 1],
      ['p99', 3],
      ['full: CPU of Node', 2],
    ],
  )
})
