import type { ReasonCode } from '../../domain/billing/types.ts'
import { nearerEnd, type Slice } from '../../domain/slices.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { merged } from './merged.ts'

export type ExcludedItem = {
  subscriptionId: string
  itemId: string | null
  reason: ReasonCode
  excludedMrr: number | null
  since: Date
}

type Row = {
  subscription_id: string
  item_id: string | null
  reason: ReasonCode | null
  excluded_mrr: number | null
  since: Date
}

const KEY = 'tenant_id, subscription_id, place, valid_from'

/** Items of the currency, and of subscriptions that name none, that do not count; the latest first. */
export async function excludedSlice(
  db: Db,
  tenantId: number,
  currency: string,
  asOf: Date,
  slice: Slice,
  count: number,
): Promise<ExcludedItem[]> {
  // `since` never lies after `valid_from`: saying so passes over what is excluded only later.
  const excluded = (condition: string) => `select ${KEY}, since from billing_items
    where tenant_id = $1 and reason is not null and since <= $3 and valid_from <= $3 and ${condition}`
  return itemSlice(db, [tenantId, currency, asOf], slice, count, [
    excluded(`currency = $2 and valid_to = 'infinity'`),
    excluded(`currency = '' and valid_to = 'infinity'`),
    excluded(`currency in ($2, '') and valid_to < 'infinity' and valid_to > $3`),
  ])
}

/** Items of subscriptions in other currencies. */
export async function foreignSlice(
  db: Db,
  tenantId: number,
  currency: string,
  asOf: Date,
  slice: Slice,
  count: number,
): Promise<ExcludedItem[]> {
  const foreign = (condition: string) => `select ${KEY}, started_at as since from billing_items
    where tenant_id = $1 and currency not in ($2, '') and valid_from <= $3 and ${condition}`
  const items = await itemSlice(db, [tenantId, currency, asOf], slice, count, [
    foreign(`valid_to = 'infinity'`),
    foreign(`valid_to < 'infinity' and valid_to > $3`),
  ])
  return items.map(item => ({ ...item, reason: 'other_currency', excludedMrr: null }))
}

async function itemSlice(
  db: Db,
  values: unknown[],
  slice: Slice,
  count: number,
  parts: string[],
): Promise<ExcludedItem[]> {
  const { offset, limit, backwards } = nearerEnd(slice, count)
  if (limit === 0) return []
  const order = backwards ? 'since, subscription_id desc, place desc' : 'since desc, subscription_id, place'
  const { rows } = await queryPrepared<Row>(
    db,
    `select i.subscription_id, i.item_id, i.reason, i.excluded_mrr, k.since
     from (select * from ${merged(parts, order, '$4', '$5')}) k
     join billing_items i using (${KEY}) order by ${order.replaceAll(/\b(?=since|subscription_id|place)/g, 'k.')}`,
    [...values, offset, limit],
  )
  const items = rows.map(row => ({
    subscriptionId: row.subscription_id,
    itemId: row.item_id,
    reason: row.reason!,
    excludedMrr: row.excluded_mrr,
    since: row.since,
  }))
  return backwards ? items.reverse() : items
}

export type PendingSubscription = { id: string; customer: string | null; since: Date; isForeign: boolean }

/** Subscriptions of which only invoices speak. */
export async function pendingSlice(
  db: Db,
  tenantId: number,
  currency: string,
  asOf: Date,
  slice: Slice,
): Promise<PendingSubscription[]> {
  if (slice.limit === 0) return []
  const { rows } = await queryPrepared<{
    id: string
    customer: string | null
    since: Date
    is_foreign: boolean
  }>(
    db,
    `select s.id, max(i.customer) as customer, min(i.first_at) as since,
       bool_and(i.currency not in ($2, '')) as is_foreign
     from billing_subscriptions s
     join billing_invoices i on i.tenant_id = s.tenant_id and i.subscription_id = s.id and i.first_at <= $3
     where s.tenant_id = $1 and not s.seen group by s.id order by s.id offset $4 limit $5`,
    [tenantId, currency, asOf, slice.offset, slice.limit],
  )
  return rows.map(row => ({ ...row, isForeign: row.is_foreign }))
}

export type Unlinked = {
  /** Subscriptions of which only invoices speak. */
  pending: number
  /** Invoices of the currency that name no subscription, or one of those. */
  invoices: number
}

export async function unlinkedInvoices(
  db: Db,
  tenantId: number,
  currency: string,
  asOf: Date,
): Promise<Unlinked> {
  const { rows } = await queryPrepared<{ pending: number; of_pending: number; alone: number }>(
    db,
    `select count(distinct s.id) as pending, count(*) filter (where i.currency in ($2, '')) as of_pending,
       (select count(*) from billing_invoices
        where tenant_id = $1 and currency in ($2, '') and subscription_id is null and first_at <= $3) as alone
     from billing_subscriptions s
     join billing_invoices i on i.tenant_id = s.tenant_id and i.subscription_id = s.id and i.first_at <= $3
     where s.tenant_id = $1 and not s.seen`,
    [tenantId, currency, asOf],
  )
  const { pending, of_pending, alone } = rows[0]!
  return { pending, invoices: of_pending + alone }
}

/** When the first and the last word came from billing systems, by their own clocks. */
export async function feedTimes(
  db: Db,
  tenantId: number,
  asOf: Date,
): Promise<{ first: Date | null; last: Date | null }> {
  const { rows } = await queryPrepared<{ first: Date | null; last: Date | null }>(
    db,
    `select min(source_at) as first, max(source_at) as last from billing_versions
     where tenant_id = $1 and source_at <= $2`,
    [tenantId, asOf],
  )
  return rows[0]!
}
