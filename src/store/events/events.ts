import type { NormalizedEvent } from '../../domain/events/events.ts'
import { timeOfId } from '../../domain/ids.ts'
import { boolean, copyTable, int4, int8, text, timestamp, uuid } from '../../postgres/copy.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

type NewEvent = { tenantId: number; event: NormalizedEvent; node: number | null; conversion: boolean }

export const insertEvents = copyTable<NewEvent>('events', {
  tenant_id: int4(({ tenantId }) => tenantId),
  id: uuid(({ event }) => event.id),
  occurred_at: timestamp(({ event }) => event.occurredAt),
  received_at: timestamp(({ event }) => event.receivedAt),
  event_type: text(({ event }) => event.eventType),
  conversion: boolean(({ conversion }) => conversion),
  source: text(({ event }) => event.source),
  source_type: text(({ event }) => event.sourceType),
  source_config_id: text(({ event }) => event.sourceConfigId),
  key_id: text(({ event }) => event.keyId),
  inbound_event_id: text(({ event }) => event.inboundEventId),
  provider_event_id: text(({ event }) => event.providerEventId),
  visitor: text(({ event }) => event.visitor),
  session_id: text(({ event }) => event.sessionId),
  user_id: text(({ event }) => event.userId),
  node: int8(({ node }) => node),
  payload: text(({ event }) => event.payload),
  headers: text(({ event }) => headersText(event.headers)),
  meta: text(({ event }) => JSON.stringify(event.meta)),
})

/** Of a batch, all events have the headers of its request. */
function headersText(headers: NormalizedEvent['headers']): string {
  if (headers !== lastHeaders.headers) lastHeaders = { headers, text: JSON.stringify(headers) }
  return lastHeaders.text
}

let lastHeaders: { headers: NormalizedEvent['headers'] | null; text: string } = { headers: null, text: '' }

export type EventRow = {
  id: string
  eventType: string
  occurredAt: Date
  receivedAt: Date
  source: string
  sourceType: string
  sourceConfigId: string | null
  inboundEventId: string | null
  providerEventId: string | null
  visitor: string | null
  sessionId: string | null
  profile: number | null
  contactId: string | null
  conversion: boolean
  /** JSON text, all three */
  payload: string
  headers: string | null
  meta: string | null
}

export type TimePage = {
  limit: number
  offset: number
  since: Date | null
  until: Date | null
  eventType: string | null
  /** the last row of the page before */
  after: { occurredAt: Date; id: string } | null
}

export const EVENT_COLUMNS = `e.id, e.event_type as "eventType", e.occurred_at as "occurredAt", e.received_at as "receivedAt", e.source,
  e.source_type as "sourceType", e.source_config_id as "sourceConfigId", e.inbound_event_id as "inboundEventId",
  e.provider_event_id as "providerEventId", e.visitor, e.session_id as "sessionId", e.conversion, e.payload, e.headers,
  e.meta, i.profile, contact.value as "contactId"`

// Of several contact ids of one person, one with a contact record: others are ids of billing systems and the like.
export const CONTACT_OF_PROFILE = `
  select c.value from identities c
  left join records r on r.tenant_id = c.tenant_id and r.entity_type = 'contact' and r.id = c.value and not r.deleted
  where c.tenant_id = i.tenant_id and c.profile = i.profile and c.kind = 'contact'
  order by r.id is null, c.node limit 1`

// The profile is read through the node, so that what is learnt later shows in rows that came earlier.
export const EVENT_PERSON = `
  left join identities i on i.tenant_id = e.tenant_id and i.node = e.node
  left join lateral (${CONTACT_OF_PROFILE}) contact on true`

// A hundred payloads of webhooks may be a gigabyte; a hundred ordinary ones are a tenth of this.
const PORTION_BYTES = 2_097_152

/** Newest first, without conversions; `isCut`: there may be more within the limit, to be read after the last row. */
export async function listEvents(
  db: Db,
  tenantId: number,
  page: TimePage,
): Promise<{ rows: EventRow[]; isCut: boolean }> {
  const { rows } = await db.query<EventRow & { bytes: number }>(eventPage(tenantId, page))
  return { rows, isCut: (rows.at(-1)?.bytes ?? 0) >= PORTION_BYTES }
}

/** The statement of a page: exported so that a test can check its plan. */
export function eventPage(tenantId: number, page: TimePage): { text: string; values: unknown[] } {
  const where = ['e.tenant_id = $1', 'not e.conversion']
  const values: unknown[] = [tenantId]
  const add = (condition: (n: string) => string, value: unknown) => {
    values.push(value)
    where.push(condition(`$${values.length}`))
  }
  if (page.since) add(n => `e.occurred_at >= ${n}`, page.since)
  if (page.until) add(n => `e.occurred_at <= ${n}`, page.until)
  if (page.eventType !== null) add(n => `e.event_type = ${n}`, page.eventType)
  if (page.after) {
    values.push(page.after.occurredAt, page.after.id)
    // The first condition says nothing new, but lets whole partitions be passed over.
    where.push(`e.occurred_at <= $${values.length - 1}`)
    where.push(`(e.occurred_at, e.id) < ($${values.length - 1}, $${values.length}::uuid)`)
  }
  values.push(page.limit, page.offset)
  // The sum is of sizes that stand beside the payloads: none is read for it.
  const text = `select ${EVENT_COLUMNS}, e.bytes from (
      select *, sum(octet_length(payload)) over (order by occurred_at desc, id desc rows unbounded preceding) as bytes
      from (
        select * from events e where ${where.join(' and ')}
        order by e.occurred_at desc, e.id desc limit $${values.length - 1} offset $${values.length}
      ) found
    ) e ${EVENT_PERSON} where e.bytes - octet_length(e.payload) < ${PORTION_BYTES} order by e.occurred_at desc, e.id desc`
  return { text, values }
}

/**
 * Events by their ids, whether conversions or not, in no order. No index knows conversions by their ids: they are looked for among
 * what came in between two moments.
 */
export async function loadEvents(
  db: Db,
  tenantId: number,
  { ids, occurredAt, since, until }: { ids: string[]; occurredAt: Date[]; since: Date; until: Date },
): Promise<EventRow[]> {
  const { rows } = await queryPrepared<EventRow>(
    db,
    `select ${EVENT_COLUMNS} from unnest($2::uuid[], $3::timestamptz[]) as k (id, occurred_at) cross join lateral (
       select * from events where tenant_id = $1 and occurred_at = k.occurred_at and id = k.id and not conversion offset 0) e ${EVENT_PERSON}`,
    [tenantId, ids, occurredAt],
  )
  if (rows.length === ids.length) return rows
  const found = new Set(rows.map(({ id }) => id))
  const missing = ids.filter(id => !found.has(id))
  const { rows: conversions } = await db.query<EventRow>(
    `select ${EVENT_COLUMNS} from events e ${EVENT_PERSON}
     where e.tenant_id = $1 and e.received_at >= $2 and e.received_at < $3 and e.conversion and e.id = any($4::uuid[])`,
    [tenantId, since, until, missing],
  )
  return [...rows, ...conversions]
}

/** By our ids, whether conversions or not. */
export async function findEvents(db: Db, tenantId: number, ids: string[]): Promise<EventRow[]> {
  const { rows } = await db.query<EventRow>(
    `select ${EVENT_COLUMNS} from events e ${EVENT_PERSON}
     where e.tenant_id = $1 and e.received_at = any($2::timestamptz[]) and e.id = any($3::uuid[])`,
    [tenantId, ids.map(timeOfId), ids],
  )
  return rows
}

/** Who stands behind these nodes at this moment, by tenant and node. */
export async function peopleOfNodes(
  db: Db,
  nodes: { tenantId: number; node: number }[],
): Promise<Map<string, { profile: number; contactId: string | null }>> {
  if (nodes.length === 0) return new Map()
  const { rows } = await queryPrepared<{
    tenantId: number
    node: number
    profile: number
    contactId: string | null
  }>(
    db,
    `select i.tenant_id as "tenantId", i.node, i.profile, contact.value as "contactId"
     from (select distinct * from unnest($1::int[], $2::bigint[]) as n (tenant_id, node)) n
     join identities i on i.tenant_id = n.tenant_id and i.node = n.node
     left join lateral (${CONTACT_OF_PROFILE}) contact on true`,
    [nodes.map(({ tenantId }) => tenantId), nodes.map(({ node }) => node)],
  )
  return new Map(rows.map(({ tenantId, node, ...person }) => [`${tenantId} ${node}`, person]))
}
