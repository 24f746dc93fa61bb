import type pg from 'pg'
import { DAY_MS } from '../domain/time.ts'
import { type Db, databaseNow, inTransaction } from './database.ts'
import { LOCKS, lock } from './locks.ts'

/** Divides time into numbered periods. `start` is the first moment of a period. */
type Interval = { period(at: Date): number; start(period: number): Date }

const byDay: Interval = { period: at => Math.floor(at.getTime() / DAY_MS), start: period => new Date(period * DAY_MS) }
const byTenDays: Interval = {
  period: at => Math.floor(at.getTime() / (10 * DAY_MS)),
  start: period => new Date(period * 10 * DAY_MS),
}
const byMonth: Interval = {
  period: at => at.getUTCFullYear() * 12 + at.getUTCMonth(),
  start: period => new Date(Date.UTC(Math.floor(period / 12), period % 12, 1)),
}

const byYear: Interval = { period: at => at.getUTCFullYear(), start: period => new Date(Date.UTC(period, 0, 1)) }

type Table = {
  interval: Interval
  bound: 'time' | 'period'
  behind: number
  ahead: number
  /** For rows more than a year from now: invented timestamps then need only a few wide partitions. */
  farInterval?: Interval
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

// `ahead` partitions are created in advance, so that writes continue even if the job does not run for days.
const tables: Record<PartitionedTable, Table> = {
  log: { interval: byDay, bound: 'time', behind: 1, ahead: 7 },
  operations: { interval: byDay, bound: 'time', behind: 1, ahead: 7 },
  idempotency_keys: { interval: byTenDays, bound: 'period', behind: 1, ahead: 2 },
  events: { interval: byMonth, bound: 'time', behind: 2, ahead: 2, farInterval: byYear },
  processed_events: { interval: byMonth, bound: 'period', behind: 1, ahead: 2 },
  receipts: { interval: byDay, bound: 'time', behind: 1, ahead: 7 },
  archive: { interval: byDay, bound: 'time', behind: 1, ahead: 7 },
  outbox: { interval: byTenDays, bound: 'time', behind: 1, ahead: 1 },
  delivery_attempts: { interval: byTenDays, bound: 'time', behind: 1, ahead: 1 },
}

export const partitionedTables = Object.keys(tables) as PartitionedTable[]

export function computePeriod(table: PartitionedTable, at: Date): number {
  return tables[table].interval.period(at)
}

/** The same in SQL for idempotency keys, for a moment `at`, because their time comes from PostgreSQL's clock. */
export const KEY_PERIOD = `(select
  floor(extract(epoch from at) / 864000)::int as period, extract(epoch from at) % 864000 < 300 as near_start) p`

/** True in the first five minutes of a period, when a claim is also made in the previous period (see claims). */
export function isNearPeriodStart(table: PartitionedTable, at: Date): boolean {
  const { interval } = tables[table]
  return at.getTime() - interval.start(interval.period(at)).getTime() < 5 * 60_000
}

/** Creates the partitions for the coming days, and returns their names. */
export async function ensurePartitions(pool: pg.Pool, now: Date): Promise<string[]> {
  const wanted = partitionedTables.map(table => {
    const { interval, behind, ahead } = tables[table]
    const current = interval.period(now)
    const periods = Array.from({ length: behind + ahead + 1 }, (_, i) => current - behind + i)
    return { table, keys: periods.map(period => toPartitionKey(table, interval.start(period))) }
  })
  return createPartitions(pool, wanted, now)
}

/** The moments for which the table has no partition. */
export async function momentsWithoutPartition(
  db: Db,
  table: PartitionedTable,
  moments: readonly Date[],
): Promise<Date[]> {
  const existing = (await listPartitions(db, [table])).get(table)!
  return moments.filter(
    at => !existing.some(({ from, to }) => from <= toPartitionKey(table, at) && toPartitionKey(table, at) < to),
  )
}

/** Creates the partitions for moments outside the prepared range: a backdated import, or a clock that jumped. */
export async function ensurePartitionsFor(
  pool: pg.Pool,
  table: PartitionedTable,
  moments: Date[],
  now?: Date,
): Promise<void> {
  const wanted = [{ table, keys: moments.map(at => toPartitionKey(table, at)) }]
  // Uses PostgreSQL's clock: by a local clock that is a year off, the partition of this month would be a year wide.
  await createPartitions(pool, wanted, now ?? (await databaseNow(pool)))
}

/** A row fits into no partition. Recognized by the routine that reports it: the message depends on the server's language. */
export function isMissingPartition(error: unknown): boolean {
  const { code, routine } = (error ?? {}) as { code?: unknown; routine?: unknown }
  return code === '23514' && routine === 'ExecFindPartition'
}

/**
 * Creates the partition that was missing for a row: retention dropped it, or the clock jumped. PostgreSQL's error contains the
 * table and the row's key. PostgreSQL itself parses the key, because it has formatted it.
 */
export async function createMissingPartition(pool: pg.Pool, error: unknown): Promise<void> {
  const { table, detail } = error as { table?: string; detail?: string }
  const key = /\(\w+\) = \(([^()]+)\)/.exec(detail ?? '')?.[1]
  if (key === undefined || !partitionedTables.includes(table as PartitionedTable)) throw error
  const name = table as PartitionedTable
  if (tables[name].bound === 'period')
    await createPartitions(pool, [{ table: name, keys: [Number(key)] }], await databaseNow(pool))
  else {
    const { rows } = await pool.query<{ at: Date }>('select $1::timestamptz as at', [key])
    await ensurePartitionsFor(pool, name, [rows[0]!.at])
  }
}

// The rows of one statement may need several partitions; each attempt reports one.
const MAX_MISSING = 100

/** Creates missing partitions and retries the work. Not for use inside a transaction. */
export async function retryWithPartitions<T>(pool: pg.Pool, work: () => Promise<T>): Promise<T> {
  for (let created = 0; ; created++) {
    try {
      return await work()
    } catch (error) {
      if (!isMissingPartition(error) || created === MAX_MISSING) throw error
      await createMissingPartition(pool, error)
    }
  }
}

/** The bounds of a partition, in milliseconds since 1970 or in period numbers. */
type Range = { from: number; to: number }
type Partition = Range & { name: string }
type Wanted = { table: PartitionedTable; keys: number[] }

async function createPartitions(pool: pg.Pool, wanted: Wanted[], now: Date): Promise<string[]> {
  const missing = await findMissing(pool, wanted, now)
  if (missing.length === 0) return []
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.partitions)
    const stillMissing = await findMissing(client, wanted, now)
    for (const { table, name, from, to } of stillMissing) {
      // "create" and "attach" instead of "partition of", which would block writers of the parent.
      await client.query(
        `create table ${name} (like ${table} including defaults including constraints including generated including storage)
         with (${VACUUM_SOON})`,
      )
      await client.query(
        `alter table ${table} attach partition ${name} for values from (${formatBound(table, from)}) to (${formatBound(table, to)})`,
      )
    }
    return stillMissing.map(({ name }) => name)
  })
}

// Vacuum visits each page of new rows once. If a checkpoint came in between, PostgreSQL writes the whole page to the WAL. The default,
// a fifth of the table, would mean that for most pages of a large table.
const VACUUM_SOON = 'autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000'

async function findMissing(db: Db, wanted: Wanted[], now: Date) {
  const missing: (Partition & { table: PartitionedTable })[] = []
  const existing = await listPartitions(
    db,
    wanted.map(({ table }) => table),
  )
  for (const { table, keys } of wanted) {
    const known = existing.get(table)!
    for (const key of keys) {
      if (known.some(({ from, to }) => from <= key && key < to)) continue
      const partition = { table, ...planPartition(table, key, known, now) }
      known.push(partition)
      missing.push(partition)
    }
  }
  return missing
}

/** The period around a key, without the ranges of other partitions. */
function planPartition(table: PartitionedTable, key: number, existing: Range[], now: Date): Partition {
  const { interval, farInterval, bound } = tables[table]
  if (bound === 'period') return { name: `${table}_p${key}`, from: key, to: key + 1 }
  const isFar = farInterval !== undefined && Math.abs(key - now.getTime()) > 365 * DAY_MS
  const { period, start } = isFar ? farInterval : interval
  const own = period(new Date(key))
  const whole = { from: start(own).getTime(), to: start(own + 1).getTime() }
  const from = Math.max(whole.from, ...existing.map(other => other.to).filter(to => to <= key))
  const to = Math.min(whole.to, ...existing.map(other => other.from).filter(from => from > key))
  const isWhole = !isFar && from === whole.from && to === whole.to
  const name = isWhole ? `p${own}` : `from_${new Date(from).toISOString().slice(0, 10).replaceAll('-', '')}`
  return { name: `${table}_${name}`, from, to }
}

/** Reads the bounds, because the names do not determine what a partition holds. */
async function listPartitions(db: Db, names: PartitionedTable[]): Promise<Map<PartitionedTable, Partition[]>> {
  const { rows } = await db.query<{ table: PartitionedTable; name: string; from: string | null; to: string | null }>(
    `select p.relname as table, c.relname as name, bounds[1] as from, bounds[2] as to
     from pg_class p join pg_inherits i on i.inhparent = p.oid join pg_class c on c.oid = i.inhrelid
     cross join lateral regexp_match(pg_get_expr(c.relpartbound, c.oid),
       '^FOR VALUES FROM \\(''?(.*?)''?\\) TO \\(''?(.*?)''?\\)$') as bounds
     where p.relname = any($1) and p.relnamespace = current_schema()::regnamespace`,
    [names],
  )
  const found = new Map<PartitionedTable, Partition[]>(names.map(name => [name, []]))
  for (const { table, name, from, to } of rows)
    found.get(table)!.push({ name, from: parseBound(table, from), to: parseBound(table, to) })
  return found
}

function parseBound(table: PartitionedTable, text: string | null): number {
  if (text === 'MINVALUE') return -Infinity
  if (text === null || text === 'MAXVALUE') return Infinity
  // PostgreSQL's format in UTC: 2026-05-01 00:00:00+00
  return tables[table].bound === 'period' ? Number(text) : Date.parse(text.replace(' ', 'T').replace(/\+00$/, 'Z'))
}

/**
 * Drops the partitions that lie entirely before a moment, and returns their names. `onDrop` runs in the transaction that drops
 * one, while no other transaction reads or writes the table.
 */
export async function dropPartitionsBefore(
  pool: pg.Pool,
  table: PartitionedTable,
  moment: Date,
  onDrop: (db: Db, range: { since: Date; until: Date }) => Promise<void> = async () => {},
): Promise<string[]> {
  const before = toPartitionKey(table, moment)
  const found = (await listPartitions(pool, [table])).get(table)!
  // Keeps the partition without a lower bound: the oldest rows fit into no other.
  const expired = found.filter(({ from, to }) => to <= before && from !== -Infinity)
  for (const { name, from, to } of expired) {
    await inTransaction(pool, async client => {
      // Gives up early: dropping needs a lock on the parent, and while it waits, all later queries wait behind it.
      await client.query(`set local lock_timeout = '300ms'`)
      await client.query(`drop table if exists ${name}`)
      if (tables[table].bound === 'time') await onDrop(client, { since: new Date(from), until: new Date(to) })
    })
  }
  return expired.map(({ name }) => name)
}

function toPartitionKey(table: PartitionedTable, at: Date): number {
  const { interval, bound } = tables[table]
  return bound === 'period' ? interval.period(at) : at.getTime()
}

function formatBound(table: PartitionedTable, key: number): string {
  return tables[table].bound === 'period' ? String(key) : `'${new Date(key).toISOString()}'`
}
