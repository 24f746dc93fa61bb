import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { access, chmod, constants, lstat, mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach } from 'node:test'
import pg from 'pg'
import { type EmbeddedConnection, joinCluster, ownCluster } from '../embedded-postgres/cluster.ts'
import { findHome } from '../embedded-postgres/home.ts'
import { findPostmaster, waitForExit } from '../embedded-postgres/postmaster.ts'
import { isAlive, type ProcessStamp, thisProcess } from '../embedded-postgres/processes.ts'
import { freePort } from '../embedded-postgres/socket.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { ensurePartitions } from '../src/postgres/partitions.ts'
import { eventually } from './eventually.ts'

const variable = 'KONTOR_TEST_DATABASE_URL'

let anyFailed = false
if (/\.test\.(ts|mjs)$/.test(process.argv[1] ?? '')) {
  afterEach(context => {
    if ('passed' in context && !context.passed) anyFailed = true
  })
}

/**
 * A separate database for one test file, cloned from the migrated template (or empty). Dropped at the end; kept and printed on failure.
 * Close all connections before drop(): an open connection fails the run. `partitioned`: with the partitions that a server creates when
 * it first starts.
 */
export async function testDatabase({ empty = false, partitioned = false } = {}): Promise<{
  url: string
  drop(options?: { withinMs?: number }): Promise<void>
}> {
  const cluster = process.env[variable] ? { url: process.env[variable], stop: async () => {} } : await joinShared()
  const template = empty ? 'template0' : await ensureTemplate(cluster.url, { partitioned })
  const name = databaseName()
  await asAdministrator(cluster.url, client =>
    client.query(`create database ${name} template ${template} strategy wal_log`),
  )
  const url = withDatabase(cluster.url, name)
  return {
    url,
    drop: async options => {
      if (anyFailed) {
        // The shared cluster keeps running so that the database can be inspected. The next run that joins it stops it.
        console.error(`The database of the failed test is kept: ${url}`)
        return
      }
      await asAdministrator(cluster.url, client => dropDatabase(client, name, options)).finally(cluster.stop)
    },
  }
}

/** For a run of all tests: a temporary cluster, which the test files find through the environment. */
export async function startTestCluster(): Promise<{
  url: string
  stop(): Promise<void>
  stopAtOnce(): void
}> {
  await removeAbandonedClusters()
  const { pid, started } = thisProcess()
  const directory = join((await hasMemory()) ? MEMORY : tmpdir(), `kontor-test-${pid}-${started}`)
  await makeReachable(directory)
  const embedded = await ownCluster(await testOptions(directory))
  const url = buildUrl(embedded.connection)
  const stop = async () => {
    delete process.env[variable]
    await embedded.stop()
    await rm(directory, { recursive: true, force: true })
  }
  try {
    await ensureTemplate(url, { partitioned: true })
  } catch (error) {
    await stop()
    throw error
  }
  process.env[variable] = url
  const { home } = (await findHome(directory))!
  const postmaster = await findPostmaster(home)
  return { url, stop, stopAtOnce: () => postmaster && endAtOnce(postmaster, directory) }
}

const MEMORY = '/dev/shm'
const [MIN_FREE_BYTES, MIN_MEMORY_BYTES] = [4 * 2 ** 30, 8 * 2 ** 30]

/** Where the cluster of a run may be. */
export const clusterParents = [tmpdir(), MEMORY].filter(path => existsSync(path))

/**
 * Whether the cluster fits into memory. Every clone of the template creates a thousand files, which on ext4 took a fifth of the
 * processor time of test/records.
 */
async function hasMemory(): Promise<boolean> {
  try {
    await access(MEMORY, constants.W_OK)
    const { bsize, bavail } = await statfs(MEMORY)
    return bsize * bavail > MIN_FREE_BYTES && process.availableMemory() > MIN_MEMORY_BYTES
  } catch {
    return false
  }
}

const AT_ONCE_MS = 5_000

/** For a process that is exiting and can only wait synchronously. The next run removes what remains. */
function endAtOnce(postmaster: ProcessStamp, directory: string): void {
  const deadline = Date.now() + AT_ONCE_MS
  if (isAlive(postmaster)) process.kill(postmaster.pid, 'SIGQUIT')
  const pause = new Int32Array(new SharedArrayBuffer(4))
  while (isAlive(postmaster) && Date.now() < deadline) Atomics.wait(pause, 0, 0, 20)
  if (!isAlive(postmaster)) rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
}

/** For a test file that runs alone: a cluster that such files share and keep, so that only the first one waits for initdb. */
async function joinShared(): Promise<{ url: string; stop(): Promise<void> }> {
  const directory = join(tmpdir(), `kontor-test-shared-${process.getuid?.() ?? 'user'}`)
  await makeReachable(directory)
  const embedded = await joinCluster(await testOptions(directory))
  const url = buildUrl(embedded.connection)
  await asAdministrator(url, dropOldDatabases)
  return { url, stop: embedded.stop }
}

const testOptions = async (dataDir: string) => ({
  name: 'kontor',
  dataDir,
  log: () => {},
  settings: await testSettings(),
})

/** The data is temporary, so durability is off. Everything else is as in production. */
async function testSettings() {
  return {
    fsync: 'off',
    synchronous_commit: 'off',
    full_page_writes: 'off',
    autovacuum: 'off',
    shared_buffers: '128MB',
    max_wal_size: '512MB',
    min_wal_size: '128MB',
    max_connections: '300',
    listen_addresses: '127.0.0.1',
    port: String(await freePort()),
  }
}

async function makeReachable(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  const found = await lstat(directory)
  if (!found.isDirectory() || (process.getuid && found.uid !== process.getuid())) {
    throw new Error(`${directory} belongs to another user. Remove it and run the tests again`)
  }
  await chmod(directory, 0o711)
}

/** Stops and removes the clusters of killed test runs. */
async function removeAbandonedClusters(): Promise<void> {
  for (const parent of clusterParents) {
    for (const entry of await readdir(parent)) await removeIfAbandoned(parent, entry)
  }
}

async function removeIfAbandoned(parent: string, entry: string): Promise<void> {
  const maker = /^kontor-test-(\d+)-(.+)$/.exec(entry)
  if (!maker || isAlive({ pid: Number(maker[1]), started: maker[2]! })) return
  const directory = join(parent, entry)
  if (process.getuid && (await lstat(directory)).uid !== process.getuid()) return
  const found = await findHome(directory).catch(() => null)
  const postmaster = found && (await findPostmaster(found.home))
  if (postmaster) {
    process.kill(postmaster.pid, 'SIGQUIT')
    await waitForExit(postmaster, 10_000)
  }
  await rm(directory, { recursive: true, force: true })
}

/** Returns the name of a template database with the newest schema; creates it if missing. Each set of migrations has its own. */
async function ensureTemplate(clusterUrl: string, { partitioned }: { partitioned: boolean }): Promise<string> {
  const name = `kontor_template_${schemaFingerprint()}${partitioned ? '_partitioned' : ''}`
  await asAdministrator(clusterUrl, async client => {
    if (await exists(client, name)) return
    await client.query('select pg_advisory_lock(7416)')
    if (await exists(client, name)) return
    const unfinished = `${name}_unfinished`
    await client.query(`drop database if exists ${unfinished} with (force)`)
    await client.query(`create database ${unfinished}`)
    const pool = new pg.Pool({ connectionString: withDatabase(clusterUrl, unfinished), max: 2 })
    try {
      await migrate(pool)
      if (partitioned) await ensurePartitions(pool, new Date())
    } finally {
      await pool.end()
    }
    // PostgreSQL can only clone a database without connections, so connections to the template are not allowed.
    await client.query(`alter database ${unfinished} with allow_connections false`)
    await client.query(`alter database ${unfinished} rename to ${name}`)
  })
  return name
}

function schemaFingerprint(): string {
  const migrations = new URL('../migrations/', import.meta.url)
  const hash = createHash('sha256').update(readFileSync(new URL('../src/postgres/migrate.ts', import.meta.url)))
  for (const name of readdirSync(migrations).sort()) hash.update(name).update(readFileSync(new URL(name, migrations)))
  return hash.digest('hex').slice(0, 12)
}

async function exists(client: pg.Client, name: string): Promise<boolean> {
  const { rowCount } = await client.query('select from pg_database where datname = $1', [name])
  return rowCount === 1
}

async function dropDatabase(client: pg.Client, name: string, { withinMs = 10_000 } = {}): Promise<void> {
  const connections = async () => {
    const { rows } = await client.query<{ who: string }>(
      `select application_name || ': ' || query as who from pg_stat_activity where datname = $1`,
      [name],
    )
    return rows.map(({ who }) => who)
  }
  try {
    // PostgreSQL notices a closed connection a moment later; on a busy machine that takes seconds.
    await eventually(
      'the connections of the test to be closed at its end',
      async () => (await connections()).length === 0,
      { withinMs, state: connections },
    )
  } finally {
    await client.query(`drop database ${name} with (force)`)
  }
}

const day = () => Math.floor(Date.now() / 86_400_000)

function databaseName(): string {
  const file = basename(process.argv[1] ?? 'test')
    .replace(/\.test\.\w+$/, '')
    .replaceAll(/[^a-z0-9]/gi, '_')
    .toLowerCase()
  return `kontor_test_${day()}_${file.slice(0, 30)}_${randomBytes(4).toString('hex')}`
}

/** Databases of failed or killed tests are kept in the shared cluster for a day. */
async function dropOldDatabases(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ datname: string }>(
    `select datname from pg_database where datname ~ '^kontor_test_[0-9]+_' and split_part(datname, '_', 3)::int < $1`,
    [day() - 1],
  )
  for (const { datname } of rows) await client.query(`drop database if exists ${datname} with (force)`)
}

function buildUrl({ user, password, port }: EmbeddedConnection): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/postgres`
}

function withDatabase(clusterUrl: string, name: string): string {
  const url = new URL(clusterUrl)
  url.pathname = `/${name}`
  return url.href
}

async function asAdministrator<T>(clusterUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: clusterUrl, application_name: 'kontor tests' })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
