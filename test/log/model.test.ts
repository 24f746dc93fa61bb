import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type pg from 'pg'
import { DAY_MS } from '../../src/domain/time.ts'
import type { Append, Taken } from '../../src/log/log.ts'
import { inTransaction, RestartTransaction } from '../../src/postgres/database.ts'
import { dropPartitionsBefore } from '../../src/postgres/partitions.ts'
import { isLong } from '../long.ts'
import { anAppend, EVERYTHING, readAll } from './entries.ts'
import { openTestLog } from './open.ts'

// Compares the log with a model of it: a list of entries, and how far it was read. In any order of operations, each acknowledged
// entry is read once, and the entries of a key in the order in which they were appended.
// KONTOR_MODEL_RUNS=200 for thousands of steps.
const RUNS = Number(process.env.KONTOR_MODEL_RUNS ?? (isLong ? 6 : 3))
const MAX_COMMANDS = 60

let opened: Awaited<ReturnType<typeof openTestLog>>
before(async () => {
  opened = await openTestLog()
})
after(() => opened.close())

/** The appended entries in the order of their positions, with whether each is visible and read. */
type Model = {
  entries: { id: string; key: string; state: 'open' | 'there' | 'gone'; isRead: boolean }[]
  appenders: number
  readers: number
}
type Real = { appenders: OpenTransaction[]; readers: (OpenTransaction & { taken: Taken[] })[] }
type Command = fc.AsyncCommand<Model, Real>

/** A transaction that stays open until it commits or is aborted as by a crash. */
type OpenTransaction = {
  client: pg.PoolClient
  ids: string[]
  commit(): Promise<void>
  crash(): Promise<void>
}

async function openTransaction<T>(begin: (client: pg.PoolClient) => Promise<T>) {
  const begun = Promise.withResolvers<{ client: pg.PoolClient; result: T }>()
  const end = Promise.withResolvers<void>()
  const ended = inTransaction(opened.pool, async client => {
    begun.resolve({ client, result: await begin(client) })
    await end.promise
  })
  ended.catch(begun.reject)
  const { client, result } = await begun.promise
  return {
    client,
    result,
    ids: [] as string[],
    async commit() {
      end.resolve()
      await ended
    },
    async crash() {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      await opened.pool.query('select pg_terminate_backend($1, 5000)', [rows[0]!.pid])
      end.resolve()
      await assert.rejects(ended)
    },
  }
}

/** Retries as the scheduler does. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof RestartTransaction)) throw error
    await error.prepare()
    return work()
  }
}

const made = (keys: number[], daysAgo: number): Append[] =>
  keys.map(key => anAppend({ orderingKey: `key ${key}`, receivedAt: new Date(Date.now() - daysAgo * DAY_MS) }))

function noted(model: Model, appends: Append[], state: 'open' | 'there'): string[] {
  for (const { entry } of appends) model.entries.push({ id: entry.id, key: entry.orderingKey, state, isRead: false })
  return appends.map(({ entry }) => entry.id)
}

const settle = (model: Model, ids: string[], state: 'there' | 'gone') => {
  for (const entry of model.entries) if (ids.includes(entry.id)) entry.state = state
}

class AppendEntries implements Command {
  readonly keys: number[]
  readonly daysAgo: number
  constructor(keys: number[], daysAgo: number) {
    this.keys = keys
    this.daysAgo = daysAgo
  }
  check = () => true
  async run(model: Model) {
    const appends = made(this.keys, this.daysAgo)
    await opened.log.append(appends)
    noted(model, appends, 'there')
  }
  toString = () => `append ${this.keys} of ${this.daysAgo} days ago`
}

class AppendSlowly implements Command {
  readonly keys: number[]
  constructor(keys: number[]) {
    this.keys = keys
  }
  check = ({ appenders }: Readonly<Model>) => appenders < 2
  async run(model: Model, real: Real) {
    const appends = made(this.keys, 0)
    const open = () => openTransaction(client => opened.log.append(appends, { client }))
    const appender = await again(open)
    appender.ids.push(...noted(model, appends, 'open'))
    real.appenders.push(appender)
    model.appenders++
  }
  toString = () => `append ${this.keys} in a transaction`
}

class AppendMore implements Command {
  readonly keys: number[]
  constructor(keys: number[]) {
    this.keys = keys
  }
  // A later transaction has a higher id: entries that an earlier one adds precede its own.
  check = ({ appenders }: Readonly<Model>) => appenders === 1
  async run(model: Model, { appenders: [appender] }: Real) {
    const appends = made(this.keys, 0)
    await opened.log.append(appends, { client: appender!.client })
    const ids = noted({ ...model, entries: [] }, appends, 'open')
    const last = model.entries.findLastIndex(({ id }) => appender!.ids.includes(id))
    const added = appends.map(({ entry }) => ({
      ...{ id: entry.id, key: entry.orderingKey, isRead: false },
      state: 'open' as const,
    }))
    model.entries.splice(last + 1, 0, ...added)
    appender!.ids.push(...ids)
  }
  toString = () => `append ${this.keys} in the same transaction`
}

class EndAppend implements Command {
  readonly crashes: boolean
  constructor(crashes: boolean) {
    this.crashes = crashes
  }
  check = ({ appenders }: Readonly<Model>) => appenders > 0
  async run(model: Model, real: Real) {
    const appender = real.appenders.shift()!
    model.appenders--
    await (this.crashes ? appender.crash() : appender.commit())
    settle(model, appender.ids, this.crashes ? 'gone' : 'there')
  }
  toString = () => (this.crashes ? 'the appender crashes' : 'the appender commits')
}

class Take implements Command {
  readonly maxPartitions: number
  readonly maxEntries: number
  constructor(maxPartitions: number, maxEntries: number) {
    this.maxPartitions = maxPartitions
    this.maxEntries = maxEntries
  }
  check = ({ readers }: Readonly<Model>) => readers < 2
  async run(model: Model, real: Real) {
    const options = { ...EVERYTHING, maxPartitions: this.maxPartitions, maxEntries: this.maxEntries }
    const reader = await again(() => openTransaction(client => opened.log.take(client, options)))
    const taken = reader.result
    real.readers.push({ ...reader, taken })
    model.readers++
    for (const { entries } of taken) {
      assert.ok(entries.length <= this.maxEntries)
      // The next entries of each key, without a gap, and all of them visible.
      for (const [key, own] of Map.groupBy(entries, entry => entry.orderingKey)) {
        const next = model.entries.filter(entry => entry.key === key && !entry.isRead && entry.state !== 'gone')
        assert.deepEqual(
          own.map(({ id }) => id),
          next.slice(0, own.length).map(({ id }) => id),
        )
        assert.ok(next.slice(0, own.length).every(({ state }) => state === 'there'))
      }
    }
    const ids = real.readers.flatMap(({ taken }) => taken.flatMap(({ entries }) => entries.map(({ id }) => id)))
    assert.equal(new Set(ids).size, ids.length, 'two readers have the same entry')
  }
  toString = () => `take ${this.maxEntries} of ${this.maxPartitions} partitions`
}

class EndTake implements Command {
  readonly crashes: boolean
  constructor(crashes: boolean) {
    this.crashes = crashes
  }
  check = ({ readers }: Readonly<Model>) => readers > 0
  async run(model: Model, real: Real) {
    const reader = real.readers.shift()!
    model.readers--
    await opened.log.advance(reader.client, reader.taken)
    if (this.crashes) return reader.crash()
    await reader.commit()
    const ids = new Set(reader.taken.flatMap(({ entries }) => entries.map(({ id }) => id)))
    for (const entry of model.entries) if (ids.has(entry.id)) entry.isRead = true
  }
  toString = () => (this.crashes ? 'the reader advances and crashes' : 'the reader advances')
}

const isQuiet = ({ appenders, readers }: Readonly<Model>) => appenders === 0 && readers === 0

class Retention implements Command {
  check = isQuiet
  async run(model: Model) {
    const unread = (await opened.log.lag()).flatMap(({ oldestAt }) => oldestAt?.getTime() ?? [])
    const waits = model.entries.some(({ state, isRead }) => state === 'there' && !isRead)
    assert.equal(unread.length > 0, waits, 'lag reports whether entries are unread')
    await dropPartitionsBefore(opened.pool, 'log', new Date(Math.min(Date.now() - DAY_MS, ...unread)))
  }
  toString = () => 'retention'
}

/** The same rows in another cluster with a different transaction counter. */
class Restore implements Command {
  readonly isAhead: boolean
  constructor(isAhead: boolean) {
    this.isAhead = isAhead
  }
  check = isQuiet
  async run() {
    const { rows } = await opened.pool.query<{ least: string }>(
      `select coalesce(min(xid), '10')::text as least from (
         select xid from log union all select xid from log_cursors where xid <> '0') all_xids`,
    )
    const by = this.isAhead ? 5_000_000_000n : 3n - BigInt(rows[0]!.least)
    await opened.pool.query(
      `with entries as (update log set xid = (xid::text::numeric + ${by})::text::xid8),
         cursors as (update log_cursors set xid = (xid::text::numeric + ${by})::text::xid8 where xid <> '0')
       update log_epochs set database = 'another ' || database`,
    )
  }
  toString = () => `restored into a cluster that ${this.isAhead ? 'lies behind' : 'is ahead'}`
}

test('appends, takes, crashes, drops and restores in any order: each entry is read once, in order', async t => {
  const keys = fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 6 })
  const commands = fc.commands<Model, Real, false>(
    [
      fc.tuple(keys, fc.nat({ max: 3 })).map(([of, daysAgo]) => new AppendEntries(of, daysAgo)),
      keys.map(of => new AppendSlowly(of)),
      keys.map(of => new AppendMore(of)),
      fc.boolean().map(crashes => new EndAppend(crashes)),
      fc.tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 5 })).map(of => new Take(...of)),
      fc.boolean().map(crashes => new EndTake(crashes)),
      fc.constant(new Retention()),
      fc.boolean().map(isAhead => new Restore(isAhead)),
    ] as fc.Arbitrary<Command>[] as never,
    { maxCommands: MAX_COMMANDS, size: 'max' },
  )
  let steps = 0
  await fc.assert(
    fc.asyncProperty(commands as unknown as fc.Arbitrary<Iterable<Command>>, async commands => {
      const model: Model = { entries: [], appenders: 0, readers: 0 }
      const real: Real = { appenders: [], readers: [] }
      try {
        await fc.asyncModelRun(() => ({ model, real }), commands)
        steps += [...commands].length
        for (const appender of real.appenders.splice(0)) {
          await appender.commit()
          settle(model, appender.ids, 'there')
        }
      } finally {
        for (const open of [...real.appenders, ...real.readers]) await open.crash()
      }
      const rest = await readAll(opened.log, opened.pool)
      for (const key of new Set(model.entries.map(entry => entry.key))) {
        const unread = model.entries.filter(entry => entry.key === key && entry.state === 'there' && !entry.isRead)
        assert.deepEqual(
          rest.filter(({ orderingKey }) => orderingKey === key).map(({ id }) => id),
          unread.map(({ id }) => id),
        )
      }
    }),
    { numRuns: RUNS, endOnFailure: true },
  )
  t.diagnostic(`${steps} steps`)
})
