import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { type Connected, connectTo } from './access.ts'
import { type Cursor, listCursors } from './cursors.ts'
import { reasonOf } from './errors.ts'
import type { KnownStream } from './known-streams.ts'
import { ownerIn } from './owner.ts'
import { lagOf, unreadBefore } from './scan.ts'
import type { NatsAccess, NatsSettings } from './settings.ts'
import { CONFIRMED_WITHIN_MS, infoOf, type Marker, ownerOf, withMarker } from './stream.ts'

const AGAIN_MS = 100

/** How many entries of a stream nobody has processed; or why that cannot be told for sure; or that it is another database's now. */
export async function unreadIn(
  pool: pg.Pool,
  known: KnownStream,
  nats: NatsSettings | null,
): Promise<number | { unknown: string } | 'taken'> {
  const connected = await reach(known, nats?.access ?? null)
  if (connected === null) return { unknown: `it cannot be asked at ${known.servers}` }
  const cursors = await listCursors(pool, known.name)
  const owner = await ownerIn(pool)()
  try {
    // What another database has taken over is that one's to read.
    const info = await infoOf(connected, known.name)
    if (info && (ownerOf(info.config) ?? owner) !== owner) return 'taken'
    return await confirmedUnread(connected, known.name, cursors)
  } catch (error) {
    return {
      unknown: `its servers at ${known.servers} do not confirm that all is read (${reasonOf(error)})`,
    }
  } finally {
    await connected.connection.close()
  }
}

type Count = (cursors: Cursor[]) => Promise<number>

export function confirmedUnread(connected: Connected, stream: string, cursors: Cursor[]): Promise<number> {
  return withCount(connected, stream, count => count(cursors))
}

/**
 * Counts what is unread of all that stands in the stream now, where it is sure that nothing is missing: any server of a cluster
 * answers, and one that lags behind the others, or is cut off from them, has nothing of what it has not heard of.
 */
export async function withCount<T>(
  connected: Connected,
  stream: string,
  work: (count: Count) => Promise<T>,
): Promise<T> {
  const info = await infoOf(connected, stream)
  if (info === null) return work(async () => 0)
  const { config, state } = info
  if (config.num_replicas > 1)
    return withMarker(connected, stream, marker =>
      work(countWith(cursor => surelyBefore(connected, stream, cursor, marker))),
    )
  return work(
    countWith(async cursor =>
      cursor.seq > state.last_seq ? 0 : (await lagOf(connected, stream, cursor)).entries,
    ),
  )
}

function countWith(unreadBehind: (cursor: Cursor) => Promise<number>): Count {
  return async cursors => {
    let unread = 0
    for (const cursor of cursors) unread += await unreadBehind(cursor)
    return unread
  }
}

/** Who lags behind has it a moment later. */
async function surelyBefore(
  connected: Connected,
  stream: string,
  cursor: Cursor,
  marker: Marker,
): Promise<number> {
  const deadline = performance.now() + CONFIRMED_WITHIN_MS
  for (;;) {
    const unread = await unreadBefore(connected, stream, cursor, marker)
    if (unread !== null) return unread
    if (performance.now() > deadline) throw new Error('who answers lags behind the others')
    await sleep(AGAIN_MS)
  }
}

/** Where it was last; or where NATS is now, if the very stream is there: the servers may only have got other names. */
async function reach(known: KnownStream, now: NatsAccess | null): Promise<Connected | null> {
  const access = { ...(now ?? WITHOUT_CREDENTIALS), servers: known.servers.split(',') }
  const there = await connectTo(access, 'kontor').catch(() => null)
  if (there !== null || now === null) return there
  const here = await connectTo(now, 'kontor').catch(() => null)
  const info = here && (await infoOf(here, known.name).catch(() => null))
  if (info?.created === known.created) return here
  await here?.connection.close()
  return null
}

const WITHOUT_CREDENTIALS = { tls: false, user: null, password: null, token: null, credentialsFile: null }
