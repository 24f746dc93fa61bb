import type pg from 'pg'
import type { Static } from 'typebox'
import { contactFacts } from '../../domain/conversions/conversions.ts'
import { isUuid } from '../../domain/ids.ts'
import { storableText } from '../../domain/json/json.ts'
import { parseTimestamp } from '../../domain/time.ts'
import { type ConversionRow, listConversions } from '../../store/conversions/conversions.ts'
import { type EventRow, listEvents, type TimePage } from '../../store/events/events.ts'
import type { App } from '../app.ts'
import { decodeCursor, encodeCursor } from '../cursor.ts'
import { sendJson } from '../json.ts'
import { problems } from '../problems.ts'
import { ConversionBody, EventBody, TimeQuery, timeList } from '../records/schemas.ts'

const MAX_LIMIT = 100

export function eventListRoutes(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/events',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'List events that are not conversions, newest first',
        querystring: TimeQuery,
        response: { 200: timeList(EventBody) },
      },
    },
    async (request, reply) => {
      const page = pageOf(request.query)
      return sendJson(
        reply,
        listText(page, await listEvents(pool, request.caller.tenantId, oneMore(page)), eventText),
      )
    },
  )
  app.get(
    '/v1/conversions',
    {
      config: { scope: 'conversions:read' },
      schema: {
        tags: ['Events'],
        summary: 'List conversions, newest first; one sale is one row',
        querystring: TimeQuery,
        response: { 200: timeList(ConversionBody) },
      },
    },
    async (request, reply) => {
      const page = pageOf(request.query)
      const rows = await listConversions(pool, request.caller.tenantId, oneMore(page))
      return sendJson(reply, listText(page, rows, conversionText))
    },
  )
}

function pageOf(query: Static<typeof TimeQuery>): TimePage {
  const since = parseTimestamp(query.since)
  const until = parseTimestamp(query.until)
  if (since && until && since > until) {
    throw problems.invalid([{ pointer: '/since', message: 'must not be after until' }])
  }
  return {
    limit: Math.min(query.limit, MAX_LIMIT),
    offset: query.cursor === undefined ? Math.min(query.offset, Number.MAX_SAFE_INTEGER) : 0,
    since,
    until,
    eventType: query.event_type === undefined ? null : storableText(query.event_type),
    after: query.cursor === undefined ? null : placeOf(query.cursor),
  }
}

function placeOf(cursor: string): { occurredAt: Date; id: string } {
  const [time, id] = decodeCursor(cursor, 2) as [string, string]
  const occurredAt = parseTimestamp(time)
  if (!occurredAt || !isUuid(id)) decodeCursor('', 2)
  return { occurredAt: occurredAt!, id }
}

/** One row more than asked for tells whether there is another page. */
function oneMore(page: TimePage): TimePage {
  return { ...page, limit: page.limit + 1 }
}

function listText<Row extends { occurredAt: Date; id: string }>(
  page: TimePage,
  rows: Row[],
  text: (row: Row) => string,
): string {
  const shown = rows.slice(0, page.limit)
  const hasMore = rows.length > page.limit
  const last = shown.at(-1)
  const next = hasMore && last ? encodeCursor([last.occurredAt.toISOString(), last.id]) : null
  return `{"results":[${shown.map(text).join(',')}],"limit":${page.limit},"offset":${page.offset},"has_more":${hasMore},"next_cursor":${JSON.stringify(next)}}`
}

export function eventText(row: EventRow): string {
  const facts = JSON.stringify({
    id: row.id,
    event_type: row.eventType,
    occurred_at: row.occurredAt,
    received_at: row.receivedAt,
    source: row.source,
    source_type: row.sourceType,
    source_config_id: row.sourceConfigId,
    inbound_event_id: row.inboundEventId,
    provider_event_id: row.providerEventId,
    visitor: row.visitor,
    session_id: row.sessionId,
    profile_id: profileId(row.profile),
    contact_id: row.contactId,
  })
  return `${facts.slice(0, -1)},"payload":${row.payload},"headers":${row.headers ?? '{}'},"meta":${row.meta ?? '{}'}}`
}

function conversionText(row: ConversionRow): string {
  const contact = row.contactData === null ? null : contactFacts(JSON.parse(row.contactData))
  const facts = JSON.stringify({
    id: row.id,
    occurred_at: row.occurredAt,
    conversion_type: row.conversionType,
    event_type: row.eventType,
    source: row.source,
    source_object_id: row.sourceObjectId,
    currency: row.currency,
    visitor: row.visitor,
    profile_id: profileId(row.profile),
    contact_id: row.contactId,
    contact_name: contact?.name ?? null,
    contact_email: contact?.email ?? null,
    company_name: contact?.company ?? null,
    integration_id: row.integrationId,
  })
  // The amount is exact decimal text and a JSON number as it is; trailing zeros say nothing.
  return `${facts.slice(0, -1)},"amount":${row.amount === null ? 'null' : plainNumber(row.amount)}}`
}

function plainNumber(decimal: string): string {
  return decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal
}

function profileId(profile: number | null): string | null {
  return profile === null ? null : `prof_${profile}`
}
