import type pg from 'pg'
import type { Log } from '../../log/log.ts'
import type { Secrets } from '../secrets.ts'

/** Something that is wrong, in words: what was seen, what it means, and the command that helps. */
export type Finding = { code: FindingCode; what: string; means: string; help: string }

type FindingCode =
  | 'database_missing'
  | 'database_away'
  | 'schema_missing'
  | 'schema_old'
  | 'schema_newer'
  | 'no_server'
  | 'no_worker'
  | 'backlog_old'
  | 'backlog_full'
  | 'partition_stuck'
  | 'transaction_open'
  | 'vacuum_held'
  | 'entries_retried'
  | 'dead_letters_growing'
  | 'source_silent'
  | 'overflow_old'
  | 'clock_off'
  | 'retention_held'
  | 'partitions_missing'
  | 'claims_missing'
  | 'secrets_closed'
  | 'destination_failing'
  | 'destination_disabled'
  | 'archive_failing'
  | 'disk_low'
  | 'not_durable'
  | 'nats_away'
  | 'nats_refused'
  | 'nats_not_synced'
  | 'nats_nearly_full'
  | 'nats_partitions'
  | 'nats_unread'
  | 'nats_foreign_messages'
  | 'nats_unreadable_messages'
  | 'nats_entries_lost'

export type Disk = { path: string; freeBytes: number; totalBytes: number }

/** What the checks look at. */
export type Installation = {
  pool: pg.Pool
  log: Log
  secrets: Secrets
  /** this machine's */
  now: () => Date
  /** PostgreSQL's, as of the beginning */
  databaseNow: Date
  /** Of the embedded PostgreSQL; null: the database is that of DATABASE_URL. */
  dataDir: string | null
  /** Where the database lies, where that can be seen from here. */
  disk: () => Promise<Disk | null>
  /** The part of the disk below which events and webhooks are turned away; null: never. */
  minFreeDisk: number | null
  /** The most entries that may wait to be processed; null: any number. */
  maxBacklog: number | null
  processedRetentionMs: number
  limits: Limits
}

/** From when on something is wrong. */
export type Limits = { backlogS: number; transactionS: number; snapshotS: number }

// A worker takes milliseconds: a minute is a heavy import, or something that stands still.
export const LIMITS: Limits = { backlogS: 60, transactionS: 60, snapshotS: 3_600 }

export type Check = (installation: Installation) => Promise<(Finding | null)[]>

/** A command that reaches this very database: without --data it would be another one, or a new one. */
export function kontor({ dataDir }: Pick<Installation, 'dataDir'>, command: string): string {
  const data = dataDir === null ? '' : ` --data '${dataDir.replaceAll("'", String.raw`'\''`)}'`
  return `kontor ${command}${data}`
}

/** One server has a data directory for itself: there the worker is another surface of it, not another process. */
export function startWorker(installation: Pick<Installation, 'dataDir'>): string {
  if (installation.dataDir === null) return kontor(installation, 'start --surfaces worker')
  return `Stop the server, and start it with worker among its surfaces: ${kontor(installation, 'start --surfaces data,events,inbound,console,worker')}`
}

export function ago(from: Date, to: Date): string {
  return lasting((to.getTime() - from.getTime()) / 1_000)
}

/** One number and its unit: 90 s, 12 min, 30 h, 4 days. */
export function lasting(seconds: number): string {
  const s = Math.max(0, Math.round(seconds))
  if (s < 120) return `${s} s`
  if (s < 7_200) return `${Math.round(s / 60)} min`
  if (s < 172_800) return `${Math.round(s / 3_600)} h`
  return `${Math.round(s / 86_400)} days`
}

export function some(count: number, singular: string, plural = `${singular}s`): string {
  return count === 1 ? `One ${singular}` : `${count.toLocaleString('en')} ${plural}`
}
