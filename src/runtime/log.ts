import type pg from 'pg'
import type { Config } from '../config/config.ts'
import type { LinkLogger } from '../log/jetstream/link.ts'
import type { NatsAccess, NatsSettings } from '../log/jetstream/settings.ts'
import { type Log, LogUnavailable } from '../log/log.ts'
import { initialisePostgresLog } from '../log/postgres/initialise.ts'
import { openPostgresLog } from '../log/postgres/log.ts'
import { isUnavailable } from '../postgres/database.ts'
import { ensurePartitions } from '../postgres/partitions.ts'

export type OpenedLog = { log: Log; close(): Promise<void> }

type LogOptions = {
  pool: pg.Pool
  nats: NatsSettings | null
  /** How NATS lists the connection. */
  name: string
  isWriter?: boolean
  logger?: LinkLogger
}

/** The log of the installation: in PostgreSQL, or with NATS_URL in JetStream for events. It connects when it is first used. */
export async function openLog({ pool, nats, ...options }: LogOptions): Promise<OpenedLog> {
  const postgres = openPostgresLog({ pool })
  if (nats === null) return { log: postgres, close: async () => {} }
  // A tenth of a second of loading, for those who use it.
  const { openJetStreamLog } = await import('../log/jetstream/log.ts')
  const jetstream = openJetStreamLog({ pool, settings: nats, postgres, ...options })
  return { log: jetstream, close: jetstream.close }
}

/** Makes what entries are written to, where it is not there yet. */
export async function initialiseLog(
  pool: pg.Pool,
  { partitions, now }: { partitions: number; now: Date },
): Promise<void> {
  await ensurePartitions(pool, now)
  await initialisePostgresLog(pool, partitions)
}

/** Storage is away, whichever: worth trying again, nobody's fault. */
export function isStorageAway(error: unknown): boolean {
  return error instanceof LogUnavailable || isUnavailable(error)
}

export function natsOf(config: Config): NatsSettings | null {
  if (config.natsUrl === null) return null
  return {
    access: { ...config.natsUrl, credentialsFile: config.natsCreds },
    systemAccess: systemAccessOf(config),
    stream: config.natsStream,
    partitions: config.natsPartitions,
    maxBytes: config.natsMaxBytes,
    maxAgeMs: config.logRetentionMs,
    replicas: config.natsReplicas,
    isSynced: config.natsSynced,
    allowsUnsynced: config.natsAllowUnsynced,
    takesOver: config.natsTakeOver,
  }
}

/** With a credentials file alone, at the same servers. */
function systemAccessOf({ natsUrl, natsSystemUrl, natsSystemCreds }: Config): NatsAccess | null {
  if (natsSystemUrl === null && natsSystemCreds === null) return null
  const { servers, tls } = natsUrl!
  const address = natsSystemUrl ?? { servers, tls, user: null, password: null, token: null }
  return { ...address, credentialsFile: natsSystemCreds }
}
