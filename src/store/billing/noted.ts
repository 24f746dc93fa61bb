import { type Db, queryPrepared } from '../../postgres/database.ts'
import { keyColumns, type ObjectKey } from './keys.ts'

/** Subscriptions that are to be looked at again, each once: derived anew, or read by a policy that is to come. */
export async function noteSubscriptions(
  db: Db,
  table: 'billing_outdated' | 'billing_restated',
  keys: ObjectKey[],
): Promise<void> {
  await queryPrepared(
    db,
    `insert into ${table} (tenant_id, subscription_id)
     select tenant_id, id from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     order by tenant_id, id collate "C" on conflict do nothing`,
    keyColumns(keys),
  )
}
