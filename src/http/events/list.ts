import type pg from 'pg'
import { publicProfileId } from '../../domain/identity/identity.ts'
import { type EventRow, listEvents } from '../../store/events/events.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import { TimeList, TimeQuery, timeList } from '../paging.ts'
import { EventBody } from './schemas.ts'

export function eventListRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/events',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'List events that are not conversions, newest first',
        querystring: TimeQuery,
        response: { 200: TimeList(EventBody) },
      },
    },
    async ({ query, caller }, reply) =>
      sendJson(reply, await timeList(query, page => listEvents(pool, caller.tenantId, page), eventText)),
  )
}

/** Payload, headers and meta go out as they are stored: parsing them would cost time and exact digits. */
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
    profile_id: publicProfileId(row.profile),
    contact_id: row.contactId,
  })
  return `${facts.slice(0, -1)},"payload":${row.payload},"headers":${row.headers ?? '{}'},"meta":${row.meta ?? '{}'}}`
}
