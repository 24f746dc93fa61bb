import { type EventSale, MAX_CLAIMS, type SaleFacts } from '../../domain/conversions/conversions.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { CONTACT_OF_PROFILE, type TimePage } from '../events/events.ts'

/** The sale of an order record. */
export type OrderSale = {
  tenantId: number
  saleKey: string
  id: string
  state: 'live' | 'deleted'
  orderId: string
  placedAt: Date | null
  updatedAt: string
  amount: string | null
  currency: string | null
  contactId: string | null
  node: number | null
}

/** The visitors and the buyer of a sale, after it was written. */
export type SalePeople = {
  tenantId: number
  saleKey: string
  orderId: string | null
  orderState: 'live' | 'deleted' | null
  /** From verified events, and from the first unverified one. */
  eventNode: number | null
  claimNode: number | null
  orderNode: number | null
  severalVisitors: boolean
}

const PEOPLE = `tenant_id as "tenantId", sale_key as "saleKey", order_id as "orderId", order_state as "orderState",
  event_node as "eventNode", claim_node as "claimNode", order_node as "orderNode", several_visitors as "severalVisitors"`

/**
 * The caller folds its events to one row per sale key. This folds them with the stored row, by the rule of `foldSales`.
 * test/store/folded-sales.test.ts verifies that both agree.
 */
export async function upsertEventSales(db: Db, sales: EventSale[]): Promise<SalePeople[]> {
  const { rows } = await queryPrepared<SalePeople>(
    db,
    `insert into conversions as c (tenant_id, sale_key, id, order_id, several_visitors, event_id, event_verified,
       event_occurred_at, event_type, event_conversion_type, event_source, event_source_config_id, event_object_id,
       event_amount, event_currency, event_visitor_id, event_visitor, event_node_id, event_node, claim_id, claim_visitor,
       claim_node, claims)
     select "tenantId", "saleKey", id, "orderId", "severalVisitors", "eventId", verified, "occurredAt", "eventType",
       "conversionType", source, "sourceConfigId", "objectId", amount, currency, "visitorId", visitor, "nodeId", node,
       "claimId", "claimVisitor", "claimNode", claims
     from json_to_recordset($1) as r ("tenantId" int, "saleKey" text, id uuid, "orderId" text, "severalVisitors" boolean,
       "eventId" uuid, verified boolean, "occurredAt" timestamptz, "eventType" text, "conversionType" text, source text,
       "sourceConfigId" text, "objectId" text, amount numeric, currency text, "visitorId" uuid, visitor text,
       "nodeId" uuid, node bigint, "claimId" uuid, "claimVisitor" text, "claimNode" bigint, claims int)
     order by "tenantId", "saleKey"
     on conflict (tenant_id, sale_key) do update set
       (event_id, event_verified, event_occurred_at, event_type, event_conversion_type, event_source,
        event_source_config_id, event_object_id, event_amount, event_currency)
       = (select f.* from (values
            (c.event_id, c.event_verified, c.event_occurred_at, c.event_type, c.event_conversion_type, c.event_source,
             c.event_source_config_id, c.event_object_id, c.event_amount, c.event_currency),
            (excluded.event_id, excluded.event_verified, excluded.event_occurred_at, excluded.event_type,
             excluded.event_conversion_type, excluded.event_source, excluded.event_source_config_id,
             excluded.event_object_id, excluded.event_amount, excluded.event_currency)
          ) as f (event_id, verified, occurred_at, type, conversion_type, source, source_config_id, object_id, amount, currency)
          where f.event_id is not null order by not f.verified, f.amount is null, f.occurred_at, f.type, f.event_id limit 1),
       (event_visitor_id, event_visitor)
       = (select v.* from (values (c.event_visitor_id, c.event_visitor), (excluded.event_visitor_id, excluded.event_visitor))
            as v (id, visitor) where v.visitor is not null order by v.id limit 1),
       (event_node_id, event_node)
       = (select n.* from (values (c.event_node_id, c.event_node), (excluded.event_node_id, excluded.event_node))
            as n (id, node) where n.node is not null order by n.id limit 1),
       (claim_id, claim_visitor, claim_node)
       = (select l.* from (values (c.claim_id, c.claim_visitor, c.claim_node),
              (excluded.claim_id, excluded.claim_visitor, excluded.claim_node)) as l (id, visitor, node)
          where l.id is not null order by l.visitor is null, l.visitor is null and l.node is null, l.id limit 1),
       claims = c.claims + excluded.claims,
       several_visitors = c.several_visitors or excluded.several_visitors or (
         select count(distinct v) > 1
         from unnest(array[c.event_visitor, c.claim_visitor, excluded.event_visitor, excluded.claim_visitor]) as v)
     returning ${PEOPLE}`,
    [JSON.stringify(sales.map(toRow))],
  )
  return rows
}

function toRow({ facts, visitor, person, claim, ...sale }: EventSale) {
  return {
    ...sale,
    ...facts,
    ...(visitor && { visitorId: visitor.eventId, visitor: visitor.visitor }),
    ...(person && { nodeId: person.eventId, node: person.node }),
    ...(claim && { claimId: claim.eventId, claimVisitor: claim.visitor, claimNode: claim.node }),
  }
}

export type OrderKey = { tenantId: number; orderId: string }
export type SaleKey = { tenantId: number; saleKey: string }

/** Which of these orders verified input reports. */
export async function findVerifiedOrders(db: Db, orders: OrderKey[]): Promise<OrderKey[]> {
  const { rows } = await queryPrepared<OrderKey>(
    db,
    `select o.tenant_id as "tenantId", o.order_id as "orderId"
     from unnest($1::int[], $2::text[]) as o (tenant_id, order_id)
     join conversions c on c.tenant_id = o.tenant_id and c.sale_key = 'order:' || o.order_id`,
    orderColumns(orders),
  )
  return rows
}

/**
 * The unverified rows of these orders that belong to the person of a node, or to no person (null). Looked up by the
 * nodes of the profile, because an order may have any number of rows, and a profile has few nodes.
 */
export async function findUnverifiedSales(
  db: Db,
  claims: (OrderKey & { node: number | null })[],
): Promise<(SaleKey & OrderKey & { node: number | null })[]> {
  const { rows } = await queryPrepared<SaleKey & OrderKey & { node: number | null }>(
    db,
    `select p.tenant_id as "tenantId", p.order_id as "orderId", p.node, c.sale_key as "saleKey"
     from (
       select p.* from unnest($1::int[], $2::text[], $3::bigint[]) as p (tenant_id, order_id, node)
       where exists (select from conversions c
         where c.tenant_id = p.tenant_id and c.order_id = p.order_id and not c.verified) offset 0
     ) p
     cross join lateral (
       select c.sale_key, c.id from (
         select profile from identities where tenant_id = p.tenant_id and node = p.node offset 0) i
       cross join lateral (
         select node from identities where tenant_id = p.tenant_id and profile = i.profile offset 0) m
       cross join lateral (
         select sale_key, id from conversions
         where tenant_id = p.tenant_id and order_id = p.order_id and claim_node = m.node and not verified offset 0) c
       union all
       (select sale_key, id from conversions
        where p.node is null and tenant_id = p.tenant_id and order_id = p.order_id and claim_node is null and not verified
        limit 1)
     ) c order by c.id`,
    [...orderColumns(claims), claims.map(({ node }) => node)],
  )
  return rows
}

function orderColumns(orders: OrderKey[]): unknown[][] {
  return [orders.map(({ tenantId }) => tenantId), orders.map(({ orderId }) => orderId)]
}

/** The first unverified rows of each of these orders in order of receipt: at most `limit` per order; null: all. */
export async function listUnverifiedSales(
  db: Db,
  orders: OrderKey[],
  limit: number | null,
): Promise<(SaleKey & OrderKey)[]> {
  const { rows } = await queryPrepared<SaleKey & OrderKey>(
    db,
    `select o.tenant_id as "tenantId", o.order_id as "orderId", c.sale_key as "saleKey"
     from unnest($1::int[], $2::text[]) as o (tenant_id, order_id)
     cross join lateral (
       select sale_key from conversions where tenant_id = o.tenant_id and order_id = o.order_id and not verified
       order by id limit $3) c`,
    [...orderColumns(orders), limit],
  )
  return rows
}

/**
 * Whether a sale belongs to the person with these nodes ($2) and contacts ($3): the person that its order names; if it names
 * no one, the person of a verified event. Anyone can send the order id of a customer, so an unverified event makes only an
 * unverified sale one of its visitor.
 */
export const IS_THEIR_SALE = `(order_node = any($2::bigint[]) or order_contact_id = any($3)
  or event_node = any($2::bigint[]) and order_node is null and order_contact_id is null
  or claim_node = any($2::bigint[]) and not verified)`

/** Unverified orders that these people named. */
export async function ordersOfNodes(db: Db, tenantId: number, nodes: number[]): Promise<string[]> {
  const { rows } = await db.query<{ orderId: string }>(
    `select distinct order_id as "orderId" from conversions
     where tenant_id = $1 and claim_node = any($2::bigint[]) and order_id is not null and not verified`,
    [tenantId, nodes],
  )
  return rows.map(({ orderId }) => orderId)
}

/** Orders that events of these people have, verified or not. */
export async function ordersNamedBy(db: Db, tenantId: number, nodes: number[]): Promise<string[]> {
  const { rows } = await db.query<{ orderId: string }>(
    `select distinct order_id as "orderId" from conversions
     where tenant_id = $1 and (event_node = any($2::bigint[]) or claim_node = any($2::bigint[])) and order_id is not null`,
    [tenantId, nodes],
  )
  return rows.map(({ orderId }) => orderId)
}

/** Deletes and returns unverified rows, to be folded into others. */
export async function takeUnverifiedSales(db: Db, sales: SaleKey[]): Promise<EventSale[]> {
  const { rows } = await queryPrepared<StoredSale>(
    db,
    `delete from conversions c using unnest($1::int[], $2::text[]) as s (tenant_id, sale_key)
     where c.tenant_id = s.tenant_id and c.sale_key = s.sale_key and not c.verified
     returning c.tenant_id as "tenantId", c.sale_key as "saleKey", c.id, c.order_id as "orderId", c.event_id as "eventId",
       c.event_verified as verified, c.event_occurred_at as "occurredAt", c.event_type as "eventType",
       c.event_conversion_type as "conversionType", c.event_source as source,
       c.event_source_config_id as "sourceConfigId", c.event_object_id as "objectId", c.event_amount as amount,
       c.event_currency as currency, c.claim_id as "claimId", c.claim_visitor as "claimVisitor",
       c.claim_node as "claimNode", c.claims, c.several_visitors as "severalVisitors"`,
    [sales.map(({ tenantId }) => tenantId), sales.map(({ saleKey }) => saleKey)],
  )
  return rows.map(toSale)
}

type StoredSale = SaleFacts &
  Pick<EventSale, 'tenantId' | 'saleKey' | 'id' | 'orderId' | 'claims' | 'severalVisitors'> & {
    claimId: string | null
    claimVisitor: string | null
    claimNode: number | null
  }

function toSale(row: StoredSale): EventSale {
  const { tenantId, saleKey, id, orderId, claims, severalVisitors, claimId, claimVisitor, claimNode, ...facts } = row
  const claim = claimId === null ? null : { eventId: claimId, visitor: claimVisitor, node: claimNode }
  return { tenantId, saleKey, id, orderId, facts, visitor: null, person: null, claim, claims, severalVisitors }
}

/** Removes what events reported about these sales. Rows created by events are deleted; rows of records stay. */
export async function dropEventFacts(
  db: Db,
  tenantId: number,
  { sales, orders }: { sales: string[]; orders: string[] },
): Promise<{ deleted: number; withRecord: { saleKey: string }[] }> {
  const { rowCount: unverified } = await db.query(
    `delete from conversions where tenant_id = $1 and order_id = any($2) and not verified`,
    [tenantId, orders],
  )
  const { rowCount: own } = await db.query(
    `delete from conversions where tenant_id = $1 and sale_key = any($2) and order_state is null`,
    [tenantId, sales],
  )
  const { rows } = await db.query<{ saleKey: string }>(
    `update conversions set event_id = null, event_verified = null, event_occurred_at = null, event_type = null,
       event_conversion_type = null, event_source = null, event_source_config_id = null, event_object_id = null,
       event_amount = null, event_currency = null, event_visitor_id = null, event_visitor = null, event_node_id = null,
       event_node = null, claim_id = null, claim_visitor = null, claim_node = null, claims = 0, several_visitors = false
     where tenant_id = $1 and sale_key = any($2) returning sale_key as "saleKey"`,
    [tenantId, sales],
  )
  return { deleted: (unverified ?? 0) + (own ?? 0), withRecord: rows }
}

/** Unverified sales of one order that one of these people has several times, because they were different people before. */
export async function salesToCombine(
  db: Db,
  people: { tenantId: number; profile: number }[],
): Promise<(OrderKey & { saleKeys: string[] })[]> {
  const { rows } = await queryPrepared<OrderKey & { saleKeys: string[] }>(
    db,
    `select c.* from unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)
     cross join lateral (
       select c.tenant_id as "tenantId", c.order_id as "orderId", array_agg(c.sale_key order by c.id) as "saleKeys"
       from identities i
       join conversions c on c.tenant_id = i.tenant_id and c.claim_node = i.node
         and c.order_id is not null and not c.verified
       where i.tenant_id = p.tenant_id and i.profile = p.profile
       group by 1, 2 having count(*) > 1
     ) c`,
    [people.map(({ tenantId }) => tenantId), people.map(({ profile }) => profile)],
  )
  return rows
}

/** Requests that a job folds the other unverified rows of these orders. */
export async function requestFolds(db: Db, orders: OrderKey[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into sale_folds (tenant_id, order_id) select * from unnest($1::int[], $2::text[]) order by 1, 2
     on conflict do nothing`,
    orderColumns(orders),
  )
}

export async function hasFolds(db: Db): Promise<boolean> {
  const { rows } = await queryPrepared<{ has: boolean }>(db, 'select exists (select from sale_folds) as has')
  return rows[0]!.has
}

/** Locks a requested fold until the transaction ends. Null if there is none that no other transaction holds. */
export async function takeFold(db: Db): Promise<OrderKey | null> {
  const { rows } = await queryPrepared<OrderKey>(
    db,
    `select tenant_id as "tenantId", order_id as "orderId" from sale_folds
     order by requested_at limit 1 for update skip locked`,
  )
  return rows[0] ?? null
}

export async function deleteFold(db: Db, { tenantId, orderId }: OrderKey): Promise<void> {
  await db.query('delete from sale_folds where tenant_id = $1 and order_id = $2', [tenantId, orderId])
}

/** Unverified events beyond the limit that name sales of verified input. */
export async function countExcessClaims(db: Db): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select coalesce(sum(claims - ${MAX_CLAIMS}), 0)::bigint as count from conversions where verified and claims > ${MAX_CLAIMS}`,
  )
  return rows[0]!.count
}

export async function upsertOrderSales(db: Db, sales: OrderSale[]): Promise<SalePeople[]> {
  const { rows } = await queryPrepared<SalePeople>(
    db,
    `insert into conversions as c (tenant_id, sale_key, id, order_id, order_state, order_placed_at, order_updated_at,
       order_amount, order_currency, order_contact_id, order_node)
     -- to the millisecond, as all times are shown: cursors and bounds are made from what is shown
     select "tenantId", "saleKey", id, "orderId", state, "placedAt", date_trunc('milliseconds', "updatedAt"), amount,
       currency, "contactId", node
     from json_to_recordset($1) as r ("tenantId" int, "saleKey" text, id uuid, state text, "orderId" text,
       "placedAt" timestamptz, "updatedAt" timestamptz, amount numeric, currency text, "contactId" text, node bigint)
     order by "tenantId", "saleKey"
     on conflict (tenant_id, sale_key) do update set
       order_state = excluded.order_state, order_placed_at = excluded.order_placed_at,
       order_updated_at = excluded.order_updated_at, order_amount = excluded.order_amount,
       order_currency = excluded.order_currency, order_contact_id = excluded.order_contact_id,
       order_node = excluded.order_node
     returning ${PEOPLE}`,
    [JSON.stringify(sales)],
  )
  return rows
}

export type ConversionRow = {
  id: string
  occurredAt: Date
  conversionType: string
  eventType: string | null
  source: string
  sourceObjectId: string | null
  /** Exact decimal text. */
  amount: string | null
  currency: string | null
  visitor: string | null
  profile: number | null
  contactId: string | null
  /** The data of the contact record, as JSON text. */
  contactData: string | null
  integrationId: string | null
  verified: boolean
  claims: number
}

/** Newest first. An event type matches a row's event type or its conversion type. */
export async function listConversions(db: Db, tenantId: number, page: TimePage): Promise<ConversionRow[]> {
  const { rows } = await db.query<ConversionRow>(conversionPage(tenantId, page))
  return rows
}

export async function findConversion(db: Db, tenantId: number, id: string): Promise<ConversionRow | null> {
  const { rows } = await queryPrepared<ConversionRow>(
    db,
    `select ${SHOWN_COLUMNS} from (
       select * from conversions where tenant_id = $1 and id = $2 and listed limit 1
     ) c ${SHOWN_PERSON}`,
    [tenantId, id],
  )
  return rows[0] ?? null
}

/** The statement of a page. Exported so that a test can check its plan. */
export function conversionPage(tenantId: number, page: TimePage): { text: string; values: unknown[] } {
  const where = ['c.tenant_id = $1', 'c.listed']
  const values: unknown[] = [tenantId]
  const add = (condition: (n: string) => string, value: unknown) => {
    values.push(value)
    where.push(condition(`$${values.length}`))
  }
  if (page.since) add(n => `c.occurred_at >= ${n}`, page.since)
  if (page.until) add(n => `c.occurred_at <= ${n}`, page.until)
  if (page.after) {
    values.push(page.after.occurredAt, page.after.id)
    where.push(`(c.occurred_at, c.id) < ($${values.length - 1}, $${values.length}::uuid)`)
  }
  const select = (extra: string) =>
    `select * from conversions c where ${where.join(' and ')} ${extra} order by c.occurred_at desc, c.id desc`
  let rowsOf = `${select('')} limit ${page.limit} offset ${page.offset}`
  if (page.eventType !== null) {
    values.push(page.eventType)
    const type = `$${values.length}`
    const upTo = `limit ${page.limit + page.offset}`
    // Two ordered index walks, merged: an "or" over both columns would read the tenant's whole history.
    rowsOf = `select * from (
        (${select(`and c.conversion_type = ${type}`)} ${upTo})
        union all
        (${select(`and c.event_type = ${type} and c.event_type <> c.conversion_type`)} ${upTo})
      ) c order by c.occurred_at desc, c.id desc limit ${page.limit} offset ${page.offset}`
  }
  const text = `select ${SHOWN_COLUMNS} from (${rowsOf}) c ${SHOWN_PERSON} order by c.occurred_at desc, c.id desc`
  return { text, values }
}

export const SHOWN_COLUMNS = `c.id, c.occurred_at as "occurredAt", c.conversion_type as "conversionType", c.event_type as "eventType",
  c.source, c.object_id as "sourceObjectId",
  coalesce(c.order_amount, c.event_amount) as amount,
  case when c.order_amount is not null then c.order_currency else coalesce(c.event_currency, c.order_currency) end as currency,
  c.visitor, i.profile, coalesce(c.order_contact_id, person.value) as "contactId",
  contact.data as "contactData", c.event_source_config_id as "integrationId", c.verified, c.claims`

export const SHOWN_PERSON = `
  left join identities i on i.tenant_id = c.tenant_id and i.node = c.node
  left join lateral (${CONTACT_OF_PROFILE}) person on true
  left join records contact on contact.tenant_id = c.tenant_id and contact.entity_type = 'contact'
    and contact.id = coalesce(c.order_contact_id, person.value)`

/** A conversion as it is listed, and whether it is listed. */
export type SaleState = ConversionRow & {
  tenantId: number
  saleKey: string
  isListed: boolean
}

// Only the latest sales of a person are compared, so that a merge takes limited time.
const MAX_SALES_OF_PERSON = 1_000

/** Sales whose contact depends on these profiles. */
export async function salesOfProfiles(db: Db, profiles: { tenantId: number; profile: number }[]): Promise<SaleKey[]> {
  const { rows } = await queryPrepared<SaleKey>(
    db,
    `select c.tenant_id as "tenantId", c.sale_key as "saleKey"
     from (select distinct * from unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)) p
     cross join lateral (
       select s.tenant_id, s.sale_key from identities i
       cross join lateral (
         select tenant_id, sale_key, occurred_at from conversions
         where tenant_id = p.tenant_id and node = i.node and listed and order_contact_id is null
         offset 0
       ) s
       where i.tenant_id = p.tenant_id and i.profile = p.profile
       order by s.occurred_at desc limit ${MAX_SALES_OF_PERSON}
     ) c`,
    [profiles.map(({ tenantId }) => tenantId), profiles.map(({ profile }) => profile)],
  )
  return rows
}

export async function saleStates(db: Db, sales: SaleKey[]): Promise<SaleState[]> {
  const { rows } = await queryPrepared<SaleState>(
    db,
    `select c.tenant_id as "tenantId", c.sale_key as "saleKey", c.listed as "isListed", ${SHOWN_COLUMNS}
     from unnest($1::int[], $2::text[]) as k (tenant_id, sale_key)
     cross join lateral (
       select * from conversions where tenant_id = k.tenant_id and sale_key = k.sale_key offset 0) c ${SHOWN_PERSON}`,
    [sales.map(({ tenantId }) => tenantId), sales.map(({ saleKey }) => saleKey)],
  )
  return rows
}
