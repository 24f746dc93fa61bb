import { readFile } from 'node:fs/promises'
import { UsageError } from './errors.ts'

/** Reads a file given on the command line. */
export async function readTextFile(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new UsageError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}
