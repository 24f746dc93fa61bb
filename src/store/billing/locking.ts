import { type Db, queryPrepared } from '../../postgres/database.ts'
import { keyColumns, type ObjectKey, sortedKeys } from './keys.ts'

type Lockable = 'billing_subscriptions' | 'billing_invoices' | 'billing_payments'

/** What a row holds that nobody has told anything of yet, beside its key. */
const EMPTY: Record<Lockable, { columns: string; values: string }> = {
  billing_subscriptions: { columns: ', seen', values: ', false' },
  billing_invoices: { columns: ', currency', values: ", ''" },
  billing_payments: { columns: '', values: '' },
}

/** Makes the rows that are missing, in order. */
export async function ensureRows(db: Db, table: Lockable, keys: ObjectKey[]): Promise<void> {
  const { columns, values } = EMPTY[table]
  await queryPrepared(
    db,
    `insert into ${table} (tenant_id, id${columns})
     select tenant_id, id${values} from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     order by tenant_id, id collate "C" on conflict do nothing`,
    keyColumns(sortedKeys(keys)),
  )
}

/** In order: whoever derives from them sees all that others learnt before. */
export async function lockRows(db: Db, table: Lockable, keys: ObjectKey[]): Promise<void> {
  await queryPrepared(
    db,
    `select from ${table} t join unnest($1::int[], $2::text[]) as k (tenant_id, id) using (tenant_id, id)
     order by t.tenant_id, t.id for update of t`,
    keyColumns(sortedKeys(keys)),
  )
}
