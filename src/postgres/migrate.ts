import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import { type Db, inTransaction } from './database.ts'
import { LOCKS, lock } from './locks.ts'

const directory = new URL('../../migrations/', import.meta.url)

/** The database is not one that this version can bring up to date. The message is for people. */
export class SchemaError extends Error {
  override name = 'SchemaError'
}

/** What was done to a database, and the text it was done with. */
export type AppliedMigration = { name: string; checksum: string }
type Migration = AppliedMigration & { sql: string }

/** Brings the database to the newest schema and returns the names of what was applied. Safe from several nodes at once. */
export function migrate(pool: pg.Pool): Promise<string[]> {
  // One transaction: a kill in the middle leaves the old schema, and the lock works behind a transaction pooler.
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.migration)
    return applyMigrations(client)
  })
}

/** The same, in the caller's transaction, which has the lock; `only` stops at the schema of an older version. */
export async function applyMigrations(
  client: pg.PoolClient,
  { only }: { only?: readonly AppliedMigration[] } = {},
): Promise<string[]> {
  // Migrations name moments without a zone.
  await client.query(`set local timezone to 'UTC'`)
  await client.query(`create table if not exists schema_migrations (
    name text primary key, checksum text not null, applied_at timestamptz not null default now())`)
  const known = knownMigrations()
  const done = await appliedMigrations(client)
  refuseForeign(done, known)
  const names = new Set(done.map(({ name }) => name))
  const wanted = only && new Set(only.map(({ name }) => name))
  const missing = known.filter(({ name }) => !names.has(name) && (!wanted || wanted.has(name)))
  for (const { name, checksum, sql } of missing) {
    await client.query(sql)
    await client.query('insert into schema_migrations (name, checksum) values ($1, $2)', [name, checksum])
  }
  return missing.map(({ name }) => name)
}

/**
 * How the database stands to this version, for whoever only reads: nothing of Kontor is in it, it lacks migrations, or neither.
 * Throws where it was made by another version.
 */
export async function schemaState(db: Db): Promise<'empty' | 'current' | { lacks: string[] }> {
  const { rows } = await db.query<{ isMade: boolean }>(
    `select to_regclass('schema_migrations') is not null as "isMade"`,
  )
  if (!rows[0]!.isMade) return 'empty'
  const known = knownMigrations()
  const done = await appliedMigrations(db)
  refuseForeign(done, known)
  const lacks = missingMigrations(done, known)
  return lacks.length === 0 ? 'current' : { lacks }
}

/** What the database has seen, oldest first. */
export async function appliedMigrations(db: Db): Promise<AppliedMigration[]> {
  const { rows } = await db.query<AppliedMigration>(
    'select name, checksum from schema_migrations order by name collate "C"',
  )
  return rows
}

/**
 * The first of these migrations that stands in the way of this version: it does not know it, or knows another one of its name.
 * Null where it can go on from there.
 */
export function foreignMigration(
  done: readonly AppliedMigration[],
  known: readonly AppliedMigration[] = knownMigrations(),
): { name: string; isKnown: boolean } | null {
  const checksums = new Map(known.map(({ name, checksum }) => [name, checksum]))
  const isUnknown = ({ name }: AppliedMigration) => !checksums.has(name)
  const foreign = done.find(isUnknown) ?? done.find(({ name, checksum }) => checksums.get(name) !== checksum)
  return foreign ? { name: foreign.name, isKnown: checksums.has(foreign.name) } : null
}

/** What this version would do to a database that has seen these. */
export function missingMigrations(
  done: readonly AppliedMigration[],
  known: readonly AppliedMigration[] = knownMigrations(),
): string[] {
  const names = new Set(done.map(({ name }) => name))
  return known.flatMap(({ name }) => (names.has(name) ? [] : name))
}

function refuseForeign(done: readonly AppliedMigration[], known: readonly AppliedMigration[]): void {
  const foreign = foreignMigration(done, known)
  if (foreign === null) return
  throw new SchemaError(
    foreign.isKnown
      ? `The database was made by another version of Kontor: its migration ${foreign.name} is not the one here. ` +
          'Start the version that made it, or one that is newer.'
      : `The database was made by a newer version of Kontor: it has the migration ${foreign.name}, which is not here.`,
  )
}

function knownMigrations(): Migration[] {
  return readdirSync(directory)
    .filter(name => name.endsWith('.sql'))
    .sort()
    .map(name => {
      const sql = readFileSync(new URL(name, directory), 'utf8')
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    })
}
