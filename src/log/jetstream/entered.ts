import type pg from 'pg'
import { enterStream } from './cursors.ts'
import type { Link, Linked, LinkLogger } from './link.ts'
import { tellLost } from './losses.ts'
import { firstAfter } from './scan.ts'
import { confirmedLastSeq, idAt, infoOf } from './stream.ts'

type EnteredOptions = { pool: pg.Pool; settings: { stream: string }; logger?: LinkLogger | undefined }

/** The stream, once its cursors are in PostgreSQL. Publishing does not wait for that: PostgreSQL may be away. */
export function openEntered(
  link: Link,
  { pool, logger, settings: { stream } }: EnteredOptions,
  own: { servers: string; process: string | null; takesOver: boolean },
) {
  let current: Linked | null = null
  let entering: Promise<void> | null = null

  async function enter(linked: Linked): Promise<void> {
    const { created, partitions, lastSeq } = linked.stream
    const { wentBack, lost } = await enterStream(
      pool,
      { name: stream, created, partitions, lastSeq, ...own },
      {
        async state() {
          const info = await infoOf(linked, stream)
          if (info === null) throw new Error(`The stream ${stream} is gone`)
          return { created: info.created, lastSeq: await confirmedLastSeq(linked, stream, info) }
        },
        idAt: seq => idAt(linked, stream, seq),
        firstAfter: (partition, at) => firstAfter(linked, stream, partition, at),
      },
    )
    if (wentBack.length > 0)
      logger?.warn(
        { stream, positions: wentBack },
        'NATS has lost messages that it had acknowledged: the stream is shorter than it was, and is read on from there',
      )
    tellLost(lost, { stream, logger })
    current = linked
  }
  const start = (linked: Linked) => {
    entering ??= enter(linked).finally(() => {
      entering = null
    })
    return entering
  }
  link.onFound(linked => void start(linked).catch(() => {}))

  return {
    /** Null until then; looks after it in the meantime. */
    current(): Linked | null {
      const linked = link.current()
      if (linked === null) link.open()
      if (linked === null || linked === current) return linked
      void start(linked).catch(() => {})
      return null
    },
    async ready(withinMs?: number): Promise<Linked> {
      const linked = await link.ready(withinMs)
      while (linked !== current) await start(linked)
      return linked
    },
  }
}
