import type pg from 'pg'
import { isUuid } from '../../domain/ids.ts'
import { storableText } from '../../domain/json/json.ts'
import { Type } from '../../domain/typebox.ts'
import type { Log } from '../../log/log.ts'
import { eventOutcome, outcomeOfSent, outcomeText, whyUnknown, whyUnknownSent } from '../../reports/event-outcome.ts'
import { EVENT_COLUMNS } from '../../reports/export/tables.ts'
import { eventSeries, visitorSeries } from '../../reports/series.ts'
import { appliedPolicy } from '../../store/billing/policies.ts'
import { listEvents } from '../../store/events/events.ts'
import { eventText } from '../../store/export/row-texts.ts'
import type { App } from '../app.ts'
import { sendJson, sendList, TimeList, TimeQuery, timeList } from '../paging.ts'
import { problems } from '../problems.ts'
import { countText, SeriesQuery, seriesRequest, seriesText, tooManyBuckets } from '../series.ts'
import { EventBody, EventOutcomeBody, EventSeriesBody, VisitorsBody } from './schemas.ts'

export function eventListRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/events',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'List events',
        description: 'Newest first. With `Accept: text/csv` the rows are returned as CSV.',
        querystring: TimeQuery,
        response: { 200: TimeList(EventBody) },
      },
    },
    async (request, reply) => {
      const { query, caller } = request
      const list = timeList(query, page => listEvents(pool, caller.tenantId, page), eventText)
      return sendList(request, reply, list, EVENT_COLUMNS)
    },
  )
}

type Deps = { pool: pg.Pool; log: Log }

const LookupQuery = Type.Object({
  event_id: Type.Optional(
    Type.String({ minLength: 1, description: 'event_id of a tracking event, or messageId of a CDP call' }),
  ),
  inbound_event_id: Type.Optional(Type.String({ minLength: 1, description: 'Alias of event_id' })),
  source_config_id: Type.Optional(
    Type.String({
      description:
        'The source that received the event. Without it, Kontor searches tracking and CDP events first, then the sources',
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
          'The state of an event or conversion, by its Kontor id. queued: accepted, not yet applied. deferred: above the rate limit of its source. duplicate: an event with the same id was processed before. dead_letter: it could not be processed; see reason.',
        params: Type.Object({ id: Type.String({ description: 'The Kontor id of the event: a UUID' }) }),
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
          'By the `event_id` of a tracking event, the `messageId` of a CDP event or the `inbound_event_id` of a webhook. Returns whether it is queued, deferred, stored, a duplicate, a dead letter, dropped or suppressed, and why. Without `source_config_id`, tracking events are searched first, then the existing sources in order. 404: unknown event.',
        querystring: LookupQuery,
        response: { 200: EventOutcomeBody },
      },
    },
    async (request, reply) => {
      const { event_id, inbound_event_id, source_config_id } = request.query
      const sentId = inbound_event_id ?? event_id
      if (sentId === undefined) {
        throw problems.invalid([{ pointer: '/event_id', message: 'is required, unless inbound_event_id is given' }])
      }
      const { tenantId } = request.caller
      const asked = { sentId: storableText(sentId), sourceId: source_config_id }
      const outcome = await outcomeOfSent(deps, tenantId, asked)
      if (!outcome) throw problems.notFound(await whyUnknownSent(pool, tenantId, asked))
      return sendJson(reply, outcomeText(outcome))
    },
  )
}

export function eventSeriesRoute(app: App, { pool, now }: { pool: pg.Pool; now: () => Date }): void {
  app.get(
    '/v1/events/series',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'Count events over time',
        description:
          'Number of events (without conversions) per minute, hour or day, by the time they occurred, in the tenant’s time zone. Oldest bucket first, at most 1,500 buckets.',
        querystring: SeriesQuery,
        response: { 200: EventSeriesBody },
      },
    },
    async ({ query, caller }, reply) => {
      const { timeZone } = await appliedPolicy(pool, caller.tenantId)
      const request = seriesRequest(query, { now: now(), timeZone })
      const series = await eventSeries(pool, caller.tenantId, request)
      return sendJson(reply, seriesText(series, request, countText))
    },
  )
}

export function visitorRoute(app: App, { pool, now }: { pool: pg.Pool; now: () => Date }): void {
  app.get(
    '/v1/events/visitors',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'Count visitors over time',
        description:
          'Number of distinct visitors per minute, hour or day, and in the whole period (`total`), in the tenant’s time zone. Oldest bucket first, at most 1,500 buckets.',
        querystring: Type.Omit(SeriesQuery, ['event_type', 'group_by']),
        response: { 200: VisitorsBody },
      },
    },
    async ({ query, caller }) => {
      const { timeZone } = await appliedPolicy(pool, caller.tenantId)
      const visitors = await visitorSeries(pool, caller.tenantId, seriesRequest(query, { now: now(), timeZone }))
      if (visitors === null) throw tooManyBuckets()
      const results = visitors.results.map(({ at, count }) => ({ at: at.toISOString(), count }))
      return { interval: query.interval, total: visitors.total, results }
    },
  )
}
