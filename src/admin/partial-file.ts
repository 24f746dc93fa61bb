import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { fileError } from './error.ts'

/** A file that has another name until it is complete. Until then, an existing file at its path is kept. */
export type PartialFile = {
  write(bytes: Uint8Array): Promise<void>
  /** Syncs the file and moves it to its path. */
  publish(): Promise<void>
  /** Deletes the file if it is not published. */
  discard(): Promise<void>
}

/**
 * Only its owner can read it. The name is unique: if two commands write to the same path, each writes a whole file, and the later one
 * replaces the earlier one. A process id is not unique, because containers can share a folder.
 */
export async function createPartialFile(path: string): Promise<PartialFile> {
  const rejectWith = fileError('written', path)
  const partial = `${path}.${randomBytes(4).toString('hex')}.partial`
  const file = await open(partial, 'wx', 0o600).catch(rejectWith)
  return {
    // Unlike `write`, it repeats a write that stored only some of the bytes.
    write: bytes => file.writeFile(bytes).catch(rejectWith),
    async publish() {
      await file.sync().catch(rejectWith)
      await file.close().catch(rejectWith)
      await rename(partial, path).catch(rejectWith)
    },
    async discard() {
      await file.close().catch(() => {})
      await rm(partial, { force: true })
    },
  }
}
