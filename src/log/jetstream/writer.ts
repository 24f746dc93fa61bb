import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type pg from 'pg'
import { NatsRefused } from './errors.ts'
import {
  beginWriting,
  endWriting,
  goOnWriting,
  noteLastUnread,
  type SeenWriter,
  type Writer,
} from './known-streams.ts'

const EVERY_MS = 5_000

/** This process as one that writes to the stream: PostgreSQL knows of it for as long as it does. */
export type OpenWriter = {
  process: string
  /** Before anything is written; refuses where another process writes to another stream. */
  begin(): Promise<void>
  /** Which life of the stream it writes to. */
  found(created: string): void
  /** After all was written. False: it never began. */
  end(): Promise<boolean>
}

export function openWriter(pool: pg.Pool, stream: string): OpenWriter {
  const id = randomUUID()
  const name = `${hostname()}, process ${process.pid}`
  let created: string | null = null
  const now = (): Writer => ({ stream, process: id, name, created })
  let timer: NodeJS.Timeout | null = null
  let noting: Promise<unknown> | null = null
  let wasDrained = false

  // PostgreSQL may be away: it is said again when it is back.
  function note(): void {
    noting ??= goOnWriting(pool, now())
      .catch(() => {})
      .finally(() => {
        noting = null
      })
  }

  return {
    process: id,
    async begin() {
      if (timer !== null) return
      const { elsewhere, wasDrained: was } = await beginWriting(pool, now())
      if (elsewhere[0]) throw new NatsRefused(wordsForWriter(elsewhere[0]))
      wasDrained = was
      timer = setInterval(note, EVERY_MS)
      timer.unref()
    },
    found(now) {
      if (created === now) return
      created = now
      if (timer !== null) note()
    },
    async end() {
      if (timer === null) return false
      clearInterval(timer)
      timer = null
      await noting
      await endWriting(pool, now())
      // Whoever never found it has written nothing.
      if (created === null && wasDrained) await noteLastUnread(pool, stream, 0)
      return true
    },
  }
}

export function wordsForWriter({ stream, name, secondsAgo }: SeenWriter): string {
  return (
    `Another node (${name}) writes to the JetStream stream ${stream}, last seen ${secondsAgo} s ago, and this one would not read it. ` +
    `Give all nodes the same NATS_URL and KONTOR_NATS_STREAM, or stop that one first; one that was killed counts as gone after 30 s.`
  )
}
