import { statfs } from 'node:fs/promises'
import { totalmem } from 'node:os'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import type { Home } from './home.ts'
import { run } from './program.ts'
import type { Machine } from './settings.ts'

/** What the settings depend on, asked anew at every start: disks fill, containers get other limits. */
export async function inspectMachine(
  home: Home,
  account: Account | null,
  binaries: Binaries,
): Promise<Machine> {
  const [disk, sharedMemory, hasLz4] = await Promise.all([
    statfs(home.directory),
    process.platform === 'linux' ? statfs('/dev/shm').catch(() => ({ bsize: 0, blocks: 0 })) : null,
    canCompressWithLz4(home, account, binaries),
  ])
  const limit = process.constrainedMemory()
  return {
    memoryBytes: limit > 0 ? Math.min(limit, totalmem()) : totalmem(),
    freeDiskBytes: disk.bsize * disk.bavail,
    sharedMemoryBytes: sharedMemory && sharedMemory.bsize * sharedMemory.blocks,
    hasLz4,
  }
}

/** `-C` prints a setting and ends (6 ms); it fails on a value that the build does not know. */
async function canCompressWithLz4(home: Home, account: Account | null, binaries: Binaries): Promise<boolean> {
  const args = ['-D', home.data, '-c', 'wal_compression=lz4', '-c', 'default_toast_compression=lz4']
  const { status } = await run(account, binaries.postgres, [...args, '-C', 'wal_compression'])
  return status === 0
}
