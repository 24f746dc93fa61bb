import { chmod, chown, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Account } from './account.ts'
import { isAlive, thisProcess } from './processes.ts'

/** Makes what was written to a directory's list of names survive a power failure. */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return // Windows has no such call
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}

/** A directory with exactly this mode whatever the umask, and given to the account. */
export async function makeDirectory(path: string, mode: number, owner: Account | null): Promise<void> {
  await mkdir(path)
  await chmod(path, mode)
  if (owner) await chown(path, owner.uid, owner.gid)
}

/** Writes a file that is whole or absent. Never follows a link that stands in its place. */
export async function writeWhole(
  path: string,
  content: string,
  { mode = 0o600, owner = null }: { mode?: number; owner?: Account | null } = {},
): Promise<void> {
  const prepared = partialName(path)
  await rm(prepared, { force: true })
  const handle = await open(prepared, 'wx', mode)
  try {
    await handle.writeFile(content)
    await handle.chmod(mode)
    if (owner) await handle.chown(owner.uid, owner.gid)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(prepared, path)
}

/** Where to make something that is renamed to `target` once it is complete; the name tells who is making it. */
export function partialName(target: string): string {
  const { pid, started } = thisProcess()
  return `${target}.partial-${pid}-${started}`
}

/** Removes what crashed processes left half-made in a directory. */
export async function removeLeftovers(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const maker = /\.partial-(\d+)-(.+)$/.exec(name)
    if (!maker || isAlive({ pid: Number(maker[1]), started: maker[2]! })) continue
    // An initdb that outlived its parent may still be writing there: what cannot be removed now goes next time.
    await rm(join(directory, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
  }
}

/** Puts a complete directory in its place, durably. */
export async function putInPlace(prepared: string, target: string): Promise<void> {
  await syncDirectory(prepared)
  await rename(prepared, target)
  await syncDirectory(dirname(target))
}
