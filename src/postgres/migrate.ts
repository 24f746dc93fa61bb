import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import { LOCKS, lock } from './locks.ts'

const directory = new URL('../../migrations/', import.meta.url)

/** The database is not one that this version can bring up to date. The message is for people. */
export class SchemaError extends Error {
  override name = 'SchemaError'
}

/** Brings the database to the newest schema and returns the names of what was applied. Safe from several nodes at once. */
export async function migrate(pool: pg.Pool): Promise<string[]> {
  const files = readdirSync(directory)
    .filter(name => name.endsWith('.sql'))
    .sort()
    .map(name => ({ name, sql: readFileSync(new URL(name, directory), 'utf8') }))
  const client = await pool.connect()
  try {
    // One transaction: a kill in the middle leaves the old schema, and the lock works behind a transaction pooler.
    await client.query('begin')
    // Migrations name moments without a zone.
    await client.query(`set local timezone to 'UTC'`)
    await lock(client, LOCKS.migration)
    await client.query(`create table if not exists schema_migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now())`)
    const { rows } = await client.query<{ name: string; checksum: string }>(
      'select name, checksum from schema_migrations',
    )
    const done = new Map(rows.map(row => [row.name, row.checksum]))
    const unknown = rows.find(row => !files.some(({ name }) => name === row.name))
    if (unknown) {
      throw new SchemaError(
        `The database was made by a newer version of Kontor: it has the migration ${unknown.name}, which is not here.`,
      )
    }
    const applied: string[] = []
    for (const { name, sql } of files) {
      const checksum = createHash('sha256').update(sql).digest('hex')
      const before = done.get(name)
      if (before === undefined) {
        await client.query(sql)
        await client.query('insert into schema_migrations (name, checksum) values ($1, $2)', [name, checksum])
        applied.push(name)
      } else if (before !== checksum) {
        throw new SchemaError(
          `The database was made by another version of Kontor: its migration ${name} is not the one here. ` +
            'Start the version that made it, or one that is newer.',
        )
      }
    }
    await client.query('commit')
    return applied
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  } finally {
    client.release()
  }
}
