import type { Db } from '../../postgres/database.ts'

/** Failures of one cause: how many, since when, and one of them. */
export type LetterGroup = {
  kind: 'record' | 'events'
  reason: string
  sourceId: string | null
  cause: string
  count: number
  firstAt: Date
  lastAt: Date
  exampleId: string
  exampleError: string
}

export type RefusalGroup = {
  sourceId: string
  code: string
  count: number
  firstAt: Date
  lastAt: Date
  detail: string
}

/** Dead letters that nobody has decided on, by their cause, the most first. */
export async function groupLetters(db: Db, tenantId: number, limit: number): Promise<LetterGroup[]> {
  const { rows } = await db.query<LetterGroup>(
    `select kind, reason, source_id as "sourceId", coalesce(cause, error) as cause, count(*) as count, min(failed_at) as "firstAt",
       max(failed_at) as "lastAt", (array_agg(id order by failed_at desc, id desc))[1] as "exampleId",
       (array_agg(error order by failed_at desc, id desc))[1] as "exampleError"
     from dead_letters where tenant_id = $1 and replayed_at is null
     group by 1, 2, 3, 4 order by 5 desc, 7 desc limit $2`,
    [tenantId, limit],
  )
  return rows
}

/** Refused requests of sources, by source and code; those that were only counted too. */
export async function groupRefusals(db: Db, tenantId: number, limit: number): Promise<RefusalGroup[]> {
  const { rows } = await db.query<RefusalGroup>(
    `select r.source_id as "sourceId", r.code, sum(1 + r.suppressed)::bigint as count, min(r.rejected_at) as "firstAt",
       max(r.rejected_at) as "lastAt", (array_agg(r.detail order by r.id desc))[1] as detail
     from sources s join rejections r on r.tenant_id = s.tenant_id and r.source_id = s.id
     where s.tenant_id = $1 and s.deleted_at is null group by 1, 2 order by 3 desc, 5 desc limit $2`,
    [tenantId, limit],
  )
  return rows
}

export type FailingGroup = {
  destinationId: string
  name: string
  error: string
  pending: number
  firstAt: Date
  lastAt: Date
}

const MAX_PENDING = 100_000

/** Destinations that fail, and those that were disabled because they did, with what waits for them. */
export async function groupFailing(db: Db, tenantId: number): Promise<FailingGroup[]> {
  const { rows } = await db.query<FailingGroup>(
    `select d.id as "destinationId", d.name, coalesce(d.disabled_reason, s.last_error, 'it does not answer 2xx') as error,
       coalesce(s.failing_since, d.updated_at) as "firstAt", coalesce(s.last_attempt_at, d.updated_at) as "lastAt",
       (select count(*) from (select from delivery_queue where destination_id = d.id limit ${MAX_PENDING}) q) as pending
     from destinations d join destination_states s on s.destination_id = d.id
     where d.tenant_id = $1 and d.deleted_at is null
       and case when d.enabled then s.failing_since is not null else d.disabled_reason is not null end
     order by d.created_at, d.id`,
    [tenantId],
  )
  return rows
}
