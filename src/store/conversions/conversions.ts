import { type Db, queryPrepared } from '../../postgres/database.ts'
import { CONTACT_OF_PROFILE, type TimePage } from '../events/events.ts'

/** A sale according to an event. Amounts are exact decimal text. */
export type EventSale = {
  tenantId: number
  saleKey: string
  eventId: string
  occurredAt: Date
  eventType: string
  conversionType: string
  source: string
  sourceConfigId: string | null
  objectId: string | null
  amount: string | null
  currency: string | null
  visitor: string | null
  node: number | null
}

/** A sale according to an order record. */
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

/** The buyer of a sale according to events and to the order, after it was written: they are the same person. */
export type SalePeople = {
  tenantId: number
  saleKey: string
  eventNode: number | null
  orderNode: number | null
}

/** One row per sale key; of several events of one sale the earliest with an amount counts, in whatever order they came. */
export async function upsertEventSales(db: Db, sales: EventSale[]): Promise<SalePeople[]> {
  const { rows } = await queryPrepared<SalePeople>(
    db,
    `insert into conversions as c (tenant_id, sale_key, id, event_id, event_occurred_at, event_type,
       event_conversion_type, event_source, event_source_config_id, object_id, event_amount, event_currency, event_visitor,
       event_node)
     select "tenantId", "saleKey", "eventId", "eventId", "occurredAt", "eventType", "conversionType", source,
       "sourceConfigId", "objectId", amount, currency, visitor, node
     from json_to_recordset($1) as r ("tenantId" int, "saleKey" text, "eventId" uuid, "occurredAt" timestamptz,
       "eventType" text, "conversionType" text, source text, "sourceConfigId" text, "objectId" text, amount numeric,
       currency text, visitor text, node bigint)
     order by "tenantId", "saleKey"
     on conflict (tenant_id, sale_key) do update set
       (event_id, event_occurred_at, event_type, event_conversion_type, event_source, event_source_config_id,
        event_amount, event_currency, object_id, event_visitor, event_node)
       = (select s.event_id, s.occurred_at, s.event_type, s.conversion_type, s.source, s.source_config_id, s.amount,
            s.currency, case when c.order_state is null then s.object_id else c.object_id end,
            coalesce(s.visitor, c.event_visitor, excluded.event_visitor),
            coalesce(s.node, c.event_node, excluded.event_node)
          from (values
            (c.event_id, c.event_occurred_at, c.event_type, c.event_conversion_type, c.event_source,
             c.event_source_config_id, c.event_amount, c.event_currency, c.object_id, c.event_visitor,
             c.event_node),
            (excluded.event_id, excluded.event_occurred_at, excluded.event_type, excluded.event_conversion_type,
             excluded.event_source, excluded.event_source_config_id, excluded.event_amount, excluded.event_currency,
             excluded.object_id, excluded.event_visitor, excluded.event_node)
          ) as s (event_id, occurred_at, event_type, conversion_type, source, source_config_id, amount, currency, object_id,
            visitor, node)
          where s.event_id is not null order by s.amount is null, s.occurred_at, s.event_id limit 1)
     returning tenant_id as "tenantId", sale_key as "saleKey", event_node as "eventNode", order_node as "orderNode"`,
    [JSON.stringify(sales)],
  )
  return rows
}

export async function upsertOrderSales(db: Db, sales: OrderSale[]): Promise<SalePeople[]> {
  const { rows } = await queryPrepared<SalePeople>(
    db,
    `insert into conversions as c (tenant_id, sale_key, id, order_state, object_id, order_placed_at, order_updated_at,
       order_amount, order_currency, order_contact_id, order_node)
     -- to the millisecond, as all times are shown: cursors and bounds are made from what is shown
     select "tenantId", "saleKey", id, state, "objectId", "placedAt", date_trunc('milliseconds', "updatedAt"), amount,
       currency, "contactId", node
     from json_to_recordset($1) as r ("tenantId" int, "saleKey" text, id uuid, state text, "objectId" text,
       "placedAt" timestamptz, "updatedAt" timestamptz, amount numeric, currency text, "contactId" text, node bigint)
     order by "tenantId", "saleKey"
     on conflict (tenant_id, sale_key) do update set
       order_state = excluded.order_state, object_id = excluded.object_id, order_placed_at = excluded.order_placed_at,
       order_updated_at = excluded.order_updated_at, order_amount = excluded.order_amount,
       order_currency = excluded.order_currency, order_contact_id = excluded.order_contact_id,
       order_node = excluded.order_node
     returning tenant_id as "tenantId", sale_key as "saleKey", event_node as "eventNode", order_node as "orderNode"`,
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
  /** exact decimal text */
  amount: string | null
  currency: string | null
  visitor: string | null
  profile: number | null
  contactId: string | null
  /** the contact record's data, JSON text */
  contactData: string | null
  integrationId: string | null
}

/** Newest first. An event type matches a row's event type or its conversion type. */
export async function listConversions(db: Db, tenantId: number, page: TimePage): Promise<ConversionRow[]> {
  const { rows } = await db.query<ConversionRow>(conversionPage(tenantId, page))
  return rows
}

/** The statement of a page: exported so that a test can check its plan. */
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
  const text = `select ${COLUMNS} from (${rowsOf}) c ${PERSON} order by c.occurred_at desc, c.id desc`
  return { text, values }
}

const COLUMNS = `c.id, c.occurred_at as "occurredAt", c.conversion_type as "conversionType", c.event_type as "eventType",
  c.source, c.object_id as "sourceObjectId",
  coalesce(c.order_amount, c.event_amount) as amount,
  case when c.order_amount is not null then c.order_currency else coalesce(c.event_currency, c.order_currency) end as currency,
  c.event_visitor as visitor, i.profile, coalesce(c.order_contact_id, person.value) as "contactId",
  contact.data as "contactData", c.event_source_config_id as "integrationId"`

const PERSON = `
  left join identities i on i.tenant_id = c.tenant_id and i.node = coalesce(c.event_node, c.order_node)
  left join lateral (${CONTACT_OF_PROFILE}) person on true
  left join records contact on contact.tenant_id = c.tenant_id and contact.entity_type = 'contact'
    and contact.id = coalesce(c.order_contact_id, person.value)`
