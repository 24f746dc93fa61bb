import type { Readable } from 'node:stream'
import type pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import type { Db } from './database.ts'

/** A table that holds rows: an ordinary table or a partition. */
export type StoredTable = {
  name: string
  /** Without generated columns. */
  columns: string[]
  partitionOf: string | null
  /** In PostgreSQL's notation: FOR VALUES FROM (…) TO (…). */
  bound: string | null
}

export type SequenceValue = { name: string; value: string }

/** Disables all timeouts of the server and the connection for this transaction. */
export async function withoutTimeouts(client: pg.PoolClient): Promise<void> {
  await client.query(`set local statement_timeout = 0`)
  await client.query(`set local idle_in_transaction_session_timeout = 0`)
  // from PostgreSQL 17 on
  await client.query(
    `select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout' and setting <> '0'`,
  )
}

/**
 * Prevents that one of the tables is dropped until the transaction ends. It must come before the first query, which fixes the
 * snapshot: otherwise the snapshot's catalog could list a table that was dropped before the lock.
 */
export async function lockTables(client: pg.PoolClient, tables: readonly string[]): Promise<void> {
  await client.query(`lock table ${tables.map(quoteName).join(', ')} in access share mode`)
}

/** Tables that are not partitions. Locking one of them also locks its partitions. */
export async function listRootTables(db: Db): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select relname::text as name from pg_class
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and relpersistence = 'p'
       and not relispartition
     order by 1`,
  )
  return rows.map(({ name }) => name)
}

/** Every table that holds rows, with its size. A table comes after those that its foreign keys refer to. */
export async function listStoredTables(db: Db): Promise<(StoredTable & { bytes: number })[]> {
  const { rows } = await db.query<StoredTable & { bytes: number; referred: string[] }>(STORED_TABLES)
  const sorted: typeof rows = []
  const names = new Set<string>()
  let left = rows
  while (left.length > 0) {
    const all = new Set(left.map(({ name }) => name))
    const free = left.filter(({ referred }) => !referred.some(name => all.has(name) && !names.has(name)))
    // Tables with circular references are added in their given order.
    const next = free.length > 0 ? free : left
    for (const table of next) names.add(table.name)
    sorted.push(...next)
    left = left.filter(({ name }) => !names.has(name))
  }
  return sorted.map(({ referred: _, ...table }) => table)
}

// Without unlogged tables: their rows do not need to survive a crash.
const STORED_TABLES = `
select c.relname::text as name, p.relname::text as "partitionOf", pg_get_expr(c.relpartbound, c.oid) as bound,
  pg_table_size(c.oid) as bytes,
  array(
    select a.attname::text from pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attnum
  ) as columns,
  array(
    select r.relname::text from pg_constraint k join pg_class r on r.oid = k.confrelid
    where k.conrelid = c.oid and k.contype = 'f' and k.confrelid <> c.oid
  ) as referred
from pg_class c
left join pg_inherits i on i.inhrelid = c.oid
left join pg_class p on p.oid = i.inhparent
where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relpersistence = 'p'
  and c.relname <> 'schema_migrations'
order by c.relname`

/** The sequences that were used. Their values may be ahead of the snapshot, which only leaves a gap in the numbers. */
export async function readSequences(db: Db): Promise<SequenceValue[]> {
  const { rows } = await db.query<SequenceValue>(
    `select sequencename::text as name, last_value::text as value from pg_sequences
     where schemaname = current_schema() and last_value is not null order by 1`,
  )
  return rows
}

/** Returns the names of the sequences that do not exist. */
export async function setSequences(db: Db, sequences: readonly SequenceValue[]): Promise<string[]> {
  const { rows } = await db.query<{ name: string; isSet: boolean }>(
    `select s.name, case when c.oid is null then false else setval(c.oid::regclass, s.value) > 0 end as "isSet"
     from unnest($1::text[], $2::bigint[]) as s (name, value)
     left join pg_class c on c.relname = s.name and c.relkind = 'S' and c.relnamespace = current_schema()::regnamespace`,
    [sequences.map(({ name }) => name), sequences.map(({ value }) => value)],
  )
  return rows.filter(({ isSet }) => !isSet).map(({ name }) => name)
}

/** The name of an existing table, view or sequence that belongs to no extension; null in an empty database. */
export async function findRelation(db: Db): Promise<string | null> {
  const { rows } = await db.query<{ name: string }>(
    `select relname::text as name from pg_class c
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S', 'f')
       and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
     order by relkind in ('r', 'p') desc, relname limit 1`,
  )
  return rows[0]?.name ?? null
}

/**
 * The rows of a table in COPY's binary format. `rowCount` is set once the next query on the connection is answered.
 */
export function copyOut(client: pg.PoolClient, { name, columns }: StoredTable): Readable & { rowCount: number } {
  return client.query(
    copyTo(`copy ${quoteName(name)} (${columns.map(quoteName).join(', ')}) to stdout (format binary)`),
  )
}

export type CopyIn = {
  /** Resolves when the stream can accept more. */
  write(bytes: Buffer): Promise<void>
  /** Returns the number of rows written. */
  end(): Promise<number>
}

/**
 * Restores rows into a table that this transaction created. No other transaction sees the table before the commit, so COPY can
 * write frozen rows, which vacuum does not need to visit.
 */
export function copyIn(client: pg.PoolClient, { name, columns }: StoredTable): CopyIn {
  const stream = client.query(
    copyFrom(`copy ${quoteName(name)} (${columns.map(quoteName).join(', ')}) from stdin (format binary, freeze true)`),
  )
  const failed = new Promise<never>((_, reject) => stream.on('error', reject))
  failed.catch(() => {}) // `write` and `end` report it
  return {
    write: bytes => Promise.race([failed, new Promise<void>(resolve => stream.write(bytes, () => resolve()))]),
    async end() {
      await Promise.race([failed, new Promise<void>(resolve => stream.end(() => resolve()))])
      return stream.rowCount
    },
  }
}

/**
 * A transaction that streams rows. If it fails, its connection is closed: there is no other way to abort in the middle of a
 * stream.
 */
export async function inStreamingTransaction<T>(
  pool: pg.Pool,
  begin: 'begin' | 'begin isolation level repeatable read read only',
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  let isBroken = true
  try {
    await client.query(begin)
    const result = await work(client)
    await client.query('commit')
    isBroken = false
    return result
  } finally {
    client.release(isBroken)
  }
}

/** The version of the PostgreSQL server as a number: 180001 is 18.1. */
export async function readServerVersion(db: Db): Promise<number> {
  const { rows } = await db.query<{ version: number }>(`select current_setting('server_version_num')::int as version`)
  return rows[0]!.version
}

export function isMissingTable(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '42P01'
}

/** Deletes the rows that a migration inserted, and disables the table's triggers until `enableTriggers`. */
export async function clearTable(client: pg.PoolClient, name: string): Promise<void> {
  await client.query(`alter table ${quoteName(name)} disable trigger user`)
  await client.query(`delete from ${quoteName(name)}`)
}

export async function enableTriggers(client: pg.PoolClient, name: string): Promise<void> {
  await client.query(`alter table ${quoteName(name)} enable trigger user`)
}

/** Creates a partition that `listStoredTables` described. */
export async function createPartition(client: pg.PoolClient, table: StoredTable): Promise<void> {
  const { name, partitionOf, bound } = table
  // The bound comes from a file and becomes part of a statement: only times and numbers are accepted.
  if (partitionOf === null || bound === null || !BOUND.test(bound))
    throw new Error(`${JSON.stringify(bound)} is not a valid partition bound`)
  await client.query(`create table ${quoteName(name)} partition of ${quoteName(partitionOf)} ${bound}`)
}

const LIMIT = String.raw`(?:MINVALUE|MAXVALUE|'[-+.: 0-9]+'|-?\d+)`
const BOUND = new RegExp(String.raw`^(?:DEFAULT|FOR VALUES FROM \(${LIMIT}\) TO \(${LIMIT}\))$`)

export async function analyze(db: Db): Promise<void> {
  await db.query('analyze')
}

function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
