import type { Db } from '../../postgres/database.ts'

/** A request with a known key that was refused, as an example of its cause. */
export type RefusalExample = {
  tenantId: number
  keyId: string
  rejectedAt: Date
  route: string
  status: number
  code: string
  detail: string
  cause: string
  ip: string | null
  userAgent: string | null
  bytes: number | null
  /** Its beginning; null where none arrived, or it names somebody who is not to be recorded. */
  body: string | null
}

/** How many were refused for one reason. */
export type RefusalSum = {
  tenantId: number
  hour: Date
  route: string
  code: string
  cause: string
  count: number
  firstAt: Date
  lastAt: Date
}

export async function insertRefusalExamples(db: Db, examples: RefusalExample[]): Promise<void> {
  await db.query(
    `insert into rejections (tenant_id, key_id, rejected_at, route, status, code, detail, cause, ip, user_agent, bytes, body)
     select * from json_to_recordset($1) as r ("tenantId" int, "keyId" text, "rejectedAt" timestamptz, route text, status int,
       code text, detail text, cause text, ip text, "userAgent" text, bytes int, body text)`,
    [JSON.stringify(examples)],
  )
}

/** In the order of the index: nodes that count the same causes at once wait for each other, and end. */
export async function addRefusals(db: Db, sums: RefusalSum[]): Promise<void> {
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

export type RefusedGroup = {
  route: string
  code: string
  cause: string
  count: number
  firstAt: Date
  lastAt: Date
  detail: string | null
}

/** Refused requests with a key by their cause, the most first, with what the newest one was answered. */
export async function groupRefused(db: Db, tenantId: number, limit: number): Promise<RefusedGroup[]> {
  const { rows } = await db.query<RefusedGroup>(
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

/** Keeps the newest examples of each route and code, and nothing older than `before`. */
export async function pruneRefusals(db: Db, options: { before: Date; perCode: number }): Promise<void> {
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

/** Of a tenant: bodies are not searched for a person, so all of them go. What was counted names nobody. */
export async function deleteRefusalExamples(db: Db, tenantId: number): Promise<void> {
  await db.query('delete from rejections where tenant_id = $1 and source_id is null', [tenantId])
}
