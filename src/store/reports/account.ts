import type { InvoiceVersion, Refund, SubscriptionVersion } from '../../domain/billing/types.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

/** Whose a subscription is at `asOf`; null when there is none of this id then. */
export async function accountOfSubscription(
  db: Db,
  tenantId: number,
  subscriptionId: string,
  asOf: Date,
): Promise<string | null> {
  const { rows } = await queryPrepared<{ account: string }>(
    db,
    `select account from billing_segments
     where tenant_id = $1 and subscription_id = $2 and valid_from <= $3 and valid_to > $3`,
    [tenantId, subscriptionId, asOf],
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
  const { rows } = await queryPrepared<{ subscription_id: string }>(
    db,
    `select distinct subscription_id from billing_segments
     where tenant_id = $1 and account = $2 and valid_from <= $3 order by subscription_id`,
    [tenantId, account, asOf],
  )
  return rows.map(row => row.subscription_id)
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

/** What an event said about an object. */
export type Statement<Version> = {
  objectId: string
  eventId: string
  eventType: string
  sourceAt: number
  version: Version
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
  const { rows } = await queryPrepared<{
    object_id: string
    event_id: string
    event_type: string
    source_at: Date
    body: string
  }>(
    db,
    `select object_id, event_id, event_type, source_at, body from billing_versions
     where tenant_id = $1 and kind = $2 and object_id = any($3) and source_at <= $4
     order by source_at, object_id, event_type`,
    [tenantId, kind, ids, asOf],
  )
  return rows.map(row => ({
    objectId: row.object_id,
    eventId: row.event_id,
    eventType: row.event_type,
    sourceAt: row.source_at.getTime(),
    version: JSON.parse(row.body),
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
  const { rows } = await queryPrepared<{ body: string; event_id: string; event_type: string }>(
    db,
    `select r.body, v.event_id, v.event_type from (
       select id from billing_refunds where tenant_id = $1 and invoice_id = any($3) and counted and created_at <= $4
       union select id from billing_refunds where tenant_id = $1 and customer = $2 and counted and created_at <= $4
     ) k join billing_refunds r on r.tenant_id = $1 and r.id = k.id
     cross join lateral (
       select event_id, event_type from billing_versions
       where tenant_id = $1 and kind = 'refund' and object_id = r.id order by source_at desc, event_type limit 1
     ) v`,
    [tenantId, account, invoices, asOf],
  )
  return rows.map(row => ({ ...JSON.parse(row.body), eventId: row.event_id, eventType: row.event_type }))
}
