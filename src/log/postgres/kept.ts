import type { Entry } from '../../domain/entries/entry.ts'
import { timeOfId } from '../../domain/ids.ts'
import type { Db } from '../../postgres/database.ts'
import { ENTRY_COLUMNS } from '../../postgres/entries.ts'
import type { EntryName } from '../log.ts'

export async function find(db: Db, tenantId: number, id: string): Promise<Entry | null> {
  const { rows } = await db.query<Entry>(
    `select ${ENTRY_COLUMNS} from log where received_at = $1 and tenant_id = $2 and id = $3`,
    [timeOfId(id), tenantId, id],
  )
  return rows[0] ?? null
}

const READ = 'c.partition = l.partition and (l.epoch, l.xid, l.ord) <= (c.epoch, c.xid, c.ord)'

export async function countRead(db: Db, tenantId: number, entries: EntryName[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from log l join unnest($2::uuid[], $3::timestamptz[]) as e (id, received_at)
       on l.received_at = e.received_at and l.id = e.id
     join log_cursors c on ${READ} where l.tenant_id = $1`,
    [tenantId, ...columnsOf(entries)],
  )
  return rows[0]!.count
}

export async function forget(db: Db, tenantId: number, entries: EntryName[]): Promise<number> {
  const { rowCount } = await db.query(
    `delete from log l using unnest($2::uuid[], $3::timestamptz[]) as e (id, received_at), log_cursors c
     where l.tenant_id = $1 and l.received_at = e.received_at and l.id = e.id and ${READ}`,
    [tenantId, ...columnsOf(entries)],
  )
  return rowCount ?? 0
}

const columnsOf = (entries: EntryName[]) => [
  entries.map(({ id }) => id),
  entries.map(({ receivedAt }) => receivedAt),
]

/** Each partition is looked into no further than its first row. */
export async function hasEntriesSince(db: Db, moment: Date): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>(
    'select exists (select from log where received_at >= $1) or not exists (select from log) as has',
    [moment],
  )
  return rows[0]!.has
}

/** Such entries stay until their time has come: once others have come in after them for an hour, the clock was set right. */
export async function newestAhead(db: Db, seconds: number): Promise<Date | null> {
  const { rows } = await db.query<{ newest: Date | null }>(
    `with ahead as materialized (
       select received_at, epoch, xid from log where received_at > now() + make_interval(secs => $1)
       order by epoch desc, xid desc limit 1
     )
     select received_at as newest from ahead
     where not exists (
       select from log l where l.received_at < now() - interval '1 hour' and (l.epoch, l.xid) > (ahead.epoch, ahead.xid)
     )`,
    [seconds],
  )
  return rows[0]?.newest ?? null
}
