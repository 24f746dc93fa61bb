import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { steadyPort } from '../deployment/ports.ts'
import { OWNER, type OwnPostgres, ownPostgres } from '../deployment/postgres.ts'
import type { Fault } from './fault.ts'

const main = join(import.meta.dirname, '../../src/main.mjs')

/** Moves the database to another cluster while Kontor runs, like a dump and restore or a logical switchover. */
export const dumpAndRestore: Fault = {
  name: 'dump-restore',
  modes: ['fleet'],
  async strike({ deployment, say }) {
    const old = deployment.postgres as OwnPostgres
    const directory = join(deployment.directory, 'disk', `data-${Date.now()}`)
    const next = await ownPostgres(directory, deployment.conditions.postgres)
    // Connections are blocked, so nothing is acknowledged from here on.
    const closed = await steadyPort()
    for (const proxy of deployment.proxies.values()) {
      proxy.setTarget(closed)
      proxy.reset()
    }
    try {
      await migrated(next.url(next.port))
      const tables = await copyDatabase(await old.connection(), await next.connection())
      say(`  ${tables} tables copied into a new cluster`)
    } catch (error) {
      deployment.moveTo(old)
      await next.stop()
      throw error
    }
    deployment.moveTo(next)
    await old.stop()
    await rm(old.directory, { recursive: true })
  },
}

async function migrated(url: string): Promise<void> {
  const env = { ...process.env, DATABASE_URL: url, KONTOR_SECRET_KEY: '22'.repeat(32) }
  await promisify(execFile)(process.execPath, [main, 'migrate'], { env })
}

type Table = { name: string; columns: string; parent: string | null; bounds: string | null }

const TABLES = `
  select c.oid::regclass::text as name, parent.oid::regclass::text as parent,
         pg_get_expr(c.relpartbound, c.oid) as bounds,
         (select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
          where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns
  from pg_class c
  left join pg_inherits i on i.inhrelid = c.oid
  left join pg_class parent on parent.oid = i.inhparent
  where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
  order by c.oid`

/** Copies all rows of one snapshot, like a dump. The schema already exists. */
async function copyDatabase(from: pg.ClientConfig, to: pg.ClientConfig): Promise<number> {
  const source = new pg.Client(from)
  const target = new pg.Client(to)
  await Promise.all([source.connect(), target.connect()])
  try {
    await source.query(`select pg_terminate_backend(pid) from pg_stat_activity
                        where datname = current_database() and pid <> pg_backend_pid() and client_port is not null`)
    await source.query('begin isolation level repeatable read')
    await target.query(`set session_replication_role = replica`)
    const { rows: made } = await target.query<Table>(TABLES)
    const { rows: tables } = await source.query<Table>(TABLES)
    await target.query(`truncate ${made.map(({ name }) => name).join(', ')}`)
    const missing = tables.filter(({ name }) => !made.some(other => other.name === name))
    await target.query(`set role ${OWNER}`)
    for (const { name, parent, bounds } of missing)
      await target.query(`create table ${name} partition of ${parent} ${bounds}`)
    await target.query('reset role')
    for (const { name, columns } of tables)
      await pipeline(
        source.query(copyTo(`copy ${name} (${columns}) to stdout (format binary)`)),
        target.query(copyFrom(`copy ${name} (${columns}) from stdin (format binary)`)),
      )
    await copySequences(source, target)
    return tables.length
  } finally {
    await Promise.all([source.end(), target.end()])
  }
}

async function copySequences(source: pg.Client, target: pg.Client): Promise<void> {
  const { rows } = await source.query<{ name: string; value: string }>(
    `select quote_ident(sequencename) as name, last_value as value from pg_sequences
     where schemaname = 'public' and last_value is not null`,
  )
  for (const { name, value } of rows) await target.query('select setval($1::regclass, $2)', [name, value])
}
