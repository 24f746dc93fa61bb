import { createHash, randomBytes } from 'node:crypto'
import { chmod, lstat, readFile, readlink, realpath, stat, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  type Account,
  accountForNewCluster,
  findClusterAccount,
  inaccessiblePart,
  prepareSystemDirectory,
} from './account.ts'
import { EmbeddedError, errorCode } from './error.ts'
import { createDirectories, syncDirectory, writeWhole } from './files.ts'
/**
 * The directory of a cluster: <dataDir>/postgres, or the target of that symbolic link. It belongs to the user who runs this. Only
 * `data` and the socket directory in it belong to the account that PostgreSQL runs as.
 */
export type Home = {
  /** Part of the titles of PostgreSQL's processes, to distinguish them from those of other clusters. */
  name: string
  directory: string
  data: string
  passwordFile: string
  settingsFile: string
  logFile: string
  /** For a cluster in the system directory: contains the path of the data directory that links to it. */
  dataDirectoryFile: string
}

export const homeAt = (directory: string): Home => ({
  name: `embedded-${createHash('sha256').update(directory).digest('hex').slice(0, 16)}`,
  directory,
  data: join(directory, 'data'),
  passwordFile: join(directory, 'password'),
  settingsFile: join(directory, 'postgres.conf'),
  logFile: join(directory, 'postgres.log'),
  dataDirectoryFile: join(directory, 'data-directory'),
})

export const clustersIn = (systemDirectory: string) => join(systemDirectory, 'clusters')

export const linkIn = (dataDir: string) => join(dataDir, 'postgres')

/** The home of an existing cluster; null if the data directory has none yet. */
export async function findHome(dataDir: string): Promise<{ home: Home; account: Account | null } | null> {
  const link = linkIn(dataDir)
  const found = await lstat(link).catch(ifMissing(null))
  if (found === null) return null
  const directory = await realpath(link).catch(ifMissing(null))
  if (directory === null) {
    throw new EmbeddedError(
      `${link} points to ${await readlink(link)}, which does not exist: the data is missing. ` +
        'Restore it from a backup, or remove the link to start with an empty database.',
    )
  }
  const home = homeAt(directory)
  const parts = await Promise.all([home.data, home.passwordFile].map(path => stat(path).catch(ifMissing(null))))
  if (parts.includes(null)) {
    throw new EmbeddedError(
      `${directory} is not an embedded cluster (it lacks "data" or "password"). ` +
        'Restore the files, or move the directory to start with an empty database.',
    )
  }
  const account = await findClusterAccount(home.data)
  const blocked = await inaccessiblePart(home.data, account, 0o7)
  if (blocked) {
    throw new EmbeddedError(
      `PostgreSQL runs as user ${account!.name}, who can no longer enter ${blocked}. ` +
        `Allow it (chmod o+x ${JSON.stringify(blocked)}), or move the data directory to a directory that this user can enter.`,
    )
  }
  return { home, account }
}

/** Chooses the directory of a new cluster: in the data directory if the account can enter it, otherwise in the system directory. */
export async function chooseLocation(dataDir: string, systemDirectory: string, log: (message: string) => void) {
  const account = await accountForNewCluster()
  const blocked = await inaccessiblePart(dataDir, account, 0o1)
  if (account === null || blocked === null) return { account, target: linkIn(dataDir) }
  await prepareSystemDirectory(systemDirectory, account)
  const clusters = clustersIn(systemDirectory)
  await createDirectories(clusters)
  await chmod(clusters, 0o711)
  // A new random name: the cluster of a deleted data directory is never mistaken for this one.
  const target = join(clusters, randomBytes(8).toString('hex'))
  log(
    `PostgreSQL runs as user ${account.name}, who cannot enter ${blocked}: ` +
      `the database files are stored in ${target}, and ${linkIn(dataDir)} points there.`,
  )
  return { account, target }
}

/** Links the data directory to a cluster in the system directory. */
export async function linkTo(target: string, dataDir: string): Promise<void> {
  if (target === linkIn(dataDir)) return
  await symlink(target, linkIn(dataDir))
  await syncDirectory(dataDir)
}

/** Records the data directory of a cluster in the system directory: it may have been moved. */
export async function recordDataDirectory(home: Home, dataDir: string, systemDirectory: string): Promise<void> {
  const clusters = await realpath(clustersIn(systemDirectory)).catch(ifMissing(null))
  if (dirname(home.directory) !== clusters) return
  const known = await readFile(home.dataDirectoryFile, 'utf8').catch(ifMissing(null))
  if (known !== dataDir) await writeWhole(home.dataDirectoryFile, dataDir)
}

export async function readPassword(home: Home): Promise<string> {
  try {
    return (await readFile(home.passwordFile, 'utf8')).trim()
  } catch (error) {
    throw new EmbeddedError(
      `The database password in ${home.passwordFile} cannot be read (${errorCode(error)}). ` +
        'Run this command as the user who runs the server.',
      { cause: error },
    )
  }
}

export const ifMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return value
    throw error
  }
