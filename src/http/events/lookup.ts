import type pg from 'pg'
import { Type } from 'typebox'
import { isUuid } from '../../domain/ids.ts'
import { storableText } from '../../domain/json/json.ts'
import type { Log } from '../../log/log.ts'
import {
  eventOutcome,
  outcomeOfSent,
  outcomeText,
  whyUnknown,
  whyUnknownSent,
} from '../../reports/event-outcome.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import { problems } from '../problems.ts'
import { EventOutcomeBody } from './schemas.ts'

type Deps = { pool: pg.Pool; log: Log }

const LookupQuery = Type.Object({
  event_id: Type.Optional(
    Type.String({ minLength: 1, description: 'event_id of a tracking event, or messageId of a CDP call' }),
  ),
  inbound_event_id: Type.Optional(Type.String({ minLength: 1, description: 'Alias of event_id' })),
  source_config_id: Type.Optional(
    Type.String({
      description: 'The source that received it; default: tracking and CDP events first',
    }),
  ),
})

const NO_ID = 'No such event. A Kontor event id is a UUID.'

export function lookupRoutes(app: App, deps: Deps): void {
  const { pool } = deps
  app.get(
    '/v1/events/:id',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'Get an event',
        description:
          'The state of an event or conversion, by its Kontor id. queued: accepted, not yet applied. deferred: over the budget of its source. duplicate: an event with the same id was processed before. dead_letter: it could not be processed; see reason.',
        params: Type.Object({ id: Type.String() }),
        response: { 200: EventOutcomeBody },
      },
    },
    async (request, reply) => {
      const id = request.params.id.toLowerCase()
      const { tenantId } = request.caller
      const outcome = isUuid(id) ? await eventOutcome(deps, tenantId, id) : null
      if (!outcome) throw problems.notFound(isUuid(id) ? await whyUnknown(pool, tenantId, id) : NO_ID)
      return sendJson(reply, outcomeText(outcome))
    },
  )
  app.get(
    '/v1/events/lookup',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'Look up an event by the sender’s id',
        description:
          'By the `event_id` of a tracking event, the `messageId` of a CDP event or the `inbound_event_id` of a webhook. Returns whether it is queued, deferred, stored, a duplicate, a dead letter, dropped or suppressed, and why. Without `source_config_id`, tracking events are searched first, then the sources in order. 404: unknown event.',
        querystring: LookupQuery,
        response: { 200: EventOutcomeBody },
      },
    },
    async (request, reply) => {
      const { event_id, inbound_event_id, source_config_id } = request.query
      const sentId = inbound_event_id ?? event_id
      if (sentId === undefined) {
        throw problems.invalid([{ pointer: '/event_id', message: 'or inbound_event_id is required' }])
      }
      const { tenantId } = request.caller
      const asked = { sentId: storableText(sentId), sourceId: source_config_id }
      const outcome = await outcomeOfSent(deps, tenantId, asked)
      if (!outcome) throw problems.notFound(await whyUnknownSent(pool, tenantId, asked))
      return sendJson(reply, outcomeText(outcome))
    },
  )
}
