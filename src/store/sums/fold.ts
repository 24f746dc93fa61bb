import type pg from 'pg'
import { type Db, inTransaction, queryPrepared } from '../../postgres/database.ts'
import { LOCKS, lock, tryLock } from '../../postgres/locks.ts'
import { deleteEventDays, OUTDATE_DAYS } from '../events/days.ts'
import { NOT_A_TEST } from '../events/events.ts'

// Few, because readers of the log wait for transactions that write: 2,000 rows are at most 12,000 sums, 0.15 s.
const ADDED_AT_A_TIME = 2_000
/** The start of the period that a minute lies in, for every grain of the sums. */
const GRAINS = `(values ('minute', interval '1 minute'), ('quarter', '15 minutes'), ('day', '1 day')) as g (grain, length)`
const START = `date_bin(length, minute, '2000-01-01 00:00:00+00')`
const DROPPED_AT_A_TIME = 20_000

/**
 * Folds a batch of added rows into the sums of events and conversions, or deletes a batch of sums that retention has
 * dropped. Returns whether there may be more.
 */
export async function foldSeries(pool: pg.Pool): Promise<boolean> {
  if (!(await hasWork(pool))) return false
  return inTransaction(pool, async client => {
    if (!(await tryLock(client, LOCKS.series))) return false
    if (await deleteDropped(client)) return true
    const events = await foldEvents(client)
    const conversions = await foldConversions(client)
    return events === ADDED_AT_A_TIME || conversions === ADDED_AT_A_TIME
  })
}

async function hasWork(db: Db): Promise<boolean> {
  const { rows } = await queryPrepared<{ has: boolean }>(
    db,
    `select exists (select from event_sums_added) or exists (select from conversion_sums_added)
       or exists (select from event_sums_dropped) as has`,
  )
  return rows[0]!.has
}

// Events that are imported with old times would otherwise have a sum of their own each: 150 bytes and most of the work.
const MINUTES_KEPT = `interval '3 days'`

/** Deletes sums by minute of events that are too old to be read (series.ts). */
export async function deleteOldMinutes(db: Db): Promise<void> {
  await db.query(`delete from event_sums where grain = 'minute' and at < now() - ${MINUTES_KEPT}`)
}

type Sum = { taken: number; isZero: boolean; key: string | null }

async function foldEvents(db: Db): Promise<number> {
  // Rows in a period that retention dropped wait until the old sums of that period are deleted.
  const { rows } = await db.query<Sum>(
    `with taken as (
       delete from event_sums_added where ctid = any(array(
         select ctid from event_sums_added
         where not minute <@ (select coalesce(range_agg(tstzrange(since, until)), '{}') from event_sums_dropped)
         order by tenant_id, minute limit ${ADDED_AT_A_TIME}))
       returning *
     ), outdated as (${OUTDATE_DAYS}
     ), folded as (
       insert into event_sums as s (tenant_id, grain, all_types, at, event_type, source, count)
       select tenant_id, grain, grouping(event_type) = 1, ${START}, coalesce(event_type, ''), source, sum(count)
       from taken cross join ${GRAINS}
       where grain <> 'minute' or minute > now() - ${MINUTES_KEPT}
       group by grouping sets ((1, 2, 4, source, event_type), (1, 2, 4, source)) having sum(count) <> 0
       on conflict (tenant_id, grain, all_types, at, event_type, source) do update set count = s.count + excluded.count
       returning s.*
     )
     select (select count(*) from taken) as taken, f.tenant_id is not null as "isZero",
       json_build_array(f.tenant_id, f.grain, f.all_types, f.at, f.event_type, f.source) as key
     from (select) one_row left join folded f on f.count = 0`,
  )
  const empty = rows.filter(({ isZero }) => isZero)
  if (empty.length > 0)
    await db.query(
      `delete from event_sums s using json_array_elements($1) as k
       where (s.tenant_id, s.grain, s.all_types, s.at, s.event_type, s.source)
         = ((k ->> 0)::int, k ->> 1, (k ->> 2)::boolean, (k ->> 3)::timestamptz, k ->> 4, k ->> 5)`,
      [formatKeys(empty)],
    )
  return rows[0]!.taken
}

async function foldConversions(db: Db): Promise<number> {
  const { rows } = await db.query<Sum>(
    `with taken as (
       delete from conversion_sums_added where ctid = any(array(
         select ctid from conversion_sums_added order by tenant_id, minute limit ${ADDED_AT_A_TIME}))
       returning *
     ), folded as (
       insert into conversion_sums as s
         (tenant_id, grain, at, event_type, conversion_type, source, currency, count, amount)
       select tenant_id, grain, ${START}, event_type, conversion_type, source, currency, sum(count), sum(amount)
       from taken cross join ${GRAINS}
       group by 1, 2, 3, 4, 5, 6, 7 having sum(count) <> 0 or sum(amount) <> 0
       on conflict (tenant_id, grain, at, event_type, conversion_type, source, currency)
       do update set count = s.count + excluded.count, amount = s.amount + excluded.amount
       returning s.*
     )
     select (select count(*) from taken) as taken, f.tenant_id is not null as "isZero",
       json_build_array(f.tenant_id, f.grain, f.at, f.event_type, f.conversion_type, f.source, f.currency) as key
     from (select) one_row left join folded f on f.count = 0 and f.amount = 0`,
  )
  const empty = rows.filter(({ isZero }) => isZero)
  if (empty.length > 0)
    await db.query(
      `delete from conversion_sums s using json_array_elements($1) as k
       where (s.tenant_id, s.grain, s.at, s.event_type, s.conversion_type, s.source, s.currency)
         = ((k ->> 0)::int, k ->> 1, (k ->> 2)::timestamptz, k ->> 3, k ->> 4, k ->> 5, k ->> 6)`,
      [formatKeys(empty)],
    )
  return rows[0]!.taken
}

const formatKeys = (sums: Sum[]) => `[${sums.map(({ key }) => key).join(',')}]`

/**
 * Call it in the transaction in which retention drops the events of a period, after the drop, when no other transaction
 * writes events. Marks the sums instead of deleting them: all workers wait for that transaction, and a month may have a
 * million sums.
 */
export async function dropEventSums(db: Db, { since, until }: { since: Date; until: Date }): Promise<void> {
  await db.query('delete from event_sums_added where minute >= $1 and minute < $2', [since, until])
  await db.query('insert into event_sums_dropped (since, until) values ($1, $2)', [since, until])
}

async function deleteDropped(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ since: Date; until: Date }>(
    'select since, until from event_sums_dropped order by since limit 1',
  )
  const [dropped] = rows
  if (!dropped) return false
  const range = [dropped.since, dropped.until]
  const { rowCount } = await db.query(
    `delete from event_sums where ctid = any(array(
       select ctid from event_sums where at >= $1 and at < $2 limit ${DROPPED_AT_A_TIME}))`,
    range,
  )
  if (rowCount === DROPPED_AT_A_TIME) return true
  await deleteEventDays(db, dropped)
  await db.query('delete from event_sums_dropped where since = $1 and until = $2', range)
  return true
}

/**
 * Computes all sums again from events and conversions, and deletes the columns of days, which the folded sums mark as changed.
 * Writers of these tables wait until it ends.
 */
export async function rebuildSeries(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, async client => {
    await lock(client, LOCKS.series)
    await client.query('lock table events, conversions in share mode')
    for (const table of SUM_TABLES) await client.query(`delete from ${table}`)
    await client.query(
      `insert into event_sums_added (tenant_id, minute, event_type, source, count)
       select tenant_id, date_trunc('minute', occurred_at, 'UTC'), event_type, source, count(*)
       from events where not conversion and ${NOT_A_TEST} group by 1, 2, 3, 4`,
    )
    await client.query(
      `insert into conversion_sums_added (tenant_id, minute, event_type, conversion_type, source, currency, count, amount)
       select tenant_id, date_trunc('minute', occurred_at, 'UTC'), coalesce(event_type, ''), conversion_type, source,
         conversion_currency(order_amount, order_currency, event_amount, event_currency), count(*),
         coalesce(sum(coalesce(order_amount, event_amount)), 0)
       from conversions where listed group by 1, 2, 3, 4, 5, 6`,
    )
  })
}

const SUM_TABLES = [
  ...['event_sums', 'event_sums_added', 'event_sums_dropped', 'event_days'],
  ...['conversion_sums', 'conversion_sums_added'],
]
