import { chown, mkdir, readdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Account, accountNamed, inaccessiblePart, isRoot } from '../../embedded-postgres/account.ts'

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))
// Only root can bind lower ports.
const FIRST_OPEN_PORT = 1024

/**
 * For the embedded PostgreSQL, called before it starts: the process that starts PostgreSQL must also stop it, so both run as the
 * same user from the start. Returns a message, or null if that is impossible; `giveUpRoot` then returns the reason.
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
  // Existing files keep their owner: only an empty directory is handed over.
  if (uid !== account.uid && (await readdir(dataDir)).length > 0) return null
  await chown(dataDir, account.uid, account.gid)
  become(account)
  return `Started as root. Kontor and PostgreSQL now run as ${user}.`
}

/**
 * Called when the ports are bound, because nothing after that needs root. Returns a message, or null if this process is not root.
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
    return `Running as root, because there is no user "${user}". Set KONTOR_USER to an existing user.`
  // Some modules are loaded later, when they are first needed.
  const blocked = await inaccessiblePart(PACKAGE, account, 0o5)
  if (blocked)
    return `Running as root, because the user "${user}" cannot read the program. Check the permissions of ${blocked}.`
  if (isEmbedded)
    return (
      `Running as root, because the embedded PostgreSQL runs as another user. Kontor switches to "${user}" if that user owns the ` +
      `data directory (or the directory is new and accessible to it) and the ports are above ${FIRST_OPEN_PORT - 1}.`
    )
  become(account)
  return `Started as root. Kontor now runs as ${user}.`
}

function become({ uid, gid }: Account): void {
  process.setgroups!([gid])
  process.setgid!(gid)
  process.setuid!(uid)
}
