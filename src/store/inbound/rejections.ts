import type { Db } from '../../postgres/database.ts'

/** A rejected request to a source. */
export type SourceRejection = {
  tenantId: number
  sourceId: string
  rejectedAt: Date
  status: number
  code: string
  detail: string
  ip: string | null
  userAgent: string | null
  bytes: number | null
  /** It had the source's token or a valid signature. */
  isAuthenticated: boolean
  /** How many similar requests were counted instead of stored. */
  suppressed: number
}

/** A rejected request with a known key, kept as an example of its cause. */
export type RejectionExample = Omit<SourceRejection, 'sourceId' | 'isAuthenticated' | 'suppressed'> & {
  keyId: string
  route: string
  cause: string
  /** Its beginning; null: none arrived, or it identifies a suppressed person. */
  body: string | null
}

/** Of a source or of a key. */
export type Rejection = Omit<SourceRejection, 'sourceId' | 'isAuthenticated'> & {
  id: number
  sourceId: string | null
  keyId: string | null
  route: string | null
  body: string | null
}

export async function insertRejections(db: Db, rejections: (SourceRejection | RejectionExample)[]): Promise<void> {
  await db.query(
    `insert into rejections (tenant_id, source_id, key_id, rejected_at, route, status, code, detail, cause, ip, user_agent, bytes,
       body, is_authenticated, suppressed)
     select "tenantId", "sourceId", "keyId", "rejectedAt", route, status, code, detail, cause, ip, "userAgent", bytes, body,
       coalesce("isAuthenticated", true), coalesce(suppressed, 0)
     from json_to_recordset($1) as r ("tenantId" int, "sourceId" text, "keyId" text, "rejectedAt" timestamptz, route text,
       status int, code text, detail text, cause text, ip text, "userAgent" text, bytes int, body text,
       "isAuthenticated" boolean, suppressed int)`,
    [JSON.stringify(rejections)],
  )
}

type RejectionFilter = {
  tenantId: number | null
  sourceId: string | null
  code: string | null
  route: string | null
  cause: string | null
  limit: number
  before: number | null
}

const MATCHES = `($3::text is null or r.code = $3) and ($4::text is null or r.route = $4)
         and ($5::text is null or r.cause = $5) and ($6::bigint is null or r.id < $6)`

/** Newest first. Reads the index once per source, and once per tenant for rejections of keys. */
export async function listRejections(db: Db, filter: RejectionFilter): Promise<Rejection[]> {
  const { rows } = await db.query<Rejection>(
    `select r.id, r.tenant_id as "tenantId", r.source_id as "sourceId", r.rejected_at as "rejectedAt", r.status, r.code,
       r.detail, r.ip, r.user_agent as "userAgent", r.bytes, r.suppressed, r.key_id as "keyId", r.route, r.body
     from (
       select r.* from sources s cross join lateral (
         select * from rejections r where r.tenant_id = s.tenant_id and r.source_id = s.id and ${MATCHES}
         order by r.id desc limit $7
       ) r
       where ($1::int is null or s.tenant_id = $1) and ($2::text is null or s.id = $2)
       union all
       select r.* from tenants t cross join lateral (
         select * from rejections r where r.tenant_id = t.id and r.source_id is null and ${MATCHES}
         order by r.id desc limit $7
       ) r
       where ($1::int is null or t.id = $1) and $2::text is null
     ) r
     order by r.id desc limit $7`,
    [...[filter.tenantId, filter.sourceId, filter.code, filter.route, filter.cause], ...[filter.before, filter.limit]],
  )
  return rows
}

/** Keeps the newest rejections of each source and deletes all older than `before`. */
export async function pruneSourceRejections(db: Db, options: { before: Date; perSource: number }): Promise<void> {
  await db.query(
    `delete from rejections r using sources s
     where r.tenant_id = s.tenant_id and r.source_id = s.id and (
       r.rejected_at < $1 or r.id <= (
         select o.id from rejections o where o.tenant_id = s.tenant_id and o.source_id = s.id
         order by o.id desc offset $2 limit 1))`,
    [options.before, options.perSource],
  )
}

/** Rejections of keys, by hour and cause. */
export type RejectionCount = {
  tenantId: number
  hour: Date
  route: string
  code: string
  cause: string
  count: number
  firstAt: Date
  lastAt: Date
}

/** In index order, so that concurrent nodes do not deadlock. */
export async function addRejectionCounts(db: Db, sums: RejectionCount[]): Promise<void> {
  await db.query(
    `insert into rejection_sums as s (tenant_id, hour, route, code, cause, count, first_at, last_at)
     select * from json_to_recordset($1) as r ("tenantId" int, hour timestamptz, route text, code text, cause text, count bigint,
       "firstAt" timestamptz, "lastAt" timestamptz)
     order by r."tenantId", r.hour, r.route collate "C", r.code collate "C", r.cause collate "C"
     on conflict (tenant_id, hour, route, code, cause) do update set count = s.count + excluded.count,
       first_at = least(s.first_at, excluded.first_at), last_at = greatest(s.last_at, excluded.last_at)`,
    [JSON.stringify(sums)],
  )
}

export type RejectionGroup = {
  route: string
  code: string
  cause: string
  count: number
  firstAt: Date
  lastAt: Date
  detail: string | null
}

/** Rejections of keys by cause, the most frequent first, with the detail of the newest example. */
export async function groupRejections(db: Db, tenantId: number, limit: number): Promise<RejectionGroup[]> {
  const { rows } = await db.query<RejectionGroup>(
    `select g.*, (
       select r.detail from rejections r where r.tenant_id = $1 and r.source_id is null and r.route = g.route
         and r.code = g.code and r.cause = g.cause order by r.id desc limit 1
     ) as detail
     from (
       select route, code, cause, sum(count)::bigint as count, min(first_at) as "firstAt", max(last_at) as "lastAt"
       from rejection_sums where tenant_id = $1 group by 1, 2, 3 order by 4 desc, 6 desc limit $2
     ) g`,
    [tenantId, limit],
  )
  return rows
}

/** Keeps the newest examples of each route and code and deletes all older than `before`. */
export async function pruneKeyRejections(db: Db, options: { before: Date; perCode: number }): Promise<void> {
  await db.query('delete from rejection_sums where hour < $1', [options.before])
  await db.query(
    `delete from rejections r using (
       select id, rejected_at, row_number() over (partition by tenant_id, route, code order by id desc) as place
       from rejections where source_id is null
     ) o
     where r.id = o.id and r.source_id is null and (o.place > $2 or o.rejected_at < $1)`,
    [options.before, options.perCode],
  )
}

/** Bodies are not searched for a person: all examples of the tenant are deleted. Counts contain no personal data. */
export async function deleteRejectionExamples(db: Db, tenantId: number): Promise<void> {
  await db.query('delete from rejections where tenant_id = $1 and source_id is null', [tenantId])
}
