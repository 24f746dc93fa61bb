import type { Statement } from '../../domain/billing/account.ts'
import type { InvoiceVersion, Refund, SubscriptionVersion } from '../../domain/billing/types.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

/** The first of these names that an account or an invoice goes by. */
export async function accountNamed(db: Db, tenantId: number, names: string[]): Promise<string | null> {
  const [only, ...others] = names
  if (others.length === 0) return only ?? null
  const { rows } = await queryPrepared<{ name: string }>(
    db,
    `select name from unnest($2::text[]) with ordinality as n (name, place)
     where exists (select from billing_accounts where tenant_id = $1 and account = n.name)
       or exists (select from billing_invoices where tenant_id = $1 and customer = n.name)
     order by place limit 1`,
    [tenantId, names],
  )
  return rows[0]?.name ?? null
}

/** Whose a subscription is at `asOf`, by the first of these ids; null when there is none then. */
export async function accountOfSubscription(
  db: Db,
  tenantId: number,
  subscriptionIds: string[],
  asOf: Date,
): Promise<string | null> {
  const { rows } = await queryPrepared<{ account: string }>(
    db,
    `select account from billing_segments
     where tenant_id = $1 and subscription_id = any($2) and valid_from <= $3 and valid_to > $3
     order by array_position($2, subscription_id) limit 1`,
    [tenantId, subscriptionIds, asOf],
  )
  return rows[0]?.account ?? null
}

/** Subscriptions that were an account's at any time up to `asOf`. */
export async function subscriptionsOfAccount(
  db: Db,
  tenantId: number,
  account: string,
  asOf: Date,
): Promise<string[]> {
  const { rows } = await queryPrepared<{ id: string }>(
    db,
    `select distinct subscription_id as id from billing_segments
     where tenant_id = $1 and account = $2 and valid_from <= $3 order by id`,
    [tenantId, account, asOf],
  )
  return rows.map(row => row.id)
}

/** Invoices of these subscriptions, and those that name the customer. */
export async function invoicesOfAccount(
  db: Db,
  tenantId: number,
  account: string,
  subscriptions: string[],
  asOf: Date,
): Promise<string[]> {
  const { rows } = await queryPrepared<{ id: string }>(
    db,
    `select id from billing_invoices where tenant_id = $1 and subscription_id = any($3) and first_at <= $4
     union select id from billing_invoices where tenant_id = $1 and customer = $2 and first_at <= $4`,
    [tenantId, account, subscriptions, asOf],
  )
  return rows.map(row => row.id)
}

type VersionOf = { subscription: SubscriptionVersion; invoice: InvoiceVersion; refund: Refund }

export async function statementsAbout<Kind extends keyof VersionOf>(
  db: Db,
  tenantId: number,
  kind: Kind,
  ids: string[],
  asOf: Date,
): Promise<Statement<VersionOf[Kind]>[]> {
  if (ids.length === 0) return []
  const { rows } = await queryPrepared<Omit<Statement<string>, 'sourceAt'> & { sourceAt: Date }>(
    db,
    `select object_id as "objectId", event_id as "eventId", event_type as "eventType", source_at as "sourceAt",
       body as version
     from billing_versions
     where tenant_id = $1 and kind = $2 and object_id = any($3) and source_at <= $4
     order by source_at, object_id, event_type`,
    [tenantId, kind, ids, asOf],
  )
  return rows.map(row => ({
    ...row,
    sourceAt: row.sourceAt.getTime(),
    version: JSON.parse(row.version),
  }))
}

/** Refunds that went back for these invoices or to this customer. */
export async function refundsOfAccount(
  db: Db,
  tenantId: number,
  account: string,
  invoices: string[],
  asOf: Date,
): Promise<(Refund & { eventId: string; eventType: string })[]> {
  const { rows } = await queryPrepared<{ body: string; eventId: string; eventType: string }>(
    db,
    `select r.body, v."eventId", v."eventType" from (
       select id from billing_refunds where tenant_id = $1 and invoice_id = any($3) and counted and created_at <= $4
       union select id from billing_refunds where tenant_id = $1 and customer = $2 and counted and created_at <= $4
     ) k
     cross join lateral (select id, body from billing_refunds where tenant_id = $1 and id = k.id offset 0) r
     cross join lateral (
       select event_id as "eventId", event_type as "eventType" from billing_versions
       where tenant_id = $1 and kind = 'refund' and object_id = r.id order by source_at desc, event_type limit 1
     ) v`,
    [tenantId, account, invoices, asOf],
  )
  return rows.map(({ body, ...source }) => ({ ...JSON.parse(body), ...source }))
}
