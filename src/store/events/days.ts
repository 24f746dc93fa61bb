import type pg from 'pg'
import { type Db, inTransaction, queryLong } from '../../postgres/database.ts'
import { LOCKS, tryLock } from '../../postgres/locks.ts'
import { NOT_A_TEST } from './events.ts'

/**
 * Marks the days of the sums that are being folded (`taken`) as changed, and deletes their columns. A day that changes all the
 * time is marked once a minute.
 */
export const OUTDATE_DAYS = `
  insert into event_days as d (tenant_id, day, changed_at)
  select distinct tenant_id, (minute at time zone 'UTC')::date, now() from taken
  on conflict (tenant_id, day) do update set changed_at = excluded.changed_at, visitors = null, quarters = null,
    nodes = null, times = null, kinds = null, kind_names = null
  where d.visitors is not null or d.changed_at < now() - interval '1 minute'`

/**
 * Whether the columns of a day `d` of the tenant `$1` can be read instead of its events: no event was added or deleted since. The
 * changed days are an array, so that they are read once and not once per day.
 */
export const DAY_IS_CURRENT = `d.visitors is not null
  and d.day <> all (array(
    select distinct (minute at time zone 'UTC')::date from event_sums_added where tenant_id = $1))
  and not exists (select from event_sums_dropped g where g.since < (d.day + 1)::timestamptz and g.until > d.day::timestamptz)`

/** Deletes the days of a period that retention dropped. */
export async function deleteEventDays(db: Db, { since, until }: { since: Date; until: Date }): Promise<void> {
  await db.query('delete from event_days where day::timestamptz >= $1 and day::timestamptz < $2', [since, until])
}

/** 64 bits: that two of a million visitors have the same hash is less likely than one in ten million. */
export const VISITOR_HASH = 'hashtextextended(visitor, 0)'

// json, not jsonb: it does not convert numbers, of which some are too large. Longer URLs are cut, so that matching is fast.
const URL = `left(coalesce(payload::json ->> 'page', payload::json ->> 'url', payload::json -> 'properties' ->> 'url',
  payload::json -> 'context' -> 'page' ->> 'url', payload::json -> 'properties' ->> 'path',
  payload::json -> 'context' -> 'page' ->> 'path', ''), 2000)`
const PATH = `coalesce(nullif(regexp_replace(regexp_replace(${URL}, '^[a-zA-Z]+://[^/?#]*', ''), '[?#].*$', ''), ''), '/')`

// Anyone can send any number of paths. The columns of such a day are not stored, and funnels read its events.
const MAX_NAME_BYTES = 4_000_000

// Mobile SDKs name the system of the device instead of a user agent. That of a webhook belongs to the sender's server.
const AGENT = `left(coalesce(payload::json -> 'context' ->> 'userAgent',
  case when source_config_id is null then headers::json ->> 'user-agent' end, ''), 500)`
export const DEVICE = `(
  select case
    when agent ~ 'iPad|Tablet|Kindle|Silk/' or (agent ~ 'Android' and agent !~ 'Mobile') then 'tablet'
    when agent ~ 'Mobi|iPhone|iPod' or lower(payload::json -> 'context' -> 'device' ->> 'type') in ('ios', 'android') then 'phone'
    when agent ~ '^Mozilla/.*(Windows NT|Macintosh|X11|CrOS)' then 'computer'
    else 'other' end
  from (select ${AGENT} as agent) a)`

/** `found`: a query of rows with occurred_at, id, node, name, path and device; `start`: the moment that the times are relative to. */
export const toColumns = (found: string, start: string) => `
  with found as materialized (${found}),
  named as materialized (
    select name, path, device, row_number() over () - 1 as kind from (select distinct name, path, device from found) n
  )
  select coalesce(string_agg(substring(int8send(f.node) from 4), '' order by f.occurred_at, f.id), '') as nodes,
    coalesce(string_agg(int4send((1000 * (date_part('epoch', f.occurred_at) - date_part('epoch', ${start})))::int), ''
      order by f.occurred_at, f.id), '') as times,
    coalesce(string_agg(substring(int4send(n.kind::int) from 2), '' order by f.occurred_at, f.id), '') as kinds,
    case when (select coalesce(sum(octet_length(name) + octet_length(path)), 0) from named) <= ${MAX_NAME_BYTES}
      then coalesce((select json_agg(json_build_array(name, path, device) order by kind) from named)::text, '[]') end as kind_names
  from found f join named n on n.name = f.name and n.path = f.path and n.device = f.device`

/** The path of an event `e` whose type is in the parameter `types`, else ''. */
export const pathOf = (types: string) => `case when event_type = any(${types}) then ${PATH} else '' end`

// Late events of one day often arrive in several requests.
const QUIET_MS = 10 * 60_000

/** Computes the columns of one day that is over. Returns whether there may be more. */
export async function computeEventDay(
  pool: pg.Pool,
  { today, pageTypes, quietMs = QUIET_MS }: { today: string; pageTypes: readonly string[]; quietMs?: number },
): Promise<boolean> {
  const { rows } = await pool.query<{ tenantId: number; day: string }>(
    `select tenant_id as "tenantId", day::text from event_days
     where visitors is null and changed_at <= now() - $1 * interval '1 ms' and day < $2
     order by changed_at limit 1`,
    [quietMs, today],
  )
  const [next] = rows
  if (!next) return false
  try {
    return await computeColumns(pool, next, pageTypes)
  } catch (error) {
    // The other days are computed first.
    await pool.query('update event_days set changed_at = now() where tenant_id = $1 and day = $2', [
      next.tenantId,
      next.day,
    ])
    throw error
  }
}

async function computeColumns(
  pool: pg.Pool,
  { tenantId, day }: { tenantId: number; day: string },
  pageTypes: readonly string[],
): Promise<boolean> {
  return inTransaction(pool, async client => {
    // Sums that are added from now on are folded after this transaction, and then delete the columns again.
    if (!(await tryLock(client, LOCKS.series))) return false
    const window = `tenant_id = $1 and occurred_at >= $2::date::timestamptz
      and occurred_at < ($2::date + 1)::timestamptz and not conversion`
    await queryLong(
      client,
      `update event_days d set visitors = v.visitors, quarters = v.quarters, kind_names = c.kind_names,
         nodes = case when c.kind_names is not null then c.nodes end,
         times = case when c.kind_names is not null then c.times end,
         kinds = case when c.kind_names is not null then c.kinds end
       from (
         select coalesce(array_agg(visitor order by quarter), '{}') as visitors,
           coalesce(array_agg(quarter order by quarter), '{}') as quarters
         from (
           select distinct ${VISITOR_HASH} as visitor,
             floor((date_part('epoch', occurred_at) - date_part('epoch', $2::date::timestamptz)) / 900)::smallint as quarter
           from events where ${window} and visitor is not null and ${NOT_A_TEST}
         ) pairs
       ) v, (${toColumns(
         `select occurred_at, id, node, event_type as name, ${pathOf('$3::text[]')} as path, ${DEVICE} as device from events
          where ${window} and node is not null`,
         '$2::date::timestamptz',
       )}) c
       where d.tenant_id = $1 and d.day = $2::date`,
      [tenantId, day, pageTypes],
    )
    return true
  })
}
