import { chmod, chown, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Account } from './account.ts'
import { errorCode } from './error.ts'
import { isAlive, thisProcess } from './processes.ts'

/** Syncs a directory, so that created and renamed files survive a power failure. */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return // Windows has no such call
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}

/**
 * Creates a directory and its missing parents, and returns the first one that it created. Where nothing can be created, for example
 * in /proc, `mkdir` with `recursive` never returns, because Node retries as long as the parent exists.
 */
export async function createDirectories(path: string, mode?: number): Promise<string | undefined> {
  try {
    await mkdir(path, mode)
    return path
  } catch (error) {
    const code = errorCode(error)
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return undefined
    if (code !== 'ENOENT' || dirname(path) === path) throw error
  }
  const first = await createDirectories(dirname(path), mode)
  await mkdir(path, mode).catch(error => {
    if (errorCode(error) !== 'EEXIST') throw error
  })
  return first ?? path
}

/** Creates a directory that has exactly this mode, whatever the umask, and belongs to the account. */
export async function createDirectory(path: string, mode: number, owner: Account | null): Promise<void> {
  await mkdir(path)
  await chmod(path, mode)
  if (owner) await chown(path, owner.uid, owner.gid)
}

/** Writes a file atomically. Replaces a symbolic link instead of following it. */
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

/** A temporary name for something that is renamed to `target` once it is complete. It contains the process that creates it. */
export function partialName(target: string): string {
  const { pid, started } = thisProcess()
  return `${target}.partial-${pid}-${started}`
}

/** Removes the incomplete files and directories of crashed processes. */
export async function removeLeftovers(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const creator = /\.partial-(\d+)-(.+)$/.exec(name)
    if (!creator || isAlive({ pid: Number(creator[1]), started: creator[2]! })) continue
    // An initdb that outlived its parent may still write there. What cannot be removed now is removed next time.
    await rm(join(directory, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
  }
}

/** Renames a complete directory to its final name, durably. */
export async function putInPlace(prepared: string, target: string): Promise<void> {
  await syncDirectory(prepared)
  await rename(prepared, target)
  await syncDirectory(dirname(target))
}
