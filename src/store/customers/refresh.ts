import type { Segment } from '../../domain/billing/timeline.ts'
import type { Customer, CustomerFacts } from '../../domain/customers/customers.ts'
import { type Db, queryPrepared, toColumns } from '../../postgres/database.ts'
import type { ProfileKey } from '../identity/identities.ts'

/**
 * Removes notes and returns the people whose rows are outdated: noted ones, and those whose time has come. `offset 0`: a plan
 * that was made while a table was small must not read all of it later.
 */
export async function takeOutdated(
  db: Db,
  now: Date,
  limit: number,
): Promise<{ people: ProfileKey[]; mayBeMore: boolean }> {
  const { rows } = await queryPrepared<{ tenantId: number | null; profile: number; notes: number }>(
    db,
    `with noted as (
       delete from customer_changes
       where ctid = any(array(select ctid from customer_changes limit $2 for update skip locked))
       returning *
     ), due as (
       select tenant_id, profile from customers where refresh_at <= $1 order by refresh_at limit $2
     ), nodes as (
       select tenant_id, node from noted where node is not null
       union
       select n.tenant_id, i.node from noted n
       cross join lateral (select node from identities
         where tenant_id = n.tenant_id and kind = 'contact' and value = n.contact and retired_at is null offset 0) i
       union
       select n.tenant_id, a.node from noted n
       left join lateral (select into_account from billing_account_merges
         where tenant_id = n.tenant_id and account = n.account offset 0) m on true
       cross join lateral (select node from billing_accounts
         where tenant_id = n.tenant_id and account in (n.account, m.into_account) and node is not null offset 0) a
     )
     select p.tenant_id as "tenantId", p.profile, c.notes from (select count(*) as notes from noted) c left join (
       select tenant_id, node as profile from nodes
       union
       select n.tenant_id, i.profile from nodes n
       cross join lateral (select profile from identities where tenant_id = n.tenant_id and node = n.node offset 0) i
       union
       select n.tenant_id, i.profile from noted n
       cross join lateral (select profile from identities where tenant_id = n.tenant_id and node = n.touched offset 0) i
       cross join lateral (select from customers where tenant_id = n.tenant_id and profile = i.profile offset 0) customer
       union
       select tenant_id, profile from due
     ) p on true`,
    [now, limit],
  )
  const people = rows.flatMap(({ tenantId, profile }) => (tenantId === null ? [] : [{ tenantId, profile }]))
  return { people, mayBeMore: people.length > 0 || rows[0]!.notes === limit }
}

/** For a job that runs twice a second: one cheap statement, instead of a transaction, when there is nothing to do. */
export async function isAnyCustomerOutdated(db: Db, now: Date): Promise<boolean> {
  const { rows } = await queryPrepared<{ has: boolean }>(
    db,
    `select exists (select from customer_changes) or exists (select from customers where refresh_at <= $1) as has`,
    [now],
  )
  return rows[0]!.has
}

export async function hasOutdatedCustomers(db: Db, tenantId: number): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>(
    'select exists (select from customer_changes where tenant_id = $1) as has',
    [tenantId],
  )
  return rows[0]!.has
}

type FactRow = ProfileKey &
  Pick<CustomerFacts, 'firstSeenAt' | 'lastSeenAt' | 'email' | 'hasPaymentIssue' | 'firstPaidAt' | 'changesAt'> & {
    contactId: string | null
    contactData: string | null
    contactCreatedAt: Date | null
    orders: number
    firstSaleAt: Date | null
    lastSaleAt: Date | null
    revenue: string | null
    segments: string | null
    hasSubscribed: boolean
    hasTrialed: boolean
    source: string | null
    medium: string | null
    campaign: string | null
    touchedAt: Date | null
  }

/**
 * A sale without an amount and an order id is another goal, and is not counted. The touch is that of `firstTouches`: an
 * unverified one counts only if it was received before the first payment, or the first sale that verified input reports.
 * A subscription that starts in the future is not paid yet: its start is in "changesAt", and the row is computed again then.
 * Each table is read by one node or account at a time: for `node = any(…)`, a plan without statistics reads all rows of the tenant.
 */
const FACTS = `
select p.tenant_id as "tenantId", p.profile, own."firstSeenAt", own."lastSeenAt", own.email,
  contact.id as "contactId", contact.data as "contactData", contact.created_at as "contactCreatedAt",
  coalesce(sales.orders, 0) as orders, sales."firstSaleAt", least(sales."lastSaleAt", $3) as "lastSaleAt", sales.revenue,
  accounts."firstPaidAt", segments.bodies as segments, coalesce(segments.count > 0, false) as "hasSubscribed",
  coalesce(segments.trials > 0, false) as "hasTrialed",
  least(segments."changesAt", issues."changesAt") as "changesAt", coalesce(issues.count > 0, false) as "hasPaymentIssue",
  coalesce(stated.source, touch.source) as source,
  case when stated.source is null then touch.medium else stated.medium end as medium,
  case when stated.source is null then touch.campaign else stated.campaign end as campaign,
  touch.occurred_at as "touchedAt"
from unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)
cross join lateral (
  select array_agg(node) as nodes, min(first_seen_at) as "firstSeenAt", max(last_seen_at) as "lastSeenAt",
    (array_agg(value order by verified desc, node) filter (where kind = 'email' and retired_at is null))[1] as email,
    array_agg(value order by node) filter (where kind = 'contact') as contacts
  from identities where tenant_id = p.tenant_id and profile = p.profile
) own
left join lateral (
  select r.id, r.data, r.created_at from unnest(own.contacts) with ordinality as c (id, place)
  cross join lateral (select id, data, created_at from records
    where tenant_id = p.tenant_id and entity_type = 'contact' and id = c.id and not deleted offset 0) r
  order by c.place limit 1
) contact on true
left join lateral (
  select sum(count)::int as orders, min(first_at) as "firstSaleAt", max(last_at) as "lastSaleAt",
    min(first_verified_at) as first_verified_at,
    json_object_agg(currency, amount::text) filter (where currency <> '') as revenue
  from (
    select conversion_currency(order_amount, order_currency, event_amount, event_currency) as currency, count(*),
      min(occurred_at) as first_at, max(occurred_at) as last_at, min(occurred_at) filter (where verified) as first_verified_at,
      sum(coalesce(order_amount, event_amount)) as amount
    from unnest(own.nodes) as n (node)
    cross join lateral (select * from conversions where tenant_id = p.tenant_id and node = n.node and listed offset 0) c
    where order_id is not null or coalesce(order_amount, event_amount) is not null
    group by 1
  ) by_currency
) sales on true
left join lateral (
  select array_agg(account) as ids, min(first_paid_at) filter (where first_paid_at <= $3) as "firstPaidAt",
    (array_agg(own_acquisition_id order by first_paid_at) filter (where own_acquisition_id > 0))[1] as acquisition_id
  from unnest(own.nodes) as n (node)
  cross join lateral (select * from billing_accounts where tenant_id = p.tenant_id and node = n.node offset 0) a
  where not exists (select from billing_account_merges where tenant_id = p.tenant_id and account = a.account)
) accounts on true
left join lateral (
  select array_agg(account) as ids from billing_account_merges
  where tenant_id = p.tenant_id and into_account = any(accounts.ids)
) merged on true
left join lateral (
  select source, medium, campaign from billing_acquisitions
  where tenant_id = p.tenant_id and id = accounts.acquisition_id
) stated on true
left join lateral (
  select json_agg(body) filter (where valid_from <= $3 and valid_to > $3) as bodies, count(*),
    count(*) filter (where status = 'trialing' and valid_from <= $3) as trials,
    min(valid_from) filter (where valid_from > $3) as "changesAt"
  from unnest(accounts.ids) as a (account)
  cross join lateral (select * from billing_segments where tenant_id = p.tenant_id and account = a.account offset 0) s
  where body ->> 'testMode' is null
) segments on true
left join lateral (
  select count(*) filter (where issue_from <= $3),
    least(min(issue_from) filter (where issue_from > $3), min(valid_to) filter (where valid_to < 'infinity')) as "changesAt"
  from unnest(accounts.ids || merged.ids) as a (account)
  cross join lateral (
    select * from billing_invoice_states where tenant_id = p.tenant_id and customer = a.account
      and valid_to > $3 and valid_from <= $3 and issue_from is not null offset 0) s
) issues on true
left join lateral (
  select t.source, t.medium, t.campaign, t.occurred_at from unnest(own.nodes) as n (node)
  cross join lateral (select * from touches where tenant_id = p.tenant_id and node = n.node offset 0) t
  where (t.kind = 'verified' or t.received_at <= coalesce(least(accounts."firstPaidAt", sales.first_verified_at), 'infinity'))
  order by t.direct, t.occurred_at, t.event_id limit 1
) touch on true
where own.nodes is not null`

/** What the tables say about these people. Profiles that no longer exist are omitted. */
export async function readCustomerFacts(
  db: Db,
  people: ProfileKey[],
  now: Date,
): Promise<(ProfileKey & { facts: CustomerFacts })[]> {
  const { rows } = await queryPrepared<FactRow>(db, FACTS, [...toColumns(people, 'tenantId', 'profile'), now])
  return rows.map(({ tenantId, profile, ...row }) => ({ tenantId, profile, facts: toFacts(row) }))
}

function toFacts(row: Omit<FactRow, 'tenantId' | 'profile'>): CustomerFacts {
  const { contactId, contactData, contactCreatedAt, orders, firstSaleAt, lastSaleAt, revenue, segments, ...rest } = row
  const { source, medium, campaign, touchedAt, ...facts } = rest
  return {
    ...facts,
    contact:
      contactId === null ? null : { id: contactId, data: JSON.parse(contactData!), createdAt: contactCreatedAt! },
    sales:
      orders === 0
        ? null
        : { orders, firstAt: firstSaleAt!, lastAt: lastSaleAt!, revenue: JSON.parse(revenue ?? '{}') },
    segments: JSON.parse(segments ?? '[]') as Segment[],
    touch: source === null ? null : { source, medium, campaign, at: touchedAt },
  }
}

/** Replaces the rows of these people. `customer` null: the person is none. */
export async function writeCustomers(db: Db, people: (ProfileKey & { customer: Customer | null })[]): Promise<void> {
  await queryPrepared(
    db,
    `delete from customers c using unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)
     where c.tenant_id = p.tenant_id and c.profile = p.profile`,
    toColumns(people, 'tenantId', 'profile'),
  )
  const rows = people.flatMap(({ tenantId, profile, customer }) =>
    customer
      ? [{ tenantId, profile, ...customer, words: customer.words.map(word => customerWord(tenantId, word)) }]
      : [],
  )
  if (rows.length === 0) return
  await queryPrepared(
    db,
    `with input as materialized (
       select * from json_to_recordset($1) as r ("tenantId" int, profile bigint, "contactId" text, name text, email text,
         company text, country text, "sortName" text, channel text, "acquiredAt" timestamptz, "firstSeenAt" timestamptz,
         "lastSeenAt" timestamptz, status text, "customerSince" timestamptz, trialed boolean, orders int, account text,
         plans text[], "refreshAt" timestamptz, words text[], amounts json)
     ), written as (
       insert into customers (tenant_id, profile, contact_id, name, email, company, country, sort_name, channel,
         acquired_at, first_seen_at, last_seen_at, status, customer_since, trialed, orders, account, plans, refresh_at, words)
       select "tenantId", profile, "contactId", name, email, company, country, "sortName", channel, "acquiredAt",
         "firstSeenAt", "lastSeenAt", status, "customerSince", trialed, orders, account, plans, "refreshAt",
         array_to_tsvector(words)
       from input
     )
     insert into customer_amounts (tenant_id, profile, currency, revenue, mrr)
     select i."tenantId", i.profile, a.currency, a.revenue, a.mrr
     from input i cross join lateral json_to_recordset(i.amounts) as a (currency text, revenue numeric, mrr bigint)`,
    [JSON.stringify(rows)],
  )
}

/** A word of the search index: see customers.words. */
export function customerWord(tenantId: number, word: string): string {
  return `${tenantId} ${word}`
}

/** All customers of a tenant are computed again. */
export async function noteAllCustomers(db: Db, tenantId: number): Promise<void> {
  await db.query(
    'insert into customer_changes (tenant_id, node) select tenant_id, profile from customers where tenant_id = $1',
    [tenantId],
  )
}

/** `isCustomer`: it is, or becomes, one of a customer, whose row may not exist yet. */
export type SeenNode = { tenantId: number; node: number; at: Date; isCustomer: boolean }

/**
 * Notes when customers were last seen, to about 15 minutes. Rows that another transaction has locked are skipped, so that
 * this never waits.
 */
export async function noteSeen(db: Db, seen: SeenNode[]): Promise<void> {
  await queryPrepared(
    db,
    `update identities i set last_seen_at = s.at
     from (
       select i.tenant_id, i.node, s.at
       from unnest($1::int[], $2::bigint[], $3::timestamptz[], $4::boolean[]) as s (tenant_id, node, at, is_customer)
       cross join lateral (
         select i.tenant_id, i.node from identities i
         where i.tenant_id = s.tenant_id and i.node = s.node
           and (i.last_seen_at is null or i.last_seen_at < s.at - interval '15 minutes')
           and (s.is_customer
             or exists (select from customers c where c.tenant_id = i.tenant_id and c.profile = i.profile))
         for no key update of i skip locked) i
     ) s
     where i.tenant_id = s.tenant_id and i.node = s.node`,
    toColumns(seen, 'tenantId', 'node', 'at', 'isCustomer'),
  )
}
