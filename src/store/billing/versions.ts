import type { Term, TermKind } from '../../domain/billing/types.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import { keyColumns, type ObjectKey, sortedKeys, timeText } from './rows.ts'

type VersionKind = 'subscription' | 'invoice' | 'payment' | 'refund' | 'credit_note'

/** One object as one event described it. */
export type NewVersion = ObjectKey & {
  kind: VersionKind
  /** Of the event type and the body. */
  hash: string
  sourceAt: number
  eventId: string
  eventType: string
  sourceId: string | null
  /** JSON text */
  body: string
}

/** An object with new versions. `sourceAt`: the earliest of them. */
export type ObjectNews = ObjectKey & { kind: VersionKind; sourceAt: Date }

/** Stores new versions, and returns the objects that have some. */
export async function insertVersions(db: Db, versions: NewVersion[]): Promise<ObjectNews[]> {
  return queryRows<ObjectNews>(
    db,
    `with added as (
       insert into billing_versions (tenant_id, kind, object_id, hash, source_at, event_id, event_type, body, source_id)
       select * from unnest($1::int[], $2::text[], $3::text[], $4::uuid[], $5::timestamptz[], $6::uuid[], $7::text[],
         $8::json[], $9::text[]) as v (tenant_id, kind, object_id, hash, source_at, event_id, event_type, body, source_id)
       order by tenant_id, kind, object_id, hash
       on conflict do nothing returning tenant_id, kind, object_id, source_at)
     select tenant_id as "tenantId", kind, object_id as id, min(source_at) as "sourceAt" from added group by 1, 2, 3`,
    [
      versions.map(version => version.tenantId),
      versions.map(version => version.kind),
      versions.map(version => version.id),
      versions.map(version => version.hash),
      versions.map(version => timeText(version.sourceAt)),
      versions.map(version => version.eventId),
      versions.map(version => version.eventType),
      versions.map(version => version.body),
      versions.map(version => version.sourceId),
    ],
  )
}

/** All versions of these objects in order of arrival: event ids are ascending. */
export async function loadVersions<Version>(
  db: Db,
  kind: VersionKind,
  keys: ObjectKey[],
): Promise<(ObjectKey & { sourceId: string | null; eventId: string; version: Version })[]> {
  const { rows } = await queryPrepared<ObjectKey & { sourceId: string | null; eventId: string; body: string }>(
    db,
    `select k.tenant_id as "tenantId", k.id, v.source_id as "sourceId", v.event_id as "eventId", v.body from unnest($2::int[], $3::text[]) as k (tenant_id, id)
     cross join lateral (
       select source_id, event_id, body from billing_versions
       where tenant_id = k.tenant_id and kind = $1 and object_id = k.id order by event_id offset 0) v`,
    [kind, ...keyColumns(keys)],
  )
  return rows.map(({ body, ...key }) => ({ ...key, version: JSON.parse(body) }))
}

/** Versions of subscriptions with a source time of `from` or later. */
export async function loadVersionsSince<Version>(
  db: Db,
  keys: (ObjectKey & { from: number })[],
): Promise<(ObjectKey & { sourceId: string | null; eventId: string; version: Version })[]> {
  const { rows } = await queryPrepared<ObjectKey & { sourceId: string | null; eventId: string; body: string }>(
    db,
    `select k.tenant_id as "tenantId", k.id, v.source_id as "sourceId", v.event_id as "eventId", v.body
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, since)
     cross join lateral (
       select source_id, event_id, body from billing_versions
       where tenant_id = k.tenant_id and kind = 'subscription' and object_id = k.id and source_at >= k.since
       order by event_id offset 0) v`,
    [...keyColumns(keys), keys.map(({ from }) => timeText(from))],
  )
  return rows.map(({ body, ...key }) => ({ ...key, version: JSON.parse(body) }))
}

/** Records that the tenant has ids in these namespaces. */
export async function keepNamespaces(db: Db, namespaces: { tenantId: number; namespace: string }[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_namespaces (tenant_id, namespace)
     select distinct tenant_id, namespace from unnest($1::int[], $2::text[]) as n (tenant_id, namespace)
     order by 1, 2 on conflict do nothing`,
    [namespaces.map(({ tenantId }) => tenantId), namespaces.map(({ namespace }) => namespace)],
  )
}

export async function listNamespaces(db: Db, tenantId: number): Promise<string[]> {
  const { rows } = await queryPrepared<{ namespace: string }>(
    db,
    'select namespace from billing_namespaces where tenant_id = $1 order by namespace',
    [tenantId],
  )
  return rows.map(row => row.namespace)
}

/** A value of a billing object that cannot be read. */
export type BillingWarning = {
  tenantId: number
  kind: 'subscription' | 'invoice' | 'refund'
  objectId: string
  sourceAt: Date
  field: string
  value: string
  eventId: string
  sourceId: string | null
  receivedAt: Date
}

export async function addWarnings(db: Db, warnings: BillingWarning[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_warnings (tenant_id, kind, object_id, source_at, field, value, event_id, source_id, received_at)
     select distinct on (tenant_id, kind, object_id, source_at, field) tenant_id, kind, object_id, source_at, field, value,
       event_id, source_id, received_at
     from json_populate_recordset(null::billing_warnings, $1)
     order by tenant_id, kind, object_id, source_at, field, event_id
     on conflict do nothing`,
    [
      JSON.stringify(
        warnings.map(({ tenantId, kind, objectId, sourceAt, field, value, eventId, sourceId, receivedAt }) => ({
          ...{ tenant_id: tenantId, kind, object_id: objectId, source_at: sourceAt, field, value },
          ...{ event_id: eventId, source_id: sourceId, received_at: receivedAt },
        })),
      ),
    ],
  )
}

/** A warning is resolved once a newer version of its object is known. */
const UNRESOLVED = (until: string) => `not exists (
  select from billing_versions v where v.tenant_id = w.tenant_id and v.kind = w.kind and v.object_id = w.object_id
    and v.source_at > w.source_at and v.source_at <= ${until})`

export type OpenWarning = Pick<BillingWarning, 'kind' | 'objectId' | 'field' | 'value'>

/** The oldest unresolved warnings at `asOf`, and the number of all. */
export async function openWarnings(
  db: Db,
  tenantId: number,
  asOf: Date,
  limit: number,
): Promise<{ warnings: OpenWarning[]; count: number }> {
  const { rows } = await queryPrepared<OpenWarning & { count: number }>(
    db,
    `select kind, object_id as "objectId", field, value, count(*) over () as count from billing_warnings w
     where tenant_id = $1 and source_at <= $2 and ${UNRESOLVED('$2')} order by source_at, kind, object_id, field limit $3`,
    [tenantId, asOf, limit],
  )
  return { warnings: rows, count: rows[0]?.count ?? 0 }
}

export type WarningGroup = Pick<BillingWarning, 'kind' | 'field' | 'sourceId' | 'objectId' | 'value' | 'eventId'> & {
  count: number
  firstAt: Date
  lastAt: Date
}

/** Unresolved warnings by field and source, with the most recent one. The number of an item in `field` is left out. */
export async function groupWarnings(db: Db, tenantId: number, limit: number): Promise<WarningGroup[]> {
  return queryRows<WarningGroup>(
    db,
    `select kind, regexp_replace(field, '\\[\\d+\\]', '[]', 'g') as field, source_id as "sourceId", count(*) as count,
       min(received_at) as "firstAt", max(received_at) as "lastAt",
       (array_agg(object_id order by received_at desc, event_id))[1] as "objectId",
       (array_agg(value order by received_at desc, event_id))[1] as value,
       (array_agg(event_id order by received_at desc, event_id))[1] as "eventId"
     from billing_warnings w where tenant_id = $1 and ${UNRESOLVED(`'infinity'`)}
     group by 1, 2, 3 order by 6 desc limit $2`,
    [tenantId, limit],
  )
}

/** `unrecognized`: it seems to be about billing, and is not understood. `test`: of a provider's test mode. */
export type UncountedEvent = { tenantId: number; kind: 'unrecognized' | 'test'; eventType: string; occurredAt: Date }

/** Adds events that are in no total, by type and day. */
export async function addUncounted(db: Db, events: UncountedEvent[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_uncounted as u (tenant_id, kind, event_type, day, events)
     select tenant_id, kind, event_type, (at at time zone 'UTC')::date, count(*)
     from unnest($1::int[], $2::text[], $3::text[], $4::timestamptz[]) as e (tenant_id, kind, event_type, at)
     group by 1, 2, 3, 4 order by 1, 2, 3, 4
     on conflict (tenant_id, kind, event_type, day) do update set events = u.events + excluded.events`,
    [
      events.map(({ tenantId }) => tenantId),
      events.map(({ kind }) => kind),
      events.map(({ eventType }) => eventType),
      events.map(({ occurredAt }) => occurredAt.toISOString()),
    ],
  )
}

/** Up to `asOf`: the most frequent unrecognized types, and the number of test events. */
export async function uncountedEvents(
  db: Db,
  tenantId: number,
  asOf: Date,
): Promise<{ unrecognized: Record<string, number>; test: number }> {
  const { rows } = await queryPrepared<{ eventType: string | null; events: number }>(
    db,
    `(select event_type as "eventType", sum(events)::bigint as events from billing_uncounted
      where tenant_id = $1 and kind = 'unrecognized' and day <= ($2::timestamptz at time zone 'UTC')::date
      group by event_type order by 2 desc, 1 limit 100)
     union all
     (select null, coalesce(sum(events), 0)::bigint from billing_uncounted
      where tenant_id = $1 and kind = 'test' and day <= ($2::timestamptz at time zone 'UTC')::date)`,
    [tenantId, asOf],
  )
  const types = rows.flatMap(({ eventType, events }) => (eventType === null ? [] : [[eventType, events] as const]))
  return {
    unrecognized: Object.fromEntries(types),
    test: rows.find(({ eventType }) => eventType === null)?.events ?? 0,
  }
}

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

/** Subscriptions that depend on these terms: through the customer, through a discount, or as the owner of a tax. */
export async function subscriptionsReading(db: Db, keys: TermKey[]): Promise<ObjectKey[]> {
  return queryRows<ObjectKey>(
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
     select c.tenant_id, s.id from changed c
     join billing_subscriptions s on s.tenant_id = c.tenant_id and s.id = c.id and s.seen where c.kind = 'tax'
     union
     select c.tenant_id, s.id from customers c
     left join billing_account_merges m on m.tenant_id = c.tenant_id and m.account = c.account
     cross join lateral (
       select subscription_id as id from billing_segments
       where tenant_id = c.tenant_id and account = coalesce(m.into_account, c.account) offset 0) s`,
    [...keyColumns(keys), keys.map(({ kind }) => kind)],
  )
}

/** A subscription to derive again, and the first event that made it outdated. */
export type Outdated = ObjectKey & { eventId: string | null; receivedAt: Date }

/** Queues these subscriptions to be derived again in the background. */
export async function queueSubscriptions(db: Db, rows: Outdated[]): Promise<void> {
  const sorted = sortedKeys(rows)
  await queryPrepared(
    db,
    `insert into billing_outdated (tenant_id, subscription_id, event_id, received_at)
     select * from unnest($1::int[], $2::text[], $3::text[], $4::timestamptz[]) on conflict do nothing`,
    [...keyColumns(sorted), sorted.map(({ eventId }) => eventId), sorted.map(({ receivedAt }) => receivedAt)],
  )
}

/** Takes some from the queue. Other transactions skip them until the caller's transaction ends. */
export async function takeOutdated(db: Db, limit: number): Promise<Outdated[]> {
  return queryRows<Outdated>(
    db,
    `delete from billing_outdated where (tenant_id, subscription_id) in (
       select tenant_id, subscription_id from billing_outdated limit $1 for update skip locked)
     returning tenant_id as "tenantId", subscription_id as id, event_id as "eventId", received_at as "receivedAt"`,
    [limit],
  )
}
