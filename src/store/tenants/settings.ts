import type { Db } from '../../postgres/database.ts'

/** A setting that the installation stores in its database. */
export async function readSetting(db: Db, name: string): Promise<string | null> {
  const { rows } = await db.query<{ value: string }>('select value from settings where name = $1', [name])
  return rows[0]?.value ?? null
}

export async function writeSetting(db: Db, name: string, value: string): Promise<void> {
  await db.query(
    'insert into settings (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
    [name, value],
  )
}

/** The latest migration applied to this database. Null if there is none. */
export async function newestMigration(db: Db): Promise<string | null> {
  const { rows } = await db.query<{ name: string | null }>('select max(name) as name from schema_migrations')
  return rows[0]?.name ?? null
}
