import { type Db, toColumns } from '../../postgres/database.ts'
/** A request to a source, as received. */
export type InboundRequest = {
  id: string
  receivedAt: Date
  /** JSON: name and value pairs in their original order. */
  headers: string
  /** JSON: the response. */
  answer: string
  body: Buffer
}

export type NewInboundRequest = InboundRequest & { tenantId: number; sourceId: string }

/** The place of a request among those of its source. */
export type RequestPosition = { xid: string; ord: number }

const COLUMNS = ['tenantId', 'sourceId', 'id', 'receivedAt', 'headers', 'answer', 'body'] as const
const INSERT = `insert into inbound_requests (tenant_id, source_id, ord, id, received_at, headers, answer, bytes, body)
     select r.tenant_id, r.source_id, r.ord, r.id, r.received_at, r.headers, r.answer, octet_length(r.body), r.body
     from unnest($1::int[], $2::text[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[], $7::bytea[])
       with ordinality as r (tenant_id, source_id, id, received_at, headers, answer, body, ord)`

/** Skips requests of tenants with suppressions, because their identifiers must be checked first. Returns the stored ids. */
export async function insertRequests(db: Db, requests: readonly NewInboundRequest[]): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>(
    `${INSERT} where not exists (select from suppressions s where s.tenant_id = r.tenant_id) returning id`,
    toColumns(requests, ...COLUMNS),
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * `hashes`: of all identifiers in a request. Requests with a suppressed identifier are not stored. Sources are verified
 * input, so identifiers that suppress only unverified input do not count.
 */
export async function insertRequestsNaming(
  db: Db,
  requests: readonly (NewInboundRequest & { hashes: Buffer[] })[],
): Promise<void> {
  const names = requests.flatMap(({ id, hashes }) => hashes.map(hash => ({ id, hash })))
  await db.query(
    `${INSERT} where not exists (
       select from unnest($8::uuid[], $9::bytea[]) as n (id, hash)
       join suppressions s on s.tenant_id = r.tenant_id and s.hash = n.hash and not s.unverified_only
       where n.id = r.id)`,
    [...toColumns(requests, ...COLUMNS), names.map(({ id }) => id), names.map(({ hash }) => hash)],
  )
}

/**
 * Waits for running inserts and blocks new ones until the caller's transaction ends. An insert locks this table before it reads
 * the suppressions.
 */
export async function holdRequests(db: Db): Promise<void> {
  await db.query('lock table inbound_requests in share mode')
}

/** All requests before this position are final. Later ones sort after it. */
export async function endOfRequests(db: Db): Promise<RequestPosition> {
  const { rows } = await db.query<{ xid: string }>('select pg_snapshot_xmin(pg_current_snapshot())::text as xid')
  return { xid: rows[0]!.xid, ord: 0 }
}

type RequestPage = {
  after: RequestPosition | null
  before: RequestPosition
  since: Date | null
  limit: number
  /** Limit for the sum of the bodies. The first request is always returned. */
  maxBytes: number
}

/** In order of arrival. */
export async function listRequests(
  db: Db,
  { tenantId, sourceId }: { tenantId: number; sourceId: string },
  { after, before, since, limit, maxBytes }: RequestPage,
): Promise<(InboundRequest & RequestPosition)[]> {
  const { rows } = await db.query<InboundRequest & RequestPosition>(
    `select id, received_at as "receivedAt", headers, answer, body, xid::text as xid, ord from (
       select *, sum(bytes) over (order by xid, ord) - bytes as bytes_before from inbound_requests
       where tenant_id = $1 and source_id = $2 and (xid, ord) > ($3::xid8, $4::int) and xid < $5::xid8
         and ($6::timestamptz is null or received_at >= $6)
       order by xid, ord limit $7
     ) r where bytes_before < $8 order by r.xid, r.ord`,
    [tenantId, sourceId, after?.xid ?? '0', after?.ord ?? 0, before.xid, since, limit, maxBytes],
  )
  return rows
}

/** How long the requests of a source are still stored. */
export async function findListenedUntil(db: Db, sourceId: string): Promise<{ left: 'none' | 'little' | 'enough' }> {
  const { rows } = await db.query<{ left: 'none' | 'little' | 'enough' }>(
    `select case when listened_until > now() + interval '6 days' then 'enough'
       when listened_until > now() then 'little' else 'none' end as left from sources where id = $1`,
    [sourceId],
  )
  return rows[0] ?? { left: 'none' }
}

/** Notifies every node, so do not call it on every poll. */
export async function extendListening(db: Db, sourceId: string): Promise<void> {
  await db.query(`update sources set listened_until = now() + interval '7 days' where id = $1`, [sourceId])
}

export async function deleteRequestsBefore(db: Db, moment: Date): Promise<void> {
  await db.query('delete from inbound_requests where received_at < $1', [moment])
}

export async function deleteRequestsOf(db: Db, tenantId: number): Promise<void> {
  await db.query('delete from inbound_requests where tenant_id = $1', [tenantId])
}
