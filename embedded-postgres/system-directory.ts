import { chmod, mkdir, stat } from 'node:fs/promises'
import { type Account, inaccessiblePart } from './account.ts'
import { codeOf, EmbeddedError } from './error.ts'

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
