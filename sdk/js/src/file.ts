/// <reference types="node" />
import { appendFile, readFile, rename, writeFile } from 'node:fs/promises'
import type { EventStorage, StoredEvent } from './types.ts'

/**
 * Keeps the queue of a Node program in a file: `new Kontor({ …, storage: fileStorage('events.ndjson') })`. Use one file per process. Each
 * line is an event, or the ids of events that were sent.
 */
export function fileStorage(path: string): EventStorage {
  const events = new Map<string, string>()
  let last: Promise<unknown> = Promise.resolve()

  /** Runs after the earlier calls, also if one of them failed. */
  function next<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = last.then(work)
    last = done.catch(() => {})
    return done
  }

  return {
    load: () =>
      next(async (): Promise<StoredEvent[]> => {
        const text = await readFile(path, 'utf8').catch(error => {
          if (error.code === 'ENOENT') return ''
          throw error
        })
        for (const line of text.split('\n')) read(events, line)
        await writeFile(`${path}.new`, [...events.values()].map(line => `${line}\n`).join(''), { mode: 0o600 })
        await rename(`${path}.new`, path)
        return [...events].map(([id, line]) => ({ id, text: line }))
      }),
    add: ({ id, text }) =>
      next(async () => {
        events.set(id, text)
        await appendFile(path, `${text}\n`, { mode: 0o600 })
      }),
    remove: ids =>
      next(async () => {
        for (const id of ids) events.delete(id)
        if (events.size === 0) await writeFile(path, '')
        else await appendFile(path, `${JSON.stringify({ sent: ids })}\n`)
      }),
  }
}

/** The last line may be incomplete after a crash. */
function read(events: Map<string, string>, line: string): void {
  try {
    const { sent, messageId } = JSON.parse(line) as { sent?: string[]; messageId: string }
    if (sent) for (const id of sent) events.delete(id)
    else events.set(messageId, line)
  } catch {}
}
