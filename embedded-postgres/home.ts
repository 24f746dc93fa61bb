import { createHash, randomBytes } from 'node:crypto'
import { chmod, lstat, mkdir, readFile, readlink, realpath, stat, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  type Account,
  accountForNewCluster,
  accountOfCluster,
  inaccessiblePart,
  prepareSystemDirectory,
} from './account.ts'
import { codeOf, EmbeddedError } from './error.ts'
import { syncDirectory, writeWhole } from './files.ts'
/**
 * Where a cluster lives: <dataDir>/postgres, or what that symbolic link points to. The home belongs to the user who runs this; only
 * `data` and the socket directory in it belong to the account that PostgreSQL runs as.
 */
export type Home = {
  /** What PostgreSQL's processes are called, so that they can be told from those of other clusters. */
  name: string
  directory: string
  data: string
  passwordFile: string
  settingsFile: string
  logFile: string
  /** Of a cluster that lives elsewhere: names the data directory that points to it. */
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

/** The home of an existing cluster; null when the data directory has none yet. */
export async function findHome(dataDir: string): Promise<{ home: Home; account: Account | null } | null> {
  const link = linkIn(dataDir)
  const found = await lstat(link).catch(ifMissing(null))
  if (found === null) return null
  const directory = await realpath(link).catch(ifMissing(null))
  if (directory === null) {
    throw new EmbeddedError(
      `${link} points to ${await readlink(link)}, which is gone, and the data with it. ` +
        'Bring it back from a backup, or remove the link to begin with an empty database.',
    )
  }
  const home = homeAt(directory)
  const parts = await Promise.all(
    [home.data, home.passwordFile].map(path => stat(path).catch(ifMissing(null))),
  )
  if (parts.includes(null)) {
    throw new EmbeddedError(
      `${directory} is not a cluster that was made here (it lacks "data" or "password"). ` +
        'Bring the files back, or move the directory away to begin with an empty database.',
    )
  }
  const account = await accountOfCluster(home.data)
  const blocked = await inaccessiblePart(home.data, account, 0o7)
  if (blocked) {
    throw new EmbeddedError(
      `PostgreSQL runs as user ${account!.name} on this data, who can no longer enter ${blocked}. ` +
        `Allow it (chmod o+x ${JSON.stringify(blocked)}), or move the data directory to a place that user can enter.`,
    )
  }
  return { home, account }
}

/** Decides where a new cluster shall live: in the data directory if the account can get there. */
export async function chooseLocation(
  dataDir: string,
  systemDirectory: string,
  log: (message: string) => void,
) {
  const account = await accountForNewCluster()
  const blocked = await inaccessiblePart(dataDir, account, 0o1)
  if (account === null || blocked === null) return { account, target: linkIn(dataDir) }
  await prepareSystemDirectory(systemDirectory, account)
  const clusters = clustersIn(systemDirectory)
  await mkdir(clusters, { recursive: true })
  await chmod(clusters, 0o711)
  // A name of its own each time: what a deleted data directory left behind is never taken for this one's.
  const target = join(clusters, randomBytes(8).toString('hex'))
  log(
    `PostgreSQL runs as user ${account.name}, who cannot enter ${blocked}: ` +
      `the database files go to ${target}, and ${linkIn(dataDir)} points there.`,
  )
  return { account, target }
}

/** Makes the data directory point to a cluster that lives elsewhere. */
export async function pointTo(target: string, dataDir: string): Promise<void> {
  if (target === linkIn(dataDir)) return
  await symlink(target, linkIn(dataDir))
  await syncDirectory(dataDir)
}

/** Lets a cluster in the system directory know its data directory, which may have been moved since. */
export async function rememberDataDirectory(
  home: Home,
  dataDir: string,
  systemDirectory: string,
): Promise<void> {
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
      `The database password in ${home.passwordFile} cannot be read (${codeOf(error)}). ` +
        'Run this command as the user who runs the server.',
      { cause: error },
    )
  }
}

export const ifMissing =
  <T>(value: T) =>
  (error: unknown): T => {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return value
    throw error
  }
