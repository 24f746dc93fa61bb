import { fileURLToPath } from 'node:url'
import { accountNamed, inaccessiblePart, isRoot } from '../../embedded-postgres/account.ts'

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))

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
  if (isEmbedded)
    return 'Runs as root: it looks after the embedded PostgreSQL, which runs as another user. Start it as an ordinary user, or set DATABASE_URL.'
  const account = await accountNamed(user)
  if (account === null)
    return `Runs as root: there is no user "${user}" to change to (KONTOR_USER names another).`
  // Parts of the program are read when they are first needed.
  const blocked = await inaccessiblePart(PACKAGE, account, 0o5)
  if (blocked) return `Runs as root: the user "${user}" cannot read the program, because of ${blocked}.`
  process.setgroups!([account.gid])
  process.setgid!(account.gid)
  process.setuid!(account.uid)
  return `Started as root, runs as ${user}.`
}
