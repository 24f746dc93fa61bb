import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { testDatabase } from '../database.ts'

async function tables(url: string): Promise<string[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(`select tablename from pg_tables where schemaname = 'public'`)
  await client.end()
  return rows.map(row => row.tablename)
}

test('every test database is migrated, isolated from the others, and removed by the drop', async () => {
  const [first, second] = await Promise.all([testDatabase(), testDatabase()])
  const client = new pg.Client(first.url)
  await client.connect()
  await client.query('create table only_here ()')
  await client.end()
  assert.ok((await tables(first.url)).includes('only_here'))
  assert.ok((await tables(second.url)).includes('schema_migrations'))
  assert.ok(!(await tables(second.url)).includes('only_here'))
  await first.drop()
  await assert.rejects(tables(first.url))
  await second.drop()
})

test('a connection that was left open fails the drop and is reported', async () => {
  const { url, drop } = await testDatabase()
  const client = new pg.Client({ connectionString: url, application_name: 'left open' })
  client.on('error', () => {})
  await client.connect()
  await assert.rejects(drop({ withinMs: 100 }), /left open/)
})
