import type pg from 'pg'
import { DAY_MS } from '../domain/time.ts'
import { type Db, databaseNow, inTransaction } from './database.ts'
import { LOCKS, lock } from './locks.ts'

/** A way to cut time: the number of the period a moment lies in, and the moment a period begins. */
type Cut = { period(at: Date): number; start(period: number): Date }

const byDay: Cut = {
  period: at => Math.floor(at.getTime() / DAY_MS),
  start: period => new Date(period * DAY_MS),
}
const byTenDays: Cut = {
  period: at => Math.floor(at.getTime() / (10 * DAY_MS)),
  start: period => new Date(period * 10 * DAY_MS),
}
const byMonth: Cut = {
  period: at => at.getUTCFullYear() * 12 + at.getUTCMonth(),
  start: period => new Date(Date.UTC(Math.floor(period / 12), period % 12, 1)),
}

const byYear: Cut = {
  period: at => at.getUTCFullYear(),
  start: period => new Date(Date.UTC(period, 0, 1)),
}

type Table = {
  cut: Cut
  bound: 'time' | 'period'
  behind: number
  ahead: number
  /** For what lies more than a year away from now: few wide partitions, however many moments are made up. */
  farCut?: Cut
}

export type PartitionedTable =
  | 'log'
  | 'operations'
  | 'idempotency_keys'
  | 'events'
  | 'processed_events'
  | 'receipts'
  | 'archive'
  | 'outbox'
  | 'delivery_attempts'

// Made ahead of need, so that a job that does not run for days stops nothing.
const tables: Record<PartitionedTable, Table> = {
  log: { cut: byDay, bound: 'time', behind: 1, ahead: 7 },
  operations: { cut: byDay, bound: 'time', behind: 1, ahead: 7 },
  idempotency_keys: { cut: byTenDays, bound: 'period', behind: 1, ahead: 2 },
  events: { cut: byMonth, bound: 'time', behind: 2, ahead: 2, farCut: byYear },
  processed_events: { cut: byMonth, bound: 'period', behind: 1, ahead: 2 },
  receipts: { cut: byDay, bound: 'time', behind: 1, ahead: 7 },
  archive: { cut: byDay, bound: 'time', behind: 1, ahead: 7 },
  outbox: { cut: byTenDays, bound: 'time', behind: 1, ahead: 1 },
  delivery_attempts: { cut: byTenDays, bound: 'time', behind: 1, ahead: 1 },
}

export const partitionedTables = Object.keys(tables) as PartitionedTable[]

export function periodOf(table: PartitionedTable, at: Date): number {
  return tables[table].cut.period(at)
}

/** The same for idempotency keys in SQL, of a moment `at`, where it is PostgreSQL's clock that counts. */
export const PERIOD_OF_KEYS = `(select
  floor(extract(epoch from at) / 864000)::int as period, extract(epoch from at) % 864000 < 300 as near_start) p`

/** The first moments of a period, in which a claim is also made in the period before (see claims). */
export function isNearPeriodStart(table: PartitionedTable, at: Date): boolean {
  const { cut } = tables[table]
  return at.getTime() - cut.start(cut.period(at)).getTime() < 5 * 60_000
}

/** Makes the partitions that the coming days need. Returns the names of those it made. */
export async function ensurePartitions(pool: pg.Pool, now: Date): Promise<string[]> {
  const wanted = partitionedTables.map(table => {
    const { cut, behind, ahead } = tables[table]
    const current = cut.period(now)
    const periods = Array.from({ length: behind + ahead + 1 }, (_, i) => current - behind + i)
    return { table, keys: periods.map(period => keyOf(table, cut.start(period))) }
  })
  return makePartitions(pool, wanted, now)
}

/** Of these moments, those for which a table has no partition. */
export async function momentsWithoutPartition(
  db: Db,
  table: PartitionedTable,
  moments: readonly Date[],
): Promise<Date[]> {
  const existing = (await partitionsOf(db, [table])).get(table)!
  return moments.filter(
    at => !existing.some(({ from, to }) => from <= keyOf(table, at) && keyOf(table, at) < to),
  )
}

/** Makes the partitions for moments that lie outside the prepared range: a backdated import, a clock that jumped. */
export async function ensurePartitionsFor(
  pool: pg.Pool,
  table: PartitionedTable,
  moments: Date[],
  now?: Date,
): Promise<void> {
  const wanted = [{ table, keys: moments.map(at => keyOf(table, at)) }]
  // By a clock that is a year off, this month would be far away, and its partition a year wide.
  await makePartitions(pool, wanted, now ?? (await databaseNow(pool)))
}

/** A row lies outside all partitions. Told by where PostgreSQL found out: its words depend on the language. */
export function isMissingPartition(error: unknown): boolean {
  const { code, routine } = (error ?? {}) as { code?: unknown; routine?: unknown }
  return code === '23514' && routine === 'ExecFindPartition'
}

/**
 * Makes the partition that a row did not find: retention dropped it, or the clock jumped. The table and the row's own
 * key stand in what PostgreSQL says; it reads the key itself, as it wrote it.
 */
export async function makeMissingPartition(pool: pg.Pool, error: unknown): Promise<void> {
  const { table, detail } = error as { table?: string; detail?: string }
  const key = /\(\w+\) = \(([^()]+)\)/.exec(detail ?? '')?.[1]
  if (key === undefined || !partitionedTables.includes(table as PartitionedTable)) throw error
  const name = table as PartitionedTable
  if (tables[name].bound === 'period')
    await makePartitions(pool, [{ table: name, keys: [Number(key)] }], await databaseNow(pool))
  else {
    const { rows } = await pool.query<{ at: Date }>('select $1::timestamptz as at', [key])
    await ensurePartitionsFor(pool, name, [rows[0]!.at])
  }
}

// Rows of one statement may need several; each attempt finds out about one.
const MAX_MISSING = 100

/** Does something again once the partitions that it misses are made. Not for use inside of a transaction. */
export async function makingPartitions<T>(pool: pg.Pool, work: () => Promise<T>): Promise<T> {
  for (let made = 0; ; made++) {
    try {
      return await work()
    } catch (error) {
      if (!isMissingPartition(error) || made === MAX_MISSING) throw error
      await makeMissingPartition(pool, error)
    }
  }
}

/** Where a table is cut: in milliseconds since 1970, or in periods. */
type Range = { from: number; to: number }
type Partition = Range & { name: string }
type Wanted = { table: PartitionedTable; keys: number[] }

async function makePartitions(pool: pg.Pool, wanted: Wanted[], now: Date): Promise<string[]> {
  const missing = await missingOf(pool, wanted, now)
  if (missing.length === 0) return []
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.partitions)
    const stillMissing = await missingOf(client, wanted, now)
    for (const { table, name, from, to } of stillMissing) {
      // create + attach instead of "partition of": writers to the parent are not held up.
      await client.query(
        `create table ${name} (like ${table} including defaults including constraints including generated including storage)`,
      )
      await client.query(
        `alter table ${table} attach partition ${name} for values from (${bound(table, from)}) to (${bound(table, to)})`,
      )
    }
    return stillMissing.map(({ name }) => name)
  })
}

async function missingOf(db: Db, wanted: Wanted[], now: Date) {
  const missing: (Partition & { table: PartitionedTable })[] = []
  const existing = await partitionsOf(
    db,
    wanted.map(({ table }) => table),
  )
  for (const { table, keys } of wanted) {
    const known = existing.get(table)!
    for (const key of keys) {
      if (known.some(({ from, to }) => from <= key && key < to)) continue
      const made = { table, ...newPartition(table, key, known, now) }
      known.push(made)
      missing.push(made)
    }
  }
  return missing
}

/** The period around a key, without what other partitions have of it. */
function newPartition(table: PartitionedTable, key: number, existing: Range[], now: Date): Partition {
  const { cut, farCut, bound } = tables[table]
  if (bound === 'period') return { name: `${table}_p${key}`, from: key, to: key + 1 }
  const isFar = farCut !== undefined && Math.abs(key - now.getTime()) > 365 * DAY_MS
  const { period, start } = isFar ? farCut : cut
  const own = period(new Date(key))
  const whole = { from: start(own).getTime(), to: start(own + 1).getTime() }
  const from = Math.max(whole.from, ...existing.map(other => other.to).filter(to => to <= key))
  const to = Math.min(whole.to, ...existing.map(other => other.from).filter(from => from > key))
  const isWhole = !isFar && from === whole.from && to === whole.to
  const name = isWhole ? `p${own}` : `from_${new Date(from).toISOString().slice(0, 10).replaceAll('-', '')}`
  return { name: `${table}_${name}`, from, to }
}

/** By their bounds: names say nothing of what a partition holds. */
async function partitionsOf(db: Db, names: PartitionedTable[]): Promise<Map<PartitionedTable, Partition[]>> {
  const { rows } = await db.query<{
    table: PartitionedTable
    name: string
    from: string | null
    to: string | null
  }>(
    `select p.relname as table, c.relname as name, bounds[1] as from, bounds[2] as to
     from pg_class p join pg_inherits i on i.inhparent = p.oid join pg_class c on c.oid = i.inhrelid
     cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid),
       '^FOR VALUES FROM \\(''?(.*?)''?\\) TO \\(''?(.*?)''?\\)$') as bounds
     where p.relname = any($1) and p.relnamespace = current_schema()::regnamespace`,
    [names],
  )
  const found = new Map<PartitionedTable, Partition[]>(names.map(name => [name, []]))
  for (const { table, name, from, to } of rows)
    found.get(table)!.push({ name, from: readBound(table, from), to: readBound(table, to) })
  return found
}

function readBound(table: PartitionedTable, text: string | null): number {
  if (text === 'MINVALUE') return -Infinity
  if (text === null || text === 'MAXVALUE') return Infinity
  // As PostgreSQL writes it in UTC: 2026-05-01 00:00:00+00
  return tables[table].bound === 'period'
    ? Number(text)
    : Date.parse(text.replace(' ', 'T').replace(/\+00$/, 'Z'))
}

/**
 * Drops the partitions that lie wholly before a moment. Returns their names. `onDrop`: what else the transaction does that
 * drops one; nobody else reads or writes the table meanwhile.
 */
export async function dropPartitionsBefore(
  pool: pg.Pool,
  table: PartitionedTable,
  moment: Date,
  onDrop: (db: Db, range: { since: Date; until: Date }) => Promise<void> = async () => {},
): Promise<string[]> {
  const before = keyOf(table, moment)
  const found = (await partitionsOf(pool, [table])).get(table)!
  // The one without a lower bound stays: rows from before all periods find no other.
  const expired = found.filter(({ from, to }) => to <= before && from !== -Infinity)
  for (const { name, from, to } of expired) {
    await inTransaction(pool, async client => {
      // Rather later than in the way: dropping needs the parent for a moment, and while it waits all others wait behind.
      await client.query(`set local lock_timeout = '300ms'`)
      await client.query(`drop table if exists ${name}`)
      if (tables[table].bound === 'time') await onDrop(client, { since: new Date(from), until: new Date(to) })
    })
  }
  return expired.map(({ name }) => name)
}

function keyOf(table: PartitionedTable, at: Date): number {
  const { cut, bound } = tables[table]
  return bound === 'period' ? cut.period(at) : at.getTime()
}

function bound(table: PartitionedTable, key: number): string {
  return tables[table].bound === 'period' ? String(key) : `'${new Date(key).toISOString()}'`
}
