// Files that commands write.
import { open, realpath, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileError } from '../admin/error.ts'
import { createPartialFile } from '../admin/partial-file.ts'
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

// One write per line would take ten times as long.
const WRITE_BYTES = 65_536

/** An existing file is replaced when the new one is complete. Returns the number of bytes. */
export async function writeOutputFile(path: string, chunks: AsyncIterable<Uint8Array | string>): Promise<number> {
  const file = await createPartialFile(path)
  let written = 0
  let waiting: Uint8Array[] = []
  let waitingBytes = 0
  const flush = async () => {
    await file.write(Buffer.concat(waiting))
    written += waitingBytes
    waiting = []
    waitingBytes = 0
  }
  try {
    for await (const chunk of chunks) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
      waiting.push(bytes)
      waitingBytes += bytes.length
      if (waitingBytes >= WRITE_BYTES) await flush()
    }
    await flush()
    await file.publish()
  } catch (error) {
    await file.discard()
    throw error
  }
  return written
}

/** Creates the file for errors, unless it is one of the files that the command reads. */
export async function createErrorsFile(
  errors: string | undefined,
  inputs: (string | undefined)[],
): Promise<string | undefined> {
  if (errors === undefined) return undefined
  const path = await outputPath('--errors', errors)
  // Rejected rows contain personal data.
  const file = await open(path, 'a', 0o600).catch(fileError('written', path))
  const { dev, ino } = await file.stat().finally(() => file.close())
  for (const input of inputs) {
    const found = input === undefined ? null : await stat(input).catch(() => null)
    if (found?.dev === dev && found.ino === ino)
      throw new UsageError(`${path} is read by this command. Choose another file for --errors.`)
  }
  return path
}
