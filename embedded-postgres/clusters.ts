import { lstat, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { EmbeddedError, errorCode } from './error.ts'
import { partialName, removeLeftovers, syncDirectory } from './files.ts'
import { clustersIn, homeAt, ifMissing, linkIn } from './home.ts'
import { withLock } from './lock.ts'
import { findPostmaster } from './postmaster.ts'

/** A cluster in the system directory. It remains when the data directory that linked to it is deleted. */
export type Cluster = {
  name: string
  directory: string
  bytes: number
  /** The data directory that used it last; null if it was last used by a version that did not record this. */
  dataDir: string | null
  /** Whether that data directory still links to this cluster. */
  isLinked: boolean
  isRunning: boolean
}

const lockTimeoutMs = 5_000

export async function listClusters(systemDirectory: string): Promise<Cluster[]> {
  const parent = clustersIn(systemDirectory)
  return Promise.all((await namesIn(parent)).map(name => describe(parent, name)))
}

/** Finds a cluster by its name in the list, without measuring the others. */
export async function findCluster(systemDirectory: string, name: string): Promise<Cluster | null> {
  const parent = clustersIn(systemDirectory)
  return (await namesIn(parent)).includes(name) ? describe(parent, name) : null
}

async function namesIn(parent: string): Promise<string[]> {
  const entries = await readdir(parent, { withFileTypes: true }).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return []
    throw new EmbeddedError(`${parent} cannot be read (${errorCode(error)}). Run this command as root.`, {
      cause: error,
    })
  })
  return entries.filter(entry => entry.isDirectory() && !entry.name.includes('.partial-')).map(({ name }) => name)
}

async function describe(parent: string, name: string): Promise<Cluster> {
  const directory = join(parent, name)
  const [bytes, use] = await Promise.all([diskUse(directory), readUse(directory)])
  return { name, directory, bytes, ...use }
}

async function readUse(directory: string) {
  const home = homeAt(directory)
  const dataDir = await readFile(home.dataDirectoryFile, 'utf8').catch(ifMissing(null))
  const target = dataDir && (await realpath(linkIn(dataDir)).catch(ifMissing(null)))
  const isRunning = await findPostmaster(home).then(
    postmaster => postmaster !== null,
    // It runs in another container, where this process cannot see it.
    error => error instanceof EmbeddedError || Promise.reject(error),
  )
  return { dataDir, isLinked: target !== null && target === (await realpath(directory)), isRunning }
}

/** The reason why this cluster must not be removed, or null. */
export function reasonToKeep({ directory, dataDir, isLinked, isRunning }: Omit<Cluster, 'bytes' | 'name'>) {
  if (isRunning) return `PostgreSQL is running on ${directory}. Stop the server that uses it first.`
  if (isLinked)
    return `${linkIn(dataDir!)} points to ${directory}, which is the database of that data directory. Remove the data directory first.`
  if (dataDir === null)
    return (
      `It is unknown which data directory points to ${directory}: no server or command has used it since Kontor records this. ` +
      'Start a server on its data directory once to record it. If you are sure that there is none, delete that directory manually.'
    )
  return null
}

/** Removes a cluster that nothing uses. Otherwise returns the reason why it was kept. */
export async function removeCluster({ directory }: Cluster): Promise<string | null> {
  const remove = async () => {
    const reason = reasonToKeep({ directory, ...(await readUse(directory)) })
    if (reason !== null) return reason
    const parent = dirname(directory)
    // With this name it is no longer a cluster. If a crash leaves some of it, the next creation or removal deletes the rest.
    const removed = partialName(directory)
    await rename(directory, removed)
    await syncDirectory(parent)
    await rm(removed, { recursive: true, force: true })
    await removeLeftovers(parent)
    return null
  }
  const { dataDir } = await readUse(directory)
  const hasDataDir = dataDir !== null && (await stat(dataDir).catch(ifMissing(null))) !== null
  // A server that creates its cluster holds this lock until its data directory links to it.
  return hasDataDir ? withLock(join(dataDir, 'usage'), lockTimeoutMs, remove) : remove()
}

/** The size of the files in bytes. Ignores files that a running PostgreSQL removes meanwhile. */
async function diskUse(directory: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(ifMissing([]))) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) bytes += await diskUse(path)
    else bytes += (await lstat(path).catch(ifMissing(null)))?.size ?? 0
  }
  return bytes
}
