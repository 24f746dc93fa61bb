import type { Caution } from '../../domain/billing/timeline.ts'
import type { ReasonCode } from '../../domain/billing/types.ts'
import { nearerEnd, type Slice } from '../../domain/list-slices.ts'
import { type Db, queryPrepared, queryRow, queryRows } from '../../postgres/database.ts'
import { merged, type Scope } from './scope.ts'

export type ExcludedItem = {
  subscriptionId: string
  itemId: string | null
  reason: ReasonCode
  excludedMrr: number | null
  since: Date
}

const KEY = 'subscription_id, place, valid_from'

/** Excluded items in the currency and, if wanted, without one; the latest first. */
export async function excludedSlice(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  slice: Slice,
  count: number,
  withUnknownCurrency = true,
): Promise<ExcludedItem[]> {
  // `since` is never after `valid_from`. The redundant condition skips items that are excluded only later.
  const excluded = (condition: string) => `select ${KEY}, since from billing_items
    where tenant_id = $1 and reason is not null and since <= $3 and valid_from <= $3 and ${condition}`
  return itemSlice(db, [tenantId, currency, asOf], slice, count, [
    excluded(`currency = $2 and valid_to = 'infinity'`),
    ...(withUnknownCurrency ? [excluded(`currency = '' and valid_to = 'infinity'`)] : []),
    excluded(`currency in ($2, ${withUnknownCurrency ? "''" : '$2'}) and valid_to < 'infinity' and valid_to > $3`),
  ])
}

/** Items of subscriptions in other currencies. */
export async function foreignSlice(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  slice: Slice,
  count: number,
): Promise<ExcludedItem[]> {
  const foreign = (condition: string) => `select ${KEY}, started_at as since from billing_items
    where tenant_id = $1 and currency not in ($2, '') and valid_from <= $3 and ${condition}`
  const items = await itemSlice(db, [tenantId, currency, asOf], slice, count, [
    foreign(`valid_to = 'infinity'`),
    foreign(`valid_to < 'infinity' and valid_to > $3`),
  ])
  return items.map(item => ({
    ...item,
    reason: item.reason === 'test_mode' ? 'test_mode' : 'other_currency',
    excludedMrr: null,
  }))
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
  const { rows } = await queryPrepared<ExcludedItem>(
    db,
    // other columns are read only for the returned rows
    `select k.subscription_id as "subscriptionId", i.item_id as "itemId", i.reason, i.excluded_mrr as "excludedMrr",
       k.since
     from (select * from ${merged(parts, order, '$4', '$5')}) k
     cross join lateral (
       select item_id, reason, excluded_mrr from billing_items
       where tenant_id = $1 and subscription_id = k.subscription_id and place = k.place and valid_from = k.valid_from
       offset 0) i
     order by ${order}`,
    [...values, offset, limit],
  )
  return backwards ? rows.reverse() : rows
}

type PendingSubscription = { id: string; customer: string | null; since: Date; isForeign: boolean }

/** Subscriptions that are known only from invoices. */
export async function pendingSlice(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  slice: Slice,
): Promise<PendingSubscription[]> {
  if (slice.limit === 0) return []
  return queryRows<PendingSubscription>(
    db,
    `select s.id, i.customer, i.since, i."isForeign" from ${PENDING} s
     cross join lateral (
       select max(customer) as customer, min(first_at) as since, bool_and(currency not in ($2, '')) as "isForeign"
       from billing_invoices where tenant_id = $1 and subscription_id = s.id and first_at <= $3 offset 0) i
     where i.since is not null order by s.id offset $4 limit $5`,
    [tenantId, currency, asOf, slice.offset, slice.limit],
  )
}

const PENDING = `(select id from billing_subscriptions where tenant_id = $1 and not seen offset 0)`

export type Unlinked = {
  /** Subscriptions that are known only from invoices. */
  pending: number
  /** Invoices in the currency without a subscription, or with a pending one. */
  invoices: number
}

export async function unlinkedInvoices(db: Db, { tenantId, currency, asOf }: Scope): Promise<Unlinked> {
  const { rows } = await queryPrepared<{ pending: number; ofPending: number; alone: number }>(
    db,
    `select count(*) filter (where i.invoices > 0) as pending, coalesce(sum(i.own), 0)::bigint as "ofPending",
       (select count(*) from billing_invoices
        where tenant_id = $1 and currency in ($2, '') and subscription_id is null and first_at <= $3) as alone
     from ${PENDING} s
     cross join lateral (
       select count(*) as invoices, count(*) filter (where currency in ($2, '')) as own
       from billing_invoices where tenant_id = $1 and subscription_id = s.id and first_at <= $3 offset 0) i`,
    [tenantId, currency, asOf],
  )
  const { pending, ofPending, alone } = rows[0]!
  return { pending, invoices: ofPending + alone }
}

/** The first subscriptions with a caution, and their number. */
export type CautionedSubscriptions = { ids: string[]; count: number }

export async function cautionedSubscriptions(
  db: Db,
  tenantId: number,
  asOf: Date,
  limit: number,
): Promise<Map<Caution, CautionedSubscriptions>> {
  const { rows } = await queryPrepared<CautionedSubscriptions & { caution: Caution }>(
    db,
    `select caution, count(*) as count, (array_agg(subscription_id order by subscription_id))[:$3] as ids
     from billing_segments cross join unnest(cautions) as caution
     where tenant_id = $1 and cautions is not null and valid_from <= $2 and valid_to > $2 group by caution`,
    [tenantId, asOf, limit],
  )
  return new Map(rows.map(({ caution, ...found }) => [caution, found]))
}

/** The source times of the first and the last version. */
export async function feedTimes(
  db: Db,
  tenantId: number,
  asOf: Date,
): Promise<{ first: Date | null; last: Date | null }> {
  return (await queryRow<{ first: Date | null; last: Date | null }>(
    db,
    `select min(source_at) as first, max(source_at) as last from billing_versions
     where tenant_id = $1 and source_at <= $2`,
    [tenantId, asOf],
  ))!
}

export type ReasonSum = { reason: ReasonCode; items: number; excludedMrr: number; unpriced: number }

/** Sums of the items of `excludedSlice` and `foreignSlice`, by reason. */
export async function excludedByReason(db: Db, { tenantId, currency, asOf }: Scope): Promise<ReasonSum[]> {
  return queryRows<ReasonSum>(
    db,
    `select reason, count(*) as items, coalesce(sum(excluded_mrr), 0)::bigint as "excludedMrr",
       count(*) filter (where excluded_mrr is null) as unpriced
     from (
       select reason, excluded_mrr from billing_items
       where tenant_id = $1 and currency in ($2, '') and reason is not null and since <= $3 and valid_from <= $3
         and valid_to > $3
       union all
       select case reason when 'test_mode' then reason else 'other_currency' end, null from billing_items
       where tenant_id = $1 and currency not in ($2, '') and valid_from <= $3 and valid_to > $3
     ) items
     group by reason`,
    [tenantId, currency, asOf],
  )
}

/** The same for all currencies, each with its own items. */
export async function excludedByCurrency(
  db: Db,
  { tenantId, asOf }: Pick<Scope, 'tenantId' | 'asOf'>,
): Promise<(ReasonSum & { currency: string })[]> {
  return queryRows<ReasonSum & { currency: string }>(
    db,
    `select currency, reason, count(*) as items, coalesce(sum(excluded_mrr), 0)::bigint as "excludedMrr",
       count(*) filter (where excluded_mrr is null) as unpriced
     from billing_items
     where tenant_id = $1 and reason is not null and since <= $2 and valid_from <= $2 and valid_to > $2
     group by currency, reason`,
    [tenantId, asOf],
  )
}

/** The provider of the latest version of each subscription: `stripe` by the event type, else the preset of the source. */
export async function findProviders(
  db: Db,
  tenantId: number,
  subscriptions: string[],
): Promise<Map<string, string | null>> {
  if (subscriptions.length === 0) return new Map()
  const { rows } = await queryPrepared<{ id: string; provider: string | null }>(
    db,
    `select k.id, case when v.event_type like 'customer.subscription.%' then 'stripe' else s.preset end as provider
     from unnest($2::text[]) as k (id)
     cross join lateral (
       select event_type, source_id from billing_versions
       where tenant_id = $1 and kind = 'subscription' and object_id = k.id order by event_id desc limit 1) v
     left join sources s on s.id = v.source_id and s.tenant_id = $1`,
    [tenantId, subscriptions],
  )
  return new Map(rows.map(({ id, provider }) => [id, provider]))
}
