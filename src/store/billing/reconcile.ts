import type { InvoiceState } from '../../domain/billing/cash.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

/** The current segments of these subscriptions. */
export async function currentSegments(db: Db, tenantId: number, ids: string[]): Promise<Map<string, Segment>> {
  const { rows } = await queryPrepared<{ id: string; body: string }>(
    db,
    `select k.id, s.body from unnest($2::text[]) as k (id) cross join lateral (
       select body from billing_segments where tenant_id = $1 and subscription_id = k.id and valid_from <= now()
       order by valid_from desc limit 1) s`,
    [tenantId, ids],
  )
  return new Map(rows.map(({ id, body }) => [id, JSON.parse(body) as Segment]))
}

export async function currentInvoices(db: Db, tenantId: number, ids: string[]): Promise<Map<string, InvoiceState>> {
  const { rows } = await queryPrepared<{ id: string; body: string }>(
    db,
    `select k.id, s.body from unnest($2::text[]) as k (id) cross join lateral (
       select body from billing_invoice_states where tenant_id = $1 and invoice_id = k.id
       order by valid_from desc limit 1) s`,
    [tenantId, ids],
  )
  return new Map(rows.map(({ id, body }) => [id, JSON.parse(body) as InvoiceState]))
}

type KeptRefund = { amount: number; currency: string; counted: boolean }

export async function keptRefunds(db: Db, tenantId: number, ids: string[]): Promise<Map<string, KeptRefund>> {
  const { rows } = await queryPrepared<KeptRefund & { id: string }>(
    db,
    `select id, amount, currency, counted from billing_refunds where tenant_id = $1 and id = any($2)`,
    [tenantId, ids],
  )
  return new Map(rows.map(({ id, ...refund }) => [id, refund]))
}

const IS_KEPT = {
  billing_subscriptions: `t.seen and not exists (select 1 from billing_segments s
    where s.tenant_id = t.tenant_id and s.subscription_id = t.id and s.status = 'test_mode')`,
  billing_invoices: 't.last_at is not null',
  billing_refunds: 't.counted',
}

/** Ids of one kind with a provider's prefix, in order, without test data. */
export async function ledgerIds(
  db: Db,
  tenantId: number,
  table: keyof typeof IS_KEPT,
  page: { prefix: string; after: string; limit: number },
): Promise<string[]> {
  const { rows } = await queryPrepared<{ id: string }>(
    db,
    `select id from ${table} t
     where tenant_id = $1 and id > $3 and starts_with(id, $2) and ${IS_KEPT[table]} order by id limit $4`,
    [tenantId, page.prefix, page.after === '' ? page.prefix : page.after, page.limit],
  )
  return rows.map(({ id }) => id)
}
