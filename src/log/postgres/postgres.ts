import type pg from 'pg'
import type { Entry } from '../../domain/entry.ts'
import { timeOfId } from '../../domain/ids.ts'
import { copyRows } from '../../postgres/copy.ts'
import { type Db, inTransaction, isConflict, queryPrepared, withClient } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, entryOf } from '../../postgres/entries.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'
import {
  ensurePartitions,
  isMissingPartition,
  isNearPeriodStart,
  periodOf,
} from '../../postgres/partitions.ts'
import type { Append, Appended, FirstUse, Log, Taken } from '../log.ts'
import { partitionOf } from '../log.ts'

type Position = { partition: number; xid: string; ord: number }

// A batch is cut by size too: a hundred 1 MiB bodies would hold the other partitions up.
const MAX_BYTES_PER_LANE = 250_000

export function openPostgresLog({ pool, partitions }: { pool: pg.Pool; partitions: number }): Log {
  const listeners = new Set<() => void>()

  async function append(batch: Append[]): Promise<Appended[]> {
    const attempt = () => withClient(pool, client => appendBatch(client, batch, partitions))
    const appended = await attempt().catch(async error => {
      // The clock jumped past all that was prepared: a machine that slept for weeks does not wait for the next upkeep.
      if (isMissingPartition(error)) await ensurePartitions(pool, batch.at(-1)!.entry.receivedAt)
      else if (!isConflict(error)) throw error
      return attempt()
    })
    for (const listener of listeners) listener()
    return appended
  }

  return {
    append,
    take: (client, options) => take(client, options),
    advance,
    onAppend(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async lag() {
      const { rows } = await pool.query<{ partition: number; entries: number; oldestAt: Date | null }>(LAG)
      return rows.map(({ partition, ...waiting }) => ({ lane: laneOf(partition), ...waiting }))
    },
    async firstUse(tenantId, key) {
      return (await findFirstUses(pool, [{ tenantId, key }]))[0] ?? null
    },
    async find(tenantId, id) {
      const { rows } = await pool.query<Entry>(
        `select ${ENTRY_COLUMNS} from log
         where received_at = $1 and tenant_id = $2 and id = $3`,
        [timeOfId(id), tenantId, id],
      )
      return rows[0] ?? null
    },
  }
}

/** Appends in a statement of its own, or as part of the caller's transaction. */
export async function appendBatch(
  client: pg.PoolClient,
  batch: Append[],
  partitions: number,
): Promise<Appended[]> {
  if (batch.every(({ claim }) => claim === null)) {
    await copyEntries(client, batch, partitions)
    return batch.map(() => ({ duplicateOf: null }))
  }
  const { firstUses, unclaimed } = sortOutClaims(batch)
  const now = new Date()
  const { rows } = await queryPrepared<{ id: string }>(client, APPEND_CLAIMING, [
    toRows(unclaimed, partitions),
    periodOf('idempotency_keys', now),
    isNearPeriodStart('idempotency_keys', now),
  ])
  if (rows.length < unclaimed.length) {
    const appended = new Set(rows.map(row => row.id))
    const lost = unclaimed.filter(({ entry }) => !appended.has(entry.id))
    for (const use of await findFirstUses(client, lost.map(claimedKey)))
      firstUses.set(claimId(use.tenantId, use.key), use)
  }
  return batch.map(({ entry, claim }) => {
    const first = claim ? firstUses.get(claimId(entry.tenantId, claim.key)) : undefined
    return { duplicateOf: first && first.operationId !== entry.id ? first : null }
  })
}

/** Makes the cursors of a new installation. The number of partitions is fixed then: it decides who waits behind whom. */
export async function initialisePostgresLog(pool: pg.Pool, partitions: number): Promise<number> {
  await pool.query(
    `insert into log_cursors (partition) select generate_series(0, $1 - 1)
     where not exists (select 1 from log_cursors) on conflict do nothing`,
    [partitions],
  )
  await inTransaction(pool, async client => {
    await lock(client, LOCKS.adoption)
    await client.query(ADOPT_RESTORED)
  })
  return countPartitions(pool)
}

/** As it was fixed when the log was initialised; 0 before that. */
export async function countPartitions(db: Db): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*) from log_cursors')
  return rows[0]!.count
}

// A dump restored into another cluster brings positions from another transaction counter. They lie in the future
// and would hide every new entry: what was not yet read is moved to the present, in its old order.
const ADOPT_RESTORED = `
with foreign_entries as (
  delete from log l using log_cursors c
  where l.partition = c.partition and l.xid >= pg_snapshot_xmax(pg_current_snapshot())
  returning l.*, (l.xid, l.ord) > (c.xid, c.ord) as unread
), moved as (
  insert into log (partition, ord, id, tenant_id, kind, ordering_key, received_at, context, body_bytes, body)
  select partition, row_number() over (order by xid, ord), id, tenant_id, kind, ordering_key, received_at,
         context, body_bytes, body
  from foreign_entries where unread
)
update log_cursors set xid = pg_current_xact_id(), ord = 0 where xid >= pg_snapshot_xmax(pg_current_snapshot())`

async function copyEntries(client: pg.PoolClient, batch: Append[], partitions: number): Promise<void> {
  let ord = 0
  await copyRows(client, 'log', APPENDED, batch, (out, { entry }) => {
    out.int2(partitionOf(entry.tenantId, entry.orderingKey, partitions))
    out.int4(ord++)
    out.uuid(entry.id)
    out.int4(entry.tenantId)
    out.text(entry.kind)
    out.text(entry.orderingKey)
    out.timestamp(entry.receivedAt)
    out.text(entry.context)
    out.int4(entry.body.length)
    out.text(entry.body)
  })
}

const APPENDED = [
  'partition',
  'ord',
  'id',
  'tenant_id',
  'kind',
  'ordering_key',
  'received_at',
  'context',
  'body_bytes',
  'body',
]

// One statement, so that keys and entries become durable together in one round trip. In the first minutes of a
// period a key is claimed in the period before as well: two nodes on either side of midnight meet there.
const APPEND_CLAIMING = `
with input as materialized (
  select * from json_to_recordset($1) as r (
    partition smallint, ord int, id uuid, tenant_id int, kind text, ordering_key text, received_at timestamptz,
    context text, body_bytes int, body text, claim_key text, body_hash text, entity_type text, record_id text)
), fresh as (
  select i.* from input i where i.claim_key is not null and not exists (
    select 1 from idempotency_keys k
    where k.tenant_id = i.tenant_id and k.key = i.claim_key and k.created_at > now() - interval '30 days')
), before as (
  insert into idempotency_keys (period, tenant_id, key, operation_id, body_hash, entity_type, record_id)
  select $2 - 1, tenant_id, claim_key, id, decode(body_hash, 'hex'), entity_type, record_id
  from fresh where $3 order by tenant_id, claim_key
  on conflict do nothing returning tenant_id, key
), claimed as (
  insert into idempotency_keys (period, tenant_id, key, operation_id, body_hash, entity_type, record_id)
  select $2, f.tenant_id, f.claim_key, f.id, decode(f.body_hash, 'hex'), f.entity_type, f.record_id
  from fresh f
  where not $3 or exists (select 1 from before b where b.tenant_id = f.tenant_id and b.key = f.claim_key)
  order by f.tenant_id, f.claim_key
  on conflict do nothing returning tenant_id, key
)
insert into log (partition, ord, id, tenant_id, kind, ordering_key, received_at, context, body_bytes, body)
select partition, ord, id, tenant_id, kind, ordering_key, received_at, context, body_bytes, body
from input i
where claim_key is null
   or exists (select 1 from claimed c where c.tenant_id = i.tenant_id and c.key = i.claim_key)
returning id`

function toRows(batch: Append[], partitions: number): string {
  return JSON.stringify(
    batch.map(({ entry, claim }, ord) => ({
      partition: partitionOf(entry.tenantId, entry.orderingKey, partitions),
      ord,
      id: entry.id,
      tenant_id: entry.tenantId,
      kind: entry.kind,
      ordering_key: entry.orderingKey,
      received_at: entry.receivedAt,
      context: entry.context,
      body_bytes: entry.body.length,
      body: entry.body,
      ...(claim && {
        claim_key: claim.key,
        body_hash: claim.bodyHash.toString('hex'),
        entity_type: claim.entityType,
        record_id: claim.recordId,
      }),
    })),
  )
}

/** Two requests with one key in one flush: the first claims, the other is its duplicate whatever the database says. */
function sortOutClaims(batch: Append[]) {
  const firstUses = new Map<string, FirstUse>()
  const unclaimed: Append[] = []
  for (const append of batch) {
    const { entry, claim } = append
    if (claim) {
      const id = claimId(entry.tenantId, claim.key)
      if (firstUses.has(id)) continue
      firstUses.set(id, { operationId: entry.id, ...claim })
    }
    unclaimed.push(append)
  }
  return { firstUses, unclaimed }
}

function claimId(tenantId: number, key: string): string {
  return `${tenantId} ${key}`
}

type ClaimedKey = { tenantId: number; key: string }

function claimedKey({ entry, claim }: Append): ClaimedKey {
  return { tenantId: entry.tenantId, key: claim!.key }
}

async function findFirstUses(db: Db, keys: ClaimedKey[]): Promise<(FirstUse & ClaimedKey)[]> {
  const { rows } = await db.query<FirstUse & ClaimedKey>(
    `select distinct on (k.tenant_id, k.key) k.tenant_id as "tenantId", k.key, k.operation_id as "operationId",
       k.body_hash as "bodyHash", k.entity_type as "entityType", k.record_id as "recordId"
     from unnest($1::int[], $2::text[]) as used (tenant_id, key)
     join idempotency_keys k on k.tenant_id = used.tenant_id and k.key = used.key
     where k.created_at > now() - interval '30 days'
     order by k.tenant_id, k.key, k.created_at desc`,
    [keys.map(({ tenantId }) => tenantId), keys.map(({ key }) => key)],
  )
  return rows
}

async function take(
  client: pg.PoolClient,
  { maxLanes, maxEntries, alsoLanes }: { maxLanes: number; maxEntries: number; alsoLanes: string[] },
): Promise<Taken[]> {
  const also = alsoLanes.filter(lane => lane.startsWith(LANE)).map(lane => Number(lane.slice(LANE.length)))
  const { rows: cursors } = await queryPrepared<Position>(client, OWN, [maxLanes, also])
  if (cursors.length === 0) return []
  const { rows } = await queryPrepared<Entry & Position>(client, READ, [
    cursors.map(cursor => cursor.partition),
    cursors.map(cursor => cursor.xid),
    cursors.map(cursor => cursor.ord),
    maxEntries,
    MAX_BYTES_PER_LANE,
  ])
  const taken = new Map<number, Taken>(
    cursors.map(cursor => [
      cursor.partition,
      { lane: laneOf(cursor.partition), entries: [], position: null },
    ]),
  )
  for (const row of rows) {
    const lane = taken.get(row.partition)!
    lane.entries.push(entryOf(row))
    lane.position = { partition: row.partition, xid: row.xid, ord: row.ord }
  }
  return [...taken.values()]
}

// Random order spreads several workers over the partitions.
const OWN = `
select partition, xid, ord from log_cursors c
where partition = any($2) or exists (
  select 1 from log l
  where l.partition = c.partition and (l.xid, l.ord) > (c.xid, c.ord)
    and l.xid < pg_snapshot_xmin(pg_current_snapshot()))
order by random() limit $1
for update skip locked`

const READ = `
select l.* from unnest($1::smallint[], $2::xid8[], $3::int[]) as c (partition, xid, ord)
cross join lateral (
  select * from (
    select partition, xid, ord, ${ENTRY_COLUMNS},
           sum(body_bytes) over (order by xid, ord) - body_bytes as bytes_before
    from (
      select * from log l
      where l.partition = c.partition and (l.xid, l.ord) > (c.xid, c.ord)
        and l.xid < pg_snapshot_xmin(pg_current_snapshot())
      order by l.xid, l.ord limit $4
    ) next_entries
  ) sized where bytes_before < $5
) l
order by l.partition, l.xid, l.ord`

async function advance(client: pg.PoolClient, taken: Taken[]): Promise<void> {
  const positions = taken
    .map(({ position }) => position as Position | null)
    .filter(position => position !== null)
  if (positions.length === 0) return
  await queryPrepared(
    client,
    `update log_cursors c set xid = p.xid, ord = p.ord, updated_at = now()
     from unnest($1::smallint[], $2::xid8[], $3::int[]) as p (partition, xid, ord) where c.partition = p.partition`,
    [positions.map(p => p.partition), positions.map(p => p.xid), positions.map(p => p.ord)],
  )
}

const LAG = `
select c.partition, count(l.id) as entries, min(l.received_at) as "oldestAt"
from log_cursors c left join log l on l.partition = c.partition and (l.xid, l.ord) > (c.xid, c.ord)
group by c.partition order by c.partition`

const LANE = 'postgres/'

function laneOf(partition: number): string {
  return LANE + partition
}
