import type pg from 'pg'
import { DAY_MS } from '../domain/time.ts'
import { type Db, inTransaction } from './database.ts'
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

type Table = { cut: Cut; bound: 'time' | 'period'; behind: number; ahead: number }

// Made ahead of need, so that a job that does not run for days stops nothing.
const tables = {
  log: { cut: byDay, bound: 'time', behind: 1, ahead: 7 },
  operations: { cut: byDay, bound: 'time', behind: 1, ahead: 7 },
  idempotency_keys: { cut: byTenDays, bound: 'period', behind: 1, ahead: 2 },
  events: { cut: byMonth, bound: 'time', behind: 2, ahead: 2 },
  processed_events: { cut: byMonth, bound: 'period', behind: 1, ahead: 2 },
  receipts: { cut: byDay, bound: 'time', behind: 1, ahead: 7 },
  archive: { cut: byDay, bound: 'time', behind: 1, ahead: 7 },
} satisfies Record<string, Table>

export type PartitionedTable = keyof typeof tables
export const partitionedTables = Object.keys(tables) as PartitionedTable[]

export function periodOf(table: PartitionedTable, at: Date): number {
  return tables[table].cut.period(at)
}

/** The first moments of a period, in which a claim is also made in the period before (see claims). */
export function isNearPeriodStart(table: PartitionedTable, at: Date): boolean {
  const { cut } = tables[table]
  return at.getTime() - cut.start(cut.period(at)).getTime() < 5 * 60_000
}

/** Makes the partitions that the coming days need. Returns the names of those it made. */
export async function ensurePartitions(pool: pg.Pool, now: Date): Promise<string[]> {
  const wanted = partitionedTables.flatMap(table => {
    const { cut, behind, ahead } = tables[table]
    const current = cut.period(now)
    return Array.from({ length: behind + ahead + 1 }, (_, i) => ({ table, period: current - behind + i }))
  })
  return makePartitions(pool, wanted)
}

/** Makes the partitions for moments that lie outside the prepared range: a backdated import, a clock that jumped. */
export async function ensurePartitionsFor(
  pool: pg.Pool,
  table: PartitionedTable,
  moments: Date[],
): Promise<void> {
  const periods = new Set(moments.map(at => tables[table].cut.period(at)))
  await makePartitions(
    pool,
    [...periods].map(period => ({ table, period })),
  )
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
  if (tables[name].bound === 'period') await makePartitions(pool, [{ table: name, period: Number(key) }])
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

async function makePartitions(
  pool: pg.Pool,
  wanted: { table: PartitionedTable; period: number }[],
): Promise<string[]> {
  const missing = await withoutExisting(pool, wanted)
  if (missing.length === 0) return []
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.partitions)
    const stillMissing = await withoutExisting(client, missing)
    for (const { table, period } of stillMissing) {
      const name = partitionName(table, period)
      // create + attach instead of "partition of": writers to the parent are not held up.
      await client.query(
        `create table ${name} (like ${table} including defaults including constraints including generated including storage)`,
      )
      await client.query(
        `alter table ${table} attach partition ${name} for values from (${bound(table, period)}) to (${bound(table, period + 1)})`,
      )
    }
    return stillMissing.map(({ table, period }) => partitionName(table, period))
  })
}

async function withoutExisting<T extends { table: PartitionedTable; period: number }>(
  db: Db,
  wanted: T[],
): Promise<T[]> {
  const { rows } = await db.query<{ name: string }>(
    'select c.relname as name from pg_class c where c.relname = any($1) and c.relnamespace = current_schema()::regnamespace',
    [wanted.map(({ table, period }) => partitionName(table, period))],
  )
  const existing = new Set(rows.map(row => row.name))
  return wanted.filter(({ table, period }) => !existing.has(partitionName(table, period)))
}

/** Drops the partitions that lie wholly before a moment. Returns their names. */
export async function dropPartitionsBefore(
  pool: pg.Pool,
  table: PartitionedTable,
  moment: Date,
): Promise<string[]> {
  const last = tables[table].cut.period(moment)
  const { rows } = await pool.query<{ name: string }>(
    'select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::regclass',
    [table],
  )
  const expired = rows
    .map(row => row.name)
    .filter(name => {
      const period = /_p(\d+)$/.exec(name)?.[1]
      return period !== undefined && Number(period) < last
    })
  for (const name of expired) {
    await inTransaction(pool, async client => {
      // Rather later than in the way: dropping needs the parent for a moment, and while it waits all others wait behind.
      await client.query(`set local lock_timeout = '300ms'`)
      await client.query(`drop table if exists ${name}`)
    })
  }
  return expired
}

function partitionName(table: PartitionedTable, period: number): string {
  return `${table}_p${period}`
}

function bound(table: PartitionedTable, period: number): string {
  const { cut, bound } = tables[table]
  return bound === 'period' ? String(period) : `'${cut.start(period).toISOString()}'`
}
