import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type pg from 'pg'
import { type EmbeddedConnection, joinCluster } from '../embedded-postgres/cluster.ts'
import { readServerFile } from '../src/cli/server-file.ts'
import { readConfig } from '../src/config/config.ts'
import { openPool } from '../src/postgres/database.ts'
import { openLog, toNatsSettings } from '../src/runtime/log.ts'

const root = join(import.meta.dirname, '..')
const main = join(root, 'src/main.mjs')
const DRAIN_MS = 60_000

export type Service = Awaited<ReturnType<typeof startService>>

/** Runs `kontor start` as users do, on a temporary embedded database. */
export async function startService(
  options: { profileTo?: string | undefined; settings?: Record<string, string> } = {},
) {
  const { settings = {} } = options
  const directory = await mkdtemp(join(tmpdir(), 'kontor-bench-'))
  await chmod(directory, 0o711)
  const dataDir = join(directory, 'data')
  if (options.profileTo) await recordStatements(dataDir)
  let child = await run(dataDir, [], { settings, profileTo: options.profileTo })
  let url = (await readServerFile(dataDir))!.url
  const cluster = await joinCluster({ name: 'kontor', dataDir, log: () => {} })
  const pool = openPool({ connection: cluster.connection, max: 2, name: 'bench', onError: () => {} })
  const nats = toNatsSettings(readConfig(settings))
  const { log, close: closeLog } = await openLog({ pool, nats, name: 'bench' })
  const privateKey = await createKey(dataDir, 'private')
  const trackingKey = await createKey(dataDir, 'tracking')
  const { rows } = await pool.query<{ id: number }>(`select id from tenants where name = 'default'`)

  return {
    get url() {
      return url
    },
    get pid() {
      return child.pid!
    },
    postmasterPid: () => postmasterPid(pool),
    connection: cluster.connection as EmbeddedConnection,
    pool,
    tenantId: rows[0]!.id,
    private: `Bearer ${privateKey}`,
    tracking: `Bearer ${trackingKey}`,
    command: (...words: string[]) => command(dataDir, ...words),
    async restart(flags: string[]) {
      await stopProcess(child)
      child = await run(dataDir, flags, { settings })
      url = (await readServerFile(dataDir))!.url
    },
    async drained() {
      await drained(pool)
      while (((await log.outside?.untilRead(DRAIN_MS)) ?? 0) > 0);
    },
    async stop() {
      if (options.profileTo) await saveStatements(pool, options.profileTo)
      await closeLog()
      await pool.end()
      await stopProcess(child)
      await cluster.stop()
      await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    },
  }
}

/** PostgreSQL's statement statistics. They must be enabled before the start. */
async function recordStatements(dataDir: string): Promise<void> {
  const cluster = await joinCluster({ name: 'kontor', dataDir, log: () => {} })
  const pool = openPool({ connection: cluster.connection, max: 1, name: 'bench', onError: () => {} })
  await pool.query(`alter system set shared_preload_libraries = 'pg_stat_statements'`)
  await pool.query('create extension if not exists pg_stat_statements')
  await pool.end()
  await cluster.stop()
}

export type Statement = { percent: number; calls: number; rows: number; meanMs: number; query: string }

async function saveStatements(pool: pg.Pool, directory: string): Promise<void> {
  const { rows } = await pool.query<Statement>(
    `select round((100 * total_exec_time / sum(total_exec_time) over ())::numeric, 1)::float8 as percent,
            calls, rows, round(mean_exec_time::numeric, 3)::float8 as "meanMs",
            left(regexp_replace(query, '\\s+', ' ', 'g'), 120) as query
     from pg_stat_statements order by total_exec_time desc limit 20`,
  )
  await writeFile(join(directory, 'statements.json'), JSON.stringify(rows))
}

/** The Node options of `npm start`. */
async function nodeFlags(): Promise<string[]> {
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  return (scripts.start as string).split(' ').filter(word => word.startsWith('--'))
}

async function run(
  dataDir: string,
  flags: string[],
  { settings, profileTo }: { settings: Record<string, string>; profileTo?: string | undefined },
): Promise<ChildProcess> {
  const profiling = profileTo ? ['--cpu-prof', `--cpu-prof-dir=${profileTo}`] : []
  const child = spawn(
    process.execPath,
    [...(await nodeFlags()), ...profiling, main, 'start', '--port', '0', '--data', dataDir, ...flags],
    {
      env: { ...process.env, KONTOR_OPS_PORT: 'off', KONTOR_LOG_LEVEL: 'warn', ...settings },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  let output = ''
  child.stderr!.on('data', text => {
    output += text
  })
  for (;;) {
    const announced = await readServerFile(dataDir)
    if (announced?.pid === child.pid) return child
    if (child.exitCode !== null) throw new Error(`The server did not start:\n${output}`)
    await sleep(20)
  }
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

async function createKey(dataDir: string, kind: string): Promise<string> {
  return (await command(dataDir, 'key', 'create', '--tenant', 'default', '--kind', kind)).key!
}

/** The output of a command. */
async function command(dataDir: string, ...words: string[]): Promise<Record<string, string>> {
  const env = { ...process.env, KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' }
  const { stdout } = await promisify(execFile)(process.execPath, [main, ...words, '--data', dataDir], { env })
  return JSON.parse(stdout)
}

async function postmasterPid(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ directory: string }>(`select current_setting('data_directory') as directory`)
  return Number((await readFile(join(rows[0]!.directory, 'postmaster.pid'), 'utf8')).split('\n')[0])
}

/** Waits until all accepted entries are applied. */
async function drained(pool: pg.Pool): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ waiting: boolean }>(
      `select exists (select 1 from log_cursors c where exists (
         select 1 from log l where l.partition = c.partition and (l.epoch, l.xid, l.ord) > (c.epoch, c.xid, c.ord))) as waiting`,
    )
    if (!rows[0]!.waiting) return
    await sleep(20)
  }
}
