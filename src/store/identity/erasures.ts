import type { Db } from '../../postgres/database.ts'

type ErasureStatus = 'erasing' | 'sweeping' | 'completed'
export type StoredErasure = {
  id: string
  tenantId: number
  requestedAt: Date
  status: ErasureStatus
  /** JSON text. Null when the erasure is completed. */
  subject: string | null
  receipt: string
}

/** A trigger increments the version of the configuration. `subjectHash` finds the erasure if it is requested again. */
export async function insertErasure(db: Db, erasure: StoredErasure & { subjectHash: Buffer }): Promise<void> {
  await db.query(
    `insert into erasures (tenant_id, id, requested_at, subject_hash, status, subject, receipt, seen_at)
     values ($1, $2, $3, $4, $5, $6, $7, now())`,
    [
      erasure.tenantId,
      erasure.id,
      erasure.requestedAt,
      erasure.subjectHash,
      erasure.status,
      erasure.subject,
      erasure.receipt,
    ],
  )
}

type ErasureKey = Pick<StoredErasure, 'tenantId' | 'id'>

/** Saves the progress in the transaction that makes it. */
export async function saveErasure(db: Db, { tenantId, id }: ErasureKey, receipt: string): Promise<void> {
  await db.query('update erasures set receipt = $3, seen_at = now() where tenant_id = $1 and id = $2', [
    tenantId,
    id,
    receipt,
  ])
}

/** A trigger increments the version of the configuration, so workers drop their memory. */
export async function advanceErasure(
  db: Db,
  { tenantId, id, status, subject, receipt }: Omit<StoredErasure, 'requestedAt'>,
): Promise<void> {
  await db.query(
    `update erasures set status = $3, subject = $4, receipt = $5, seen_at = now() where tenant_id = $1 and id = $2`,
    [tenantId, id, status, subject, receipt],
  )
}

/** Reports that the process that runs it is alive. */
export async function keepErasure(db: Db, { tenantId, id }: ErasureKey): Promise<void> {
  await db.query('update erasures set seen_at = now() where tenant_id = $1 and id = $2', [tenantId, id])
}

const ERASURE = `id, tenant_id as "tenantId", requested_at as "requestedAt", status, subject, receipt::text as receipt`

/** Claims an erasure whose process has not reported for this long. The caller continues it. */
export async function takeLeftErasure(db: Db, silentS: number): Promise<StoredErasure | null> {
  const { rows } = await db.query<StoredErasure>(
    `update erasures set seen_at = now()
     where (tenant_id, id) = (
       select tenant_id, id from erasures
       where status <> 'completed' and seen_at < now() - $1 * interval '1 second'
       order by seen_at limit 1 for update skip locked)
     returning ${ERASURE}`,
    [silentS],
  )
  return rows[0] ?? null
}

/** Whether a person was erased since then, or data of a suppressed person was deleted. */
export async function hasErasedSince(db: Db, tenantId: number, moment: Date): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>(
    `select exists (select from erasures where tenant_id = $1 and requested_at >= $2)
       or exists (select from suppression_counts where tenant_id = $1 and last_at >= $2) as has`,
    [tenantId, moment],
  )
  return rows[0]!.has
}

export async function findErasure(db: Db, id: string): Promise<StoredErasure | null> {
  const { rows } = await db.query<StoredErasure>(`select ${ERASURE} from erasures where id = $1`, [id])
  return rows[0] ?? null
}

/** The newest first. `before`: only those that come later in this order. */
export async function listErasures(
  db: Db,
  tenantId: number,
  { limit, before }: { limit: number; before?: { at: Date; id: string } | undefined },
): Promise<StoredErasure[]> {
  const { rows } = await db.query<StoredErasure>(
    `select ${ERASURE} from erasures
     where tenant_id = $1 and ($3::timestamptz is null or (requested_at, id) < ($3, $4::uuid))
     order by requested_at desc, id desc limit $2`,
    [tenantId, limit, before?.at ?? null, before?.id ?? null],
  )
  return rows
}
