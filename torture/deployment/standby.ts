import { execFile, spawn } from 'node:child_process'
import { chown, mkdir, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { findBinaries, programOptions } from '../../embedded-postgres/binaries.ts'
import { defaultSystemDirectory } from '../../embedded-postgres/cluster.ts'
import { findHome } from '../../embedded-postgres/home.ts'
import { endWithUs } from './end.ts'
import { steadyPort } from './ports.ts'
import { endPostgres, listChildren, OWNER, type OwnPostgres, pidIn, query } from './postgres.ts'

/** Settings of a primary with a standby. */
export const PRIMARY = { wal_level: 'replica', max_wal_senders: '4', wal_keep_size: '512MB' }

// At least the values of the primary; otherwise a standby does not start.
const STANDBY = { ...PRIMARY, max_connections: '200', max_locks_per_transaction: '256', hot_standby: 'on' }

/**
 * Creates a standby with a base backup. From then on, the primary acknowledges a commit only after it is on the standby's disk
 * as well.
 */
export async function startStandby(primary: OwnPostgres, directory: string): Promise<OwnPostgres> {
  const found = await findHome(primary.directory)
  if (found === null) throw new Error(`There is no PostgreSQL in ${primary.directory}`)
  const { home, account } = found
  const binaries = await findBinaries(account, defaultSystemDirectory('kontor'), () => {})
  const data = join(directory, 'data')
  await mkdir(directory, { recursive: true, mode: 0o711 })
  await copyData(primary, home.data, data)

  const port = await steadyPort()
  const connection = { ...(await primary.connection()), port }
  const { user, password } = connection
  const settings = {
    ...STANDBY,
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    primary_conninfo: `host=127.0.0.1 port=${primary.port} user=${user} password=${password}`,
  }
  async function start(): Promise<void> {
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const options = programOptions(account, binaries.postgres)
    const child = spawn(binaries.postgres, ['-D', data, ...flags], { ...options, stdio: 'ignore' })
    let hasEnded = false
    child.on('exit', () => {
      hasEnded = true
    })
    while (!(await answers(connection))) {
      if (hasEnded) throw new Error(`The standby in ${directory} exited`)
      await sleep(50)
    }
  }
  endWithUs(() => endPostgres(directory))
  await start()
  await makeSynchronous(primary)
  return {
    ...{ directory, port, start, isOurs: true },
    url: proxyPort => `postgres://${OWNER}:${OWNER}@127.0.0.1:${proxyPort}/kontor`,
    connection: async () => connection,
    postmasterPid: async () => pidIn(directory),
    async stop() {
      const pid = pidIn(directory)
      if (pid !== null) process.kill(pid, 'SIGINT')
      while (pidIn(directory) !== null) await sleep(20)
    },
  }
}

async function copyData(primary: OwnPostgres, from: string, to: string): Promise<void> {
  const client = new pg.Client(await primary.connection())
  await client.connect()
  try {
    await client.query("select pg_backup_start('standby', fast => true)")
    await promisify(execFile)('cp', ['-a', from, to])
    const { rows } = await client.query('select labelfile from pg_backup_stop(wait_for_archive => false)')
    await rm(join(to, 'postmaster.pid'))
    const { uid, gid } = await stat(to)
    for (const [name, content] of [
      ['backup_label', rows[0].labelfile],
      ['standby.signal', ''],
    ] as const) {
      await writeFile(join(to, name), content, { mode: 0o600 })
      await chown(join(to, name), uid, gid)
    }
  } finally {
    await client.end()
  }
}

async function answers(connection: pg.ClientConfig): Promise<boolean> {
  const client = new pg.Client(connection)
  client.on('error', () => {})
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

async function makeSynchronous(primary: OwnPostgres): Promise<void> {
  await query(primary, "alter system set synchronous_standby_names = 'ANY 1 (*)'")
  await query(primary, 'select pg_reload_conf()')
  const follows = "select from pg_stat_replication where state = 'streaming' and sync_state = 'quorum'"
  while ((await query(primary, follows)).length === 0) await sleep(50)
}

/** Kills the primary and promotes the standby. */
export async function promote(standby: OwnPostgres, primary: OwnPostgres): Promise<void> {
  const postmaster = (await primary.postmasterPid())!
  for (const pid of [postmaster, ...listChildren(postmaster).map(child => child.pid)])
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it has already exited
    }
  await query(standby, 'select pg_promote()')
}
