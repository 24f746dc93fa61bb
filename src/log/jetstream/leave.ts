import type pg from 'pg'
import {
  describeOtherWriter,
  type KnownStream,
  leaveStream,
  listStreams,
  listWriters,
  type SeenWriter,
} from './known-streams.ts'
import { NatsRefused, type NatsSettings } from './nats.ts'

/**
 * Leaves the streams that this installation has written to and no longer uses: their unread entries would never be read. Throws if
 * there may be some, with how many and what to do, and while another process writes to one. Returns notes for the log.
 */
export async function leaveStreams(pool: pg.Pool, nats: NatsSettings | null): Promise<string[]> {
  const notes: string[] = []
  refuseOtherWriter((await listWriters(pool)).filter(({ stream }) => stream !== nats?.stream))
  for (const known of await listStreams(pool)) {
    if (known.name === nats?.stream) continue
    // Loads the code for NATS, which most installations never need.
    const { unreadIn } = await import('./scan.ts')
    const unread = known.isDrained ? 0 : await unreadIn(pool, known, nats)
    if (unread === 'taken')
      notes.push(
        `The JetStream stream ${known.name} at ${known.servers} belongs to another database: its entries are not processed here.`,
      )
    else if (unread !== 0) throw new NatsRefused(describeUnread(known, unread))
    refuseOtherWriter(await leaveStream(pool, known.name))
  }
  return notes
}

function refuseOtherWriter([writer]: SeenWriter[]): void {
  if (writer) throw new NatsRefused(describeOtherWriter(writer))
}

function describeUnread({ name, servers, unread: last }: KnownStream, unread: number | { unknown: string }): string {
  const count =
    typeof unread === 'object'
      ? `may contain unprocessed entries (${last} when it was last seen), and ${unread.unknown}`
      : `at ${servers} contains ${unread} unprocessed ${unread === 1 ? 'entry' : 'entries'}`
  return (
    `The JetStream stream ${name} ${count}: without it they would be lost. ` +
    `Drain it first: run \`kontor start --surfaces worker\` with NATS_URL set (and KONTOR_NATS_STREAM=${name}), which accepts nothing new, ` +
    'until `kontor status` shows jetstream.unread 0. Then stop it, and start without NATS_URL.'
  )
}
