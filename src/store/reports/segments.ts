import type { Segment } from '../../domain/billing/timeline.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

const AT_A_TIME = 5_000

/** Every segment that began up to `asOf`, in portions; one subscription after the other, each in its order. */
export async function* allSegments(db: Db, tenantId: number, asOf: Date): AsyncGenerator<Segment[]> {
  let after = { id: '', from: new Date(0), first: true }
  for (;;) {
    const { rows } = await queryPrepared<{ id: string; from: Date; body: string }>(
      db,
      `select subscription_id as id, valid_from as from, body from billing_segments
       where tenant_id = $1 and (subscription_id, valid_from) > ($2, $3::timestamptz) and valid_from <= $4
       order by subscription_id, valid_from limit ${AT_A_TIME}`,
      [tenantId, after.id, after.first ? '-infinity' : after.from, asOf],
    )
    if (rows.length > 0) yield rows.map(row => JSON.parse(row.body))
    if (rows.length < AT_A_TIME) return
    const { id, from } = rows.at(-1)!
    after = { id, from, first: false }
  }
}
