import { rmSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import pg from 'pg'
import { type EmbeddedConnection, joinCluster } from '../../embedded-postgres/cluster.ts'
import { findHome } from '../../embedded-postgres/home.ts'
import { liveUsers } from '../../embedded-postgres/lock.ts'
import { findPostmaster, waitForExit } from '../../embedded-postgres/postmaster.ts'

export const silent = () => {}

/** A temporary directory that every user may enter. The clusters in `dataDirs` are stopped and removed with it. */
export async function temporaryDirectory(t: TestContext, ...dataDirs: string[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-embedded-'))
  await chmod(directory, 0o711)
  t.after(async () => {
    for (const dataDir of dataDirs) await endPostgres(join(directory, dataDir))
    // An initdb that outlived its parent may still write there.
    await rm(directory, { recursive: true, force: true, maxRetries: 20 })
  })
  return directory
}

let initialized: Promise<string> | undefined

/** A data directory with a stopped cluster. The tests of a file share it, because creating one takes a second. */
export async function stoppedCluster(t: TestContext): Promise<string> {
  initialized ??= initialize()
  const dataDir = await initialized
  t.after(() => endPostgres(dataDir))
  return dataDir
}

async function initialize(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-embedded-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  await chmod(directory, 0o711)
  const dataDir = join(directory, 'data')
  const embedded = await joinCluster({ dataDir, log: silent })
  await embedded.stop()
  return dataDir
}

export async function findPostmasterIn(dataDir: string) {
  const found = await findHome(dataDir)
  return found && findPostmaster(found.home)
}

async function endPostgres(dataDir: string): Promise<void> {
  // A running server would restart it.
  for (const user of await liveUsers(join(dataDir, 'usage')).catch(() => [])) {
    if (user.role !== 'server' || user.pid === process.pid) continue
    process.kill(user.pid, 'SIGKILL')
    await waitForExit(user, 60_000)
  }
  const postmaster = await findPostmasterIn(dataDir).catch(() => null)
  if (!postmaster) return
  process.kill(postmaster.pid, 'SIGQUIT')
  await waitForExit(postmaster, 60_000)
}

export async function query(connection: EmbeddedConnection, sql: string): Promise<unknown[]> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const { rows } = await client.query({ text: sql, rowMode: 'array' })
    return rows.flat()
  } finally {
    await client.end()
  }
}
