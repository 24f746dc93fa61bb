import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { joinCluster } from '../../embedded-postgres/cluster.ts'
import { commandLineActor } from '../../src/admin/actor.ts'
import { openAdmin } from '../../src/admin/admin.ts'
import { openSecrets } from '../../src/admin/secrets.ts'
import { readServerFile } from '../../src/cli/server-file.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { openPool } from '../../src/postgres/database.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { findPostmasterIn } from '../embedded-postgres/directories.ts'
import { eventually } from '../eventually.ts'

const main = join(import.meta.dirname, '../../src/main.mjs')

export type Service = Awaited<ReturnType<typeof openService>>

/** The real server process on its own embedded database with fsync. Tests kill and restart it. */
export async function openService(within: string = tmpdir()) {
  const directory = await mkdtemp(join(within, 'kontor-crash-'))
  await chmod(directory, 0o711)
  const dataDir = join(directory, 'data')
  const keys = await createKeys(dataDir)
  let child: ChildProcess | null = null
  let url = ''
  let stderr = ''

  let opsUrl: string | null = null

  async function start() {
    stderr = ''
    child = spawn(process.execPath, [main, 'start', '--port', '0', '--data', dataDir], {
      env: { ...process.env, KONTOR_OPS_PORT: '0', KONTOR_LOG_LEVEL: 'warn', DATABASE_URL: '' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.stderr!.on('data', text => {
      stderr += text
    })
    const { pid } = child
    const announced = await eventually(
      'the service to start',
      async () => {
        if (child!.exitCode !== null) throw new Error(`the service did not start:\n${stderr}`)
        const announced = await readServerFile(dataDir)
        return announced?.pid === pid && announced
      },
      { state: () => stderr },
    )
    url = announced.url
    opsUrl = announced.ops_url
  }

  return {
    ...keys,
    dataDir,
    start,
    stderr: () => stderr,
    get url() {
      return url
    },
    /** The status of /readyz. */
    readiness: async () => (await fetch(`${opsUrl}/readyz`)).status,
    hasEnded: () => child!.exitCode !== null || child!.signalCode !== null,
    /** SIGKILL, as the kernel sends it when memory runs out. */
    async kill(whom: 'server' | 'server and PostgreSQL') {
      const exited = once(child!, 'exit')
      if (whom === 'server and PostgreSQL') {
        const postmaster = (await findPostmasterIn(dataDir))!.pid
        for (const pid of [...childrenOf(postmaster), postmaster]) killNow(pid)
      }
      child!.kill('SIGKILL')
      await exited
    },
    /** Kills only PostgreSQL, and does `work` before the server notices. */
    async killPostgresDuring(work: () => Promise<void>) {
      child!.kill('SIGSTOP')
      try {
        const postmaster = (await findPostmasterIn(dataDir))!.pid
        for (const pid of [postmaster, ...childrenOf(postmaster)]) killNow(pid)
        await work()
      } finally {
        child!.kill('SIGCONT')
      }
    },
    /** Kills only PostgreSQL. The server must restart it; resolves when it has. */
    async killPostgres() {
      const { pid } = (await findPostmasterIn(dataDir))!
      killNow(pid)
      await eventually(
        'PostgreSQL to be back',
        async () => {
          const postmaster = await findPostmasterIn(dataDir)
          return postmaster?.status === 'ready' && postmaster.pid !== pid
        },
        { state: () => stderr },
      )
    },
    /** Stops the server under load with SIGTERM. Returns its exit code and output. */
    async stop(): Promise<{ code: number | null; stderr: string }> {
      const exited = once(child!, 'exit')
      child!.kill('SIGTERM')
      const [code] = await exited
      return { code, stderr }
    },
    /** Kills one of PostgreSQL's processes. PostgreSQL then ends all others and recovers, and the server must continue. */
    async killBackend() {
      const backends = childrenOf((await findPostmasterIn(dataDir))!.pid)
      killNow(backends[Math.floor(Math.random() * backends.length)]!)
    },
    /** Uses the database while the server runs. */
    async withDatabase<T>(work: (pool: ReturnType<typeof openPool>) => Promise<T>): Promise<T> {
      return withPool(dataDir, work)
    },
    closeMonth(month: string) {
      return withPool(dataDir, pool => adminOf(pool).books.close('crashing', month))
    },
    async close() {
      if (child && child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit')
        child.kill('SIGTERM')
        await exited
      }
      const left = await findPostmasterIn(dataDir)
      if (left) killNow(left.pid)
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function withPool<T>(dataDir: string, work: (pool: ReturnType<typeof openPool>) => Promise<T>): Promise<T> {
  const cluster = await joinCluster({ name: 'kontor', dataDir, log: () => {} })
  const pool = openPool({ connection: cluster.connection, max: 2, name: 'crash test', onError: () => {} })
  try {
    return await work(pool)
  } finally {
    await pool.end()
    await cluster.stop()
  }
}

function adminOf(pool: ReturnType<typeof openPool>) {
  const secrets = openSecrets([Buffer.alloc(32, 1)])
  return openAdmin({ pool, log: openPostgresLog({ pool }), secrets })(commandLineActor('test'))
}

function createKeys(dataDir: string) {
  return withPool(dataDir, async pool => {
    await migrate(pool)
    const admin = adminOf(pool)
    const { id: tenant } = await admin.tenants.create({ name: 'crashing' })
    const { key: privateKey } = await admin.keys.create({ tenant, kind: 'private' })
    const { key: trackingKey } = await admin.keys.create({ tenant, kind: 'tracking' })
    const source = await admin.sources.create({ tenant, type: 'webhook', name: 'billing' })
    const { key: adminKey } = await admin.keys.create({ kind: 'admin' })
    return { tenant, adminKey, privateKey, trackingKey, source: { path: source.path, token: source.token! } }
  })
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has already exited
  }
}

/** PostgreSQL's backends. Without /proc the list is empty; they exit when they notice that the main process is gone. */
export function childrenOf(pid: number): number[] {
  try {
    return readdirSync('/proc')
      .filter(entry => /^\d+$/.test(entry))
      .filter(entry => parentOf(entry) === pid)
      .map(Number)
  } catch {
    return []
  }
}

function parentOf(pid: string): number | null {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[1])
  } catch {
    return null
  }
}
