import type pg from 'pg'
import type { Entry } from '../../domain/entries/entry.ts'
import type { StoredEvent } from '../../domain/events/stored.ts'
import type { NormalizedEvent } from '../../domain/events/types.ts'
import { idToTime, timeOfReceipt } from '../../domain/ids.ts'
import { boolean, copyTable, int4, int8, text, timestamp, uuid } from '../../postgres/copy.ts'
import { type Db, inTransaction, queryPrepared, readPortions } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, toEntry } from '../../postgres/entries.ts'
import { DEAD_LETTER_COLUMNS, type DeadLetter } from '../entries/dead-letters.ts'

type NewEvent = { tenantId: number; event: NormalizedEvent; node: number | null; conversion: boolean }

export const insertEvents = copyTable<NewEvent>('events', {
  id: uuid(({ event }) => event.id),
  occurred_at: timestamp(({ event }) => event.occurredAt),
  received_at: timestamp(({ event }) => event.receivedAt),
  node: int8(({ node }) => node),
  tenant_id: int4(({ tenantId }) => tenantId),
  key: int4(({ event }) => event.key),
  batch_index: int4(({ event }) => event.meta.batch_index ?? null),
  batch_size: int4(({ event }) => event.meta.batch_size ?? null),
  conversion: boolean(({ conversion }) => conversion),
  event_type: text(({ event }) => event.eventType),
  source: text(({ event }) => event.source),
  source_config_id: text(({ event }) => event.sourceConfigId),
  inbound_event_id: text(({ event }) => event.inboundEventId),
  provider_event_id: text(({ event: { inboundEventId, providerEventId } }) =>
    providerEventId !== null && providerEventId === inboundEventId ? '' : providerEventId,
  ),
  visitor: text(({ event }) => event.visitor),
  session_id: text(({ event }) => event.sessionId),
  user_id: text(({ event }) => event.userId),
  kind: text(({ event }) => event.meta.kind ?? null),
  ip: text(({ event }) => event.meta.ip ?? null),
  payload: text(({ event }) => event.payload),
  headers: text(({ event }) => headersText(event.headers)),
  meta: text(({ event }) => restOfMeta(event.meta)),
})

const USUAL_HEADERS = '{"content-type":"application/json"}'

/** Test events are listed, but not exported or counted. The column `meta` starts with this mark. */
export const NOT_A_TEST = `coalesce(meta, '') not like '{"test":true%'`

/** All events of a batch have the headers of its request. */
function headersText(headers: NormalizedEvent['headers']): string | null {
  if (headers !== lastHeaders.headers) {
    const text = JSON.stringify(headers)
    lastHeaders = { headers, text: text === USUAL_HEADERS ? null : text }
  }
  return lastHeaders.text
}

let lastHeaders: { headers: NormalizedEvent['headers'] | null; text: string | null } = { headers: null, text: null }

const META_COLUMNS = new Set(['kind', 'ip', 'batch_index', 'batch_size'])

/** What has no column of its own. */
function restOfMeta(meta: NormalizedEvent['meta']): string | null {
  for (const name in meta)
    if (!META_COLUMNS.has(name)) {
      const { kind: _kind, ip: _ip, batch_index: _index, batch_size: _size, ...rest } = meta
      return JSON.stringify(rest)
    }
  return null
}

const META = 'event_meta(e.kind, e.ip, e.batch_index, e.batch_size, e.meta)'

/** An id starts with the time of receipt in milliseconds. The index of events has only this part. */
const receiptOf = (id: string) => `substring(uuid_send(${id}) from 1 for 6)`

/** The first condition finds the events in the index, the second selects the right ones. */
export const hasId = (id: string) => `${receiptOf('e.id')} = ${receiptOf(id)} and e.id = ${id}`
const hasIds = (ids: string) =>
  `${receiptOf('e.id')} = any(array(select ${receiptOf('id')} from unnest(${ids}) id)) and e.id = any(${ids})`

/**
 * The first condition finds the events in the index, the second selects the right ones. A second equality would make PostgreSQL
 * expect too few events: it multiplies the frequencies, and then sorts all events of a rare type instead of reading the newest ones.
 */
const isOfType = (type: string) => `hashtext(e.event_type) = hashtext(${type}) and not textne(e.event_type, ${type})`

export type EventRow = {
  id: string
  eventType: string
  occurredAt: Date
  receivedAt: Date
  source: string
  sourceConfigId: string | null
  inboundEventId: string | null
  providerEventId: string | null
  visitor: string | null
  sessionId: string | null
  profile: number | null
  contactId: string | null
  /** Sent by an inbound source or with a server key, not with a public tracking key. */
  verified: boolean
  conversion: boolean
  /** All three are JSON text. */
  payload: string
  headers: string
  meta: string
}

export type TimePage = {
  limit: number
  offset: number
  since: Date | null
  until: Date | null
  eventType: string | null
  /** The last row of the previous page. */
  after: { occurredAt: Date; id: string } | null
}

/** A source or a server key sent the event. */
const IS_VERIFIED = `(e.source_config_id is not null
  or exists (select from api_keys k where k.number = e.key and k.tenant_id = e.tenant_id and k.server))`

export const EVENT_COLUMNS = `e.id, e.event_type as "eventType", e.occurred_at as "occurredAt", e.received_at as "receivedAt", e.source,
  e.source_config_id as "sourceConfigId", e.inbound_event_id as "inboundEventId",
  case e.provider_event_id when '' then e.inbound_event_id else e.provider_event_id end as "providerEventId", e.visitor,
  e.session_id as "sessionId", e.conversion, e.payload, coalesce(e.headers, '${USUAL_HEADERS}') as headers, ${META} as meta, i.profile, contact.value as "contactId", ${IS_VERIFIED} as verified`

// If a person has several contact ids, one with a contact record is used. Others are ids of billing systems.
export const CONTACT_OF_PROFILE = `
  select c.value from identities c
  left join records r on r.tenant_id = c.tenant_id and r.entity_type = 'contact' and r.id = c.value and not r.deleted
  where c.tenant_id = i.tenant_id and c.profile = i.profile and c.kind = 'contact'
  order by r.id is null, c.node limit 1`

// The profile is read through the node, so that later links show in earlier rows.
export const EVENT_PERSON = `
  left join identities i on i.tenant_id = e.tenant_id and i.node = e.node
  left join lateral (${CONTACT_OF_PROFILE}) contact on true`

// A hundred webhook payloads may be a gigabyte. A hundred ordinary ones are a tenth of this limit.
const PORTION_BYTES = 2_097_152

/** Newest first, without conversions; `isCut`: the page ended early; read on after the last row. */
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
  if (page.eventType !== null) add(isOfType, page.eventType)
  if (page.after) {
    values.push(page.after.occurredAt, page.after.id)
    // The first condition is redundant, but lets PostgreSQL skip whole partitions.
    where.push(`e.occurred_at <= $${values.length - 1}`)
    where.push(`(e.occurred_at, e.id) < ($${values.length - 1}, $${values.length}::uuid)`)
  }
  values.push(page.limit, page.offset)
  // The sizes are stored beside the payloads, so no payload is read for the sum.
  const text = `select ${EVENT_COLUMNS}, e.bytes from (
      select *, sum(octet_length(payload)) over (order by occurred_at desc, id desc rows unbounded preceding) as bytes
      from (
        select * from events e where ${where.join(' and ')}
        order by e.occurred_at desc, e.id desc limit $${values.length - 1} offset $${values.length}
      ) found
    ) e ${EVENT_PERSON} where e.bytes - octet_length(e.payload) < ${PORTION_BYTES} order by e.occurred_at desc, e.id desc`
  return { text, values }
}

/** Finds events by our ids, including conversions, in no order. */
export async function findEvents(db: Db, tenantId: number, ids: string[]): Promise<EventRow[]> {
  const { rows } = await queryPrepared<EventRow>(
    db,
    `select ${EVENT_COLUMNS} from events e ${EVENT_PERSON} where e.tenant_id = $1 and ${hasIds('$2::uuid[]')}`,
    [tenantId, ids],
  )
  return rows
}

/** The current people of these nodes, by tenant and node. */
export async function peopleOfNodes(
  db: Db,
  nodes: { tenantId: number; node: number }[],
): Promise<Map<string, { profile: number; contactId: string | null }>> {
  if (nodes.length === 0) return new Map()
  const { rows } = await queryPrepared<{ tenantId: number; node: number; profile: number; contactId: string | null }>(
    db,
    `select i.tenant_id as "tenantId", i.node, i.profile, contact.value as "contactId"
     from (select distinct * from unnest($1::int[], $2::bigint[]) as n (tenant_id, node)) n
     join identities i on i.tenant_id = n.tenant_id and i.node = n.node
     left join lateral (${CONTACT_OF_PROFILE}) contact on true`,
    [nodes.map(({ tenantId }) => tenantId), nodes.map(({ node }) => node)],
  )
  return new Map(rows.map(({ tenantId, node, ...person }) => [`${tenantId} ${node}`, person]))
}

/** An entry with events that is not applied yet, and what it waits for. */
export type WaitingEntry = {
  entry: Entry
  state: 'queued' | 'deferred'
  /** Why the last attempt failed, and when the next one is. */
  lastError: string | null
  attempts: number
  nextAttemptAt: Date | null
}

const PARKED = `select ${ENTRY_COLUMNS}, 'queued' as state, last_error as "lastError", attempts,
    next_attempt_at as "nextAttemptAt" from parked_entries
  where tenant_id = $1 and kind = 'events'`
const OVERFLOW = `select ${ENTRY_COLUMNS}, 'deferred' as state, null as "lastError", 0 as attempts,
    null::timestamptz as "nextAttemptAt"
  from overflow where tenant_id = $1 and kind = 'events'`

/** Waiting entries outside the log that may contain the item. Parts of one request may wait in different tables. */
export async function findHeldUp(db: Db, tenantId: number, entryId: string): Promise<WaitingEntry[]> {
  const { rows } = await db.query<WaitingRow>(
    `${PARKED} and id = $2 union all ${OVERFLOW} and id = $2 and received_at = $3`,
    [tenantId, entryId, idToTime(entryId)],
  )
  return rows.map(toWaiting)
}

// A sender's id is searched in the raw text of waiting entries. This is rare, and limited by their number.
const MAX_FOUND = 50
const BODIES_AT_A_TIME = 50

/** Waiting entries of a table that contain this string and are wanted. */
export async function findHeldUpWith(
  pool: pg.Pool,
  held: 'parked' | 'deferred',
  tenantId: number,
  { text, isWanted }: { text: string; isWanted: (entry: Entry) => boolean },
): Promise<WaitingEntry[]> {
  return inTransaction(pool, async client => {
    const found: WaitingEntry[] = []
    const query = {
      text: `${held === 'parked' ? PARKED : OVERFLOW} and (strpos(body, $2) > 0 or strpos(context, $2) > 0)`,
      values: [tenantId, text],
      rowsAtATime: BODIES_AT_A_TIME,
    }
    for await (const rows of readPortions<WaitingRow>(client, query))
      for (const waiting of rows.map(toWaiting))
        if (isWanted(waiting.entry) && found.push(waiting) === MAX_FOUND) return found
    return found
  })
}

export async function findEventLetters(db: Db, tenantId: number, ids: string[]): Promise<DeadLetter[]> {
  const { rows } = await db.query<DeadLetter>(
    `select ${DEAD_LETTER_COLUMNS} from dead_letters d where tenant_id = $1 and kind = 'events' and id = any($2::uuid[])`,
    [tenantId, ids],
  )
  return rows
}

/** The newest dead letter of each source with this sender's id. The source is null for tracking keys. */
export async function findLettersOfSent(db: Db, tenantId: number, sentId: string): Promise<DeadLetter[]> {
  const { rows } = await db.query<DeadLetter>(
    `select distinct on (source_id) ${DEAD_LETTER_COLUMNS} from dead_letters d
     where tenant_id = $1 and kind = 'events' and inbound_event_id = $2
     order by source_id, failed_at desc, id desc`,
    [tenantId, sentId],
  )
  return rows
}

export type InboundReceipt = {
  id: string
  outcome: 'duplicate' | 'dropped' | 'suppressed'
  detail: string | null
  firstId: string | null
  receivedAt: Date
}

/** Receipts of inbound events without any other trace: duplicates, dropped events and suppressed events. */
export async function findInboundReceipts(db: Db, tenantId: number, ids: string[]): Promise<InboundReceipt[]> {
  const { rows } = await db.query<InboundReceipt>(
    `select id, outcome, detail, first_id as "firstId", received_at as "receivedAt" from receipts
     where tenant_id = $1 and received_at = any($2::timestamptz[]) and id = any($3::uuid[])
       and outcome in ('duplicate', 'dropped', 'suppressed')`,
    [tenantId, ids.map(idToTime), ids],
  )
  return rows
}

type WaitingRow = Entry & Omit<WaitingEntry, 'entry'>

function toWaiting(row: WaitingRow): WaitingEntry {
  const { state, lastError, attempts, nextAttemptAt } = row
  return { state, lastError, attempts, nextAttemptAt, entry: toEntry(row) }
}

/** `table` and `row` are its physical position. */
export type StoredNode = StoredEvent & {
  inboundEventId: string | null
  node: number | null
  conversion: boolean
  table: number
  row: string
  /** With `mentioning`: its headers, meta and ids, as one text. */
  besides: string | null
}

// What else of an event may contain an e-mail address.
const BESIDES = `concat_ws(' ', e.headers, e.meta, e.event_type, e.inbound_event_id, e.provider_event_id, e.visitor, e.session_id)`

export type StoredFilter = {
  /** Only events of these nodes. */
  nodes?: number[]
  receivedSince?: Date
  receivedUntil?: Date | null
  /** The id of the key that sent them. */
  key?: string
  conversionsOnly?: boolean
  /** Only events whose payload matches one of these patterns. */
  mentioning?: string[]
}

const AT_A_TIME = 1_000

/**
 * Reads stored events of a tenant in portions, in the order of arrival. Without `nodes`, it scans all events of the tenant.
 * Runs in the caller's transaction, which should not have written yet, because readers of the log wait for transactions
 * that have written.
 */
export async function* readStored(
  client: pg.PoolClient,
  tenantId: number,
  { nodes, receivedSince, receivedUntil, key, conversionsOnly = false, mentioning }: StoredFilter,
): AsyncGenerator<StoredNode[]> {
  const where = ['e.tenant_id = $1']
  const values: unknown[] = [tenantId]
  const add = (condition: (n: string) => string, value: unknown) => {
    values.push(value)
    where.push(condition(`$${values.length}`))
  }
  if (conversionsOnly) where.push('e.conversion')
  if (nodes) add(n => `e.node = any(${n}::bigint[])`, nodes)
  if (receivedSince) add(n => `${receiptOf('e.id')} >= ${n}`, timeOfReceipt(receivedSince))
  if (receivedUntil) add(n => `${receiptOf('e.id')} < ${n}`, timeOfReceipt(receivedUntil))
  if (key !== undefined) add(n => `e.key = (select number from api_keys where id = ${n})`, key)
  if (mentioning) add(n => `(e.payload ilike any(${n}::text[]) or ${BESIDES} ilike any(${n}))`, mentioning)
  yield* readPortions<StoredNode>(client, {
    text: `select e.tableoid::int8 as table, e.ctid::text as row, e.id, e.event_type as "eventType", e.occurred_at as "occurredAt", e.received_at as "receivedAt", e.source,
       e.source_config_id as "sourceConfigId", e.inbound_event_id as "inboundEventId", e.key, e.visitor, e.user_id as "userId", e.node, e.conversion, e.payload, ${META} as meta,
       ${IS_VERIFIED} as trusted, ${mentioning ? BESIDES : 'null'} as besides
     from events e where ${where.join(' and ')} order by e.id`,
    ...{ values, rowsAtATime: AT_A_TIME },
  })
}
