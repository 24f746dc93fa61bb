import type { InvoiceState } from '../../domain/billing/cash.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import type { Refund } from '../../domain/billing/types.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

/** The current segment of these subscriptions and the later ones, in order. */
export async function segmentsFromNow(db: Db, tenantId: number, ids: string[]): Promise<Map<string, Segment[]>> {
  const { rows } = await queryPrepared<{ id: string; body: string }>(
    db,
    `select k.id, s.body from unnest($2::text[]) as k (id)
     join billing_segments s on s.tenant_id = $1 and s.subscription_id = k.id and s.valid_to > now()
     order by k.id, s.valid_from`,
    [tenantId, ids],
  )
  const byId = Map.groupBy(rows, ({ id }) => id)
  return new Map([...byId].map(([id, own]) => [id, own.map(({ body }) => JSON.parse(body) as Segment)]))
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

/** `status`: of the provider; omitted if it did not report one. */
type KeptRefund = { amount: number; currency: string; counted: boolean; status?: string | null }

export async function keptRefunds(db: Db, tenantId: number, ids: string[]): Promise<Map<string, KeptRefund>> {
  const { rows } = await queryPrepared<Omit<KeptRefund, 'status'> & { id: string; body: string }>(
    db,
    `select id, amount, currency, counted, body from billing_refunds where tenant_id = $1 and id = any($2)`,
    [tenantId, ids],
  )
  return new Map(
    rows.map(({ id, body, ...refund }) => {
      const { status } = JSON.parse(body) as Refund
      return [id, { ...refund, ...(status !== undefined && { status }) }]
    }),
  )
}

/** Of these payments, the refunded amount that is known only from the totals of their charges, in minor units. */
export async function refundedTotals(db: Db, tenantId: number, paymentIds: string[]): Promise<Map<string, number>> {
  const { rows } = await queryPrepared<{ paymentId: string; amount: number }>(
    db,
    `select payment_id as "paymentId", sum(amount)::bigint as amount from billing_refunds
     where tenant_id = $1 and payment_id = any($2) and (body->>'fromChargeTotal')::boolean group by 1`,
    [tenantId, paymentIds],
  )
  return new Map(rows.map(({ paymentId, amount }) => [paymentId, amount]))
}

const OBJECTS = {
  subscription: {
    table: 'billing_subscriptions',
    idPattern: '^sub_',
    state: `(select status from billing_segments s
      where s.tenant_id = t.tenant_id and s.subscription_id = t.id and s.valid_from <= now() order by s.valid_from desc limit 1)`,
    paymentId: 'null::text',
    isKept: `t.seen and not exists (select 1 from billing_segments s
      where s.tenant_id = t.tenant_id and s.subscription_id = t.id and s.status = 'test_mode')`,
  },
  invoice: {
    table: 'billing_invoices',
    idPattern: '^in_',
    state: `(select s.body->>'status' from billing_invoice_states s
      where s.tenant_id = t.tenant_id and s.invoice_id = t.id order by s.valid_from desc limit 1)`,
    paymentId: 'null::text',
    // Stripe does not list a deleted draft
    isKept: `t.last_at is not null and not exists (select 1 from billing_versions v
      where v.tenant_id = t.tenant_id and v.kind = 'invoice' and v.object_id = t.id and v.event_type = 'invoice.deleted')`,
  },
  // without disputes and credit notes; 'ch_1:300' is a total of a charge
  refund: {
    table: 'billing_refunds',
    idPattern: '^(re|pyr|ch|py)_',
    state: `coalesce(t.body->>'status', 'succeeded')`,
    paymentId: 't.payment_id',
    isKept: `t.counted and t.body->>'kind' is null`,
  },
}

export type LedgerObject = { id: string; state: string | null; paymentId: string | null }

/**
 * Objects of one kind, in order of their ids, without test data. `prefix`: of the namespace; empty: ids without one. Objects that
 * only `otherSources` reported are left out.
 */
export async function listLedgerObjects(
  db: Db,
  tenantId: number,
  kind: keyof typeof OBJECTS,
  page: { prefix: string; otherSources: string[]; after: string; limit: number },
): Promise<LedgerObject[]> {
  const { table, idPattern, state, paymentId, isKept } = OBJECTS[kind]
  const { rows } = await queryPrepared<LedgerObject>(
    db,
    `select t.id, ${state} as state, ${paymentId} as "paymentId" from ${table} t
     where t.tenant_id = $1 and t.id > $3 and starts_with(t.id, $2) and substr(t.id, length($2) + 1) ~ '${idPattern}'
       and ${isKept} and exists (select 1 from billing_versions v
         where v.tenant_id = t.tenant_id and v.kind = '${kind}' and v.object_id = t.id
           and (v.source_id is null or v.source_id <> all($5)))
     order by t.id limit $4`,
    [tenantId, page.prefix, page.after === '' ? page.prefix : page.after, page.limit, page.otherSources],
  )
  return rows
}
