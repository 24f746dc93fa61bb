import type { Entry, EntryKind } from '../../domain/entries/entry.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, toEntry } from '../../postgres/entries.ts'

/**
 * An entry that waits for its next attempt, or behind one that does. `partition` names the log and the partition it
 * came from, for example postgres/3; a lower `parkedId` was parked earlier.
 */
export type Parked = { parkedId: number; partition: string; entry: Entry; attempts: number; nextAttemptAt: Date }

type ParkedOrder = {
  tenantId: number
  kind: EntryKind
  orderingKey: string
  /** Whether its first entry is due. The others wait behind it. */
  isDue: boolean
  entries: number
}

// Retries wait for minutes at most. A later time was set by a clock that was ahead.
const dueAt = (at: string) => `(${at} <= now() or ${at} > now() + interval '1 hour')`

/** The ordering keys of these partitions that have parked entries. */
export async function listParkedOrders(db: Db, partitions: string[]): Promise<ParkedOrder[]> {
  return queryRows<ParkedOrder>(
    db,
    `select tenant_id as "tenantId", kind, ordering_key as "orderingKey",
            ${dueAt('(array_agg(next_attempt_at order by parked_id))[1]')} as "isDue", count(*) as entries
     from parked_entries where partition = any($1) group by tenant_id, kind, ordering_key`,
    [partitions],
  )
}

/**
 * The parked entries of these ordering keys, each key from its beginning. The first entries of all keys come before any
 * second one, the longest waiting first. Returns at least one.
 */
export async function loadParked(
  db: Db,
  partitions: string[],
  orders: ParkedOrder[],
  { rows: maxRows, bytes: maxBytes }: { rows: number; bytes: number },
): Promise<Parked[]> {
  const { rows } = await db.query<Entry & Omit<Parked, 'entry'>>(
    `select parked_id as "parkedId", partition, ${ENTRY_COLUMNS}, attempts, next_attempt_at as "nextAttemptAt"
     from (
       select *, sum(octet_length(body)) over turns - octet_length(body) as bytes_before
       from (
         select p.*, row_number() over (partition by tenant_id, kind, ordering_key order by parked_id) as nth
         from parked_entries p
         join unnest($2::int[], $3::text[], $4::text[]) as o (tenant_id, kind, ordering_key) using (tenant_id, kind, ordering_key)
         where partition = any($1)
       ) p
       window turns as (order by nth, next_attempt_at, parked_id rows unbounded preceding)
       order by nth, next_attempt_at, parked_id limit $5
     ) p
     where bytes_before < $6 order by parked_id`,
    [
      partitions,
      orders.map(order => order.tenantId),
      orders.map(order => order.kind),
      orders.map(order => order.orderingKey),
      maxRows,
      maxBytes,
    ],
  )
  return rows.map(row => {
    const { parkedId, partition, attempts, nextAttemptAt } = row
    return { parkedId, partition, attempts, nextAttemptAt, entry: toEntry(row) }
  })
}

export async function partitionsWithDueEntries(db: Db): Promise<string[]> {
  const { rows } = await queryPrepared<{ partition: string }>(
    db,
    `select distinct partition from parked_entries where ${dueAt('next_attempt_at')}`,
  )
  return rows.map(row => row.partition)
}

export type NewParked = { partition: string; entry: Entry; attempts: number; nextAttemptAt: Date; error: string | null }

/** In the order given: the entries of an ordering key will be applied in that order. */
export async function park(db: Db, parked: NewParked[]): Promise<void> {
  if (parked.length === 0) return
  await db.query(
    `insert into parked_entries
       (partition, id, tenant_id, kind, ordering_key, received_at, context, body, attempts, next_attempt_at, last_error)
     select partition, id, tenant_id, kind, ordering_key, received_at, context, body, attempts, next_attempt_at, last_error
     from unnest($1::text[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::timestamptz[], $7::text[], $8::text[],
       $9::int[], $10::timestamptz[], $11::text[]) with ordinality
       as p (partition, id, tenant_id, kind, ordering_key, received_at, context, body, attempts, next_attempt_at, last_error, ord)
     order by ord`,
    [
      parked.map(({ partition }) => partition),
      parked.map(({ entry }) => entry.id),
      parked.map(({ entry }) => entry.tenantId),
      parked.map(({ entry }) => entry.kind),
      parked.map(({ entry }) => entry.orderingKey),
      parked.map(({ entry }) => entry.receivedAt),
      parked.map(({ entry }) => entry.context),
      parked.map(({ entry }) => entry.body),
      parked.map(({ attempts }) => attempts),
      parked.map(({ nextAttemptAt }) => nextAttemptAt),
      parked.map(({ error }) => error),
    ],
  )
}

/** Keeps the entry's place in its order, with what is left of the entry. */
export async function postpone(
  db: Db,
  parked: {
    partition: string
    parkedId: number
    entry: Entry
    attempts: number
    nextAttemptAt: Date
    error: string | null
  },
): Promise<void> {
  await db.query(
    `update parked_entries set context = $3, attempts = $4, next_attempt_at = $5, last_error = $6
     where partition = $1 and parked_id = $2`,
    [parked.partition, parked.parkedId, parked.entry.context, parked.attempts, parked.nextAttemptAt, parked.error],
  )
}

/** Stores what is left of an entry. Nothing else of it changes. */
export async function narrowParked(
  db: Db,
  { partition, parkedId, entry }: { partition: string; parkedId: number; entry: Entry },
): Promise<void> {
  await db.query('update parked_entries set context = $3 where partition = $1 and parked_id = $2', [
    partition,
    parkedId,
    entry.context,
  ])
}

export async function unpark(db: Db, parked: { partition: string; parkedId: number }[]): Promise<void> {
  await db.query(
    `delete from parked_entries p using unnest($1::text[], $2::bigint[]) as done (partition, parked_id)
     where p.partition = done.partition and p.parked_id = done.parked_id`,
    [parked.map(row => row.partition), parked.map(row => row.parkedId)],
  )
}

export async function findParked(db: Db, tenantId: number, id: string): Promise<Entry | null> {
  const { rows } = await db.query<Entry>(
    `select ${ENTRY_COLUMNS} from parked_entries where tenant_id = $1 and id = $2 limit 1`,
    [tenantId, id],
  )
  return rows[0] ?? null
}

/** Parked entries of a tenant that were received by then. */
export async function countParked(db: Db, tenantId: number, receivedBy: Date): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*) from parked_entries where tenant_id = $1 and received_at <= $2',
    [tenantId, receivedBy],
  )
  return rows[0]!.count
}

/** Parked entries of a tenant that were received by then and only wait for their turn: neither they nor one before them failed. */
export async function countDeferred(db: Db, tenantId: number, receivedBy: Date): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from parked_entries p where tenant_id = $1 and received_at <= $2 and not exists (
       select from parked_entries f where f.partition = p.partition and f.tenant_id = p.tenant_id
         and f.ordering_key = p.ordering_key and f.attempts > 0)`,
    [tenantId, receivedBy],
  )
  return rows[0]!.count
}

/** The number of parked entries of a tenant, and the oldest time. */
export async function summarizeParked(db: Db, tenantId: number): Promise<{ entries: number; oldestAt: Date | null }> {
  const { rows } = await db.query<{ entries: number; oldestAt: Date | null }>(
    'select count(*) as entries, min(received_at) as "oldestAt" from parked_entries where tenant_id = $1',
    [tenantId],
  )
  return rows[0]!
}

/** When the oldest waiting entry of a tenant was received. */
export async function findOldestOfTenant(
  db: Db,
  table: 'overflow' | 'parked_entries',
  tenantId: number,
): Promise<Date | null> {
  const { rows } = await db.query<{ oldest: Date | null }>(
    `select min(received_at) as oldest from ${table} where tenant_id = $1`,
    [tenantId],
  )
  return rows[0]!.oldest
}

/** When the oldest entry was received that waits for a retry, or for budget in the overflow queue. */
export async function oldestHeldUp(db: Db): Promise<Date | null> {
  const { rows } = await db.query<{ oldest: Date | null }>(
    `select least((select min(received_at) from parked_entries), (select min(received_at) from overflow)) as oldest`,
  )
  return rows[0]!.oldest
}

/** Work that was set aside: parked entries by partition, and orders whose unverified sales a job folds. */
export async function listSetAside(db: Db): Promise<{ partition: string; entries: number; oldestAt: Date }[]> {
  const { rows } = await db.query<{ partition: string; entries: number; oldestAt: Date }>(
    `select partition, count(*) as entries, min(received_at) as "oldestAt" from parked_entries group by partition
     union all
     select 'sale_folds', count(*), min(requested_at) from sale_folds having count(*) > 0`,
  )
  return rows
}

export type StalledPartition = { partition: string; failedAt: Date; error: string }

/** Records that a partition of the log failed outside of any entry. Nothing of it is applied until that is resolved. */
export async function recordStall(db: Db, partition: string, error: string): Promise<void> {
  await db.query(
    `insert into stalled_partitions (partition, failed_at, error) values ($1, now(), $2)
     on conflict (partition) do update set failed_at = now(), error = excluded.error`,
    [partition, error],
  )
}

/** Partitions that failed in the last minutes. A stalled partition is retried every few seconds and fails again. */
export async function listStalled(db: Db): Promise<StalledPartition[]> {
  const { rows } = await db.query<StalledPartition>(
    `select partition, failed_at as "failedAt", error from stalled_partitions
     where failed_at > now() - interval '3 minutes' order by partition`,
  )
  return rows
}
