import type { Db } from '../../postgres/database.ts'

type ParkedSummary = { entries: number; oldestAt: Date; attempts: number; error: string | null }

/** Entries that failed and wait for their retry, and the last error of the one that has waited longest. */
export async function summarizeParked(db: Db): Promise<ParkedSummary | null> {
  const { rows } = await db.query<ParkedSummary>(
    `select count(*) as entries, min(received_at) as "oldestAt", max(attempts) as attempts,
       (array_agg(last_error order by received_at) filter (where last_error is not null))[1] as error
     from parked_entries having count(*) > 0`,
  )
  return rows[0] ?? null
}

type RecentLetters = { failed: number; rejected: number; error: string | null }

/** Dead letters of the last hours that nobody has replayed, and the newest error of those that failed. */
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

/** Enabled sources that heard something on several of the last days, and nothing in the last one. */
export async function silentSources(
  db: Db,
  { days, activeDays }: { days: number; activeDays: number },
): Promise<SilentSource[]> {
  const { rows } = await db.query<SilentSource>(
    `select s.id, s.name, s.tenant_id as "tenantId", max(r.received_at) as "lastAt",
       count(distinct r.received_at::date) as days
     from sources s
     join receipts r on r.tenant_id = s.tenant_id and r.source_id = s.id
       and r.received_at > now() - make_interval(days => $1)
     where s.enabled and s.deleted_at is null
     group by s.id
     having max(r.received_at) < now() - interval '1 day' and count(distinct r.received_at::date) >= $2
     order by 4 limit 20`,
    [days, activeDays],
  )
  return rows
}

/** Days of the last weeks in which record writes came in. */
export async function daysWithOperations(db: Db, days: number): Promise<Date[]> {
  const { rows } = await db.query<{ day: Date }>(
    `select day from generate_series(date_trunc('day', now()) - make_interval(days => $1), now(), interval '1 day') as day
     where exists (select from operations where received_at >= day and received_at < day + interval '1 day')`,
    [days],
  )
  return rows.map(({ day }) => day)
}

/** The first of each month, back so many days, in which events came in. */
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
