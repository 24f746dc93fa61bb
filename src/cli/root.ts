import { chown, mkdir, readdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Account, accountNamed, inaccessiblePart, isRoot } from '../../embedded-postgres/account.ts'

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))
// Those below can be bound by root alone.
const FIRST_OPEN_PORT = 1024

/**
 * With the embedded PostgreSQL, to be called before it starts: whoever starts it has to look after it, and so both run as
 * the same user from the beginning. Null where that cannot be; `giveUpRoot` then says what is the matter.
 */
export async function giveUpRootFirst({
  user,
  dataDir,
  ports,
}: {
  user: string
  dataDir: string
  ports: number[]
}): Promise<string | null> {
  if (!isRoot() || ports.some(port => port > 0 && port < FIRST_OPEN_PORT)) return null
  const account = await accountNamed(user)
  if (account === null || (await inaccessiblePart(PACKAGE, account, 0o5))) return null
  await mkdir(dirname(dataDir), { recursive: true })
  if (await inaccessiblePart(dirname(dataDir), account, 0o1)) return null
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const { uid } = await stat(dataDir)
  // What is there belongs to whom it belongs: only an empty directory changes hands.
  if (uid !== account.uid && (await readdir(dataDir)).length > 0) return null
  await chown(dataDir, account.uid, account.gid)
  become(account)
  return `Started as root, runs as ${user}, and PostgreSQL with it.`
}

/**
 * To be called when the ports are bound, which is all that root is good for. Returns what to say about it; null where
 * this process is not root.
 */
export async function giveUpRoot({
  user,
  isEmbedded,
}: {
  user: string
  isEmbedded: boolean
}): Promise<string | null> {
  if (!isRoot()) return null
  const account = await accountNamed(user)
  if (account === null)
    return `Runs as root: there is no user "${user}" to change to (KONTOR_USER names another).`
  // Parts of the program are read when they are first needed.
  const blocked = await inaccessiblePart(PACKAGE, account, 0o5)
  if (blocked) return `Runs as root: the user "${user}" cannot read the program, because of ${blocked}.`
  if (isEmbedded)
    return (
      `Runs as root: it looks after the embedded PostgreSQL, which runs as another user. It changes to "${user}" where the data ` +
      `directory is that user's (or new, and within reach) and the ports are above ${FIRST_OPEN_PORT - 1}.`
    )
  become(account)
  return `Started as root, runs as ${user}.`
}

function become({ uid, gid }: Account): void {
  process.setgroups!([gid])
  process.setgid!(gid)
  process.setuid!(uid)
}
