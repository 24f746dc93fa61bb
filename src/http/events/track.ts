import type { FastifyRequest } from 'fastify'
import { MAX_ITEM_BYTES, openBody } from '../../domain/events/normalize/normalize.ts'
import { type EventContext, MAX_EVENT_TYPE_LENGTH } from '../../domain/events/types.ts'
import { isObject } from '../../domain/json/json.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { markInvalidBytes, type RawBody } from '../body.ts'
import { security } from '../openapi.ts'
import { acceptEvents, type EventRouteOptions, findCaller, readRequestContext } from './request.ts'

// A body on /v1/track with one of these fields and without event_type is a call of a CDP SDK.
const CDP_FIELDS = ['event', 'type', 'messageId', 'anonymousId', 'userId', 'writeKey', 'properties', 'batch']

const TrackBody = Type.Object(
  {
    event_type: Type.String({
      minLength: 1,
      maxLength: MAX_EVENT_TYPE_LENGTH,
      description: 'Event name, for example page_view or convert',
    }),
    visitor: Type.Optional(Type.String({ description: 'Visitor identifier' })),
    session_id: Type.Optional(Type.String({ description: 'Session identifier' })),
    user_id: Type.Optional(Type.String()),
    event_id: Type.Optional(
      Type.String({ description: 'Identifies duplicates: a second event with the same id is ignored' }),
    ),
    occurred_at: Type.Optional(Type.String({ format: 'timestamp', description: 'Default: the time of receipt' })),
    data: Type.Optional(Type.Object({}, { description: 'Event data; `page` is the URL' })),
  },
  {
    title: 'TrackedEvent',
    description: 'An event in the native format',
    examples: [
      {
        event_type: 'page_view',
        visitor: 'v-1',
        session_id: 's-1',
        data: { page: 'https://shop.example/?utm_source=newsletter' },
      },
    ],
  },
)

export function trackRoute(app: App, options: EventRouteOptions): void {
  app.post(
    '/v1/track',
    {
      config: { body: 'raw', bodyLimit: MAX_ITEM_BYTES },
      schema: {
        tags: ['Events'],
        summary: 'Track an event',
        description:
          'The body is parsed as JSON whatever its Content-Type. The response {} means that the event is durable. A CDP track call (event, messageId, …) is also accepted; its response is {"success": true}.',
        body: TrackBody,
        security: security.tracking,
        response: { 200: Type.Object({}) },
      },
    },
    request => track(request, options),
  )
}

async function track(request: FastifyRequest, options: EventRouteOptions): Promise<object> {
  const body = openBody(markInvalidBytes(request.body as RawBody))
  const native = isNative(body.value)
  const caller = await findCaller(request, body.value, options)
  const context: EventContext = {
    ...(native ? { route: 'track' } : { route: 'cdp', kind: 'track' }),
    ...readRequestContext(request, caller),
  }
  await acceptEvents(options, caller, body, context, options.now())
  return native ? {} : { success: true }
}

function isNative(value: unknown): boolean {
  return !isObject(value) || 'event_type' in value || !CDP_FIELDS.some(field => field in value)
}

export function welcomeRoute(app: App): void {
  app.get(
    '/',
    {
      schema: {
        tags: ['Events'],
        summary: 'Welcome',
        description: 'Returns the URLs of the event API and the documentation. Requires no key.',
        response: { 200: Type.Object({ message: Type.String(), docs: Type.String() }) },
      },
    },
    async () => ({ message: 'Welcome to Kontor. Send events to POST /v1/track/.', docs: '/docs' }),
  )
}
