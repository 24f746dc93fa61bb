import type { Readable } from 'node:stream'
import type pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import type { Db } from './database.ts'

/** A table that holds rows: one of its own, or a partition. */
export type StoredTable = {
  name: string
  /** Those that a row is written with: generated ones follow from them. */
  columns: string[]
  partitionOf: string | null
  /** As PostgreSQL writes it: FOR VALUES FROM (…) TO (…). */
  bound: string | null
}

export type SequenceValue = { name: string; value: string }

/** No limit of the server or the connection ends this transaction: it takes as long as it takes. */
export async function withoutTimeouts(client: pg.PoolClient): Promise<void> {
  await client.query(`set local statement_timeout = 0`)
  await client.query(`set local idle_in_transaction_session_timeout = 0`)
  // from PostgreSQL 17 on
  await client.query(
    `select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout' and setting <> '0'`,
  )
}

/**
 * From the next statement on the transaction sees one moment, in which none of the tables is dropped until it ends. Locks
 * come first: of a table dropped between a look at the catalog and the lock, the catalog would still tell.
 */
export async function lockTables(client: pg.PoolClient, tables: readonly string[]): Promise<void> {
  await client.query(`lock table ${tables.map(quoted).join(', ')} in access share mode`)
}

/** Tables that are nobody's partition; locking one locks its partitions. */
export async function rootTables(db: Db): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select relname::text as name from pg_class
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and relpersistence = 'p'
       and not relispartition
     order by 1`,
  )
  return rows.map(({ name }) => name)
}

/** Every table that holds rows, and its size; what others refer to comes first. */
export async function storedTables(db: Db): Promise<(StoredTable & { bytes: number })[]> {
  const { rows } = await db.query<StoredTable & { bytes: number; referred: string[] }>(STORED_TABLES)
  const sorted: typeof rows = []
  const names = new Set<string>()
  let left = rows
  while (left.length > 0) {
    const all = new Set(left.map(({ name }) => name))
    const free = left.filter(({ referred }) => !referred.some(name => all.has(name) && !names.has(name)))
    // Tables that refer to each other in a circle come as they are.
    const next = free.length > 0 ? free : left
    for (const table of next) names.add(table.name)
    sorted.push(...next)
    left = left.filter(({ name }) => !names.has(name))
  }
  return sorted.map(({ referred: _, ...table }) => table)
}

// Unlogged ones hold what a crash may take.
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

/** Those that were used. They run ahead of any snapshot, which does no harm: a number may be left out. */
export async function sequenceValues(db: Db): Promise<SequenceValue[]> {
  const { rows } = await db.query<SequenceValue>(
    `select sequencename::text as name, last_value::text as value from pg_sequences
     where schemaname = current_schema() and last_value is not null order by 1`,
  )
  return rows
}

/** Returns the names of those that are not there. */
export async function setSequences(db: Db, sequences: readonly SequenceValue[]): Promise<string[]> {
  const { rows } = await db.query<{ name: string; isSet: boolean }>(
    `select s.name, case when c.oid is null then false else setval(c.oid::regclass, s.value) > 0 end as "isSet"
     from unnest($1::text[], $2::bigint[]) as s (name, value)
     left join pg_class c on c.relname = s.name and c.relkind = 'S' and c.relnamespace = current_schema()::regnamespace`,
    [sequences.map(({ name }) => name), sequences.map(({ value }) => value)],
  )
  return rows.filter(({ isSet }) => !isSet).map(({ name }) => name)
}

/** The name of something that is there already and did not come with an extension; null in an empty database. */
export async function somethingIn(db: Db): Promise<string | null> {
  const { rows } = await db.query<{ name: string }>(
    `select relname::text as name from pg_class c
     where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S', 'f')
       and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
     order by relkind in ('r', 'p') desc, relname limit 1`,
  )
  return rows[0]?.name ?? null
}

/**
 * The rows of a table as COPY writes them in its binary format. The stream knows how many they were once the next query on
 * the connection was answered.
 */
export function copyOut(
  client: pg.PoolClient,
  { name, columns }: StoredTable,
): Readable & { rowCount: number } {
  return client.query(
    copyTo(`copy ${quoted(name)} (${columns.map(quoted).join(', ')}) to stdout (format binary)`),
  )
}

export type CopyIn = {
  /** Resolves when there is room for more. */
  write(bytes: Buffer): Promise<void>
  /** Returns how many rows it took. */
  end(): Promise<number>
}

/**
 * Takes them back, into a table that was made in this transaction: nobody sees it before it commits, so the rows are
 * written as if they had always been there, and no vacuum has to visit them again.
 */
export function copyIn(client: pg.PoolClient, { name, columns }: StoredTable): CopyIn {
  const stream = client.query(
    copyFrom(
      `copy ${quoted(name)} (${columns.map(quoted).join(', ')}) from stdin (format binary, freeze true)`,
    ),
  )
  const failed = new Promise<never>((_, reject) => stream.on('error', reject))
  failed.catch(() => {}) // whoever writes or ends hears of it
  return {
    write: bytes =>
      Promise.race([failed, new Promise<void>(resolve => stream.write(bytes, () => resolve()))]),
    async end() {
      await Promise.race([failed, new Promise<void>(resolve => stream.end(() => resolve()))])
      return stream.rowCount
    },
  }
}

/**
 * A transaction that streams rows. Where it fails the connection goes with it: in the middle of a stream there is no other
 * way to tell PostgreSQL that it is over.
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

/** The PostgreSQL that answers, as a number: 180001 is 18.1. */
export async function serverVersion(db: Db): Promise<number> {
  const { rows } = await db.query<{ version: number }>(
    `select current_setting('server_version_num')::int as version`,
  )
  return rows[0]!.version
}

export function isMissingTable(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '42P01'
}

/** Empties a table that a migration put rows into. Its triggers stay silent until `enableTriggers`. */
export async function makeReady(client: pg.PoolClient, name: string): Promise<void> {
  await client.query(`alter table ${quoted(name)} disable trigger user`)
  await client.query(`delete from ${quoted(name)}`)
}

export async function enableTriggers(client: pg.PoolClient, name: string): Promise<void> {
  await client.query(`alter table ${quoted(name)} enable trigger user`)
}

/** Makes a partition as it was described by `storedTables`. */
export async function makePartition(client: pg.PoolClient, table: StoredTable): Promise<void> {
  const { name, partitionOf, bound } = table
  // It comes out of a file and is part of a statement: nothing but times and numbers gets in.
  if (partitionOf === null || bound === null || !BOUND.test(bound))
    throw new Error(`${JSON.stringify(bound)} is no bound of a partition`)
  await client.query(`create table ${quoted(name)} partition of ${quoted(partitionOf)} ${bound}`)
}

const LIMIT = String.raw`(?:MINVALUE|MAXVALUE|'[-+.: 0-9]+'|-?\d+)`
const BOUND = new RegExp(String.raw`^(?:DEFAULT|FOR VALUES FROM \(${LIMIT}\) TO \(${LIMIT}\))$`)

export async function analyze(db: Db): Promise<void> {
  await db.query('analyze')
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
