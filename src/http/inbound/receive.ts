import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { CDP_KINDS } from '../../domain/events/events.ts'
import { openBody } from '../../domain/events/normalize/normalize.ts'
import { entryIdentifiers } from '../../domain/identity/erasure.ts'
import { newEntryId } from '../../domain/ids.ts'
import type { Preset } from '../../domain/inbound/presets.ts'
import { DEFAULT_SOURCE_CONFIG } from '../../domain/inbound/source-config.ts'
import { headersWithoutAddresses, keptAddress, withoutAddresses } from '../../domain/tenants/ip-addresses.ts'
import { type Inbound, inboundContext } from '../../intake/inbound.ts'
import type { Rejections } from '../../intake/rejections.ts'
import type { Requests } from '../../intake/requests.ts'
import type { Source } from '../../store/inbound/sources.ts'
import type { Directory } from '../../store/tenants/directory.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { App } from '../app.ts'
import type { RawBody } from '../body.ts'
import { namedRejections, RejectedItems, toRejectionProblem } from '../events/request.ts'
import { security } from '../openapi.ts'
import { problems } from '../problems.ts'
import { toSourceRejection } from '../rejections.ts'
import { admit, credentialsBySource, disabled, type OpenSecret, verifiedSignature } from './admission.ts'
export type InboundOptions = {
  directory: Directory
  inbound: Inbound
  rejections: Rejections
  requests: Requests
  openSecret: OpenSecret
  /** Lower-case name of the header that carries our own signature. */
  signatureHeader: string
  metrics: Pick<Metrics, 'inbound'>
  now: () => Date
}

/** The route that external systems post to. */
export function inboundRoute(app: App, options: InboundOptions): void {
  const credentials = credentialsBySource(options.openSecret)
  app.decorateRequest('target', null)
  app.addHook('onRequest', admit({ ...options, credentials }))
  app.addHook('onResponse', (request, _reply, done) => {
    const rejection = toSourceRejection(request, options.now())
    if (rejection) {
      options.rejections.recordForSource(rejection)
      options.metrics.inbound(rejection.sourceId, 'refused')
    }
    done()
  })
  app.post(
    '/ingest/inbound/:sourceConfigId',
    {
      config: {
        body: 'raw',
        bodyLimit: request => request.target?.source.config.max_body_bytes ?? DEFAULT_SOURCE_CONFIG.max_body_bytes,
        problems: [403],
      },
      schema: {
        tags: ['Inbound webhooks'],
        summary: 'Receive a webhook',
        description: DESCRIPTION,
        security: security.source,
        params: InboundParams,
        body: InboundBody,
        response: { 200: InboundAnswer },
      },
    },
    request => receive(request, options),
  )
}

async function receive(request: FastifyRequest, options: InboundOptions): Promise<InboundAnswer> {
  const { source, credentials } = request.target!
  const { raw, text } = request.body as RawBody
  const now = options.now()
  if (credentials.preset?.isPing?.(raw)) return { accepted: 0, duplicates: 0, deferred: 0, rejected: [] }
  const signature = verifiedSignature(source, credentials, {
    headers: request.raw.headers,
    body: raw,
    now,
    signatureHeader: options.signatureHeader,
  })
  if (!source.enabled) throw disabled()
  request.markAuthenticated()
  const delay = options.inbound.throttle(source, raw.length)
  if (delay) await delay
  const { ipAddresses } = source
  const body = openBody(withoutAddresses(ipAddresses, text))
  if (body.error !== null) throw problems.malformed(`${body.error}.`)
  const context = inboundContext(source, {
    ip: keptAddress(ipAddresses, request.ip),
    headers: headersWithoutAddresses(
      ipAddresses,
      keptHeaders(request.raw.headers, source, credentials.preset, options.signatureHeader),
    ),
    signature,
  })
  const { inspection, received } = await options.inbound.receive(source, body, context, now)
  if (received === null) throw toRejectionProblem(inspection, '')
  const { accepted, duplicates, deferred, rejected, dropped } = received
  const count = (outcome: string, events: number) => {
    if (events > 0) options.metrics.inbound(source.id, outcome, events)
  }
  count('accepted', accepted)
  count('duplicate', duplicates)
  count('deferred', deferred)
  count('dropped', dropped)
  count('rejected', rejected.length - dropped)
  const answer = { accepted, duplicates, deferred, ...namedRejections(rejected) }
  await waitUntilStored(
    request,
    options.requests.keep(source, {
      ...{ receivedAt: now, body: raw, answer },
      rawHeaders: request.raw.rawHeaders,
      names: () =>
        entryIdentifiers({
          ...{ id: newEntryId(now.getTime()), kind: 'events', receivedAt: now, body: text },
          context: JSON.stringify(context),
        }),
    }),
  )
  return answer
}

/** Waits until the request is stored for `kontor listen`. A failure does not affect the accepted events. */
async function waitUntilStored(request: FastifyRequest, keeping: Promise<unknown> | null): Promise<void> {
  if (keeping === null) return
  try {
    await keeping
  } catch (error) {
    request.log.warn({ err: error }, 'failed to store a request for listeners')
  }
}

const KEPT_HEADERS = ['content-type', 'user-agent', 'x-request-id']
const MAX_HEADER_LENGTH = 1_024

/** The headers that are stored with the event: the usual ones, those that the preset reads, and those that the source lists. */
function keptHeaders(
  headers: IncomingHttpHeaders,
  source: Source,
  preset: Preset | null,
  signatureHeader: string,
): Record<string, string> {
  const isCredential = (name: string) =>
    name === signatureHeader || name === 'authorization' || name === source.config.custom?.header
  const kept: Record<string, string> = {}
  for (const name of [...KEPT_HEADERS, ...(preset?.keepHeaders ?? []), ...source.config.headers]) {
    const value = headers[name]
    // A credential is never stored, even if the source lists its header.
    if (value === undefined || isCredential(name)) continue
    kept[name] = String(value).slice(0, MAX_HEADER_LENGTH)
  }
  return kept
}

const examples = {
  webhook: {
    inbound_event_id: 'evt_1001',
    event_type: 'order.shipped',
    payload: { order_id: 'o-1', carrier: 'DHL' },
  },
  track: {
    type: 'track',
    messageId: 'm-1',
    event: 'Order Completed',
    anonymousId: 'v-1',
    properties: { order_id: 'o-1', total: 49.9, currency: 'EUR' },
  },
  identify: { type: 'identify', messageId: 'm-2', userId: 'u-1', traits: { email: 'jo@example.com' } },
}

/** For documentation only: the format of a body depends on the source. */
const InboundBody = Type.Union(
  [
    Type.Object(
      {
        inbound_event_id: Type.Optional(
          Type.String({
            description: 'Identifies duplicates. Default: the value at event_id_path, or a generated id.',
          }),
        ),
        event_type: Type.Optional(Type.String({ description: 'Required unless the source has event_type_override' })),
        payload: Type.Optional(Type.Object({}, { description: 'Default: the whole body' })),
        occurred_at: Type.Optional(Type.String({ format: 'timestamp' })),
      },
      {
        title: 'webhook, automation',
        description: "Or a Stripe event, or the format of the source's preset.",
      },
    ),
    Type.Object(
      {
        type: Type.Enum([...CDP_KINDS]),
        messageId: Type.Optional(Type.String({ description: 'Identifies duplicates' })),
        event: Type.Optional(Type.String({ description: 'For track: the name of the event' })),
        anonymousId: Type.Optional(Type.String()),
        userId: Type.Optional(Type.String()),
        properties: Type.Optional(Type.Object({})),
        traits: Type.Optional(Type.Object({})),
      },
      { title: 'cdp, one event' },
    ),
    Type.Object({ batch: Type.Array(Type.Object({})) }, { title: 'cdp, a batch of events' }),
    Type.Array(Type.Object({}), { title: 'any type: a list of events' }),
  ],
  {
    examples: [examples.webhook, examples.track, { batch: [examples.track, examples.identify] }],
  },
)

const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const InboundAnswer = Type.Object(
  {
    accepted: Count('Events that are durable and will be processed now'),
    duplicates: Count('Events that were processed before, or occur twice in this body'),
    deferred: Count('Events over the volume limit: durable, and processed when the limit allows'),
    rejected: Type.Array(Type.Object({ index: Type.Integer(), message: Type.String() }), {
      description: 'Invalid items (kept as dead letters) and events dropped over the source’s limit; the first 100',
    }),
    rejected_total: RejectedItems.rejected_total,
  },
  {
    description:
      'The four numbers add up to the number of items in the request. If rejected_total is present, it is the number of rejected items.',
    examples: [
      { accepted: 1, duplicates: 0, deferred: 0, rejected: [] },
      { accepted: 2, duplicates: 1, deferred: 0, rejected: [{ index: 3, message: 'event is required' }] },
    ],
  },
)

export type InboundAnswer = Static<typeof InboundAnswer>

export const InboundParams = Type.Object({
  sourceConfigId: Type.String({ description: 'The id of the source: src_…' }),
})

const DESCRIPTION = `Accepts an event or a batch from an external system. The source's settings determine the credentials and the format.

* **Token**: \`Authorization: Bearer tok_…\`. A source with a preset (stripe, shopify, woocommerce, paddle …) and a signing
  secret accepts the provider's own signature or credential instead.
* **Signature**, where the source has a signing secret: \`t=<unix>,v1=<hex>\` with HMAC-SHA256(secret, "<t>." + raw body), at most
  300 s old; or \`sha256=<hex>\`, bare hex or base64 over the raw body, unless the source requires timestamps.
* The body is parsed as JSON, whatever its Content-Type; gzip is accepted. 200 means: authenticated, valid and durable.
* Volume protection never changes the status: events over the limit are processed later (\`deferred\`) or dropped (\`rejected\`).
* Invalid items of a batch are listed in \`rejected\`, the others are accepted. A request without any valid item returns 400.`
