import type { EventSale } from '../../domain/conversions/conversions.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { CONTACT_OF_PROFILE, type TimePage } from '../events/events.ts'

/** The sale of an order record. */
export type OrderSale = {
  tenantId: number
  saleKey: string
  id: string
  state: 'live' | 'deleted'
  objectId: string
  placedAt: Date | null
  updatedAt: string
  amount: string | null
  currency: string | null
  contactId: string | null
  node: number | null
}

/** The buyer of a sale, after it was written. */
export type SalePeople = {
  tenantId: number
  saleKey: string
  orderId: string | null
  orderState: 'live' | 'deleted' | null
  eventNode: number | null
  orderNode: number | null
  severalVisitors: boolean
}

const PEOPLE = `tenant_id as "tenantId", sale_key as "saleKey", order_id as "orderId", order_state as "orderState",
  event_node as "eventNode", order_node as "orderNode", several_visitors as "severalVisitors"`

// For rows from before these columns existed: the row's event gave the amount, and events of a source are trusted.
const PRICE_EVENT = `coalesce(c.price_event_id, c.event_id), coalesce(c.price_at, c.event_occurred_at),
             coalesce(c.price_trusted, c.event_source_config_id is not null)`

// For older rows too: the row's event gave the visitor and the person. Same format as `rankOfSale`.
const RANK = `(c.event_amount is null)::int || ' ' ||
  to_char(c.event_occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || ' ' || c.event_id`
const VISITOR_RANK = `coalesce(c.event_visitor_rank, ${RANK})`
const NODE_RANK = `coalesce(c.event_node_rank, ${RANK})`

/**
 * Writes one row per sale key. The caller has merged its own events with `foldSales`; this merges the result with the stored
 * row by the same rule. test/store/folded-sales.test.ts checks that both agree.
 */
export async function upsertEventSales(db: Db, sales: EventSale[]): Promise<SalePeople[]> {
  const { rows } = await queryPrepared<SalePeople>(
    db,
    `insert into conversions as c (tenant_id, sale_key, id, order_id, several_visitors, event_id, event_occurred_at, event_type,
       event_conversion_type, event_source, event_source_config_id, object_id, event_amount, event_currency, price_event_id,
       price_at, price_trusted, event_visitor, event_visitor_rank, event_node, event_node_rank)
     select "tenantId", "saleKey", id, "orderId", "severalVisitors", "eventId", "occurredAt", "eventType", "conversionType",
       source, "sourceConfigId", "objectId", amount, currency, "priceEventId", "priceAt", "priceTrusted", visitor, "visitorRank", node,
       "nodeRank"
     from json_to_recordset($1) as r ("tenantId" int, "saleKey" text, id uuid, "orderId" text, "severalVisitors" boolean,
       "eventId" uuid, "occurredAt" timestamptz, "eventType" text, "conversionType" text, source text,
       "sourceConfigId" text, "objectId" text, amount numeric, currency text, "priceEventId" uuid, "priceAt" timestamptz,
       "priceTrusted" boolean, visitor text, "visitorRank" text, node bigint, "nodeRank" text)
     order by "tenantId", "saleKey"
     on conflict (tenant_id, sale_key) do update set
       (event_id, event_occurred_at, event_type, event_conversion_type, event_source, event_source_config_id, object_id,
        several_visitors)
       = (select s.event_id, s.occurred_at, s.event_type, s.conversion_type, s.source, s.source_config_id,
            case when c.order_state is null then s.object_id else c.object_id end,
            c.several_visitors or excluded.several_visitors or c.event_visitor <> excluded.event_visitor is true
          from (values
            (c.event_id, c.event_occurred_at, c.event_type, c.event_conversion_type, c.event_source,
             c.event_source_config_id, c.event_amount, c.object_id),
            (excluded.event_id, excluded.event_occurred_at, excluded.event_type, excluded.event_conversion_type,
             excluded.event_source, excluded.event_source_config_id, excluded.event_amount, excluded.object_id)
          ) as s (event_id, occurred_at, event_type, conversion_type, source, source_config_id, amount, object_id)
          where s.event_id is not null order by s.amount is null, s.occurred_at, s.event_id limit 1),
       (event_visitor, event_visitor_rank)
       = (select v.visitor, v.rank
          from (values (c.event_visitor, ${VISITOR_RANK}), (excluded.event_visitor, excluded.event_visitor_rank)) as v (visitor, rank)
          where v.visitor is not null order by v.rank collate "C" limit 1),
       (event_node, event_node_rank)
       = (select n.node, n.rank
          from (values (c.event_node, ${NODE_RANK}), (excluded.event_node, excluded.event_node_rank)) as n (node, rank)
          where n.node is not null order by n.rank collate "C" limit 1),
       (event_amount, event_currency, price_event_id, price_at, price_trusted)
       = (select p.amount, p.currency, p.event_id, p.at, p.trusted
          from (values
            (c.event_amount, c.event_currency, ${PRICE_EVENT}),
            (excluded.event_amount, excluded.event_currency, excluded.price_event_id, excluded.price_at,
             excluded.price_trusted)
          ) as p (amount, currency, event_id, at, trusted)
          where p.event_id is not null order by p.amount is null, not p.trusted, p.at, p.event_id limit 1)
     returning ${PEOPLE}`,
    [JSON.stringify(sales)],
  )
  return rows
}

export type OrderKey = { tenantId: number; orderId: string }

/** A row of an order: that of its record, or one created by events. `profile`: the person of the events. */
type OrderRow = OrderKey & {
  saleKey: string
  hasRecord: boolean
  profile: number | null
}

export async function rowsOfOrders(db: Db, orders: OrderKey[]): Promise<OrderRow[]> {
  const { rows } = await queryPrepared<OrderRow>(
    db,
    `select c.* from unnest($1::int[], $2::text[]) as o (tenant_id, order_id)
     cross join lateral (
       select c.tenant_id as "tenantId", c.order_id as "orderId", c.sale_key as "saleKey",
              c.order_state is not null as "hasRecord", i.profile
       from conversions c
       left join identities i on i.tenant_id = c.tenant_id and i.node = c.event_node
       where c.tenant_id = o.tenant_id and c.order_id = o.order_id
       order by c.event_occurred_at, c.event_id
     ) c`,
    [orders.map(({ tenantId }) => tenantId), orders.map(({ orderId }) => orderId)],
  )
  return rows
}

/** Orders without a record that events of these people have. */
export async function ordersOfNodes(db: Db, tenantId: number, nodes: number[]): Promise<string[]> {
  const { rows } = await db.query<{ orderId: string }>(
    `select distinct order_id as "orderId" from conversions
     where tenant_id = $1 and event_node = any($2::bigint[]) and order_id is not null and order_state is null`,
    [tenantId, nodes],
  )
  return rows.map(({ orderId }) => orderId)
}

/** Orders that events of these people have, with or without a record. */
export async function ordersNamedBy(db: Db, tenantId: number, nodes: number[]): Promise<string[]> {
  const { rows } = await db.query<{ orderId: string }>(
    `select distinct order_id as "orderId" from conversions
     where tenant_id = $1 and event_node = any($2::bigint[]) and order_id is not null`,
    [tenantId, nodes],
  )
  return rows.map(({ orderId }) => orderId)
}

/** Deletes and returns rows created by events, to be folded into others. */
export async function takeEventSales(db: Db, sales: { tenantId: number; saleKey: string }[]): Promise<EventSale[]> {
  const { rows } = await queryPrepared<EventSale>(
    db,
    `delete from conversions c using unnest($1::int[], $2::text[]) as s (tenant_id, sale_key)
     where c.tenant_id = s.tenant_id and c.sale_key = s.sale_key and c.order_state is null
     returning c.tenant_id as "tenantId", c.sale_key as "saleKey", c.id, c.order_id as "orderId", c.event_id as "eventId",
       c.event_occurred_at as "occurredAt", c.event_type as "eventType", c.event_conversion_type as "conversionType",
       c.event_source as source, c.event_source_config_id as "sourceConfigId", c.object_id as "objectId",
       c.event_amount as amount, c.event_currency as currency, coalesce(c.price_event_id, c.event_id) as "priceEventId",
       coalesce(c.price_at, c.event_occurred_at) as "priceAt",
       coalesce(c.price_trusted, c.event_source_config_id is not null) as "priceTrusted",
       c.event_visitor as visitor, ${VISITOR_RANK} as "visitorRank", c.event_node as node, ${NODE_RANK} as "nodeRank",
       c.several_visitors as "severalVisitors"`,
    [sales.map(({ tenantId }) => tenantId), sales.map(({ saleKey }) => saleKey)],
  )
  return rows
}

/** Removes what events reported about these sales. Rows created by events are deleted; rows of records stay. */
export async function dropEventFacts(
  db: Db,
  tenantId: number,
  { sales, orders }: { sales: string[]; orders: string[] },
): Promise<{ deleted: number; withRecord: { saleKey: string }[] }> {
  const { rowCount } = await db.query(
    `delete from conversions where tenant_id = $1 and order_state is null and (order_id = any($2) or sale_key = any($3))`,
    [tenantId, orders, sales],
  )
  const { rows } = await db.query<{ saleKey: string }>(
    `update conversions set event_id = null, event_occurred_at = null, event_type = null, event_conversion_type = null,
       event_source = null, event_source_config_id = null, event_amount = null, event_currency = null, price_event_id = null,
       price_at = null, price_trusted = null, event_visitor = null, event_visitor_rank = null, event_node = null,
       event_node_rank = null, several_visitors = false
     where tenant_id = $1 and order_id = any($2) returning sale_key as "saleKey"`,
    [tenantId, orders],
  )
  return { deleted: rowCount ?? 0, withRecord: rows }
}

/** Orders for which one of these people has several rows, because they were different people before a merge. */
export async function ordersNamedTwice(db: Db, people: { tenantId: number; profile: number }[]): Promise<OrderKey[]> {
  const { rows } = await queryPrepared<OrderKey>(
    db,
    `select c.* from unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)
     cross join lateral (
       select c.tenant_id as "tenantId", c.order_id as "orderId"
       from identities i
       join conversions c on c.tenant_id = i.tenant_id and c.event_node = i.node
         and c.order_id is not null and c.order_state is null
       where i.tenant_id = p.tenant_id and i.profile = p.profile
       group by 1, 2 having count(*) > 1
     ) c`,
    [people.map(({ tenantId }) => tenantId), people.map(({ profile }) => profile)],
  )
  return rows
}

export async function upsertOrderSales(db: Db, sales: OrderSale[]): Promise<SalePeople[]> {
  const { rows } = await queryPrepared<SalePeople>(
    db,
    `insert into conversions as c (tenant_id, sale_key, id, order_id, order_state, object_id, order_placed_at, order_updated_at,
       order_amount, order_currency, order_contact_id, order_node)
     -- to the millisecond, as all times are shown: cursors and bounds are made from what is shown
     select "tenantId", "saleKey", id, "objectId", state, "objectId", "placedAt", date_trunc('milliseconds', "updatedAt"), amount,
       currency, "contactId", node
     from json_to_recordset($1) as r ("tenantId" int, "saleKey" text, id uuid, state text, "objectId" text,
       "placedAt" timestamptz, "updatedAt" timestamptz, amount numeric, currency text, "contactId" text, node bigint)
     order by "tenantId", "saleKey"
     on conflict (tenant_id, sale_key) do update set
       order_state = excluded.order_state, object_id = excluded.object_id, order_placed_at = excluded.order_placed_at,
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
}

/** Newest first. An event type matches a row's event type or its conversion type. */
export async function listConversions(db: Db, tenantId: number, page: TimePage): Promise<ConversionRow[]> {
  const { rows } = await db.query<ConversionRow>(conversionPage(tenantId, page))
  return rows
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
  c.event_visitor as visitor, i.profile, coalesce(c.order_contact_id, person.value) as "contactId",
  contact.data as "contactData", c.event_source_config_id as "integrationId"`

export const SHOWN_PERSON = `
  left join identities i on i.tenant_id = c.tenant_id and i.node = coalesce(c.event_node, c.order_node)
  left join lateral (${CONTACT_OF_PROFILE}) person on true
  left join records contact on contact.tenant_id = c.tenant_id and contact.entity_type = 'contact'
    and contact.id = coalesce(c.order_contact_id, person.value)`

/** A sale by its key, or all sales of an order. */
export type SaleRef = { tenantId: number; saleKey?: string; orderId?: string }

/** A conversion as it is listed, and whether it is listed. */
export type SaleState = ConversionRow & {
  tenantId: number
  saleKey: string
  orderId: string | null
  isListed: boolean
}

// Only the latest sales of a person are compared, so that a merge takes limited time.
const MAX_SALES_OF_PERSON = 1_000

/** Sales whose contact depends on these profiles. */
export async function salesOfProfiles(db: Db, profiles: { tenantId: number; profile: number }[]): Promise<SaleRef[]> {
  const { rows } = await queryPrepared<SaleRef>(
    db,
    `select c.tenant_id as "tenantId", c.sale_key as "saleKey"
     from (select distinct * from unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)) p
     cross join lateral (
       select s.tenant_id, s.sale_key from identities i
       cross join lateral (
         select tenant_id, sale_key, occurred_at from conversions
         where tenant_id = p.tenant_id and coalesce(event_node, order_node) = i.node and listed and order_contact_id is null
         offset 0
       ) s
       where i.tenant_id = p.tenant_id and i.profile = p.profile
       order by s.occurred_at desc limit ${MAX_SALES_OF_PERSON}
     ) c`,
    [profiles.map(({ tenantId }) => tenantId), profiles.map(({ profile }) => profile)],
  )
  return rows
}

export async function saleStates(db: Db, refs: SaleRef[]): Promise<SaleState[]> {
  const keys = refs.filter(ref => ref.saleKey !== undefined)
  const orders = refs.filter(ref => ref.orderId !== undefined)
  const { rows } = await queryPrepared<SaleState>(
    db,
    `select c.tenant_id as "tenantId", c.sale_key as "saleKey", c.order_id as "orderId", c.listed as "isListed",
       ${SHOWN_COLUMNS}
     from (
       select c.* from unnest($1::int[], $2::text[]) as k (tenant_id, sale_key) cross join lateral (
         select * from conversions where tenant_id = k.tenant_id and sale_key = k.sale_key offset 0) c
       union
       select c.* from unnest($3::int[], $4::text[]) as o (tenant_id, order_id) cross join lateral (
         select * from conversions where tenant_id = o.tenant_id and order_id = o.order_id offset 0) c
     ) c ${SHOWN_PERSON}`,
    [
      keys.map(({ tenantId }) => tenantId),
      keys.map(({ saleKey }) => saleKey),
      orders.map(({ tenantId }) => tenantId),
      orders.map(({ orderId }) => orderId),
    ],
  )
  return rows
}
