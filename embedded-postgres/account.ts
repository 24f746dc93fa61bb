import { chmod, mkdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, EmbeddedError } from './error.ts'
/** The user that PostgreSQL runs as when this process is root, which PostgreSQL itself refuses to be. */
export type Account = { name: string; uid: number; gid: number }

export const isRoot = (): boolean => process.getuid?.() === 0

/** Options of child_process.spawn that switch to the account; libuv drops the supplementary groups as well. */
export const spawnAs = (account: Account | null) => (account ? { uid: account.uid, gid: account.gid } : {})

/** For a new cluster: `postgres` where the machine has that user, else `nobody`; null: our own user. */
export async function accountForNewCluster(): Promise<Account | null> {
  if (!isRoot()) return null
  const accounts = await readAccounts()
  for (const name of ['postgres', '_postgres', 'nobody']) {
    const account = accounts.find(account => account.name === name && account.uid !== 0)
    if (account) return account
  }
  throw new EmbeddedError(
    'PostgreSQL does not run as root, and this machine has neither a user "postgres" nor "nobody" to run it as. ' +
      'Run this as an ordinary user, or use a PostgreSQL of your own.',
  )
}

/** For an existing cluster: the user who owns its files, whatever users the machine has got or lost since. */
export async function accountOfCluster(data: string): Promise<Account | null> {
  const owner = await stat(data)
  const ourselves = process.getuid?.()
  if (ourselves === undefined || ourselves === owner.uid) return null
  if (ourselves !== 0) {
    throw new EmbeddedError(
      `The PostgreSQL files in ${data} belong to another user (uid ${owner.uid}). ` +
        'Run this as that user or as root, or give another data directory.',
    )
  }
  const known = (await readAccounts()).find(account => account.uid === owner.uid)
  return known ?? { name: `uid ${owner.uid}`, uid: owner.uid, gid: owner.gid }
}

/** A user of this machine who is not root; null where there is none of this name. */
export async function accountNamed(name: string): Promise<Account | null> {
  return (await readAccounts()).find(account => account.name === name && account.uid !== 0) ?? null
}

async function readAccounts(): Promise<Account[]> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '')
  return passwd.split('\n').flatMap(line => {
    const [name, , uid, gid] = line.split(':')
    // macOS writes nobody's uid as -2; the system calls want it unsigned.
    return name && uid && gid ? [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }] : []
  })
}

/**
 * The first directory on the way to `path` that the account may not enter, or `path` itself when it lacks a permission
 * (a bit mask like 0o5 for reading and executing) there; null when all is open.
 */
export async function inaccessiblePart(
  path: string,
  account: Account | null,
  needs: number,
): Promise<string | null> {
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

/** For what the account must reach when it cannot enter the data directory or the directory of the packages. */
export async function prepareSystemDirectory(path: string, account: Account): Promise<void> {
  const advice =
    `Give a data directory that user ${account.name} can enter, run this as an ordinary user, ` +
    'or use a PostgreSQL of your own.'
  try {
    const made = await mkdir(path, { recursive: true, mode: 0o755 })
    if (made) await chmod(path, 0o755)
  } catch (error) {
    throw new EmbeddedError(`${path} cannot be made (${codeOf(error)}). ${advice}`, { cause: error })
  }
  const { uid, mode } = await stat(path)
  // Programs in it are started, and clusters in it trusted, so nobody else may put something there.
  if (uid !== 0 || mode & 0o022) {
    throw new EmbeddedError(
      `${path} must belong to root and be writable to root alone (chown root, chmod 755). ${advice}`,
    )
  }
  const blocked = await inaccessiblePart(path, account, 0o1)
  if (blocked) throw new EmbeddedError(`User ${account.name} cannot enter ${blocked}. ${advice}`)
}
