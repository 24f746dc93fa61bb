import type pg from 'pg'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { DAY_MS, HOUR_MS } from '../domain/time.ts'
import { type SeenStream, streamsSeen } from '../log/jetstream/known-streams.ts'
import type { Log, Lost, SkippedMessages } from '../log/log.ts'
import { newestAhead } from '../log/postgres/reader.ts'
import { databaseNow } from '../postgres/clock.ts'
import { isUnavailable } from '../postgres/database.ts'
import {
  type AppliedMigration,
  appliedMigrations,
  foreignMigration,
  missingMigrations,
  PREVIEW_SCHEMA,
} from '../postgres/migrate.ts'
import { momentsWithoutPartition, partitionedTables } from '../postgres/partitions.ts'
import { rootTables } from '../postgres/tables.ts'
import { archiveProgress, archiveState } from '../store/archive/archive.ts'
import { listFailing } from '../store/destinations/destinations.ts'
import { listStalled } from '../store/entries/parked.ts'
import { retentionHeldBy } from '../store/entries/retention-clock.ts'
import {
  countSessions,
  daysWithOperations,
  listLongTransactions,
  listUnsafeSettings,
  monthsWithEvents,
  type OpenTransaction,
  recentDeadLetters,
  silentSources,
  summarizeParked,
} from '../store/health/health.ts'
import { countBacklog, listBacklogged } from '../store/inbound/overflow.ts'
import { kontorCommand } from './error.ts'
import { type Secrets, unopenedSecrets } from './secrets.ts'

type Options = Omit<Installation, 'databaseNow' | 'limits'> & { limits?: Limits }

/** Everything that is found wrong; nothing is changed. */
export async function diagnose(options: Options): Promise<Finding[]> {
  try {
    return await examine({ limits: LIMITS, ...options, databaseNow: await databaseNow(options.pool) })
  } catch (error) {
    if (!isUnavailable(error)) throw error
    return [
      {
        code: 'database_away',
        what: `PostgreSQL cannot be reached: ${(error as Error).message}`,
        means: 'Everything is answered 503 until it is back; nothing that was acknowledged is lost.',
        help: 'Start PostgreSQL, and see that DATABASE_URL leads there: psql "$DATABASE_URL" -c \'select 1\'',
      },
    ]
  }
}

/** Nothing to look at, and nothing is made: a directory that was mistyped stays as it is. */
export function databaseMissing(dataDir: string): Finding {
  return {
    code: 'database_missing',
    what: `There is no database in ${dataDir}.`,
    means: 'No server has ever started on it, or this is not the data directory of the server.',
    help: `${kontorCommand({ dataDir }, 'start')}, or give the right --data or DATABASE_URL`,
  }
}

async function examine(installation: Installation): Promise<Finding[]> {
  const schema = await schemaOf(installation)
  const checks = schema === null ? [...OF_ANY_DATABASE, ...OF_KONTOR] : OF_ANY_DATABASE
  const found: (Finding | null)[] = [schema]
  for (const check of checks) found.push(...(await check(installation)))
  return found.filter(finding => finding !== null)
}

/** Why the tables are not those that this version knows; null: they are. */
async function schemaOf(installation: Installation): Promise<Finding | null> {
  const { pool } = installation
  if (!(await rootTables(pool)).includes('schema_migrations'))
    return {
      code: 'schema_missing',
      what: 'The database has no tables of Kontor.',
      means: 'No server has ever started on it, or this is not the database of the server.',
      help: `${kontorCommand(installation, 'start')}, or give the right --data or DATABASE_URL`,
    }
  const done: AppliedMigration[] = await appliedMigrations(pool)
  const foreign = foreignMigration(done)
  if (foreign?.reason === 'preview')
    return {
      code: 'schema_newer',
      what: `The database ${PREVIEW_SCHEMA}`,
      means: 'This version does not start on it.',
      help: 'Use the version that created it, or start with an empty database',
    }
  if (foreign)
    return {
      code: 'schema_newer',
      what: `The database has the migration ${foreign.name}, which this version does not know.`,
      means: 'It was made by a newer version, and this one does not start on it.',
      help: 'Use the version that made it, or a newer one',
    }
  const missing = missingMigrations(done)
  if (missing.length === 0) return null
  return {
    code: 'schema_old',
    what: `The database is of an older version: it lacks ${missing.join(', ')}.`,
    means: 'This version has not started on it yet. More can be told once it has.',
    help: `${kontorCommand(installation, 'backup --to FILE')}, then ${kontorCommand(installation, 'migrate')}`,
  }
}

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
type Installation = {
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
type Limits = { backlogS: number; transactionS: number; snapshotS: number }

// A worker takes milliseconds: a minute is a heavy import, or something that stands still.
export const LIMITS: Limits = { backlogS: 60, transactionS: 60, snapshotS: 3_600 }

type Check = (installation: Installation) => Promise<(Finding | null)[]>

/** One server has a data directory for itself: there the worker is another surface of it, not another process. */
function startWorkerCommand(installation: Pick<Installation, 'dataDir'>): string {
  if (installation.dataDir === null) return kontorCommand(installation, 'start --surfaces worker')
  return `Stop the server, and start it with worker among its surfaces: ${kontorCommand(installation, 'start --surfaces data,events,inbound,console,worker')}`
}

function formatAge(from: Date, to: Date): string {
  return formatDuration((to.getTime() - from.getTime()) / 1_000)
}

/** One number and its unit: 90 s, 12 min, 30 h, 4 days. */
function formatDuration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds))
  if (s < 120) return `${s} s`
  if (s < 7_200) return `${Math.round(s / 60)} min`
  if (s < 172_800) return `${Math.round(s / 3_600)} h`
  return `${Math.round(s / 86_400)} days`
}

function formatCount(count: number, singular: string, plural = `${singular}s`): string {
  return count === 1 ? `One ${singular}` : `${count.toLocaleString('en')} ${plural}`
}

const CLOCK_OFF_S = 10
const OLD_PARKED_MS = 5 * 60_000
const REJECTED_A_DAY = 100
const NEARLY_FULL = 0.8

/** Whether someone processes what comes in, and keeps up. */
const checkProcessing: Check = async installation => {
  const { pool, log, databaseNow, limits, dataDir, maxBacklog } = installation
  const { servers, workers } = await countSessions(pool)
  const lags = (await log.lag()).filter(({ entries }) => entries > 0)
  const waiting = lags.reduce((sum, { entries }) => sum + entries, 0)
  const oldest = lags.flatMap(({ oldestAt }) => oldestAt ?? []).sort((a, b) => a.getTime() - b.getTime())[0]
  const isOld = oldest !== undefined && databaseNow.getTime() - oldest.getTime() > limits.backlogS * 1_000
  const more = `raise KONTOR_WORKERS${dataDir === null ? ', or start another `kontor start --surfaces worker`' : ''}`
  return [
    servers + workers > 0
      ? null
      : {
          code: 'no_server',
          what: 'No server is connected to this database.',
          means: 'Nothing is accepted and nothing is processed.',
          help: kontorCommand(installation, 'start'),
        },
    servers === 0 || workers > 0
      ? null
      : {
          code: 'no_worker',
          what: `No worker is connected to this database, and ${waiting.toLocaleString('en')} entries wait.`,
          means: 'Everything is accepted, and nothing of it shows.',
          help: startWorkerCommand(installation),
        },
    isOld
      ? {
          code: 'backlog_old',
          what: `${formatCount(waiting, 'entry', 'entries')} wait to be processed in ${lags.length} of the log's partitions, the oldest for ${formatAge(oldest, databaseNow)}.`,
          means: 'What was accepted since then does not show yet. Nothing is lost.',
          help: `The other findings tell why. Where there are none, more arrives than is processed: ${more}`,
        }
      : null,
    maxBacklog !== null && waiting >= maxBacklog * NEARLY_FULL
      ? {
          code: 'backlog_full',
          what: `${formatCount(waiting, 'entry', 'entries')} wait to be processed, and KONTOR_MAX_BACKLOG is ${maxBacklog.toLocaleString('en')}.`,
          means:
            'At that number events, webhooks and record writes are answered 503 until less waits; senders keep what they have.',
          help: `See that workers run and keep up: ${more}; or raise KONTOR_MAX_BACKLOG, where the disk has room`,
        }
      : null,
  ]
}

/** Partitions whose work fails as a whole, and entries that fail again and again. */
const checkFailures: Check = async installation => {
  const { pool, databaseNow } = installation
  const stalled = await listStalled(pool)
  const parked = await summarizeParked(pool)
  const isOld = parked !== null && databaseNow.getTime() - parked.oldestAt.getTime() > OLD_PARKED_MS
  const letters = await recentDeadLetters(pool, 24)
  const isGrowing = letters.failed > 0 || letters.rejected > REJECTED_A_DAY
  return [
    ...stalled.map(
      ({ partition, failedAt, error }): Finding => ({
        code: 'partition_stuck',
        what: `Partition ${partition} of the log failed ${formatAge(failedAt, databaseNow)} ago: ${error}`,
        means: 'What is in it waits, and so does everything of the same keys that comes after.',
        help: `Look for the same error in the log of the worker; it is tried again by itself. ${kontorCommand(installation, 'status')} shows whether "waiting" falls`,
      }),
    ),
    isOld
      ? {
          code: 'entries_retried',
          what: `${formatCount(parked.entries, 'entry', 'entries')} failed and wait to be tried again, the oldest for ${formatAge(parked.oldestAt, databaseNow)} and ${parked.attempts} attempts. Last error: ${parked.error ?? 'none'}`,
          means:
            'They become dead letters when the attempts are used up; later entries of the same key wait behind them.',
          help: `Remove the cause; then ${kontorCommand(installation, 'dead-letters list --reason failed')} shows what had to be given up`,
        }
      : null,
    isGrowing
      ? {
          code: 'dead_letters_growing',
          what: `In the last 24 hours ${letters.failed.toLocaleString('en')} entries could not be applied and ${letters.rejected.toLocaleString('en')} items were not valid.${letters.error ? ` Newest error: ${letters.error}` : ''}`,
          means: 'They are kept as dead letters and take no effect until they are replayed.',
          help: `${kontorCommand(installation, 'dead-letters list --limit 20')}, then ${kontorCommand(installation, 'dead-letters replay --reason failed')}`,
        }
      : null,
  ]
}

/** Transactions that hold back the log's readers, or the cleaning up. */
const checkTransactions: Check = async ({ pool, limits, dataDir }) => {
  const open = await listLongTransactions(pool, Math.min(limits.transactionS, limits.snapshotS))
  return open.flatMap((transaction): Finding[] => {
    const { holdsLog, seconds } = transaction
    const help = endCommand(transaction, dataDir !== null)
    if (holdsLog && seconds > limits.transactionS)
      return [
        {
          code: 'transaction_open',
          what: `${describeTransaction(transaction)} has had a write transaction open for ${formatDuration(seconds)}.`,
          means:
            'Workers read only what was accepted before it began: everything since then waits, in every tenant.',
          help,
        },
      ]
    if (holdsLog || seconds <= limits.snapshotS) return []
    return [
      {
        code: 'vacuum_held',
        what: `${describeTransaction(transaction)} has looked at one moment for ${formatDuration(seconds)}.`,
        means:
          'Deleted and replaced rows cannot be cleaned up until it ends: tables grow, queries slow down.',
        help,
      },
    ]
  })
}

function describeTransaction({ pid, application, database, gid, state }: OpenTransaction): string {
  if (gid !== null) return `The prepared transaction ${JSON.stringify(gid)} in database ${database}`
  return `Process ${pid} (${application || 'no name'}, database ${database}, ${state})`
}

/** Where PostgreSQL is embedded there is no psql and no DATABASE_URL, but its processes are on this machine. */
function endCommand({ pid, gid }: OpenTransaction, isEmbedded: boolean): string {
  if (isEmbedded && gid === null) return `kill ${pid}`
  return gid === null
    ? `psql "$DATABASE_URL" -c 'select pg_terminate_backend(${pid})', and idle_in_transaction_session_timeout against the next one`
    : `psql "$DATABASE_URL" -c "rollback prepared '${gid.replaceAll("'", "''")}'"`
}

/** What should be there by itself: retention, partitions for the coming day, times that are past. */
const checkMaintenance: Check = async installation => {
  const { pool, databaseNow, dataDir } = installation
  const held = await retentionHeldBy(pool)
  const tomorrow = new Date(databaseNow.getTime() + DAY_MS)
  const newest = await newestAhead(pool, CLOCK_OFF_S)
  const lacking: string[] = []
  for (const table of partitionedTables)
    if ((await momentsWithoutPartition(pool, table, [databaseNow, tomorrow])).length > 0) lacking.push(table)
  return [
    held === null
      ? null
      : {
          code: 'retention_held',
          what: `Retention drops nothing: ${held}`,
          means: 'What has expired stays, and the disk fills.',
          help:
            dataDir === null
              ? 'Compare `date -u` with `psql "$DATABASE_URL" -c \'select now()\'`, and set the clock that is wrong'
              : 'timedatectl set-ntp true, then compare `date -u` with another machine',
        },
    newest === null
      ? null
      : {
          code: 'clock_off',
          what: `The log has entries from ${formatAge(databaseNow, newest)} ahead of PostgreSQL's clock: a node that took them in is ahead, or PostgreSQL is behind.`,
          means:
            'Times of receipt are wrong; beyond 5 minutes, signatures are refused and events get another time.',
          help: `${kontorCommand(installation, 'doctor')} on each machine that serves tells which; there: timedatectl set-ntp true`,
        },
    lacking.length > 0
      ? {
          code: 'partitions_missing',
          what: `No partition for today or tomorrow in ${lacking.join(', ')}.`,
          means: 'They are made by workers, once an hour: none has run for days, or it may not make tables.',
          help: `${startWorkerCommand(installation)}, as the user who owns the tables`,
        }
      : null,
  ]
}

/** What recognises repeats, as long as it is to be kept. */
const checkClaims: Check = async ({ pool, processedRetentionMs }) => {
  const keys = await momentsWithoutPartition(pool, 'idempotency_keys', await daysWithOperations(pool, 29))
  const retentionDays = Math.floor(processedRetentionMs / DAY_MS)
  const ids = await momentsWithoutPartition(
    pool,
    'processed_events',
    await monthsWithEvents(pool, retentionDays),
  )
  return [
    keys.length + ids.length > 0
      ? {
          code: 'claims_missing',
          what: `What recognises repeats is gone for a time that is still to be kept: ${[
            ...keys.map(day => `idempotency keys of ${day.toISOString().slice(0, 10)}`),
            ...ids.map(month => `event ids of ${month.toISOString().slice(0, 7)}`),
          ].join(', ')}.`,
          means: 'A repeat of a write or an event from then is taken for new.',
          help: 'Bring it back from a backup (kontor restore), or keep senders from repeating what is as old as that',
        }
      : null,
  ]
}

/** Sources that fell silent, that are held back, or whose secrets do not open. */
const checkSources: Check = async installation => {
  const { pool, secrets, databaseNow } = installation
  const silent = await silentSources(pool, { days: 8, activeDays: 3 })
  const backlogs = await countBacklog(pool, await listBacklogged(pool))
  const closed = new Set((await unopenedSecrets(pool, secrets)).map(({ ownerId }) => ownerId))
  return [
    ...silent.map(
      ({ id, name, tenantId, lastAt, days }): Finding => ({
        code: 'source_silent',
        what: `Source ${id} (${name}, tenant ${publicTenantId(tenantId)}) has heard nothing for ${formatAge(lastAt, databaseNow)}; it did on ${days} of the days before.`,
        means: 'The sender has stopped, or is refused.',
        help: `${kontorCommand(installation, `source test ${id}`)}; what was refused is in the console, under Sources`,
      }),
    ),
    ...backlogs
      .filter(({ oldestAt }) => databaseNow.getTime() - oldestAt.getTime() > HOUR_MS)
      .map(
        ({ sourceId, events, oldestAt }): Finding => ({
          code: 'overflow_old',
          what: `${formatCount(events, 'event')} of source ${sourceId} are deferred, the oldest for ${formatAge(oldestAt, databaseNow)}.`,
          means: 'The source sends more than its rate_limit, or no process runs the inbound surface.',
          help: kontorCommand(
            installation,
            `source update ${sourceId} --config '{"rate_limit": {"events": 20000, "per_seconds": 60}}'`,
          ),
        }),
      ),
    ...[...closed].map((id): Finding => {
      const isSource = id.startsWith('src_')
      const rotate = isSource ? `source rotate ${id} --signing-secret` : `destination rotate ${id}`
      return {
        code: 'secrets_closed',
        what: `The signing secret of ${isSource ? 'source' : 'destination'} ${id} does not open with the master key here.`,
        means: isSource
          ? 'The source answers 503, and its senders keep what they have.'
          : 'Nothing is sent to it; what is to be sent waits.',
        help: `Bring back secret.key or KONTOR_SECRET_KEY; or: ${kontorCommand(installation, rotate)}`,
      }
    }),
  ]
}

const CLOCK_OFF_MS = 10_000
const LOW_BYTES = 2e9
const LOW_SHARE = 0.05

/** Two clocks that differ: this machine's and PostgreSQL's. */
const checkClocks: Check = async ({ pool, now }) => {
  const before = now()
  const there = await databaseNow(pool)
  const after = now()
  // Somewhere between the two: half of the way is as near as it gets.
  const here = (before.getTime() + after.getTime()) / 2
  const offMs = here - there.getTime()
  if (Math.abs(offMs) <= CLOCK_OFF_MS) return []
  const which = offMs > 0 ? 'ahead of' : 'behind'
  return [
    {
      code: 'clock_off',
      what: `The clock of this machine is ${formatDuration(Math.abs(offMs) / 1_000)} ${which} PostgreSQL's.`,
      means:
        'Times of receipt are wrong; beyond 5 minutes, signatures are refused and events get another time.',
      help: 'timedatectl set-ntp true (on both machines), then compare `date -u`',
    },
  ]
}

const checkDisk: Check = async ({ disk, minFreeDisk }) => {
  const found = await disk()
  if (found === null) return []
  const share = found.freeBytes / found.totalBytes
  // Told while there is still time: at twice of what is needed to go on.
  if (found.freeBytes >= LOW_BYTES && share >= Math.max(LOW_SHARE, 2 * (minFreeDisk ?? 0))) return []
  const isRefusing = minFreeDisk !== null && share < minFreeDisk
  return [
    {
      code: 'disk_low',
      what: `${Math.round(found.freeBytes / 1e6).toLocaleString('en')} MB (${(share * 100).toFixed(1)} %) are free where ${found.path} lies.`,
      means: isRefusing
        ? 'Events and webhooks are answered 503 until there is more (KONTOR_MIN_FREE_DISK).'
        : `${minFreeDisk === null ? 'Without room' : `Below ${minFreeDisk * 100} %`} events and webhooks are answered 503, and then everything.`,
      help: `df -h ${JSON.stringify(found.path)}; make room, or shorten KONTOR_LOG_RETENTION, KONTOR_ARCHIVE_RETENTION or KONTOR_EVENTS_RETENTION`,
    },
  ]
}

const checkDurability: Check = async ({ pool }) => {
  const losing = await listUnsafeSettings(pool)
  if (losing.length === 0) return []
  return [
    {
      code: 'not_durable',
      what: `PostgreSQL runs with ${losing.map(name => `${name} = off`).join(', ')}.`,
      means: 'What was acknowledged may be gone after a power failure.',
      help: `psql "$DATABASE_URL" -c 'alter system set ${losing[0]} = on' -c 'select pg_reload_conf()'`,
    },
  ]
}

const STREAM_NEARLY_FULL = 0.8

/** The log on NATS: whether it is there, what it promises, and whether there is room in it. */
const checkStream: Check = async installation => {
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
    skippedMessages,
    lost,
  } = await outside.status()
  const passed = [
    lostFinding(name, lost, installation.databaseNow),
    ...skippedMessageFindings(skippedMessages, installation.databaseNow),
  ]
  if (refused !== null)
    return [
      {
        code: 'nats_refused',
        what: refused,
        means:
          'Until then a server does not start, or answers events and inbound requests 503. Nothing is lost.',
        help: `Put it right, then ${kontorCommand(installation, 'start')}`,
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
        help: `Start NATS, and see that NATS_URL leads there; ${kontorCommand(installation, 'start')} says in its log what stands in the way`,
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
    (unread ?? 0) > 0 && (bytes ?? 0) > maxBytes * STREAM_NEARLY_FULL
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
    what: `Up to ${formatCount(lost.entries, 'entry', 'entries').toLowerCase()} that had been accepted and not processed are gone from the stream ${stream}: last seen there ${lost.seenAt.toISOString()}, noticed ${formatAge(lost.noticedAt, now)} ago.`,
    means:
      'The stream was deleted or purged by hand, its server lost its disk, or NATS_URL leads to another one. These events never take effect.',
    help: 'Have them sent again by whoever still has them: what has ids counts once. Where NATS_URL was changed, drain the old stream: docs/guides/scaling.md',
  }
}

function skippedMessageFindings({ foreign, unreadable }: SkippedMessages, now: Date): (Finding | null)[] {
  return [
    foreign && {
      code: 'nats_foreign_messages',
      what: `${formatCount(foreign.messages, 'message')} in the stream ${foreign.messages === 1 ? 'was' : 'were'} not from Kontor, the last one ${foreign.seq} of ${foreign.subject}, ${formatAge(foreign.at, now)} ago.`,
      means:
        'They were passed over. Nothing waits for them and nothing is lost, but somebody else publishes there.',
      help: `Let nobody but Kontor publish to ${foreign.subject.replace(/[^.]*$/, '>')}: permissions of NATS users do that`,
    },
    unreadable && {
      code: 'nats_unreadable_messages',
      what: `${formatCount(unreadable.messages, 'message')} of Kontor's own could not be read, the last one ${unreadable.seq} of ${unreadable.subject}, ${formatAge(unreadable.at, now)} ago.`,
      means:
        'A newer version wrote them, or they were damaged. Those of one tenant are among its dead letters; what the others held is in the column payload of jetstream_skipped_messages, until the log retention (KONTOR_LOG_RETENTION) or an erasure takes it.',
      help: 'kontor dead-letters list; where a newer version has run on it, start that version again',
    },
  ]
}

/**
 * Streams on NATS as PostgreSQL knows of them: what those that write to one have left there. Also for nodes without NATS_URL, whose workers
 * do not read them.
 */
const checkKnownStreams: Check = async ({ pool, databaseNow, limits }) => {
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
      `${formatCount(unread, 'entry', 'entries')} in the stream ${name} at ${servers} ${unread === 1 ? 'is' : 'are'} not processed, as of ${formatAge(seenAt, now)} ago, ` +
      `and nobody has read on in it for ${formatAge(readAt, now)}.`,
    means: `What was acknowledged waits there${by && `, and more comes from ${by}`}: no worker runs with the NATS_URL of those that write to it.`,
    help: `\`kontor start --surfaces worker\` with their NATS_URL and KONTOR_NATS_STREAM=${name}`,
  }
}

/** What Kontor sends and does not get rid of. */
const checkOutgoing: Check = async installation => {
  const { pool, databaseNow } = installation
  const failing = await listFailing(pool, new Date(databaseNow.getTime() - HOUR_MS))
  const { enabled } = await archiveState(pool)
  const { error, failedAt } = await archiveProgress(pool)
  return [
    ...failing.map(({ id, name, tenantId, failingSince, lastError, disabledReason }): Finding => {
      const which = `Destination ${id} (${name}, tenant ${publicTenantId(tenantId)})`
      return disabledReason !== null
        ? {
            code: 'destination_disabled',
            what: `${which} is disabled: ${disabledReason}`,
            means:
              'It is sent nothing. What was still to be sent waits; what comes meanwhile comes by replay.',
            help: `${kontorCommand(installation, `destination test ${id}`)}, then destination enable ${id}; or destination delete ${id}`,
          }
        : {
            code: 'destination_failing',
            what: `${which} has taken nothing for ${formatAge(failingSince!, databaseNow)}: ${lastError}.`,
            means: 'What is to be sent to it waits and is tried again. After five days it is disabled.',
            help: kontorCommand(installation, `destination deliveries ${id} --outcome retrying`),
          }
    }),
    enabled && error !== null
      ? {
          code: 'archive_failing',
          what: `Files of the archive cannot be written since ${formatAge(failedAt!, databaseNow)}: ${error}`,
          means: 'What is to be archived waits in the database, which grows.',
          help: `See that KONTOR_ARCHIVE_URL can be reached and written; ${kontorCommand(installation, 'archive status')}`,
        }
      : null,
  ]
}

/** What tells of the machine needs no tables of Kontor. */
const OF_ANY_DATABASE: Check[] = [checkClocks, checkDisk, checkDurability, checkTransactions]
const OF_KONTOR: Check[] = [
  checkProcessing,
  checkFailures,
  checkMaintenance,
  checkClaims,
  checkSources,
  checkStream,
  checkKnownStreams,
  checkOutgoing,
]
