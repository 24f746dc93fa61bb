import { execFile } from 'node:child_process'
import { mkdir, statfs } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const SIZE = '8g' // only used space takes memory
const LEFT_BYTES = 256 * 1024

export type Disk = {
  fill(): Promise<void>
  free(): Promise<void>
  /** Waits until no file is open for writing. */
  setReadOnly(isReadOnly: boolean): Promise<void>
  unmount(): Promise<void>
}

/** A separate in-memory disk that can be filled; null with a message if mounting is not allowed. */
export async function mountDisk(directory: string, say: (words: string) => void, size = SIZE): Promise<Disk | null> {
  await mkdir(directory, { recursive: true, mode: 0o711 })
  if (process.getuid?.() !== 0 || process.platform !== 'linux') {
    say('Skipped: mounting a disk requires root on Linux')
    return null
  }
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=711`, 'tmpfs', directory])
  } catch (error) {
    say(`Skipped: mounting a disk failed (${(error as Error).message.trim()})`)
    return null
  }
  const resize = (size: string) => run('mount', ['-o', `remount,size=${size}`, directory])
  return {
    /** Shrinking the disk to its used size fills it without using memory. */
    async fill() {
      // A write in between makes the resize fail, because the size must not be below the used space.
      for (let attempt = 1; ; attempt++) {
        const { bsize, blocks, bfree } = await statfs(directory)
        try {
          await resize(String((blocks - bfree) * bsize + LEFT_BYTES))
          return
        } catch (error) {
          if (attempt === 50) throw error
        }
      }
    },
    async free() {
      await resize(size)
    },
    async setReadOnly(isReadOnly) {
      for (let attempt = 1; ; attempt++) {
        try {
          await run('mount', ['-o', `remount,${isReadOnly ? 'ro' : 'rw'}`, directory])
          return
        } catch (error) {
          // A killed process has its files open for another moment.
          if (attempt === 200) throw error
          await sleep(50)
        }
      }
    },
    async unmount() {
      await run('umount', ['-l', directory])
    },
  }
}
