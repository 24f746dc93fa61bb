import type pg from 'pg'
import { connectTo } from './access.ts'
import { type KnownStream, leaveStream, listCursors, listStreams } from './cursors.ts'
import { NatsRefused } from './errors.ts'
import { lagOf } from './scan.ts'
import type { NatsAccess, NatsSettings } from './settings.ts'
import { infoOf } from './stream.ts'

/**
 * Streams that this installation has written to and does not any more: nobody would read what is left in them. Throws where that
 * may be something, and says how much and what to do.
 */
export async function leaveStreams(pool: pg.Pool, nats: NatsSettings | null): Promise<void> {
  for (const known of await listStreams(pool)) {
    if (known.name === nats?.stream) continue
    const unread = known.isDrained ? 0 : await unreadIn(pool, known, nats)
    if (unread !== 0) throw new NatsRefused(wordsFor(known, unread))
    await leaveStream(pool, known.name)
  }
}

/** Null: NATS does not answer there. */
async function unreadIn(
  pool: pg.Pool,
  known: KnownStream,
  nats: NatsSettings | null,
): Promise<number | null> {
  const access = nats?.access ?? withoutCredentials(known.servers)
  const connected = await connectTo(access, 'kontor').catch(() => null)
  if (connected === null) return null
  try {
    const info = await infoOf(connected, known.name)
    if (info === null) return 0
    const stream = { created: info.created, partitions: 0, replicas: 0, lastSeq: 0, maxBytes: 0 }
    const linked = { ...connected, stream: { ...stream, promise: 'process-crash only' as const } }
    let unread = 0
    for (const cursor of await listCursors(pool, known.name))
      unread += (await lagOf(linked, known.name, cursor)).entries
    return unread
  } catch {
    return null
  } finally {
    await connected.connection.close()
  }
}

function withoutCredentials(servers: string): NatsAccess {
  const nobody = { user: null, password: null, token: null, credentialsFile: null }
  return { servers: servers.split(','), tls: false, ...nobody }
}

function wordsFor({ name, servers, unread: last }: KnownStream, unread: number | null): string {
  const count =
    unread === null
      ? `may hold entries that are not processed (${last} when it was last seen), and it cannot be asked at ${servers}`
      : `at ${servers} holds ${unread} ${unread === 1 ? 'entry that is' : 'entries that are'} not processed`
  return (
    `The JetStream stream ${name} ${count}: without it they would be lost. ` +
    `Drain it first: run \`kontor start --surfaces worker\` with NATS_URL set (and KONTOR_NATS_STREAM=${name}), so that nothing new comes in, ` +
    'until `kontor status` shows jetstream.unread 0; then stop it, and start without.'
  )
}
