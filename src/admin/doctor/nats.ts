import { type Check, kontor } from './finding.ts'

const NEARLY_FULL = 0.8

/** The log on NATS: whether it is there, what it promises, and whether there is room in it. */
export const stream: Check = async installation => {
  const { outside } = installation.log
  if (outside === null) return []
  const { servers, stream: name, reachable, promise, unread, bytes, maxBytes } = await outside.status()
  if (!reachable)
    return [
      {
        code: 'nats_away',
        what: `The stream ${name} cannot be reached at ${servers}.`,
        means:
          'Events and inbound requests are answered 503 until it is back; records and reads go on. Nothing that was acknowledged is lost.',
        help: `Start NATS, and see that NATS_URL leads there; ${kontor(installation, 'start')} says in its log what stands in the way`,
      },
    ]
  return [
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
  ]
}
