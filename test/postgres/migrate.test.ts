import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import type pg from 'pg'
import { printSchema, SCHEMA_FILE } from '../../scripts/schema.ts'
import { openPool } from '../../src/postgres/database.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { testDatabase } from '../database.ts'

const migrations = new URL('../../migrations/', import.meta.url)
const allNames = readdirSync(migrations).sort()

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
before(async () => {
  database = await testDatabase({ empty: true })
  pool = openPool({ connection: { url: database.url }, max: 8, name: 'migrate', onError: () => undefined })
})
beforeEach(async () => {
  await pool.query('drop schema if exists kontor_bi cascade')
  await pool.query('drop schema public cascade')
  await pool.query('create schema public')
})
after(async () => {
  await pool.end()
  await database.drop()
})

const schema = () => printSchema(pool)

/** A copy of the migrations with more of them: the folder of a later version. */
function laterVersion(t: TestContext, files: Record<string, string>): URL {
  const directory = mkdtempSync(join(tmpdir(), 'kontor-migrations-'))
  t.after(() => rmSync(directory, { recursive: true }))
  cpSync(migrations, directory, { recursive: true })
  for (const [name, sql] of Object.entries(files)) writeFileSync(join(directory, name), sql)
  return pathToFileURL(`${directory}/`)
}

test('the migrations apply to an empty database, and schema.sql shows the result', async () => {
  assert.deepEqual(await migrate(pool), allNames)
  assert.equal(await schema(), readFileSync(SCHEMA_FILE, 'utf8'), 'schema.sql is outdated: npm run schema')
})

test('a database that is up to date is not changed', async () => {
  await migrate(pool)
  const before = await schema()
  assert.deepEqual(await migrate(pool), [])
  assert.equal(await schema(), before)
})

test('when several nodes migrate at once, one of them applies the migrations', async () => {
  const applied = await Promise.all(Array.from({ length: 6 }, () => migrate(pool)))
  assert.deepEqual(applied.flat().sort(), allNames)
  assert.equal(applied.filter(names => names.length > 0).length, 1)
})

test('a later version applies only its new migrations, and upgrade and new database have the same schema', async t => {
  const directory = laterVersion(t, {
    '9001_notes.sql': 'create table notes (tenant_id int not null, note text)',
    '9002_author.sql': 'alter table notes add column author text',
  })
  await migrate(pool)
  await pool.query(`insert into tenants (name) values ('acme')`)
  assert.deepEqual(await migrate(pool, { directory }), ['9001_notes.sql', '9002_author.sql'])
  const { rows } = await pool.query('select name from tenants')
  assert.deepEqual(rows, [{ name: 'acme' }])
  const upgraded = await schema()
  await pool.query('drop schema kontor_bi cascade; drop schema public cascade; create schema public')
  assert.deepEqual(await migrate(pool, { directory }), [...allNames, '9001_notes.sql', '9002_author.sql'])
  assert.equal(await schema(), upgraded)
})

test('a database with a changed migration is refused and not modified', async () => {
  await migrate(pool)
  await pool.query(`update schema_migrations set checksum = 'another' where name = $1`, [allNames[0]])
  const before = await schema()
  await assert.rejects(migrate(pool), new RegExp(`its migration ${allNames[0]} differs from the one of this version`))
  assert.equal(await schema(), before)
})

test('a database of a newer version is refused and not modified', async () => {
  await migrate(pool)
  await pool.query(`insert into schema_migrations (name, checksum) values ('9999_later.sql', 'x')`)
  const before = await schema()
  await assert.rejects(migrate(pool), /created by a newer version of Kontor: it has the migration 9999_later.sql/)
  assert.equal(await schema(), before)
})

test('a database of a preview version, before 0.1.0, is refused with instructions', async () => {
  await pool.query(
    'create table schema_migrations (name text primary key, checksum text not null, applied_at timestamptz not null default now())',
  )
  for (const name of ['0001_tenants_and_keys.sql', '0002_log.sql', '0057_movements_so_far.sql'])
    await pool.query(`insert into schema_migrations (name, checksum) values ($1, 'x')`, [name])
  const before = await schema()
  await assert.rejects(
    migrate(pool),
    /created by a preview version of Kontor, before 0\.1\.0, and cannot be upgraded\. Export its data with that version, then start with an empty database/,
  )
  assert.equal(await schema(), before)
})

test('a failed migration does not change the schema', async t => {
  const directory = laterVersion(t, {
    '9001_notes.sql': 'create table notes (note text)',
    '9002_conflict.sql': 'create table records (id int)',
  })
  await migrate(pool)
  const before = await schema()
  await assert.rejects(migrate(pool, { directory }), /already exists/)
  assert.equal(await schema(), before)
})
