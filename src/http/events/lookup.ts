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
  inbound_event_id: Type.Optional(
    Type.String({ minLength: 1, description: 'The same, under its other name' }),
  ),
  source_config_id: Type.Optional(
    Type.String({
      description: 'The source that received it; without it, tracking and CDP events come first',
    }),
  ),
})

const NO_ID = 'Nothing is known of such an event: its id here is a UUID.'

export function lookupRoutes(app: App, deps: Deps): void {
  const { pool } = deps
  app.get(
    '/v1/events/:id',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'What happened to an event, by its id here',
        description:
          'Conversions too. queued: accepted, not yet applied. deferred: over the budget of its source. duplicate: another event with its id came first. dead_letter: it could not be taken, and reason says why.',
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
        summary: 'What happened to an event, by the id its sender gave it',
        description:
          '`event_id` of a tracking event, `messageId` of a CDP event, `inbound_event_id` of a webhook: whether it is queued, deferred, stored, a duplicate, a dead letter, dropped or suppressed, and why. Without `source_config_id` tracking events come first, then the sources in their order. 404: nothing is known of it.',
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
