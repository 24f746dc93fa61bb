import type { Db } from '../../postgres/database.ts'

export type StoredChange = {
  id: string
  at: Date
  actor: string
  action: string
  target: string | null
  tenantId: number | null
  ip: string | null
  requestId: string | null
  /** JSON text. */
  before: string | null
  after: string | null
}

export async function insertChange(db: Db, change: Omit<StoredChange, 'at'>): Promise<void> {
  await db.query(
    `insert into audit (id, actor, action, target, tenant_id, ip, request_id, before, after)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      change.id,
      change.actor,
      change.action,
      change.target,
      change.tenantId,
      change.ip,
      change.requestId,
      change.before,
      change.after,
    ],
  )
}

const COLUMNS = 'id, at, actor, action, target, tenant_id as "tenantId", ip, request_id as "requestId", before, after'

type ChangePage = {
  since: Date | null
  until: Date | null
  /** The last row of the previous page. */
  before: { at: Date; id: string } | null
  limit: number
}

/** Newest first, for all tenants and for none. */
export function listChanges(db: Db, page: ChangePage): Promise<StoredChange[]> {
  return pageOfChanges(db, page, '')
}

/** Newest first. */
export function listChangesOfTenant(db: Db, tenantId: number, page: ChangePage): Promise<StoredChange[]> {
  return pageOfChanges(db, page, 'and tenant_id = $6', tenantId)
}

async function pageOfChanges(
  db: Db,
  { since, until, before, limit }: ChangePage,
  condition: string,
  ...more: unknown[]
): Promise<StoredChange[]> {
  const { rows } = await db.query<StoredChange>(
    `select ${COLUMNS} from audit
     where ($1::timestamptz is null or at >= $1) and ($2::timestamptz is null or at <= $2)
       and ($3::timestamptz is null or (at, id) < ($3, $4::uuid)) ${condition}
     order by at desc, id desc limit $5`,
    [since, until, before?.at ?? null, before?.id ?? null, limit, ...more],
  )
  return rows
}
