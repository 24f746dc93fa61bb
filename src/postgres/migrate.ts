import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import { type Db, inTransaction } from './database.ts'
import { LOCKS, lock } from './locks.ts'

const MIGRATIONS = new URL('../../migrations/', import.meta.url)

/** The first migration of the versions before 0.1.0, whose schema has no upgrade path. */
const FIRST_OF_PREVIEW = '0001_tenants_and_keys.sql'
export const PREVIEW_SCHEMA =
  'was created by a preview version of Kontor, before 0.1.0, and cannot be upgraded. ' +
  'Export its data with that version, then start with an empty database or data directory.'

/** This version cannot use the database. The message is for the user. */
export class SchemaError extends Error {
  override name = 'SchemaError'
}

/** A migration that a database has, and the checksum of its file at that time. */
export type AppliedMigration = { name: string; checksum: string }
type Migration = AppliedMigration & { sql: string }

/** Where the migrations are, if not in this repository's folder: for tests. */
type Directory = { directory?: URL }

/** Brings the database to the newest schema and returns the names of the applied migrations. Several nodes may call it at once. */
export function migrate(pool: pg.Pool, options: Directory = {}): Promise<string[]> {
  // One transaction: a kill in the middle leaves the old schema, and the lock works behind a transaction pooler.
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.migration)
    return applyMigrations(client, options)
  })
}

/** The same in the caller's transaction, which holds the lock. `only`: just these, for the schema of an older version. */
export async function applyMigrations(
  client: pg.PoolClient,
  { only, directory }: Directory & { only?: readonly AppliedMigration[] } = {},
): Promise<string[]> {
  // Timestamps in migrations may lack a zone.
  await client.query(`set local timezone to 'UTC'`)
  await client.query(`create table if not exists schema_migrations (
    name text primary key, checksum text not null, applied_at timestamptz not null default now())`)
  const known = readMigrations(directory)
  const applied = await appliedMigrations(client)
  refuseForeign(applied, known)
  const names = new Set(applied.map(({ name }) => name))
  const wanted = only && new Set(only.map(({ name }) => name))
  const missing = known.filter(({ name }) => !names.has(name) && (!wanted || wanted.has(name)))
  for (const { name, checksum, sql } of missing) {
    await client.query(sql)
    await client.query('insert into schema_migrations (name, checksum) values ($1, $2)', [name, checksum])
  }
  return missing.map(({ name }) => name)
}

/** The schema as seen by this version. Throws SchemaError if another version created it. */
export async function schemaState(db: Db): Promise<'empty' | 'current' | { lacks: string[] }> {
  const { rows } = await db.query<{ exists: boolean }>(`select to_regclass('schema_migrations') is not null as exists`)
  if (!rows[0]!.exists) return 'empty'
  const known = readMigrations()
  const applied = await appliedMigrations(db)
  refuseForeign(applied, known)
  const lacks = missingMigrations(applied, known)
  return lacks.length === 0 ? 'current' : { lacks }
}

/** The migrations of the database, oldest first. */
export async function appliedMigrations(db: Db): Promise<AppliedMigration[]> {
  const { rows } = await db.query<AppliedMigration>(
    'select name, checksum from schema_migrations order by name collate "C"',
  )
  return rows
}

/**
 * The first of these migrations that this version cannot continue from, or null. `reason`: `preview` is of a version before 0.1.0,
 * `unknown` of a newer version, and `changed` has the same name as one of this version and another content.
 */
export function foreignMigration(
  applied: readonly AppliedMigration[],
  known: readonly AppliedMigration[] = readMigrations(),
): { name: string; reason: 'preview' | 'unknown' | 'changed' } | null {
  const checksums = new Map(known.map(({ name, checksum }) => [name, checksum]))
  if (applied.some(({ name }) => name === FIRST_OF_PREVIEW)) return { name: FIRST_OF_PREVIEW, reason: 'preview' }
  const unknown = applied.find(({ name }) => !checksums.has(name))
  if (unknown) return { name: unknown.name, reason: 'unknown' }
  const changed = applied.find(({ name, checksum }) => checksums.get(name) !== checksum)
  return changed ? { name: changed.name, reason: 'changed' } : null
}

/** The migrations that this version would apply to a database that has these. */
export function missingMigrations(
  applied: readonly AppliedMigration[],
  known: readonly AppliedMigration[] = readMigrations(),
): string[] {
  const names = new Set(applied.map(({ name }) => name))
  return known.flatMap(({ name }) => (names.has(name) ? [] : name))
}

function refuseForeign(applied: readonly AppliedMigration[], known: readonly AppliedMigration[]): void {
  const foreign = foreignMigration(applied, known)
  if (foreign === null) return
  const { name, reason } = foreign
  if (reason === 'preview') throw new SchemaError(`The database ${PREVIEW_SCHEMA}`)
  throw new SchemaError(
    reason === 'changed'
      ? `The database was created by another version of Kontor: its migration ${name} differs from the one of this version. ` +
          'Start the version that created it, or a newer one.'
      : `The database was created by a newer version of Kontor: it has the migration ${name}, which this version does not know.`,
  )
}

function readMigrations(directory = MIGRATIONS): Migration[] {
  return readdirSync(directory)
    .filter(name => name.endsWith('.sql'))
    .sort()
    .map(name => {
      const sql = readFileSync(new URL(name, directory), 'utf8')
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') }
    })
}
