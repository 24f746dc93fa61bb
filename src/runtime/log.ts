import type pg from 'pg'
import type { Config } from '../config/config.ts'
import type { LogLogger, NatsAccess, NatsSettings } from '../log/jetstream/nats.ts'
import { type Log, LogUnavailable } from '../log/log.ts'
import { initializePostgresLog, openPostgresLog } from '../log/postgres/log.ts'
import { isTransient } from '../postgres/database.ts'
import { ensurePartitions } from '../postgres/partitions.ts'

export type OpenedLog = { log: Log; close(): Promise<void> }

type LogOptions = {
  pool: pg.Pool
  nats: NatsSettings | null
  /** The name of the connection at NATS. */
  name: string
  isWriter?: boolean
  directory?: string
  logger?: LogLogger
}

/** The log in PostgreSQL, or with NATS_URL in JetStream for events. Connects on first use. */
export async function openLog({ pool, nats, ...options }: LogOptions): Promise<OpenedLog> {
  const postgres = openPostgresLog({ pool })
  if (nats === null) return { log: postgres, close: async () => {} }
  // Loading the module takes 0.1 s.
  const { openJetStreamLog } = await import('../log/jetstream/log.ts')
  const jetstream = openJetStreamLog({ pool, settings: nats, postgres, ...options })
  return { log: jetstream, close: jetstream.close }
}

/** Creates partitions and cursors if they do not exist yet. */
export async function initializeLog(
  pool: pg.Pool,
  { partitions, now }: { partitions: number; now: Date },
): Promise<void> {
  await ensurePartitions(pool, now)
  await initializePostgresLog(pool, partitions)
}

/** PostgreSQL or NATS is unavailable, or PostgreSQL gave up because of a lock, a conflict or a timeout: retrying may help. */
export function isStorageUnavailable(error: unknown): boolean {
  return error instanceof LogUnavailable || isTransient(error)
}

export function toNatsSettings(config: Config): NatsSettings | null {
  if (config.natsUrl === null) return null
  return {
    access: { ...config.natsUrl, credentialsFile: config.natsCreds },
    systemAccess: toSystemAccess(config),
    stream: config.natsStream,
    partitions: config.natsPartitions,
    maxBytes: config.natsMaxBytes,
    maxAgeMs: config.logRetentionMs,
    replicas: config.natsReplicas,
    isSynced: config.natsSynced,
    takesOver: config.natsTakeOver,
  }
}

/** With only a credentials file, the same servers are used. */
function toSystemAccess({ natsUrl, natsSystemUrl, natsSystemCreds }: Config): NatsAccess | null {
  if (natsSystemUrl === null && natsSystemCreds === null) return null
  const { servers, tls } = natsUrl!
  const address = natsSystemUrl ?? { servers, tls, user: null, password: null, token: null }
  return { ...address, credentialsFile: natsSystemCreds }
}
