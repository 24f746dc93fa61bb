import type { Db } from '../../postgres/database.ts'

export type NewRejection = {
  tenantId: number
  sourceId: string
  rejectedAt: Date
  status: number
  code: string
  detail: string
  ip: string | null
  userAgent: string | null
  bytes: number | null
  /** Had it shown the source's token, or a good signature? */
  isAuthenticated: boolean
  /** How many more like it came, and were only counted. */
  suppressed: number
}

/** Of a source, or else of a key. */
export type Rejection = Omit<NewRejection, 'sourceId' | 'isAuthenticated'> & {
  id: number
  sourceId: string | null
  keyId: string | null
  route: string | null
  body: string | null
}

export async function insertRejections(db: Db, rejections: NewRejection[]): Promise<void> {
  await db.query(
    `insert into rejections (tenant_id, source_id, rejected_at, status, code, detail, ip, user_agent, bytes,
       is_authenticated, suppressed)
     select * from json_to_recordset($1) as r ("tenantId" int, "sourceId" text, "rejectedAt" timestamptz, status int,
       code text, detail text, ip text, "userAgent" text, bytes int, "isAuthenticated" boolean, suppressed int)`,
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

/** Newest first, from source to source by the index, and from tenant to tenant for those of keys. */
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
    [
      ...[filter.tenantId, filter.sourceId, filter.code, filter.route, filter.cause],
      ...[filter.before, filter.limit],
    ],
  )
  return rows
}

/** Keeps the newest of each source, and nothing older than `before`. */
export async function pruneRejections(db: Db, options: { before: Date; perSource: number }): Promise<void> {
  await db.query(
    `delete from rejections r using sources s
     where r.tenant_id = s.tenant_id and r.source_id = s.id and (
       r.rejected_at < $1 or r.id <= (
         select o.id from rejections o where o.tenant_id = s.tenant_id and o.source_id = s.id
         order by o.id desc offset $2 limit 1))`,
    [options.before, options.perSource],
  )
}
