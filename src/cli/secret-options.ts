import { text } from 'node:stream/consumers'
import { UsageError } from './errors.ts'
import { readTextFile } from './text-file.ts'

type Given = { value: string | undefined; file: string | undefined }

/**
 * Reads secrets given as a value, on standard input (`-`) or in a file. Every user of the machine can see a command line, and
 * the shell stores it. A trailing newline is not part of the secret.
 */
export async function secretOptions<Name extends string>(
  given: Record<Name, Given>,
): Promise<{ [name in Name]: string | undefined }> {
  const entries = Object.entries(given) as [Name, Given][]
  if (entries.filter(([, { value }]) => value === '-').length > 1)
    throw new UsageError('Only one secret can be read from standard input.')
  const read: Partial<Record<Name, string | undefined>> = {}
  for (const [name, { value, file }] of entries) {
    if (value !== undefined && file !== undefined)
      throw new UsageError(`Give either --${name} or --${name}-file, not both.`)
    if (value === '-') read[name] = withoutLineEnd(await text(process.stdin))
    else read[name] = file === undefined ? value : withoutLineEnd(await readTextFile(file))
  }
  return read as { [name in Name]: string | undefined }
}

function withoutLineEnd(secret: string): string {
  return secret.replace(/\r?\n$/, '')
}
