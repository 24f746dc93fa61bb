import { TEST_RECEIPT } from '../../domain/inbound/receipts.ts'
import type { Db } from '../../postgres/database.ts'

/** Counts per hour of the last 24 hours, oldest first; the last hour is the current one. */
type ByHour = number[]

const HOURS = `generate_series(date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour')`

/** The count of an hour stops here, because 24 hours are counted from an index. */
const MOST_IN_AN_HOUR = 10_000

export async function sourceActivity(
  db: Db,
  tenantId: number,
  sourceId: string,
): Promise<{ received: ByHour; refused: ByHour }> {
  const { rows } = await db.query<{ received: ByHour; refused: ByHour }>(
    `with refused as materialized (
       select date_trunc('hour', rejected_at) as hour, sum(1 + suppressed) as count from rejections
       where tenant_id = $1 and source_id = $2 and rejected_at >= date_trunc('hour', now()) - interval '23 hours' group by 1
     )
     select array(
       select (select count(*) from (
           select from receipts r where r.tenant_id = $1 and r.source_id = $2
             and r.received_at >= h and r.received_at < h + interval '1 hour'
             and r.detail is distinct from '${TEST_RECEIPT}' limit ${MOST_IN_AN_HOUR}
         ) c)::int from ${HOURS} as h order by h
     ) as received,
     array(select coalesce(r.count, 0)::int from ${HOURS} as h left join refused r on r.hour = h order by h) as refused`,
    [tenantId, sourceId],
  )
  return rows[0]!
}

export async function destinationActivity(
  db: Db,
  tenantId: number,
  destinationId: string,
): Promise<{ delivered: ByHour; failed: ByHour }> {
  const { rows } = await db.query<{ delivered: ByHour; failed: ByHour }>(
    `with hours as materialized (
       select h, a.delivered, a.failed from ${HOURS} as h cross join lateral (
         select count(*) filter (where outcome = 'delivered')::int as delivered,
           count(*) filter (where outcome <> 'delivered')::int as failed
         from (
           select outcome from delivery_attempts where tenant_id = $1 and destination_id = $2
             and attempted_at >= h and attempted_at < h + interval '1 hour' limit ${MOST_IN_AN_HOUR}
         ) c
       ) a
     )
     select array(select delivered from hours order by h) as delivered, array(select failed from hours order by h) as failed`,
    [tenantId, destinationId],
  )
  return rows[0]!
}

/** Counts of the problems of a tenant, in total and per hour of the last 24 hours, oldest first. */
type Failures = {
  openLetters: number
  lettersByHour: number[]
  refused: number
  refusedByHour: number[]
  deferred: number
  deferredSince: Date | null
}

// The current hour is the last one.
const LAST_24_HOURS = `generate_series(date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour')`

export async function summarizeFailures(db: Db, tenantId: number): Promise<Failures> {
  const { rows } = await db.query<Failures>(
    `with letters as materialized (
       select date_trunc('hour', failed_at) as hour, count(*) as count from dead_letters
       where tenant_id = $1 and failed_at >= date_trunc('hour', now()) - interval '23 hours' group by 1
     ), refused as materialized (
       select date_trunc('hour', r.rejected_at) as hour, sum(1 + r.suppressed) as count
       from sources s join rejections r on r.tenant_id = s.tenant_id and r.source_id = s.id
       where s.tenant_id = $1 and r.rejected_at >= date_trunc('hour', now()) - interval '23 hours' group by 1
     ), refused_keys as materialized (
       select hour, sum(count) as count from rejection_sums
       where tenant_id = $1 and hour >= date_trunc('hour', now()) - interval '23 hours' group by 1
     ), waiting as materialized (
       select coalesce(sum(o.items), 0)::bigint as events, min(o.received_at) as since
       from sources s join overflow o on o.source_id = s.id where s.tenant_id = $1
     )
     select (select count(*) from dead_letters where tenant_id = $1 and replayed_at is null) as "openLetters",
       array(select coalesce(l.count, 0)::int from ${LAST_24_HOURS} as h left join letters l on l.hour = h order by h) as "lettersByHour",
       (select coalesce(sum(count), 0)::bigint from (table refused union all table refused_keys) r) as refused,
       array(
         select (coalesce(r.count, 0) + coalesce(k.count, 0))::int
         from ${LAST_24_HOURS} as h left join refused r on r.hour = h left join refused_keys k on k.hour = h order by h
       ) as "refusedByHour",
       (select events from waiting) as deferred, (select since from waiting) as "deferredSince"`,
    [tenantId],
  )
  return rows[0]!
}

type ParkedSummary = { entries: number; oldestAt: Date; attempts: number; error: string | null }

/** Entries that failed and wait for a retry, and the last error of the oldest one. */
export async function summarizeParked(db: Db): Promise<ParkedSummary | null> {
  const { rows } = await db.query<ParkedSummary>(
    `select count(*) as entries, min(received_at) as "oldestAt", max(attempts) as attempts,
       (array_agg(last_error order by received_at) filter (where last_error is not null))[1] as error
     from parked_entries having count(*) > 0`,
  )
  return rows[0] ?? null
}

type RecentLetters = { failed: number; rejected: number; error: string | null }

/** Dead letters of the last hours that were not replayed, and the newest error of those that failed. */
export async function recentDeadLetters(db: Db, hours: number): Promise<RecentLetters> {
  const { rows } = await db.query<RecentLetters>(
    `select count(*) filter (where reason = 'failed') as failed, count(*) filter (where reason <> 'failed') as rejected,
       (array_agg(error order by failed_at desc) filter (where reason = 'failed'))[1] as error
     from dead_letters where failed_at > now() - make_interval(hours => $1) and replayed_at is null`,
    [hours],
  )
  return rows[0]!
}

type SilentSource = { id: string; name: string; tenantId: number; lastAt: Date; days: number }

/** Enabled sources that received events on several of the last days, but none in the last day. */
export async function silentSources(
  db: Db,
  { days, activeDays }: { days: number; activeDays: number },
): Promise<SilentSource[]> {
  const { rows } = await db.query<SilentSource>(
    `select s.id, s.name, s.tenant_id as "tenantId", max(r.received_at) as "lastAt",
       count(distinct r.received_at::date) as days
     from sources s
     join receipts r on r.tenant_id = s.tenant_id and r.source_id = s.id
       and r.received_at > now() - make_interval(days => $1) and r.detail is distinct from '${TEST_RECEIPT}'
     where s.enabled and s.deleted_at is null
     group by s.id
     having max(r.received_at) < now() - interval '1 day' and count(distinct r.received_at::date) >= $2
     order by 4 limit 20`,
    [days, activeDays],
  )
  return rows
}

/** Days of the last weeks on which records were written. */
export async function daysWithOperations(db: Db, days: number): Promise<Date[]> {
  const { rows } = await db.query<{ day: Date }>(
    `select day from generate_series(date_trunc('day', now()) - make_interval(days => $1), now(), interval '1 day') as day
     where exists (select from operations where received_at >= day and received_at < day + interval '1 day')`,
    [days],
  )
  return rows.map(({ day }) => day)
}

/** The first day of each month with events, going back the given number of days. */
export async function monthsWithEvents(db: Db, days: number): Promise<Date[]> {
  const { rows } = await db.query<{ month: Date }>(
    `select month
     from generate_series(date_trunc('month', now() - make_interval(days => $1)), now(), interval '1 month') as month
     where exists (
       select from events
       where received_at >= greatest(month, now() - make_interval(days => $1)) and received_at < month + interval '1 month')`,
    [days],
  )
  return rows.map(({ month }) => month)
}

export type OpenTransaction = {
  /** null: a prepared transaction, which has no process */
  pid: number | null
  database: string
  application: string
  state: string
  seconds: number
  /** Whether it has a transaction id. Workers only read what was written before it. */
  holdsLog: boolean
  /** The name of a prepared transaction. */
  gid: string | null
}

/** Transactions in the whole cluster that have been open for longer than this, longest first. */
export async function listLongTransactions(db: Db, seconds: number): Promise<OpenTransaction[]> {
  const { rows } = await db.query<OpenTransaction>(
    `select pid, coalesce(datname, '') as database, application_name as application, coalesce(state, '') as state,
       extract(epoch from clock_timestamp() - xact_start)::float8 as seconds, backend_xid is not null as "holdsLog", null as gid
     from pg_stat_activity
     where xact_start < clock_timestamp() - make_interval(secs => $1) and pid <> pg_backend_pid()
       and backend_type = 'client backend' and (backend_xid is not null or backend_xmin is not null)
     union all
     select null, database::text, '', 'prepared', extract(epoch from clock_timestamp() - prepared)::float8, true, gid
     from pg_prepared_xacts where prepared < clock_timestamp() - make_interval(secs => $1)
     order by seconds desc limit 20`,
    [seconds],
  )
  return rows
}

type Sessions = { servers: number; workers: number }

/** Connections of server processes and workers. */
export async function countSessions(db: Db): Promise<Sessions> {
  const { rows } = await db.query<Sessions>(
    `select count(*) filter (where application_name = 'kontor') as servers,
       count(*) filter (where application_name = 'kontor worker') as workers
     from pg_stat_activity where datname = current_database()`,
  )
  return rows[0]!
}

/** Settings that allow acknowledged data not to be on disk. */
export async function listUnsafeSettings(db: Db): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select name from pg_settings
     where name in ('fsync', 'synchronous_commit', 'full_page_writes') and setting = 'off' order by name`,
  )
  return rows.map(({ name }) => name)
}
