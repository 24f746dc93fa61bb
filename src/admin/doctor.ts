import type pg from 'pg'
import { DEFAULT_SOURCE_CONFIG, MAX_RATE_EVENTS } from '../domain/inbound/source-config.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { DAY_MS, HOUR_MS } from '../domain/time.ts'
import { streamsSeen } from '../log/jetstream/known-streams.ts'
import type { Log } from '../log/log.ts'
import { IDEMPOTENCY_KEY_DAYS } from '../log/postgres/claims.ts'
import { newestAhead } from '../log/postgres/reader.ts'
import { databaseNow, isUnavailable } from '../postgres/database.ts'
import { listForeignLocks } from '../postgres/locks.ts'
import {
  type AppliedMigration,
  appliedMigrations,
  foreignMigration,
  missingMigrations,
  PREVIEW_SCHEMA,
} from '../postgres/migrate.ts'
import { momentsWithoutPartition, partitionedTables } from '../postgres/partitions.ts'
import { listRootTables } from '../postgres/tables.ts'
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
import { findSource } from '../store/inbound/sources.ts'
import { listChangedRoles, listMisuses } from '../store/tenants/sql-access.ts'
import { kontorCommand } from './error.ts'
import { listUndecryptableSecrets, type Secrets } from './secrets.ts'

type Options = Omit<Installation, 'databaseNow' | 'limits'> & { limits?: Limits }

/** Lists all problems found. Only reads. */
export async function diagnose(options: Options): Promise<Finding[]> {
  try {
    return await examine({ limits: LIMITS, ...options, databaseNow: await databaseNow(options.pool) })
  } catch (error) {
    if (!isUnavailable(error)) throw error
    return [
      {
        code: 'database_away',
        what: `PostgreSQL cannot be reached: ${(error as Error).message}`,
        means: 'Kontor answers all requests with 503 until PostgreSQL has recovered. No acknowledged data is lost.',
        help: 'Start PostgreSQL and check DATABASE_URL: psql "$DATABASE_URL" -c \'select 1\'',
      },
    ]
  }
}

/** Creates nothing: the directory may be mistyped. */
export function databaseMissing(dataDir: string): Finding {
  return {
    code: 'database_missing',
    what: `There is no database in ${dataDir}.`,
    means: 'No server has ever used this directory, or the server uses another data directory.',
    help: `${kontorCommand({ dataDir }, 'start')}, or correct --data or DATABASE_URL`,
  }
}

async function examine(installation: Installation): Promise<Finding[]> {
  const schema = await checkSchema(installation)
  const checks = schema === null ? [...ANY_DATABASE_CHECKS, ...KONTOR_CHECKS] : ANY_DATABASE_CHECKS
  const found = schema === null ? [] : [schema]
  for (const check of checks) for await (const finding of check(installation)) found.push(finding)
  return found
}

/** Returns null if the tables have the schema of this version. */
async function checkSchema(installation: Installation): Promise<Finding | null> {
  const { pool } = installation
  if (!(await listRootTables(pool)).includes('schema_migrations'))
    return {
      code: 'schema_missing',
      what: 'The database has no tables of Kontor.',
      means: 'No server has ever used this database, or the server uses another one.',
      help: `${kontorCommand(installation, 'start')}, or correct --data or DATABASE_URL`,
    }
  const done: AppliedMigration[] = await appliedMigrations(pool)
  const foreign = foreignMigration(done)
  if (foreign?.reason === 'preview')
    return {
      code: 'schema_newer',
      what: `The database ${PREVIEW_SCHEMA}`,
      means: 'This version of Kontor does not start with this database.',
      help: 'Run the version of Kontor that created the database, or use an empty database',
    }
  if (foreign)
    return {
      code: 'schema_newer',
      what: `The database has the migration ${foreign.name}, which is not part of this version or differs from the one in this version.`,
      means:
        'A newer or different version of Kontor migrated the database. This version does not start with this database.',
      help: 'Run the version of Kontor that migrated the database, or a newer one',
    }
  const missing = missingMigrations(done)
  if (missing.length === 0) return null
  return {
    code: 'schema_old',
    what: `The database has the schema of an older version. Missing migrations: ${missing.join(', ')}.`,
    means: 'This version has not run on the database yet. Most checks need the current schema and were skipped.',
    help: `${kontorCommand(installation, 'backup --to FILE')}, then ${kontorCommand(installation, 'migrate')}`,
  }
}

/** A problem: what is wrong, what it means for users, and the command that helps. */
export type Finding = { code: string; what: string; means: string; help: string }

export type Disk = { path: string; freeBytes: number; totalBytes: number }

/** What the checks read. */
type Installation = {
  pool: pg.Pool
  log: Log
  secrets: Secrets
  /** Whether `secrets` has a key. A command on another machine may have none. */
  hasSecretKey: boolean
  /** The clock of this machine. */
  now: () => Date
  /** PostgreSQL's clock, read before the first check. */
  databaseNow: Date
  /** The data directory of the embedded PostgreSQL; null: DATABASE_URL is set. */
  dataDir: string | null
  /** The disk that holds the database; null: it is on another machine. */
  disk: () => Promise<Disk | null>
  /** The share of free disk space below which events and webhooks are rejected; null: never. */
  minFreeDisk: number | null
  /** The limit for unprocessed entries; null: no limit. */
  maxBacklog: number | null
  processedRetentionMs: number
  limits: Limits
}

/** Durations from which on a check reports a problem. */
type Limits = { backlogS: number; transactionS: number; snapshotS: number }

// A worker's transaction takes milliseconds. After a minute it is a heavy import, or it hangs.
export const LIMITS: Limits = { backlogS: 60, transactionS: 60, snapshotS: 3_600 }

type Check = (installation: Installation) => AsyncGenerator<Finding>

/** Only one server may use a data directory, so its worker is a surface of that server, not another process. */
function startWorkerCommand(installation: Pick<Installation, 'dataDir'>): string {
  if (installation.dataDir === null) return kontorCommand(installation, 'start --surfaces worker')
  return `Stop the server and start it with the worker surface: ${kontorCommand(installation, 'start --surfaces data,events,inbound,console,worker')}`
}

function formatAge(from: Date, to: Date): string {
  return formatDuration((to.getTime() - from.getTime()) / 1_000)
}

/** For example 90 s, 12 min, 30 h or 4 days. */
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

const CLOCK_OFF_MS = 10_000
const OLD_PARKED_MS = 5 * 60_000
const REJECTED_A_DAY = 100
const NEARLY_FULL = 0.8

/** Is a worker running, and does it keep up? */
const checkProcessing: Check = async function* (installation) {
  const { pool, log, databaseNow, limits, dataDir, maxBacklog } = installation
  const { servers, workers } = await countSessions(pool)
  const lags = (await log.lag()).filter(({ entries }) => entries > 0)
  const waiting = lags.reduce((sum, { entries }) => sum + entries, 0)
  const oldest = lags.flatMap(({ oldestAt }) => oldestAt ?? []).sort((a, b) => a.getTime() - b.getTime())[0]
  const isOld = oldest !== undefined && databaseNow.getTime() - oldest.getTime() > limits.backlogS * 1_000
  const more = `increase KONTOR_WORKERS${dataDir === null ? ', or start another `kontor start --surfaces worker`' : ''}`
  if (servers + workers === 0)
    yield {
      code: 'no_server',
      what: 'No server is connected to this database.',
      means: 'No request is accepted and no entry is processed.',
      help: kontorCommand(installation, 'start'),
    }
  if (servers > 0 && workers === 0)
    yield {
      code: 'no_worker',
      what: `No worker is connected to this database. Unprocessed entries: ${waiting.toLocaleString('en')}.`,
      means: 'Requests are accepted, but not processed. Reads do not show them.',
      help: startWorkerCommand(installation),
    }
  if (isOld)
    yield {
      code: 'backlog_old',
      what: `${formatCount(waiting, 'unprocessed entry', 'unprocessed entries')} in ${formatCount(lags.length, 'partition').toLowerCase()} of the log. The oldest has been waiting for ${formatAge(oldest, databaseNow)}.`,
      means: 'Reads do not show data accepted since then. Nothing is lost.',
      help: `Fix the other findings first. If there are none, the workers are too slow for the load: ${more}`,
    }
  if (maxBacklog !== null && waiting >= maxBacklog * NEARLY_FULL)
    yield {
      code: 'backlog_full',
      what: `${formatCount(waiting, 'unprocessed entry', 'unprocessed entries')}; KONTOR_MAX_BACKLOG is ${maxBacklog.toLocaleString('en')}.`,
      means:
        'At the limit Kontor answers events, webhooks and record writes with 503 until the backlog shrinks. Senders must retry.',
      help: `Check that workers are running; ${more}; or increase KONTOR_MAX_BACKLOG if the disk has space`,
    }
}

/** Partitions that fail as a whole, entries that are retried, and dead letters. */
const checkFailures: Check = async function* (installation) {
  const { pool, databaseNow } = installation
  const stalled = await listStalled(pool)
  const parked = await summarizeParked(pool)
  const isOld = parked !== null && databaseNow.getTime() - parked.oldestAt.getTime() > OLD_PARKED_MS
  const letters = await recentDeadLetters(pool, 24)
  const isGrowing = letters.failed > 0 || letters.rejected > REJECTED_A_DAY
  for (const { partition, failedAt, error } of stalled)
    yield {
      code: 'partition_stuck',
      what: `Partition ${partition} of the log failed ${formatAge(failedAt, databaseNow)} ago: ${error}`,
      means: 'Kontor does not process the entries of this partition until a retry succeeds.',
      help: `Look for this error in the worker's log. Kontor retries automatically; ${kontorCommand(installation, 'status')} shows whether "waiting" decreases`,
    }
  if (isOld)
    yield {
      code: 'entries_retried',
      what: `${formatCount(parked.entries, 'entry', 'entries')} failed and will be retried. The oldest has been waiting for ${formatAge(parked.oldestAt, databaseNow)} and failed ${parked.attempts} times. Last error: ${parked.error ?? 'none'}`,
      means:
        'After the last attempt, an entry becomes a dead letter. Until then, later entries of the same record or person wait.',
      help: `Fix the cause. ${kontorCommand(installation, 'dead-letters list --reason failed')} lists entries whose attempts are used up`,
    }
  if (isGrowing)
    yield {
      code: 'dead_letters_growing',
      what: `In the last 24 hours ${letters.failed.toLocaleString('en')} entries could not be applied and ${letters.rejected.toLocaleString('en')} items were invalid.${letters.error ? ` Latest error: ${letters.error}` : ''}`,
      means: 'They are stored as dead letters and have no effect until they are replayed.',
      help: `${kontorCommand(installation, 'dead-letters list --limit 20')}, then ${kontorCommand(installation, 'dead-letters replay --reason failed')}`,
    }
}

/** Transactions that block the log's readers, or vacuum. */
const checkTransactions: Check = async function* ({ pool, limits, dataDir }) {
  const open = await listLongTransactions(pool, Math.min(limits.transactionS, limits.snapshotS))
  for (const transaction of open) {
    const { holdsLog, seconds } = transaction
    const help = endCommand(transaction, dataDir !== null)
    if (holdsLog && seconds > limits.transactionS)
      yield {
        code: 'transaction_open',
        what: `${describeTransaction(transaction)} has kept a write transaction open for ${formatDuration(seconds)}.`,
        means:
          'Workers read only entries that were accepted before this transaction started. Later entries of all tenants wait.',
        help,
      }
    else if (!holdsLog && seconds > limits.snapshotS)
      yield {
        code: 'vacuum_held',
        what: `${describeTransaction(transaction)} has kept a snapshot open for ${formatDuration(seconds)}.`,
        means: 'Vacuum cannot remove dead rows until this transaction ends. Tables grow and queries become slower.',
        help,
      }
  }
}

/** Other database users that hold Kontor's locks, and SQL roles that are not as Kontor created them. */
const checkSqlAccess: Check = async function* (installation) {
  const { pool, dataDir } = installation
  for (const { pid, user, application } of await listForeignLocks(pool))
    yield {
      code: 'foreign_lock',
      what: `Process ${pid} of the database user ${user} (${application || 'unnamed'}) holds an advisory lock of Kontor.`,
      means: 'Workers and erasures wait until this process releases the lock.',
      help: endCommand({ pid, gid: null }, dataDir !== null),
    }
  for (const { pid, role, reason, isEnded } of await listMisuses(pool))
    if (!isEnded)
      yield {
        code: 'sql_access_misused',
        what: `Process ${pid} of the SQL role ${role} should be ended: ${reason}.`,
        means: "Kontor's database user has no permission to end this process. Workers may wait for the process.",
        help: `As a superuser: grant ${role} to Kontor's user, or select pg_terminate_backend(${pid})`,
      }
  for (const { role, hasOtherPassword, hasOtherDefaults } of await listChangedRoles(pool))
    if (hasOtherPassword || hasOtherDefaults)
      yield {
        code: 'sql_access_changed',
        what: `The SQL role ${role} has changed its ${hasOtherPassword ? 'password' : 'default settings'}.`,
        means:
          'A running server restores it within about a second. Anyone who has the connection string can change it again.',
        help: kontorCommand(installation, `sql-access revoke ${role}`),
      }
}

function describeTransaction({ pid, application, database, gid, state }: OpenTransaction): string {
  if (gid !== null) return `The prepared transaction ${JSON.stringify(gid)} in database ${database}`
  return `Process ${pid} (${application || 'unnamed'}, database ${database}, ${state})`
}

/** The embedded PostgreSQL has no psql and no DATABASE_URL, but its processes run on this machine. */
function endCommand({ pid, gid }: Pick<OpenTransaction, 'pid' | 'gid'>, isEmbedded: boolean): string {
  if (isEmbedded && gid === null) return `kill ${pid}`
  return gid === null
    ? `psql "$DATABASE_URL" -c 'select pg_terminate_backend(${pid})'. To prevent it, set idle_in_transaction_session_timeout`
    : `psql "$DATABASE_URL" -c "rollback prepared '${gid.replaceAll("'", "''")}'"`
}

/** Retention, partitions for today and tomorrow, and entries with times in the future. */
const checkMaintenance: Check = async function* (installation) {
  const { pool, databaseNow, dataDir } = installation
  const held = await retentionHeldBy(pool)
  const tomorrow = new Date(databaseNow.getTime() + DAY_MS)
  const newest = await newestAhead(pool, CLOCK_OFF_MS / 1000)
  const tables: string[] = []
  for (const table of partitionedTables)
    if ((await momentsWithoutPartition(pool, table, [databaseNow, tomorrow])).length > 0) tables.push(table)
  if (held !== null)
    yield {
      code: 'retention_held',
      what: `Retention does not delete expired data: ${held}`,
      means: 'Expired data stays and uses disk space.',
      help:
        dataDir === null
          ? 'Compare `date -u` with `psql "$DATABASE_URL" -c \'select now()\'` and correct the wrong clock'
          : 'timedatectl set-ntp true, then compare `date -u` with another machine',
    }
  if (newest !== null)
    yield {
      code: 'clock_off',
      what: `The log has entries whose time is ${formatAge(databaseNow, newest)} later than PostgreSQL's clock. All servers use this clock. It was ahead when the entries were accepted, or it is behind now.`,
      means:
        'Times of receipt are wrong. While the clock is more than 5 minutes off, signatures are rejected and times of events are replaced.',
      help: `timedatectl set-ntp true (on the machine of PostgreSQL), then compare \`date -u\` with another machine`,
    }
  if (tables.length > 0)
    yield {
      code: 'partitions_missing',
      what: `No partition for today or tomorrow in ${tables.join(', ')}.`,
      means:
        'Workers create partitions once an hour. No worker has run for days, or its database user may not create tables.',
      help: `${startWorkerCommand(installation)}, with the database user that owns the tables`,
    }
}

/** The idempotency keys and event ids that duplicates are recognized by. */
const checkClaims: Check = async function* ({ pool, processedRetentionMs }) {
  const keys = await momentsWithoutPartition(
    pool,
    'idempotency_keys',
    await daysWithOperations(pool, IDEMPOTENCY_KEY_DAYS - 1),
  )
  const retentionDays = Math.floor(processedRetentionMs / DAY_MS)
  const ids = await momentsWithoutPartition(pool, 'processed_events', await monthsWithEvents(pool, retentionDays))
  if (keys.length + ids.length > 0)
    yield {
      code: 'claims_missing',
      what: `Data for recognizing duplicates was deleted before its retention time ended: ${[
        ...keys.map(day => `idempotency keys of ${day.toISOString().slice(0, 10)}`),
        ...ids.map(month => `event ids of ${month.toISOString().slice(0, 7)}`),
      ].join(', ')}.`,
      means: 'A repeated write or event from that time is processed again.',
      help: 'Restore a backup (kontor restore), or make sure that senders do not repeat requests of that age',
    }
}

/** Silent sources, old overflow queues, and secrets that cannot be decrypted. */
const checkSources: Check = async function* (installation) {
  const { pool, secrets, databaseNow } = installation
  const silent = await silentSources(pool, { days: 8, activeDays: 3 })
  const backlogs = await countBacklog(pool, await listBacklogged(pool))
  const undecryptable = new Set((await listUndecryptableSecrets(pool, secrets)).map(({ ownerId }) => ownerId))
  for (const { id, name, tenantId, lastAt, days } of silent)
    yield {
      code: 'source_silent',
      what: `Source ${id} (${name}, tenant ${publicTenantId(tenantId)}) has received nothing for ${formatAge(lastAt, databaseNow)}. Before that it received events on ${days} of 8 days.`,
      means: 'The sender has stopped, or its requests are rejected.',
      help: `${kontorCommand(installation, `source test ${id}`)}; the console lists rejected requests under Sources`,
    }
  for (const { sourceId, events, oldestAt } of backlogs) {
    if (databaseNow.getTime() - oldestAt.getTime() <= HOUR_MS) continue
    const { rate_limit } = (await findSource(pool, sourceId))?.config ?? DEFAULT_SOURCE_CONFIG
    const raised = { ...rate_limit, events: Math.min(3 * rate_limit.events, MAX_RATE_EVENTS) }
    yield {
      code: 'overflow_old',
      what: `${formatCount(events, 'event')} of source ${sourceId} in the overflow queue. The oldest has been waiting for ${formatAge(oldestAt, databaseNow)}.`,
      means: 'The source exceeds its rate_limit, or no process runs the inbound surface.',
      help: kontorCommand(
        installation,
        `source update ${sourceId} --config '${JSON.stringify({ rate_limit: raised })}'`,
      ),
    }
  }
  if (undecryptable.size > 0 && !installation.hasSecretKey) {
    yield {
      code: 'secrets_unchecked',
      what: `This command has no secret key, so it cannot check ${formatCount(undecryptable.size, 'signing secret').toLowerCase()}.`,
      means: 'The server decrypts them with its own KONTOR_SECRET_KEY. Nothing has to be rotated.',
      help: 'Run the command with the KONTOR_SECRET_KEY of the server',
    }
    return
  }
  for (const id of undecryptable) {
    const isSource = id.startsWith('src_')
    const rotate = isSource ? `source rotate ${id} --signing-secret` : `destination rotate ${id}`
    yield {
      code: 'secrets_closed',
      what: `The signing secret of ${isSource ? 'source' : 'destination'} ${id} cannot be decrypted with the configured secret key.`,
      means: isSource
        ? 'Kontor answers requests to this source with 503. Senders must retry.'
        : 'Kontor sends nothing to this destination. Its messages wait until the secret can be decrypted.',
      help: `Restore secret.key or KONTOR_SECRET_KEY, or run ${kontorCommand(installation, rotate)}`,
    }
  }
}

const LOW_BYTES = 2e9
const LOW_SHARE = 0.05

/** Compares the clock of this machine with PostgreSQL's. Servers do not report their clocks: this must run on each machine. */
const checkClocks: Check = async function* ({ pool, now }) {
  const before = now()
  const there = await databaseNow(pool)
  const after = now()
  // PostgreSQL read its clock between the two; the middle is the best estimate.
  const here = (before.getTime() + after.getTime()) / 2
  const offMs = here - there.getTime()
  if (Math.abs(offMs) <= CLOCK_OFF_MS) return
  const which = offMs > 0 ? 'ahead of' : 'behind'
  yield {
    code: 'clock_off',
    what: `The clock of this machine is ${formatDuration(Math.abs(offMs) / 1_000)} ${which} PostgreSQL's, which all servers use.`,
    means:
      "If PostgreSQL's clock is wrong, times of receipt are wrong. If it is more than 5 minutes off, signatures are rejected and times of events are replaced. " +
      'If the clock of this machine is wrong, only log lines, rate limits and sign-ins through a provider are affected.',
    help: 'timedatectl set-ntp true (on both machines), then compare `date -u` with another machine',
  }
}

const checkDisk: Check = async function* ({ disk, minFreeDisk }) {
  const found = await disk()
  if (found === null) return
  const share = found.freeBytes / found.totalBytes
  // Reported early: at twice the share below which requests are rejected.
  if (found.freeBytes >= LOW_BYTES && share >= Math.max(LOW_SHARE, 2 * (minFreeDisk ?? 0))) return
  const isRefusing = minFreeDisk !== null && share < minFreeDisk
  yield {
    code: 'disk_low',
    what: `${Math.round(found.freeBytes / 1e6).toLocaleString('en')} MB (${(share * 100).toFixed(1)}%) are free on the disk of ${found.path}.`,
    means: isRefusing
      ? 'Kontor answers events and webhooks with 503 until more space is free (KONTOR_MIN_FREE_DISK).'
      : `${minFreeDisk === null ? '' : `If less than ${minFreeDisk * 100}% is free, Kontor answers events and webhooks with 503. `}If the disk is full, Kontor answers all requests with 503.`,
    help: `df -h ${JSON.stringify(found.path)}; free space, or reduce KONTOR_LOG_RETENTION, KONTOR_ARCHIVE_RETENTION or KONTOR_EVENTS_RETENTION`,
  }
}

const checkDurability: Check = async function* ({ pool }) {
  const unsafe = await listUnsafeSettings(pool)
  if (unsafe.length === 0) return
  yield {
    code: 'not_durable',
    what: `PostgreSQL runs with ${unsafe.map(name => `${name} = off`).join(', ')}.`,
    means: 'A power failure can lose acknowledged data.',
    help: `psql "$DATABASE_URL" ${unsafe.map(name => `-c 'alter system set ${name} = on'`).join(' ')} -c 'select pg_reload_conf()'`,
  }
}

/** The log on NATS: is it reachable, how durable is it, how full is it? */
const checkStream: Check = async function* (installation) {
  const { log, databaseNow } = installation
  if (log.outside === null) return
  const { servers, stream, reachable, refused, differs, skippedMessages, lost, ...state } = await log.outside.status()
  if (refused !== null)
    yield {
      code: 'nats_refused',
      what: refused,
      means:
        'Until this is fixed, a server refuses to start, or answers events and inbound requests with 503. Nothing is lost.',
      help: `Fix this problem, then run ${kontorCommand(installation, 'start')}`,
    }
  else if (!reachable)
    yield {
      code: 'nats_away',
      what: `The stream ${stream} cannot be reached at ${servers}.`,
      means:
        'Kontor answers events and inbound requests with 503 until the stream has recovered. Record writes and reads work. No acknowledged data is lost.',
      help: `Start NATS and check NATS_URL. The log of ${kontorCommand(installation, 'start')} shows the error`,
    }
  else {
    const { promise, unread, bytes, maxBytes } = state
    if (differs !== null)
      yield {
        code: 'nats_partitions',
        what: differs,
        means: 'The stream works, but the setting has no effect.',
        help: 'Set KONTOR_NATS_PARTITIONS to the number of partitions of the stream',
      }
    if (promise !== 'synced')
      yield {
        code: 'nats_not_synced',
        what: `The durability of acknowledged events in the stream ${stream} is "${promise}".`,
        means: `A power failure of ${promise === 'replicated' ? 'most NATS servers at once' : 'the NATS server'} can lose events acknowledged in the last two minutes.`,
        help: 'Set `sync_interval: always` in the jetstream block of every NATS server, then KONTOR_NATS_SYNCED=true',
      }
    if ((unread ?? 0) > 0 && (bytes ?? 0) > maxBytes * NEARLY_FULL)
      yield {
        code: 'nats_nearly_full',
        what: `The stream ${stream} holds ${bytes!.toLocaleString('en')} of ${maxBytes.toLocaleString('en')} bytes, with ${unread!.toLocaleString('en')} unprocessed entries.`,
        means:
          'When it is full, Kontor answers events and inbound requests with 503 until workers have processed some entries.',
        help: 'Start another `kontor start --surfaces worker`, or increase KONTOR_NATS_MAX_BYTES',
      }
  }
  if (lost !== null)
    yield {
      code: 'nats_entries_lost',
      what: `The stream ${stream} lost up to ${formatCount(lost.entries, 'accepted, unprocessed entry', 'accepted, unprocessed entries').toLowerCase()}. They were last seen at ${lost.seenAt.toISOString()}; Kontor noticed the loss ${formatAge(lost.noticedAt, databaseNow)} ago.`,
      means:
        'The stream was deleted or purged, its server lost its disk, or NATS_URL now points to another stream. These events have no effect.',
      help: 'Ask the senders to send them again; events with ids are processed once. If NATS_URL was changed, drain the old stream: docs/guides/scaling.md',
    }
  const { foreign, unreadable } = skippedMessages
  if (foreign)
    yield {
      code: 'nats_foreign_messages',
      what: `${formatCount(foreign.messages, 'message')} in the stream ${foreign.messages === 1 ? 'was' : 'were'} not published by Kontor. The latest is ${foreign.seq} of ${foreign.subject}, ${formatAge(foreign.at, databaseNow)} ago.`,
      means: 'Kontor skipped them. Nothing is lost, but another program publishes to the stream.',
      help: `Use NATS user permissions to allow only Kontor to publish to ${foreign.subject.slice(0, foreign.subject.lastIndexOf('.') + 1)}>`,
    }
  if (unreadable)
    yield {
      code: 'nats_unreadable_messages',
      what: `${formatCount(unreadable.messages, 'message')} published by Kontor could not be read. The latest is ${unreadable.seq} of ${unreadable.subject}, ${formatAge(unreadable.at, databaseNow)} ago.`,
      means:
        'A newer version wrote them, or they are damaged. A message that belongs to a single tenant is stored as a dead letter of that tenant. The other messages are stored in jetstream_skipped_messages.payload until the log retention (KONTOR_LOG_RETENTION) or an erasure deletes them.',
      help: 'kontor dead-letters list; if a newer version has written to the stream, run that version',
    }
}

/**
 * Unread entries of NATS streams, as their writers recorded them in PostgreSQL. Also found by nodes without NATS_URL, whose
 * workers do not read the streams.
 */
const checkKnownStreams: Check = async function* ({ pool, databaseNow, limits }) {
  for (const { name, servers, unread, unreadSince, seenAt, readAt, leftAt, writers } of await streamsSeen(pool)) {
    const [full] = writers.filter(({ failing }) => failing === 'full')
    if (full)
      yield {
        code: 'nats_full',
        what: `The stream ${name} at ${servers} is full: NATS rejects new entries of ${full.name}.`,
        means: `Kontor answers events and inbound requests with 503. ${formatCount(unread, 'entry', 'entries')} in the stream ${unread === 1 ? 'is' : 'are'} unprocessed. Nothing is lost.`,
        help: 'Start another `kontor start --surfaces worker`, or increase KONTOR_NATS_MAX_BYTES. If the disk of NATS is full, free space there',
      }
    const idleMs = databaseNow.getTime() - Math.max(readAt.getTime(), unreadSince?.getTime() ?? 0)
    if (leftAt !== null || unread === 0 || idleMs <= limits.backlogS * 1_000) continue
    const by = writers.map(writer => writer.name).join('; ')
    yield {
      code: 'nats_unread',
      what: `${formatCount(unread, 'entry', 'entries')} in the stream ${name} at ${servers} ${unread === 1 ? 'was' : 'were'} unprocessed ${formatAge(seenAt, databaseNow)} ago. No worker has read the stream for ${formatAge(readAt, databaseNow)}.`,
      means: `Kontor does not process these acknowledged entries until a worker reads the stream.${by && ` These servers still write to the stream: ${by}.`}`,
      help: `Run \`kontor start --surfaces worker\` with KONTOR_NATS_STREAM=${name} and the NATS_URL of the servers that write to the stream`,
    }
  }
}

/** Failing destinations and a failing archive. */
const checkOutgoing: Check = async function* (installation) {
  const { pool, databaseNow } = installation
  const failing = await listFailing(pool, new Date(databaseNow.getTime() - HOUR_MS))
  const { enabled } = await archiveState(pool)
  const { error, failedAt } = await archiveProgress(pool)
  for (const { id, name, tenantId, failingSince, lastError, disabledReason } of failing) {
    const which = `Destination ${id} (${name}, tenant ${publicTenantId(tenantId)})`
    if (disabledReason !== null)
      yield {
        code: 'destination_disabled',
        what: `${which} is disabled: ${disabledReason}`,
        means:
          'Kontor sends nothing to this destination. Messages that were queued before wait. To send messages from the time while it was disabled, replay them after you enable it.',
        help: `${kontorCommand(installation, `destination test ${id}`)}, then ${kontorCommand(installation, `destination enable ${id}`)}; or ${kontorCommand(installation, `destination delete ${id}`)}`,
      }
    else
      yield {
        code: 'destination_failing',
        what: `${which} has accepted nothing for ${formatAge(failingSince!, databaseNow)}: ${lastError}.`,
        means: 'Kontor retries its messages. After five days it disables the destination.',
        help: kontorCommand(installation, `destination deliveries ${id} --outcome retrying`),
      }
  }
  if (enabled && error !== null)
    yield {
      code: 'archive_failing',
      what: `Writing archive files has failed for ${formatAge(failedAt!, databaseNow)}: ${error}`,
      means: 'Rows to be archived wait in the database, which grows.',
      help: `Check that KONTOR_ARCHIVE_URL is reachable and writable; ${kontorCommand(installation, 'archive status')}`,
    }
}

// The first list needs no tables of Kontor.
const ANY_DATABASE_CHECKS: Check[] = [checkClocks, checkDisk, checkDurability, checkTransactions]
const KONTOR_CHECKS: Check[] = [
  checkProcessing,
  checkFailures,
  checkMaintenance,
  checkClaims,
  checkSources,
  checkStream,
  checkKnownStreams,
  checkOutgoing,
  checkSqlAccess,
]
