import type { Lost, PassedOver } from '../../log/log.ts'
import { ago, type Check, type Finding, kontor, some } from './finding.ts'

const NEARLY_FULL = 0.8

/** The log on NATS: whether it is there, what it promises, and whether there is room in it. */
export const stream: Check = async installation => {
  const { outside } = installation.log
  if (outside === null) return []
  const {
    servers,
    stream: name,
    reachable,
    promise,
    unread,
    bytes,
    maxBytes,
    refused,
    differs,
    passedOver,
    lost,
  } = await outside.status()
  const passed = [
    lostFinding(name, lost, installation.databaseNow),
    ...passedOverFindings(passedOver, installation.databaseNow),
  ]
  if (refused !== null)
    return [
      {
        code: 'nats_refused',
        what: refused,
        means:
          'Until then a server does not start, or answers events and inbound requests 503. Nothing is lost.',
        help: `Put it right, then ${kontor(installation, 'start')}`,
      },
      ...passed,
    ]
  if (!reachable)
    return [
      {
        code: 'nats_away',
        what: `The stream ${name} cannot be reached at ${servers}.`,
        means:
          'Events and inbound requests are answered 503 until it is back; records and reads go on. Nothing that was acknowledged is lost.',
        help: `Start NATS, and see that NATS_URL leads there; ${kontor(installation, 'start')} says in its log what stands in the way`,
      },
      ...passed,
    ]
  return [
    differs === null
      ? null
      : {
          code: 'nats_partitions',
          what: differs,
          means: 'Nothing is wrong with what is there; but the setting has no effect.',
          help: 'Set KONTOR_NATS_PARTITIONS to the number that the stream has',
        },
    promise === 'synced'
      ? null
      : {
          code: 'nats_not_synced',
          what: `An acknowledged event is kept by the stream ${name} with the promise "${promise}".`,
          means:
            promise === 'replicated'
              ? 'A power failure of most servers at once can take what was acknowledged in the last two minutes.'
              : 'A power failure of the machine that NATS runs on can take what was acknowledged in the last two minutes.',
          help: 'Set `sync_interval: always` in the jetstream block of every NATS server, then KONTOR_NATS_SYNCED=true',
        },
    (unread ?? 0) > 0 && (bytes ?? 0) > maxBytes * NEARLY_FULL
      ? {
          code: 'nats_nearly_full',
          what: `The stream ${name} holds ${bytes!.toLocaleString('en')} of ${maxBytes.toLocaleString('en')} bytes, and ${unread!.toLocaleString('en')} entries in it are not processed.`,
          means:
            'When it is full, events and inbound requests are answered 503 until something of it is processed.',
          help: 'Start another `kontor start --surfaces worker`, or raise KONTOR_NATS_MAX_BYTES',
        }
      : null,
    ...passed,
  ]
}

function lostFinding(stream: string, lost: Lost | null, now: Date): Finding | null {
  if (lost === null) return null
  return {
    code: 'nats_entries_lost',
    what: `Up to ${some(lost.entries, 'entry', 'entries').toLowerCase()} that had been accepted and not processed are gone from the stream ${stream}: last seen there ${lost.seenAt.toISOString()}, noticed ${ago(lost.noticedAt, now)} ago.`,
    means:
      'The stream was deleted or purged by hand, its server lost its disk, or NATS_URL leads to another one. These events never take effect.',
    help: 'Have them sent again by whoever still has them: what has ids counts once. Where NATS_URL was changed, drain the old stream: docs/guides/scaling.md',
  }
}

function passedOverFindings({ foreign, unreadable }: PassedOver, now: Date): (Finding | null)[] {
  return [
    foreign && {
      code: 'nats_foreign_messages',
      what: `${some(foreign.messages, 'message')} in the stream ${foreign.messages === 1 ? 'was' : 'were'} not from Kontor, the last one ${foreign.seq} of ${foreign.subject}, ${ago(foreign.at, now)} ago.`,
      means:
        'They were passed over. Nothing waits for them and nothing is lost, but somebody else publishes there.',
      help: `Let nobody but Kontor publish to ${foreign.subject.replace(/[^.]*$/, '>')}: permissions of NATS users do that`,
    },
    unreadable && {
      code: 'nats_unreadable_messages',
      what: `${some(unreadable.messages, 'message')} of Kontor's own could not be read, the last one ${unreadable.seq} of ${unreadable.subject}, ${ago(unreadable.at, now)} ago.`,
      means:
        'A newer version wrote them, or they were damaged. Those of one tenant are among its dead letters; what the others held is in the column payload of jetstream_passed_over, until the log retention (KONTOR_LOG_RETENTION) or an erasure takes it.',
      help: 'kontor dead-letters list; where a newer version has run on it, start that version again',
    },
  ]
}
