import type { Term, TermKind } from '../../domain/billing/types.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { keyColumns, type ObjectKey } from './rows.ts'
import { noteSubscriptions } from './subscriptions.ts'

export type TermKey = ObjectKey & { kind: TermKind }

export function termText({ tenantId, kind, id }: TermKey): string {
  return `${tenantId} ${kind} ${id}`
}

export function distinctTerms(keys: TermKey[]): TermKey[] {
  return [...new Map(keys.map(key => [termText(key), key])).values()]
}

/** Every version of one term. */
export type TermRow = TermKey & { versions: Term[] }

export async function loadTerms(db: Db, keys: TermKey[]): Promise<TermRow[]> {
  const { rows } = await queryPrepared<TermKey & { versions: string }>(
    db,
    `select t.tenant_id as "tenantId", t.kind, t.id, t.versions from billing_terms t
     join unnest($1::int[], $2::text[], $3::text[]) as k (tenant_id, id, kind) using (tenant_id, kind, id)`,
    [...keyColumns(keys), keys.map(({ kind }) => kind)],
  )
  return rows.map(row => ({ ...row, versions: JSON.parse(row.versions) }))
}

/** These customers and their discounts. */
export async function loadTermsOfCustomers(db: Db, customers: ObjectKey[]): Promise<TermRow[]> {
  const { rows } = await queryPrepared<TermKey & { versions: string }>(
    db,
    `select k.tenant_id as "tenantId", t.kind, t.id, t.versions
     from unnest($1::int[], $2::text[]) as k (tenant_id, customer) cross join lateral (
       select kind, id, versions from billing_terms where tenant_id = k.tenant_id and kind = 'customer' and id = k.customer
       union all
       select kind, id, versions from billing_terms where tenant_id = k.tenant_id and customer = k.customer and of_customer
     ) t`,
    keyColumns(customers),
  )
  return rows.map(row => ({ ...row, versions: JSON.parse(row.versions) }))
}

/** `merged`: all versions of a row, merged. */
export async function upsertTerms(db: Db, rows: (TermRow & { merged: Term })[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_terms (tenant_id, kind, id, coupon_id, promotion_code_id, customer, subscription_id, of_customer, versions)
     select tenant_id, kind, id, coupon_id, promotion_code_id, customer, subscription_id, of_customer, versions
     from json_populate_recordset(null::billing_terms, $1)
     on conflict (tenant_id, kind, id) do update set coupon_id = excluded.coupon_id,
       promotion_code_id = excluded.promotion_code_id, customer = excluded.customer,
       subscription_id = excluded.subscription_id, of_customer = excluded.of_customer, versions = excluded.versions`,
    [
      JSON.stringify(
        rows.map(({ tenantId, kind, id, versions, merged }) => ({
          tenant_id: tenantId,
          kind,
          id,
          coupon_id: merged.couponId ?? null,
          promotion_code_id: merged.promotionCodeId ?? null,
          customer: merged.customer ?? null,
          subscription_id: merged.subscription ?? null,
          of_customer: merged.ofCustomer ?? false,
          versions,
        })),
      ),
    ],
  )
}

/** Subscriptions that depend on these terms: through the customer, or through a discount. */
export async function subscriptionsReading(db: Db, keys: TermKey[]): Promise<ObjectKey[]> {
  const { rows } = await queryPrepared<ObjectKey>(
    db,
    `with changed as materialized (
       select * from unnest($1::int[], $2::text[], $3::text[]) as k (tenant_id, id, kind)
     ), codes as materialized (
       select tenant_id, id from changed where kind = 'promotion_code'
       union
       select t.tenant_id, t.id from changed c
       join billing_terms t on t.tenant_id = c.tenant_id and t.coupon_id = c.id
       where c.kind = 'coupon' and t.kind = 'promotion_code'
     ), discounts as materialized (
       select t.tenant_id, t.customer, t.subscription_id from changed c
       join billing_terms t on t.tenant_id = c.tenant_id and t.kind = 'discount' and t.id = c.id
       where c.kind = 'discount'
       union
       select t.tenant_id, t.customer, t.subscription_id from changed c
       join billing_terms t on t.tenant_id = c.tenant_id and t.coupon_id = c.id
       where c.kind = 'coupon' and t.kind = 'discount'
       union
       select t.tenant_id, t.customer, t.subscription_id from codes c
       join billing_terms t on t.tenant_id = c.tenant_id and t.promotion_code_id = c.id and t.kind = 'discount'
     ), customers as materialized (
       select tenant_id, id as account from changed where kind = 'customer'
       union
       select tenant_id, customer from discounts where customer is not null
     )
     select s.tenant_id as "tenantId", s.id from discounts d
     join billing_subscriptions s on s.tenant_id = d.tenant_id and s.id = d.subscription_id and s.seen
     union
     select c.tenant_id, s.id from customers c cross join lateral (
       select subscription_id as id from billing_segments where tenant_id = c.tenant_id and account = c.account offset 0) s`,
    [...keyColumns(keys), keys.map(({ kind }) => kind)],
  )
  return rows
}

/** Queues these subscriptions to be derived again in the background. */
export function queueSubscriptions(db: Db, keys: ObjectKey[]): Promise<void> {
  return noteSubscriptions(db, 'billing_outdated', keys)
}

/** Takes some from the queue. Other transactions skip them until the caller's transaction ends. */
export async function takeOutdated(db: Db, limit: number): Promise<ObjectKey[]> {
  const { rows } = await queryPrepared<ObjectKey>(
    db,
    `delete from billing_outdated where (tenant_id, subscription_id) in (
       select tenant_id, subscription_id from billing_outdated limit $1 for update skip locked)
     returning tenant_id as "tenantId", subscription_id as id`,
    [limit],
  )
  return rows
}
