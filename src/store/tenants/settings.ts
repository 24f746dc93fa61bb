import type { Db } from '../../postgres/database.ts'

/** What an installation remembers about itself. */
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

/** The newest migration that was applied to this database; null where there is none. */
export async function newestMigration(db: Db): Promise<string | null> {
  const { rows } = await db.query<{ name: string | null }>('select max(name) as name from schema_migrations')
  return rows[0]?.name ?? null
}
