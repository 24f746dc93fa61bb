/** A failure of the embedded PostgreSQL. The message explains to the user what is wrong and how to fix it. */
export class EmbeddedError extends Error {
  override name = 'EmbeddedError'
}

const causes: { pattern: RegExp; explanation: string }[] = [
  {
    pattern: /No space left on device|ENOSPC|Disk quota exceeded|EDQUOT/,
    explanation: 'The disk is full. Free at least one gigabyte and restart.',
  },
  {
    pattern: /Read-only file system|EROFS/,
    explanation: 'The file system is read-only. Make it writable, or use another data directory.',
  },
  {
    pattern: /ENOENT.*mkdir/,
    explanation: 'No directory can be created there. Use another data directory.',
  },
  {
    pattern: /Permission denied|EACCES|EPERM|Operation not permitted/,
    explanation:
      'The operating system denied permission. Run this as the user who owns the data directory, ' +
      'or use another data directory.',
  },
  {
    pattern: /could not create any (?:Unix-domain|TCP\/IP) sockets|Address already in use|could not bind/,
    explanation: 'PostgreSQL could not open its socket. Another program may use it, or its directory is not writable.',
  },
  {
    pattern: /error while loading shared libraries|Library not loaded|image not found/,
    explanation:
      'A library of the PostgreSQL package cannot be loaded. Reinstall the package with `npm install`, ' +
      'or use your own PostgreSQL.',
  },
  {
    pattern: /could not map anonymous shared memory|Cannot allocate memory|ENOMEM/,
    explanation: 'There is not enough memory for PostgreSQL. Free memory, or raise the memory limit of the container.',
  },
]

export const errorCode = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | null)?.code

/** The explanation of a known cause, by the output of a program. */
export const findCause = (output: string) => causes.find(({ pattern }) => pattern.test(output))?.explanation

/** Builds an error from what failed and the program's output, with an explanation if the cause is known. */
export function explain(what: string, output: string): EmbeddedError {
  const lines = output.trim()
  return new EmbeddedError(
    [what, findCause(output), lines === '' ? undefined : `Its output:\n${lines}`].filter(Boolean).join('\n'),
  )
}

/** Converts errors of the file system and of starting programs to EmbeddedErrors. */
export async function withExplanation<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof EmbeddedError) throw error
    if (typeof errorCode(error) !== 'string') throw error
    const explained = explain(what, (error as Error).message)
    explained.cause = error
    throw explained
  }
}
