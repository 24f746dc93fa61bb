import type pg from 'pg'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { KEY_PERIOD } from '../../postgres/partitions.ts'
import type { Append, Appended, FirstUse } from '../log.ts'
import { choosePartition } from '../log.ts'

/**
 * How long an idempotency key is stored at least. It is valid until its partition is dropped, because the clock that would
 * exclude old keys may be wrong.
 */
export const IDEMPOTENCY_KEY_DAYS = 30

/** The number of partitions and the epoch of the log; `firstOrd`: where a batch starts in its transaction. */
export type LogFacts = { partitions: number; epoch: number; firstOrd: number }

/** Appends the entries without an idempotency key and the first entry of each unused key, in one statement. */
export async function appendClaiming(
  client: pg.PoolClient,
  batch: Append[],
  { partitions, epoch, firstOrd, now }: LogFacts & { now: Date | null },
): Promise<Appended[]> {
  const { firstUses, unclaimed } = firstUsesIn(batch)
  const { rows } = await queryPrepared<{ id: string }>(client, APPEND_CLAIMING, [
    toRows(unclaimed, partitions, firstOrd),
    now,
    epoch,
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

// By PostgreSQL's clock, which all nodes share. One statement, so that keys and entries become durable together in one round trip. In
// the first minutes of a period a key is also claimed in the period before: there two nodes on either side of midnight conflict.
const APPEND_CLAIMING = `
with clock as materialized (
  select period, near_start from (select coalesce($2::timestamptz, now()) as at) c, lateral ${KEY_PERIOD}
), input as materialized (
  select * from json_to_recordset($1) as r (
    partition smallint, ord int, id uuid, tenant_id int, kind text, ordering_key text, received_at timestamptz,
    context text, body_bytes int, body text, claim_key text, body_hash text, entity_type text, record_id text)
  where is_log_epoch($3)
), fresh as (
  select i.* from input i where i.claim_key is not null and not exists (
    select 1 from idempotency_keys k
    where k.tenant_id = i.tenant_id and k.key = i.claim_key)
), before as (
  insert into idempotency_keys (period, tenant_id, key, operation_id, body_hash, entity_type, record_id)
  select period - 1, tenant_id, claim_key, id, decode(body_hash, 'hex'), entity_type, record_id
  from fresh, clock where near_start order by tenant_id, claim_key
  on conflict do nothing returning tenant_id, key
), claimed as (
  insert into idempotency_keys (period, tenant_id, key, operation_id, body_hash, entity_type, record_id)
  select period, f.tenant_id, f.claim_key, f.id, decode(f.body_hash, 'hex'), f.entity_type, f.record_id
  from fresh f, clock
  where not near_start or exists (select 1 from before b where b.tenant_id = f.tenant_id and b.key = f.claim_key)
  order by f.tenant_id, f.claim_key
  on conflict do nothing returning tenant_id, key
)
insert into log (partition, epoch, ord, id, tenant_id, kind, ordering_key, received_at, context, body_bytes, body)
select partition, $3, ord, id, tenant_id, kind, ordering_key, received_at, context, body_bytes, body
from input i
where claim_key is null
   or exists (select 1 from claimed c where c.tenant_id = i.tenant_id and c.key = i.claim_key)
returning id`

function toRows(batch: Append[], partitions: number, firstOrd: number): string {
  return JSON.stringify(
    batch.map(({ entry, claim, storedBytes }, index) => ({
      partition: choosePartition(entry.tenantId, entry.orderingKey, partitions),
      ord: firstOrd + index,
      id: entry.id,
      tenant_id: entry.tenantId,
      kind: entry.kind,
      ordering_key: entry.orderingKey,
      received_at: entry.receivedAt,
      context: entry.context,
      body_bytes: storedBytes ?? entry.body.length,
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

/** Of two requests with one key in one flush, the first claims it and the other is its duplicate. */
function firstUsesIn(batch: Append[]) {
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

type ClaimedKey = { tenantId: number; key: string }

function claimedKey({ entry, claim }: Append): ClaimedKey {
  return { tenantId: entry.tenantId, key: claim!.key }
}

function claimId(tenantId: number, key: string): string {
  return `${tenantId} ${key}`
}

export async function findFirstUse(db: Db, tenantId: number, key: string): Promise<FirstUse | null> {
  return (await findFirstUses(db, [{ tenantId, key }]))[0] ?? null
}

/** The first use of each key that is still stored. */
async function findFirstUses(db: Db, keys: ClaimedKey[]): Promise<(FirstUse & ClaimedKey)[]> {
  const { rows } = await db.query<FirstUse & ClaimedKey>(
    `select distinct on (k.tenant_id, k.key) k.tenant_id as "tenantId", k.key, k.operation_id as "operationId",
       k.body_hash as "bodyHash", k.entity_type as "entityType", k.record_id as "recordId"
     from unnest($1::int[], $2::text[]) as used (tenant_id, key)
     join idempotency_keys k on k.tenant_id = used.tenant_id and k.key = used.key
     order by k.tenant_id, k.key, k.created_at desc`,
    [keys.map(({ tenantId }) => tenantId), keys.map(({ key }) => key)],
  )
  return rows
}
