import { text } from 'node:stream/consumers'
import { UsageError } from './errors.ts'
import { readTextFile } from './text-file.ts'

type Given = { value: string | undefined; file: string | undefined }

/**
 * Secrets given by hand: as they stand, from standard input (`-`), or from a file. On a command line everybody on the
 * machine can read them, and the shell keeps them. A line end after a secret is not part of it.
 */
export async function secretOptions<Name extends string>(
  given: Record<Name, Given>,
): Promise<{ [name in Name]: string | undefined }> {
  const entries = Object.entries(given) as [Name, Given][]
  if (entries.filter(([, { value }]) => value === '-').length > 1)
    throw new UsageError('Only one secret can come from standard input.')
  const read: Partial<Record<Name, string | undefined>> = {}
  for (const [name, { value, file }] of entries) {
    if (value !== undefined && file !== undefined)
      throw new UsageError(`Give --${name} or --${name}-file, not both.`)
    if (value === '-') read[name] = withoutLineEnd(await text(process.stdin))
    else read[name] = file === undefined ? value : withoutLineEnd(await readTextFile(file))
  }
  return read as { [name in Name]: string | undefined }
}

function withoutLineEnd(secret: string): string {
  return secret.replace(/\r?\n$/, '')
}
