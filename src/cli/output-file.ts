// Files that commands write.
import { createWriteStream } from 'node:fs'
import { open, realpath, rename, rm, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileErrorReason } from '../admin/error.ts'
import { UsageError } from './errors.ts'

/**
 * The file that an option names, behind symbolic links. A device, a pipe or a directory is rejected: commands rename the complete
 * file to this path, and a replaced /dev/stdout would break other programs.
 */
export async function outputPath(option: string, file: string): Promise<string> {
  if (file === '-') throw new UsageError(`${option} requires the name of a file, not -.`)
  const path = resolve(file)
  const found = await stat(path).catch(() => null)
  if (found === null) return path
  if (!found.isFile()) throw new UsageError(`${path} is not a regular file. Choose another path for ${option}.`)
  return realpath(path)
}

/** Writes to `path`.part and renames it when it is complete. */
export async function writeOutputFile(path: string, bytes: AsyncIterable<Uint8Array | string>): Promise<number> {
  const part = `${path}.part`
  const stream = createWriteStream(part, { mode: 0o600 })
  try {
    await pipeline(Readable.from(bytes), stream)
    await rename(part, path)
  } catch (error) {
    await rm(part, { force: true })
    if ((error as NodeJS.ErrnoException).path !== part) throw error
    throw new UsageError(`${path} cannot be written: ${fileErrorReason(error as Error)}.`)
  }
  return stream.bytesWritten
}

/** Creates the file for errors, unless it is one of the files that the command reads. */
export async function createErrorsFile(
  errors: string | undefined,
  inputs: (string | undefined)[],
): Promise<string | undefined> {
  if (errors === undefined) return undefined
  const path = await outputPath('--errors', errors)
  // Rejected rows contain personal data.
  const file = await open(path, 'a', 0o600).catch((error: Error) => {
    throw new UsageError(`${path} cannot be written: ${fileErrorReason(error)}.`)
  })
  const { dev, ino } = await file.stat().finally(() => file.close())
  for (const input of inputs) {
    const found = input === undefined ? null : await stat(input).catch(() => null)
    if (found?.dev === dev && found.ino === ino)
      throw new UsageError(`${path} is read by this command. Choose another file for --errors.`)
  }
  return path
}
