import { chmod, mkdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { EmbeddedError, errorCode } from './error.ts'
/** The user that PostgreSQL runs as if this process is root: PostgreSQL refuses to run as root. */
export type Account = { name: string; uid: number; gid: number }

export const isRoot = (): boolean => process.getuid?.() === 0

/** Options of child_process.spawn that switch to the account; libuv drops the supplementary groups as well. */
export const spawnAs = (account: Account | null) => (account ? { uid: account.uid, gid: account.gid } : {})

/** For a new cluster: `postgres` if the machine has that user, otherwise `nobody`; null: the current user. */
export async function accountForNewCluster(): Promise<Account | null> {
  if (!isRoot()) return null
  const accounts = await readAccounts()
  for (const name of ['postgres', '_postgres', 'nobody']) {
    const account = accounts.find(account => account.name === name && account.uid !== 0)
    if (account) return account
  }
  throw new EmbeddedError(
    'PostgreSQL does not run as root, and this machine has no user "postgres" or "nobody". ' +
      'Run this as an ordinary user, or use your own PostgreSQL.',
  )
}

/** For an existing cluster: the user who owns its files, even if the machine's users have changed. */
export async function findClusterAccount(data: string): Promise<Account | null> {
  const owner = await stat(data)
  const ourselves = process.getuid?.()
  if (ourselves === undefined || ourselves === owner.uid) return null
  if (ourselves !== 0) {
    throw new EmbeddedError(
      `The PostgreSQL files in ${data} belong to another user (uid ${owner.uid}). ` +
        'Run this as that user or as root, or use another data directory.',
    )
  }
  const known = (await readAccounts()).find(account => account.uid === owner.uid)
  return known ?? { name: `uid ${owner.uid}`, uid: owner.uid, gid: owner.gid }
}

/** A user of this machine by name; null if there is none, or if it is root. */
export async function findAccount(name: string): Promise<Account | null> {
  return (await readAccounts()).find(account => account.name === name && account.uid !== 0) ?? null
}

async function readAccounts(): Promise<Account[]> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '')
  return passwd.split('\n').flatMap(line => {
    const [name, , uid, gid] = line.split(':')
    // macOS lists a uid of -2; system calls need it unsigned.
    return name && uid && gid ? [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }] : []
  })
}

/**
 * The first directory on the path that the account may not enter, or `path` itself if the account lacks a permission there
 * (a bit mask such as 0o5 for reading and executing); null if nothing blocks it.
 */
export async function inaccessiblePart(path: string, account: Account | null, needs: number): Promise<string | null> {
  if (account === null) return null
  let needed = needs
  let found: string | null = null
  for (let current = await realpath(path); ; current = dirname(current)) {
    const { mode, uid, gid } = await stat(current)
    const shift = uid === account.uid ? 6 : gid === account.gid ? 3 : 0
    if (((mode >> shift) & needed) !== needed) found = current
    if (current === dirname(current)) return found
    needed = 0o1
  }
}

/** The system directory holds what the account cannot reach in the data directory or the npm packages. */
export async function prepareSystemDirectory(path: string, account: Account): Promise<void> {
  const advice =
    `Use a data directory that user ${account.name} can enter, run this as an ordinary user, ` +
    'or use your own PostgreSQL.'
  try {
    const created = await mkdir(path, { recursive: true, mode: 0o755 })
    if (created) await chmod(path, 0o755)
  } catch (error) {
    throw new EmbeddedError(`${path} cannot be created (${errorCode(error)}). ${advice}`, { cause: error })
  }
  const { uid, mode } = await stat(path)
  // Root starts programs and trusts clusters in it, so only root may write to it.
  if (uid !== 0 || mode & 0o022) {
    throw new EmbeddedError(
      `${path} must belong to root and be writable only by root (chown root, chmod 755). ${advice}`,
    )
  }
  const blocked = await inaccessiblePart(path, account, 0o1)
  if (blocked) throw new EmbeddedError(`User ${account.name} cannot enter ${blocked}. ${advice}`)
}
