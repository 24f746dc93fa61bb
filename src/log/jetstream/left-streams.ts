import type pg from 'pg'
import { NatsRefused } from './errors.ts'
import { type KnownStream, leaveStream, listStreams, listWriters, type SeenWriter } from './known-streams.ts'
import type { NatsSettings } from './settings.ts'
import { wordsForWriter } from './writer.ts'

/**
 * Streams that this installation has written to and does not any more: nobody would read what is left in them. Throws where that
 * may be something, and says how much and what to do; and while somebody still writes. Returns what there is to say of those that were left.
 */
export async function leaveStreams(pool: pg.Pool, nats: NatsSettings | null): Promise<string[]> {
  const notes: string[] = []
  refuseBeside((await listWriters(pool)).filter(({ stream }) => stream !== nats?.stream))
  for (const known of await listStreams(pool)) {
    if (known.name === nats?.stream) continue
    // Loads the client of NATS, which most installations never need.
    const { unreadIn } = await import('./unread.ts')
    const unread = known.isDrained ? 0 : await unreadIn(pool, known, nats)
    if (unread === 'taken')
      notes.push(
        `The JetStream stream ${known.name} at ${known.servers} belongs to another database: what it holds is that one's, and is not processed here.`,
      )
    else if (unread !== 0) throw new NatsRefused(wordsFor(known, unread))
    refuseBeside(await leaveStream(pool, known.name))
  }
  return notes
}

function refuseBeside([writer]: SeenWriter[]): void {
  if (writer) throw new NatsRefused(wordsForWriter(writer))
}

function wordsFor(
  { name, servers, unread: last }: KnownStream,
  unread: number | { unknown: string },
): string {
  const count =
    typeof unread === 'object'
      ? `may hold entries that are not processed (${last} when it was last seen), and ${unread.unknown}`
      : `at ${servers} holds ${unread} ${unread === 1 ? 'entry that is' : 'entries that are'} not processed`
  return (
    `The JetStream stream ${name} ${count}: without it they would be lost. ` +
    `Drain it first: run \`kontor start --surfaces worker\` with NATS_URL set (and KONTOR_NATS_STREAM=${name}), so that nothing new comes in, ` +
    'until `kontor status` shows jetstream.unread 0; then stop it, and start without.'
  )
}
