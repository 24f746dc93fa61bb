/** Something is wrong with the embedded PostgreSQL; the message is for people: what it is and how to put it right. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}

const causes: { pattern: RegExp; explanation: string }[] = [
  {
    pattern: /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT/,
    explanation: 'The disk is full. Free some space (a gigabyte or more) and start again.',
  },
  {
    pattern: /Read-only file system|EROFS/,
    explanation: 'The file system is read-only. Give a data directory that can be written to.',
  },
  {
    pattern: /Permission denied|EACCES|EPERM|Operation not permitted/,
    explanation:
      'The operating system refused permission. Run this as the user who owns the data directory, ' +
      'or give another one.',
  },
  {
    pattern: /could not create any (?:Unix-domain|TCP\/IP) sockets|Address already in use|could not bind/,
    explanation:
      'PostgreSQL could not open its socket. Another program may hold it, or the directory for it is not writable.',
  },
  {
    pattern: /error while loading shared libraries|Library not loaded|image not found/,
    explanation:
      'A library of the PostgreSQL package does not load here. Reinstall it with `npm install`, ' +
      'or use a PostgreSQL of your own.',
  },
  {
    pattern: /could not map anonymous shared memory|Cannot allocate memory|ENOMEM/,
    explanation: 'There is not enough memory for PostgreSQL. Free some, or raise the limit of the container.',
  },
]

export const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | null)?.code

/** Turns what failed and what the program said about it into words that help. */
export function explain(what: string, output: string): EmbeddedError {
  const cause = causes.find(({ pattern }) => pattern.test(output))
  const lines = output.trim()
  return new EmbeddedError(
    [what, cause?.explanation, lines === '' ? undefined : `Its output:\n${lines}`].filter(Boolean).join('\n'),
  )
}

/** Errors of the file system and of starting programs become EmbeddedErrors; those that are one already pass. */
export async function withExplanation<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof EmbeddedError) throw error
    if (typeof codeOf(error) !== 'string') throw error
    const explained = explain(what, (error as Error).message)
    explained.cause = error
    throw explained
  }
}
