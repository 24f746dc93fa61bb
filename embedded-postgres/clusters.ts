import { lstat, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, EmbeddedError } from './error.ts'
import { partialName, removeLeftovers, syncDirectory } from './files.ts'
import { clustersIn, homeAt, ifMissing, linkIn } from './home.ts'
import { withLock } from './lock.ts'
import { findPostmaster } from './postmaster.ts'

/** A cluster in the system directory: it outlives the data directory whose link led to it. */
export type Cluster = {
  name: string
  directory: string
  bytes: number
  /** The data directory that used it last; null for one that was not used since this is written down. */
  dataDir: string | null
  /** Whether that data directory still leads here. */
  isLinked: boolean
  isRunning: boolean
}

const lockTimeoutMs = 5_000

export async function listClusters(systemDirectory: string): Promise<Cluster[]> {
  const parent = clustersIn(systemDirectory)
  return Promise.all((await namesIn(parent)).map(name => describe(parent, name)))
}

/** By the name in the list; the others are not measured. */
export async function findCluster(systemDirectory: string, name: string): Promise<Cluster | null> {
  const parent = clustersIn(systemDirectory)
  return (await namesIn(parent)).includes(name) ? describe(parent, name) : null
}

async function namesIn(parent: string): Promise<string[]> {
  const entries = await readdir(parent, { withFileTypes: true }).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return []
    throw new EmbeddedError(`${parent} cannot be read (${codeOf(error)}). Run this command as root.`, {
      cause: error,
    })
  })
  return entries
    .filter(entry => entry.isDirectory() && !entry.name.includes('.partial-'))
    .map(({ name }) => name)
}

async function describe(parent: string, name: string): Promise<Cluster> {
  const directory = join(parent, name)
  const [bytes, use] = await Promise.all([diskUse(directory), useOf(directory)])
  return { name, directory, bytes, ...use }
}

async function useOf(directory: string) {
  const home = homeAt(directory)
  const dataDir = await readFile(home.dataDirectoryFile, 'utf8').catch(ifMissing(null))
  const target = dataDir && (await realpath(linkIn(dataDir)).catch(ifMissing(null)))
  const isRunning = await findPostmaster(home).then(
    postmaster => postmaster !== null,
    // It runs where this process cannot see it: in another container.
    error => error instanceof EmbeddedError || Promise.reject(error),
  )
  return { dataDir, isLinked: target !== null && target === (await realpath(directory)), isRunning }
}

/** Why this cluster has to stay; null when it may go. */
export function reasonToKeep({ directory, dataDir, isLinked, isRunning }: Omit<Cluster, 'bytes' | 'name'>) {
  if (isRunning) return `PostgreSQL is running on ${directory}. Stop the server that uses it first.`
  if (isLinked)
    return `${linkIn(dataDir!)} points to ${directory}: it is the database of that data directory. Remove the data directory first.`
  if (dataDir === null)
    return (
      `It is not known which data directory points to ${directory}: no server or command has used it since Kontor writes that down. ` +
      'Start one on its data directory to make it known, or remove the cluster by hand when you are sure that there is none.'
    )
  return null
}

/** Removes a cluster that nothing uses; otherwise returns why it stays. */
export async function removeCluster({ directory }: Cluster): Promise<string | null> {
  const remove = async () => {
    const reason = reasonToKeep({ directory, ...(await useOf(directory)) })
    if (reason !== null) return reason
    const parent = dirname(directory)
    // Under this name it no longer counts: what a crash leaves of it goes with the next one that is made or removed.
    const going = partialName(directory)
    await rename(directory, going)
    await syncDirectory(parent)
    await rm(going, { recursive: true, force: true })
    await removeLeftovers(parent)
    return null
  }
  const { dataDir } = await useOf(directory)
  const isThere = dataDir !== null && (await stat(dataDir).catch(ifMissing(null))) !== null
  // A server that makes its cluster holds this lock until its data directory points there.
  return isThere ? withLock(join(dataDir, 'usage'), lockTimeoutMs, remove) : remove()
}

/** What the files take on disk, in bytes; those that a running PostgreSQL removes meanwhile do not count. */
async function diskUse(directory: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(ifMissing([]))) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) bytes += await diskUse(path)
    else bytes += (await lstat(path).catch(ifMissing(null)))?.size ?? 0
  }
  return bytes
}
