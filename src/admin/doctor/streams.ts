import { type SeenStream, streamsSeen } from '../../log/jetstream/known-streams.ts'
import { ago, type Check, type Finding, some } from './finding.ts'

/**
 * Streams on NATS as PostgreSQL knows of them: what those that write to one have left there. Also for nodes without NATS_URL, whose workers
 * do not read them.
 */
export const streams: Check = async ({ pool, databaseNow, limits }) => {
  const seen = await streamsSeen(pool)
  const isStill = ({ unread, unreadSince, readAt, leftAt }: SeenStream) =>
    leftAt === null &&
    unread > 0 &&
    databaseNow.getTime() - Math.max(readAt.getTime(), unreadSince?.getTime() ?? 0) > limits.backlogS * 1_000
  return seen.filter(isStill).map(stream => unreadFinding(stream, databaseNow))
}

function unreadFinding({ name, servers, unread, seenAt, readAt, writers }: SeenStream, now: Date): Finding {
  const by = writers.map(writer => writer.name).join('; ')
  return {
    code: 'nats_unread',
    what:
      `${some(unread, 'entry', 'entries')} in the stream ${name} at ${servers} ${unread === 1 ? 'is' : 'are'} not processed, as of ${ago(seenAt, now)} ago, ` +
      `and nobody has read on in it for ${ago(readAt, now)}.`,
    means: `What was acknowledged waits there${by && `, and more comes from ${by}`}: no worker runs with the NATS_URL of those that write to it.`,
    help: `\`kontor start --surfaces worker\` with their NATS_URL and KONTOR_NATS_STREAM=${name}`,
  }
}
