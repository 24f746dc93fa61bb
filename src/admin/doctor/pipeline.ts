import { publicTenantId } from '../../domain/tenants/tenants.ts'
import { DAY_MS, HOUR_MS } from '../../domain/time.ts'
import { momentsWithoutPartition, partitionedTables } from '../../postgres/partitions.ts'
import { retentionHeldBy } from '../../store/entries/retention-clock.ts'
import { listStalled } from '../../store/entries/stalled.ts'
import { countSessions, longTransactions, type OpenTransaction } from '../../store/health/database.ts'
import {
  daysWithOperations,
  monthsWithEvents,
  recentDeadLetters,
  silentSources,
  summarizeParked,
} from '../../store/health/pipeline.ts'
import { countBacklog, listBacklogged } from '../../store/inbound/overflow.ts'
import { unopenedSecrets } from '../secrets.ts'
import { ago, type Check, type Finding, kontor, lasting, some, startWorker } from './finding.ts'

const CLOCK_OFF_S = 10
const OLD_PARKED_MS = 5 * 60_000
const REJECTED_A_DAY = 100
const NEARLY_FULL = 0.8

/** Whether someone processes what comes in, and keeps up. */
export const processing: Check = async installation => {
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
          help: kontor(installation, 'start'),
        },
    servers === 0 || workers > 0
      ? null
      : {
          code: 'no_worker',
          what: `No worker is connected to this database, and ${waiting.toLocaleString('en')} entries wait.`,
          means: 'Everything is accepted, and nothing of it shows.',
          help: startWorker(installation),
        },
    isOld
      ? {
          code: 'backlog_old',
          what: `${some(waiting, 'entry', 'entries')} wait to be processed in ${lags.length} of the log's partitions, the oldest for ${ago(oldest, databaseNow)}.`,
          means: 'What was accepted since then does not show yet. Nothing is lost.',
          help: `The other findings tell why. Where there are none, more arrives than is processed: ${more}`,
        }
      : null,
    maxBacklog !== null && waiting >= maxBacklog * NEARLY_FULL
      ? {
          code: 'backlog_full',
          what: `${some(waiting, 'entry', 'entries')} wait to be processed, and KONTOR_MAX_BACKLOG is ${maxBacklog.toLocaleString('en')}.`,
          means:
            'At that number events, webhooks and record writes are answered 503 until less waits; senders keep what they have.',
          help: `See that workers run and keep up: ${more}; or raise KONTOR_MAX_BACKLOG, where the disk has room`,
        }
      : null,
  ]
}

/** Partitions whose work fails as a whole, and entries that fail again and again. */
export const failing: Check = async installation => {
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
        what: `Partition ${partition} of the log failed ${ago(failedAt, databaseNow)} ago: ${error}`,
        means: 'What is in it waits, and so does everything of the same keys that comes after.',
        help: `Look for the same error in the log of the worker; it is tried again by itself. ${kontor(installation, 'status')} shows whether "waiting" falls`,
      }),
    ),
    isOld
      ? {
          code: 'entries_retried',
          what: `${some(parked.entries, 'entry', 'entries')} failed and wait to be tried again, the oldest for ${ago(parked.oldestAt, databaseNow)} and ${parked.attempts} attempts. Last error: ${parked.error ?? 'none'}`,
          means:
            'They become dead letters when the attempts are used up; later entries of the same key wait behind them.',
          help: `Remove the cause; then ${kontor(installation, 'dead-letters list --reason failed')} shows what had to be given up`,
        }
      : null,
    isGrowing
      ? {
          code: 'dead_letters_growing',
          what: `In the last 24 hours ${letters.failed.toLocaleString('en')} entries could not be applied and ${letters.rejected.toLocaleString('en')} items were not valid.${letters.error ? ` Newest error: ${letters.error}` : ''}`,
          means: 'They are kept as dead letters and take no effect until they are replayed.',
          help: `${kontor(installation, 'dead-letters list --limit 20')}, then ${kontor(installation, 'dead-letters replay --reason failed')}`,
        }
      : null,
  ]
}

/** Transactions that hold back the log's readers, or the cleaning up. */
export const transactions: Check = async ({ pool, limits, dataDir }) => {
  const open = await longTransactions(pool, Math.min(limits.transactionS, limits.snapshotS))
  return open.flatMap((transaction): Finding[] => {
    const { holdsLog, seconds } = transaction
    const help = endOf(transaction, dataDir !== null)
    if (holdsLog && seconds > limits.transactionS)
      return [
        {
          code: 'transaction_open',
          what: `${named(transaction)} has had a write transaction open for ${lasting(seconds)}.`,
          means:
            'Workers read only what was accepted before it began: everything since then waits, in every tenant.',
          help,
        },
      ]
    if (holdsLog || seconds <= limits.snapshotS) return []
    return [
      {
        code: 'vacuum_held',
        what: `${named(transaction)} has looked at one moment for ${lasting(seconds)}.`,
        means:
          'Deleted and replaced rows cannot be cleaned up until it ends: tables grow, queries slow down.',
        help,
      },
    ]
  })
}

function named({ pid, application, database, gid, state }: OpenTransaction): string {
  if (gid !== null) return `The prepared transaction ${JSON.stringify(gid)} in database ${database}`
  return `Process ${pid} (${application || 'no name'}, database ${database}, ${state})`
}

/** Where PostgreSQL is embedded there is no psql and no DATABASE_URL, but its processes are on this machine. */
function endOf({ pid, gid }: OpenTransaction, isEmbedded: boolean): string {
  if (isEmbedded && gid === null) return `kill ${pid}`
  return gid === null
    ? `psql "$DATABASE_URL" -c 'select pg_terminate_backend(${pid})', and idle_in_transaction_session_timeout against the next one`
    : `psql "$DATABASE_URL" -c "rollback prepared '${gid.replaceAll("'", "''")}'"`
}

/** What should be there by itself: retention, partitions for the coming day, times that are past. */
export const upkeep: Check = async installation => {
  const { pool, log, databaseNow, dataDir } = installation
  const held = await retentionHeldBy(pool)
  const tomorrow = new Date(databaseNow.getTime() + DAY_MS)
  const newest = await log.newestAhead(CLOCK_OFF_S)
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
          what: `The log has entries from ${ago(databaseNow, newest)} ahead of PostgreSQL's clock: a node that took them in is ahead, or PostgreSQL is behind.`,
          means:
            'Times of receipt are wrong; beyond 5 minutes, signatures are refused and events get another time.',
          help: `${kontor(installation, 'doctor')} on each machine that serves tells which; there: timedatectl set-ntp true`,
        },
    lacking.length > 0
      ? {
          code: 'partitions_missing',
          what: `No partition for today or tomorrow in ${lacking.join(', ')}.`,
          means: 'They are made by workers, once an hour: none has run for days, or it may not make tables.',
          help: `${startWorker(installation)}, as the user who owns the tables`,
        }
      : null,
  ]
}

/** What recognises repeats, as long as it is to be kept. */
export const claims: Check = async ({ pool, processedRetentionMs }) => {
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
export const sources: Check = async installation => {
  const { pool, secrets, databaseNow } = installation
  const silent = await silentSources(pool, { days: 8, activeDays: 3 })
  const backlogs = await countBacklog(pool, await listBacklogged(pool))
  const closed = new Set((await unopenedSecrets(pool, secrets)).map(({ ownerId }) => ownerId))
  return [
    ...silent.map(
      ({ id, name, tenantId, lastAt, days }): Finding => ({
        code: 'source_silent',
        what: `Source ${id} (${name}, tenant ${publicTenantId(tenantId)}) has heard nothing for ${ago(lastAt, databaseNow)}; it did on ${days} of the days before.`,
        means: 'The sender has stopped, or is refused.',
        help: `${kontor(installation, `source test ${id}`)}; what was refused is in the console, under Sources`,
      }),
    ),
    ...backlogs
      .filter(({ oldestAt }) => databaseNow.getTime() - oldestAt.getTime() > HOUR_MS)
      .map(
        ({ sourceId, events, oldestAt }): Finding => ({
          code: 'overflow_old',
          what: `${some(events, 'event')} of source ${sourceId} are deferred, the oldest for ${ago(oldestAt, databaseNow)}.`,
          means: 'The source sends more than its rate_limit, or no process runs the inbound surface.',
          help: kontor(
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
        help: `Bring back secret.key or KONTOR_SECRET_KEY; or: ${kontor(installation, rotate)}`,
      }
    }),
  ]
}
