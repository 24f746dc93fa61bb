import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type { RecordBody } from '../../src/http/records/schemas.ts'
import { buildAppend } from '../../src/http/records/write.ts'
import { applyBatch } from '../../src/pipeline/apply.ts'
import { openConversionTypes } from '../../src/pipeline/conversions/conversions.ts'
import { openAudience } from '../../src/pipeline/deliveries/notify.ts'
import { openLastSeen } from '../../src/pipeline/identity/last-seen.ts'
import { openIdentities } from '../../src/pipeline/identity/linking.ts'
import { openSuppressions } from '../../src/pipeline/identity/suppressions.ts'
import { openTouches } from '../../src/pipeline/identity/touches.ts'
import { recordKind } from '../../src/pipeline/records/records.ts'
import { openScheduler, type Scheduler } from '../../src/pipeline/scheduler.ts'
import { openTransactions } from '../../src/pipeline/transaction.ts'
import type { Kind } from '../../src/pipeline/unit.ts'
import { eventually } from '../eventually.ts'
import { openTestLog } from '../log/open.ts'
import { runs } from '../long.ts'

let opened: Awaited<ReturnType<typeof openTestLog>>
let scheduler: Scheduler
before(async () => {
  opened = await openTestLog()
  const kind = recordKind as Kind
  const logger = { error: () => {}, warn: () => {} }
  const effects = {
    identities: openIdentities(),
    touches: openTouches(),
    lastSeen: openLastSeen(),
    conversionTypes: openConversionTypes(),
    suppressions: openSuppressions(),
    loadAudience: openAudience(),
    ensureMonths: () => {},
    copiesEvents: false,
  }
  const runTransaction = openTransactions({
    ...{ ...opened, kinds: { record: kind, events: kind }, logger },
    applyBatch: (transaction, units) => applyBatch(effects, transaction, units),
  })
  scheduler = openScheduler({ runTransaction, workers: 2, onAppend: opened.log.onAppend, logger })
  scheduler.start()
})
after(async () => {
  await scheduler.stop()
  await opened.close()
})

/** A change of one of two products, which may share names. `at` is its source time. */
type Change = { at: number; record: 'a' | 'b' } & (
  | { op: 'write'; externalId: string | null; sku: string | null; code: string | null }
  | { op: 'delete' }
  | { op: 'delete by name'; name: Name; value: string }
)
type Name = 'externalId' | 'sku' | 'code'

/** Changes, and their order of arrival: any order, with repeats. */
type History = { changes: Change[]; arrivals: number[] }

const value = fc.constantFrom('x', 'y')
const nameable = fc.option(value, { nil: null })
const record = fc.constantFrom('a' as const, 'b' as const)

function historyWith(at: fc.Arbitrary<number>, options: { unique: boolean }): fc.Arbitrary<History> {
  const change: fc.Arbitrary<Change> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constant('write' as const),
        at,
        record,
        externalId: nameable,
        sku: nameable,
        code: nameable,
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('delete' as const), at, record }) },
    {
      weight: 3,
      arbitrary: fc.record({
        op: fc.constant('delete by name' as const),
        at,
        record,
        name: fc.constantFrom('externalId' as const, 'sku' as const, 'code' as const),
        value,
      }),
    },
  )
  const changes = options.unique
    ? fc.uniqueArray(change, { selector: ({ at }) => at, minLength: 1, maxLength: 8 })
    : fc.array(change, { minLength: 1, maxLength: 8 })
  return changes.chain(list => {
    const indexes = list.map((_, i) => i)
    return fc
      .array(fc.constantFrom(...indexes), { maxLength: 6 })
      .chain(repeats =>
        fc.shuffledSubarray(
          [...indexes, ...repeats].map((index, n) => ({ index, n })),
          {
            minLength: indexes.length + repeats.length,
          },
        ),
      )
      .map(order => ({ changes: list, arrivals: order.map(({ index }) => index) }))
  })
}

type State = { at: number; externalId: string | null; data: Record<string, unknown> } | null

/** The expected state after these changes in this order. */
function expected(changes: Change[]): Record<'a' | 'b', State> {
  const states: Record<'a' | 'b', State> = { a: null, b: null }
  for (const change of changes) {
    if (change.op === 'write') {
      states[change.record] = { at: change.at, externalId: change.externalId, data: dataOf(change) }
    } else if (change.op === 'delete') {
      states[change.record] = null
    } else {
      for (const name of ['a', 'b'] as const) {
        const state = states[name]
        const own = change.name === 'externalId' ? state?.externalId : state?.data[change.name]
        if (state && own === change.value) states[name] = null
      }
    }
  }
  return states
}

function dataOf({ at, sku, code }: Change & { op: 'write' }): Record<string, unknown> {
  return { at, ...(sku !== null && { sku }), ...(code !== null && { code }) }
}

const timeOf = (at: number) => new Date(Date.UTC(2026, 0, 1) + at).toISOString()

/** The request body of a change. The number of the history in every name keeps histories separate. */
function bodyOf(change: Change, history: number): RecordBody {
  const own = (name: string) => `${history}-${name}`
  const common = { entityType: 'product' as const, sourceUpdatedAt: timeOf(change.at) }
  if (change.op === 'delete') return { ...common, id: own(change.record) }
  if (change.op === 'delete by name') {
    return change.name === 'externalId'
      ? { ...common, externalId: own(change.value) }
      : { ...common, data: { [change.name]: own(change.value) } }
  }
  const { externalId, sku, code, at } = change
  return {
    ...common,
    id: own(change.record),
    ...(externalId !== null && { externalId: own(externalId) }),
    data: { at, ...(sku !== null && { sku: own(sku) }), ...(code !== null && { code: own(code) }) },
  }
}

let histories = 0

/** Sends histories through the log and the workers concurrently. Returns the stored state of each. */
async function play(list: History[]): Promise<Record<'a' | 'b', State>[]> {
  const first = histories
  histories += list.length
  const longest = Math.max(...list.map(({ arrivals }) => arrivals.length))
  for (let step = 0; step < longest; step++) {
    const appends = list.flatMap(({ changes, arrivals }, i) => {
      if (step >= arrivals.length) return []
      const change = changes[arrivals[step]!]!
      const body = bodyOf(change, first + i)
      const op = change.op === 'write' ? 'write' : 'delete'
      const text = JSON.stringify(body)
      const write = {
        op,
        tenantId: 1,
        entityType: 'product',
        body,
        text,
        key: undefined,
        now: new Date(),
      } as const
      return [buildAppend(write)]
    })
    await opened.log.append(appends)
  }
  await eventually('the log to be read', async () => (await opened.log.lag()).every(({ entries }) => entries === 0))
  return Promise.all(list.map((_, i) => stored(first + i)))
}

async function stored(history: number): Promise<Record<'a' | 'b', State>> {
  const { rows } = await opened.pool.query<{
    id: string
    external_id: string | null
    source_updated_at: Date
    data: string
  }>(
    `select id, external_id, source_updated_at, data from records
     where tenant_id = 1 and entity_type = 'product' and id = any($1) and not deleted`,
    [[`${history}-a`, `${history}-b`]],
  )
  const states: Record<'a' | 'b', State> = { a: null, b: null }
  for (const row of rows) {
    states[row.id.slice(-1) as 'a' | 'b'] = {
      at: row.source_updated_at.getTime() - Date.UTC(2026, 0, 1),
      externalId: row.external_id?.replace(/^\d+-/, '') ?? null,
      data: JSON.parse(row.data.replaceAll(`"${history}-`, '"')),
    }
  }
  return states
}

/** Many histories at a time, because a single one would mostly wait. */
const atATime = { minLength: 30, maxLength: 60 }

test('changes in any order and with repeats end in the state of the changes sorted by source time', async () => {
  const history = historyWith(fc.integer({ min: 0, max: 1_000_000 }), { unique: true })
  await fc.assert(
    fc.asyncProperty(fc.array(history, atATime), async list => {
      const sorted = list.map(({ changes }) => expected(changes.toSorted((a, b) => a.at - b.at)))
      assert.deepEqual(await play(list), sorted)
    }),
    { numRuns: runs(12) },
  )
})

test('of changes with the same source time, the later arrival wins', async () => {
  const history = historyWith(fc.integer({ min: 0, max: 3 }), { unique: false })
  await fc.assert(
    fc.asyncProperty(fc.array(history, atATime), async list => {
      const sorted = list.map(({ changes, arrivals }) =>
        // sort() is stable: changes with equal times keep their order of arrival
        expected(arrivals.map(index => changes[index]!).sort((a, b) => a.at - b.at)),
      )
      assert.deepEqual(await play(list), sorted)
    }),
    { numRuns: runs(12) },
  )
})
