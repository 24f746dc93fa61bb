import type { Db } from '../../postgres/database.ts'

/** What is held of a person, for whoever asks for it: rows as JSON texts. */

/** Their contacts, or the orders that they placed, as the shop last told them. */
export async function readRecords(
  db: Db,
  tenantId: number,
  entityType: 'contact' | 'order',
  ids: string[],
): Promise<string[]> {
  return texts(
    db,
    `select json_build_object('type', entity_type, 'id', id, 'externalId', external_id, 'sourceUpdatedAt', source_updated_at,
       'data', data)::text as text
     from records where tenant_id = $1 and entity_type = $2 and id = any($3) and not deleted order by id`,
    [tenantId, entityType, ids],
  )
}

/** Conversions of these nodes, and the orders behind them. */
export async function readConversions(
  db: Db,
  tenantId: number,
  nodes: number[],
  contactIds: string[],
): Promise<{ text: string; orderId: string | null }[]> {
  const { rows } = await db.query<{ text: string; orderId: string | null }>(
    `select json_build_object('type', 'conversion', 'id', id, 'occurred_at', occurred_at, 'conversion_type', conversion_type,
       'event_type', event_type, 'source', source, 'source_object_id', object_id,
       'amount', coalesce(order_amount, event_amount),
       'currency', case when order_amount is not null then order_currency else coalesce(event_currency, order_currency) end,
       'visitor', event_visitor, 'contact_id', order_contact_id)::text as text,
       case when order_state = 'live' then order_id end as "orderId"
     from conversions
     where tenant_id = $1 and listed
       and (event_node = any($2::bigint[]) or order_node = any($2::bigint[]) or order_contact_id = any($3))
     order by occurred_at, id`,
    [tenantId, nodes, contactIds],
  )
  return rows
}

/** Accounts of the billing ledger that are theirs, with what is known of their subscriptions and invoices today. */
export async function readBilling(
  db: Db,
  tenantId: number,
  { nodes, customers, emails }: { nodes: number[]; customers: string[]; emails: string[] },
): Promise<string[]> {
  return texts(
    db,
    `select json_build_object('type', 'billing_account', 'customer', a.account,
       'subscriptions', coalesce((
         select json_agg(json_build_object('id', s.subscription_id, 'status', s.status, 'currency', s.currency, 'body', s.body))
         from (select distinct on (subscription_id) * from billing_segments
               where tenant_id = $1 and account = a.account order by subscription_id, valid_from desc) s), '[]'),
       'invoices', coalesce((
         select json_agg(json_build_object('id', i.id, 'subscription', i.subscription_id, 'customer_name', i.customer_name,
           'customer_email', i.customer_email, 'currency', i.currency, 'last_at', i.last_at) order by i.id)
         from billing_invoices i where i.tenant_id = $1 and i.customer = a.account), '[]'))::text as text
     from billing_accounts a
     where a.tenant_id = $1 and (a.node = any($2::bigint[]) or a.account = any($3) or lower(a.account) = any($4))
     order by a.account`,
    [tenantId, nodes, customers, emails],
  )
}

/** Where they came from, as far as their events tell. */
export async function readTouches(db: Db, tenantId: number, nodes: number[]): Promise<string[]> {
  return texts(
    db,
    `select json_build_object('type', 'touch', 'occurred_at', occurred_at, 'event_id', event_id, 'source', source,
       'medium', medium, 'campaign', campaign, 'direct', direct)::text as text
     from touches where tenant_id = $1 and node = any($2::bigint[]) order by occurred_at, node`,
    [tenantId, nodes],
  )
}

async function texts(db: Db, statement: string, values: unknown[]): Promise<string[]> {
  const { rows } = await db.query<{ text: string }>(statement, values)
  return rows.map(({ text }) => text)
}
