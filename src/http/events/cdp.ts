import type { FastifyRequest } from 'fastify'
import { MAX_ITEM_BYTES, openBody } from '../../domain/events/normalize/normalize.ts'
import { CDP_KINDS, type CdpContext, type CdpKind } from '../../domain/events/types.ts'
import { type Static, Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { markInvalidBytes, type RawBody } from '../body.ts'
import { security } from '../openapi.ts'
import {
  acceptEvents,
  type EventRouteOptions,
  findCaller,
  namedRejections,
  RejectedItems,
  readRequestContext,
} from './request.ts'

const BATCH_BYTES = 1_048_576

type Kind = CdpContext['kind']

/** Segment's long and browser routes, and RudderStack's. /v1/track is shared with the native event: see track.ts. */
const ROUTES: [path: string, kind: Kind][] = [
  ['/v1/identify', 'identify'],
  ['/v1/page', 'page'],
  ['/v1/screen', 'screen'],
  ['/v1/group', 'group'],
  ['/v1/alias', 'alias'],
  ['/v1/batch', 'batch'],
  ['/v1/import', 'batch'],
  ['/v1/t', 'track'],
  ['/v1/i', 'identify'],
  ['/v1/p', 'page'],
  ['/v1/s', 'screen'],
  ['/v1/g', 'group'],
  ['/v1/a', 'alias'],
  ['/v1/b', 'batch'],
  ['/beacon/v1/batch', 'batch'],
]

const KINDS: ReadonlySet<string> = new Set([...CDP_KINDS, 'batch'])

const CdpBody = Type.Object(
  {
    type: Type.Optional(
      Type.String({ description: 'track, identify, page, screen, group or alias; default: the kind in the path' }),
    ),
    event: Type.Optional(Type.String({ description: 'Name of the event; required for track' })),
    messageId: Type.Optional(
      Type.String({ description: 'Identifies duplicates: a second event with the same id is ignored' }),
    ),
    anonymousId: Type.Optional(Type.String()),
    userId: Type.Optional(Type.String()),
    timestamp: Type.Optional(Type.String({ format: 'timestamp' })),
    sentAt: Type.Optional(Type.String({ format: 'timestamp' })),
    properties: Type.Optional(Type.Object({})),
    traits: Type.Optional(Type.Object({})),
    context: Type.Optional(Type.Object({})),
    writeKey: Type.Optional(Type.String({ description: 'A tracking key, for clients that cannot send headers' })),
  },
  {
    title: 'CdpCall',
    description: 'A call in the format of the Segment and RudderStack SDKs',
    examples: [
      {
        type: 'track',
        event: 'Product Viewed',
        messageId: 'm-1',
        anonymousId: 'a-1',
        timestamp: '2026-01-31T09:30:00Z',
        properties: { sku: 'MUG-01' },
      },
    ],
  },
)

const CdpBatchBody = Type.Object(
  {
    batch: Type.Array(CdpBody),
    sentAt: Type.Optional(Type.String({ format: 'timestamp' })),
    writeKey: Type.Optional(Type.String()),
  },
  {
    title: 'CdpBatch',
    description: 'Several calls in one request',
    examples: [
      {
        batch: [
          {
            type: 'track',
            event: 'Product Viewed',
            messageId: 'm-1',
            anonymousId: 'a-1',
            timestamp: '2026-01-31T09:30:00Z',
            properties: { sku: 'MUG-01' },
          },
          {
            type: 'identify',
            messageId: 'm-2',
            anonymousId: 'a-1',
            userId: 'u-1',
            traits: { email: 'jo@example.com' },
          },
        ],
        sentAt: '2026-01-31T09:30:01Z',
      },
    ],
  },
)

const Success = Type.Object(
  {
    success: Type.Boolean(),
    rejected: Type.Optional(RejectedItems.rejected),
    rejected_total: RejectedItems.rejected_total,
  },
  { title: 'CdpAnswer', description: 'The valid items are durable' },
)

export function cdpRoutes(app: App, options: EventRouteOptions): void {
  for (const [path, kind] of ROUTES) {
    app.post(
      path,
      {
        config: { body: 'raw', bodyLimit: bodyLimit(kind) },
        schema: {
          tags: ['CDP-compatible'],
          summary:
            kind === 'batch'
              ? 'Send a batch of events'
              : `Send ${kind === 'identify' || kind === 'alias' ? 'an' : 'a'} ${kind} call`,
          description:
            'Accepts the format of the Segment and RudderStack SDKs; a batch may also contain native events (event_type, visitor, …). Valid items are accepted, invalid items are listed in rejected.',
          body: kind === 'batch' ? CdpBatchBody : CdpBody,
          security: security.tracking,
          response: { 200: Success },
        },
      },
      request => receive(request, kind, options),
    )
  }

  jitsuRoutes(app, options)
  metricsRoute(app)
}

function jitsuRoutes(app: App, options: EventRouteOptions): void {
  const params = Type.Object({ type: Type.String({ description: 'track, page, identify, group, alias or event' }) })
  for (const path of ['/api/s/:type', '/api/s/s2s/:type'] as const) {
    app.post(
      path,
      {
        config: {
          body: 'raw',
          bodyLimit: request => bodyLimit(parseKind((request.params as Static<typeof params>).type)),
        },
        schema: {
          tags: ['CDP-compatible'],
          summary: 'Send an event with the Jitsu SDK',
          description:
            '`type` is the kind of event (`track`, `page`, `identify` …), or `event` if the body has the kind. The SDK sends its key as `key:secret`; only the part before the colon is used.',
          params,
          body: CdpBody,
          security: security.tracking,
          response: { 200: Success },
        },
      },
      request => receive(request, parseKind(request.params.type), options),
    )
  }
}

function metricsRoute(app: App): void {
  app.post(
    '/v1/m',
    {
      config: { body: 'none' },
      schema: {
        tags: ['CDP-compatible'],
        summary: 'Accept and ignore SDK metrics',
        description: 'The Segment SDK reports metrics about itself. They are neither read nor stored.',
        response: { 200: Success },
      },
    },
    async () => ({ success: true }),
  )
}

export function settingsRoute(app: App): void {
  app.get(
    '/v1/projects/:writeKey/settings',
    {
      schema: {
        tags: ['CDP-compatible'],
        summary: 'Get settings for the Segment browser SDK',
        description:
          'The SDK loads these settings before it sends events. With these settings, the SDK sends events only to this host. The key in the path is public and not checked.',
        params: Type.Object({ writeKey: Type.String({ description: 'A tracking key' }) }),
      },
    },
    async request => ({
      integrations: {
        'Segment.io': {
          apiKey: request.params.writeKey,
          apiHost: `${request.host}/v1`,
          protocol: readProtocol(request),
          unbundledIntegrations: [],
          addBundledMetadata: true,
          versionSettings: { version: '4.4.7', componentTypes: ['browser'] },
        },
      },
      plan: {
        track: { __default: { enabled: true, integrations: {} } },
        identify: { __default: { enabled: true } },
      },
      edgeFunction: {},
      analyticsNextEnabled: true,
      middlewareSettings: {},
      enabledMiddleware: {},
      metrics: { sampleRate: 0 },
      legacyVideoPluginsEnabled: false,
      remotePlugins: [],
    }),
  )
}

/** The protocol by which the page reached this server. It is only returned to the sender, so any proxy is trusted. */
function readProtocol(request: FastifyRequest): string {
  const forwarded = request.headers['x-forwarded-proto']
  return typeof forwarded === 'string' && /^https\b/i.test(forwarded) ? 'https' : request.protocol
}

async function receive(
  request: FastifyRequest,
  kind: Kind,
  options: EventRouteOptions,
): Promise<Static<typeof Success>> {
  const body = openBody(markInvalidBytes(request.body as RawBody))
  const caller = await findCaller(request, body.value, options)
  const context: CdpContext = { route: 'cdp', kind, ...readRequestContext(request, caller) }
  const rejected = await acceptEvents(options, caller, body, context, options.now())
  return rejected.length > 0 ? { success: true, ...namedRejections(rejected) } : { success: true }
}

function bodyLimit(kind: Kind): number {
  return kind === 'batch' || kind === 'any' ? BATCH_BYTES : MAX_ITEM_BYTES
}

/** `any`: the kind is in the body. */
function parseKind(type: string): Kind {
  return KINDS.has(type) ? (type as CdpKind | 'batch') : 'any'
}
