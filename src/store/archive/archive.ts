import { copyTable, int4, text, timestamp, uuid } from '../../postgres/copy.ts'
import { type Db, queryRow } from '../../postgres/database.ts'
import { ANONYMOUS_SALE } from '../destinations/outbox.ts'

type ArchivedTable = 'events' | 'conversions'

/** A row to be written to a file. */
export type Archivable = {
  tenantId: number
  what: ArchivedTable
  id: string
  receivedAt: Date
  bytes: number
  /** For a conversion: its row as JSON. */
  body: string | null
}

export const insertArchivable = copyTable<Archivable>('archive_queue', {
  tenant_id: int4(({ tenantId }) => tenantId),
  what: text(({ what }) => what),
  id: uuid(({ id }) => id),
  received_at: timestamp(({ receivedAt }) => receivedAt),
  bytes: int4(({ bytes }) => bytes),
  body: text(({ body }) => body),
})

type ArchiveState = { enabled: boolean; url: string | null; disabledReason: string | null }

export async function archiveState(db: Db): Promise<ArchiveState> {
  return (await queryRow<ArchiveState>(
    db,
    'select enabled, url, disabled_reason as "disabledReason" from archive_state',
  ))!
}

export async function saveArchiveState(db: Db, state: ArchiveState): Promise<void> {
  await db.query('update archive_state set enabled = $1, url = $2, disabled_reason = $3', [
    state.enabled,
    state.url,
    state.disabledReason,
  ])
}

/** After a restore, the copy must not write to the archive of the original. Returns whether the archive was enabled. */
export async function disableArchive(db: Db, reason: string): Promise<boolean> {
  const { rowCount } = await db.query('update archive_state set enabled = false, disabled_reason = $1 where enabled', [
    reason,
  ])
  return (rowCount ?? 0) > 0
}

const LEASE_S = 60

/** One node writes files at a time. False: another node does. */
export async function leaseArchive(db: Db, owner: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `update archive_progress set owner = $1, leased_until = now() + ${LEASE_S} * interval '1 second'
     where owner = $1 or leased_until < now()`,
    [owner],
  )
  return rowCount === 1
}

export async function releaseArchive(db: Db, owner: string): Promise<void> {
  await db.query(`update archive_progress set leased_until = '-infinity' where owner = $1`, [owner])
}

export async function recordArchiveFailure(db: Db, error: string | null): Promise<void> {
  await db.query(
    `update archive_progress set error = $1, failed_at = case when $1::text is null then failed_at else now() end
     where error is distinct from $1`,
    [error],
  )
}

// Rows per plan: a transaction that writes delays the readers of the log until it ends.
const PLANNED_ROWS = 50_000
// Size of a file before compression: the whole file is held in memory.
const FILE_BYTES = 33_554_432

/** Plans the next files, one or more per tenant, table and hour. Returns whether more rows may wait than one plan takes. */
export async function planFiles(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ planned: number }>(
    `with picked as materialized (
       select ctid as place, * from archive_queue limit ${PLANNED_ROWS} for update skip locked
     ), cut as (
       select *, date_trunc('hour', received_at, 'UTC') as hour,
         div(sum(bytes::bigint) over (partition by tenant_id, what, date_trunc('hour', received_at, 'UTC')
           order by received_at, id rows unbounded preceding), ${FILE_BYTES}) as part
       from picked
     ), planned as (
       insert into archive_files (id, tenant_id, what, hour, rows, ids, bodies)
       select gen_random_uuid(), tenant_id, what, hour, count(*), array_agg(id order by received_at, id),
         case when what = 'conversions' then array_agg(body order by received_at, id) end
       from cut group by tenant_id, what, hour, part
     ), taken as (
       delete from archive_queue where ctid = any(array(select place from picked))
     )
     select count(*) as planned from picked`,
  )
  return rows[0]!.planned === PLANNED_ROWS
}

export type PlannedFile = {
  id: string
  tenantId: number
  what: ArchivedTable
  hour: Date
  ids: string[]
  bodies: string[] | null
}

/** The oldest file that is planned but not written. */
export async function nextFile(db: Db): Promise<PlannedFile | null> {
  const { rows } = await db.query<PlannedFile>(
    `select id, tenant_id as "tenantId", what, hour, ids, bodies
     from archive_files where written_at is null order by planned_at, id limit 1`,
  )
  return rows[0] ?? null
}

export async function markWritten(db: Db, id: string, { rows, bytes }: { rows: number; bytes: number }): Promise<void> {
  await db.query(
    `update archive_files set written_at = now(), rows = $2, bytes = $3, ids = null, bodies = null
     where id = $1`,
    [id, rows, bytes],
  )
}

type ArchiveProgress = {
  /** Rows in no file plan, counted up to one million. */
  waiting: number
  /** Rows of files that are planned but not written. */
  unwritten: number
  files: number
  rows: number
  bytes: number
  lastWrittenAt: Date | null
  failedAt: Date | null
  error: string | null
}

export async function archiveProgress(db: Db): Promise<ArchiveProgress> {
  const { rows } = await db.query<ArchiveProgress>(
    `select (select count(*) from (select from archive_queue limit 1000000) q) as waiting, f.*, failed_at as "failedAt", error
     from archive_progress, (
       select coalesce(sum(rows) filter (where written_at is null), 0)::bigint as unwritten, count(*) filter (where written_at is not null) as files,
         coalesce(sum(rows) filter (where written_at is not null), 0)::bigint as rows, coalesce(sum(bytes), 0)::bigint as bytes,
         max(written_at) as "lastWrittenAt"
       from archive_files) f`,
  )
  return rows[0]!
}

/** Anonymizes conversions that are in no file yet. Deleted events are not written to files anyway. */
export async function anonymizeArchivable(db: Db, tenantId: number, saleKeys: string[]): Promise<void> {
  const ids = `array(select id from conversions where tenant_id = $1 and sale_key = any($2))`
  await db.query(
    `update archive_queue set body = (body::jsonb || '${ANONYMOUS_SALE}')::text
     where tenant_id = $1 and what = 'conversions' and id = any(${ids})`,
    [tenantId, saleKeys],
  )
  await db.query(
    `update archive_files set bodies = array(
       select case when u.id = any(${ids}) then (u.body::jsonb || '${ANONYMOUS_SALE}')::text else u.body end
       from unnest(ids, bodies) with ordinality as u (id, body, n) order by u.n)
     where tenant_id = $1 and what = 'conversions' and written_at is null`,
    [tenantId, saleKeys],
  )
}
