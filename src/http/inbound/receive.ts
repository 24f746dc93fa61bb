import { timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { openBody } from '../../domain/events/normalize/normalize.ts'
import { CDP_KINDS } from '../../domain/events/types.ts'
import { entryIdentifiers } from '../../domain/identity/erasure.ts'
import { newEntryId } from '../../domain/ids.ts'
import { findPreset, type Headers, type Preset } from '../../domain/inbound/presets.ts'
import {
  type SignatureFormat,
  type SigningSecret,
  signingSecret,
  type Verification,
  verifySignature,
} from '../../domain/inbound/signatures.ts'
import { DEFAULT_SOURCE_CONFIG } from '../../domain/inbound/source-config.ts'
import { isAllowed } from '../../domain/tenants/addresses.ts'
import { headersWithoutAddresses, keptAddress, withoutAddresses } from '../../domain/tenants/ip-addresses.ts'
import { hashOfSecret } from '../../domain/tenants/keys.ts'
import { type Static, Type } from '../../domain/typebox.ts'
import { type Inbound, inboundContext } from '../../intake/inbound.ts'
import type { Rejections } from '../../intake/rejections.ts'
import type { Requests } from '../../intake/requests.ts'
import type { Source } from '../../store/inbound/sources.ts'
import type { Directory } from '../../store/tenants/directory.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import type { App } from '../app.ts'
import { bearerToken } from '../auth.ts'
import { markInvalidBytes, type RawBody } from '../body.ts'
import { namedRejections, RejectedItemBody, RejectedItems, toRejectionProblem } from '../events/request.ts'
import { security } from '../openapi.ts'
import { type Problem, problems } from '../problems.ts'
import { toSourceRejection } from '../rejections.ts'
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

/** `kontor import` sends it. */
const IMPORT_HEADER = 'x-kontor-import'

async function receive(request: FastifyRequest, options: InboundOptions): Promise<InboundAnswer> {
  const { source, credentials } = request.target!
  const { raw } = request.body as RawBody
  const text = markInvalidBytes(request.body as RawBody)
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
  // A source over its limit is delayed by the throttle: meanwhile it must not hold a slot of other tenants.
  if (delay) request.leaveWriteQueue()
  if (delay) await delay
  const { ipAddresses } = source
  const body = openBody(withoutAddresses(ipAddresses, text))
  if (body.error !== null) throw problems.malformed(`${body.error}.`)
  const context = inboundContext(source, {
    // the address of an importer says nothing about the people in the events
    ip: request.headers[IMPORT_HEADER] === undefined ? keptAddress(ipAddresses, request.ip) : null,
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
  webhook: { inbound_event_id: 'evt_1001', event_type: 'order.shipped', payload: { order_id: 'o-1', carrier: 'DHL' } },
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
      { title: 'webhook, automation', description: "Or a Stripe event, or the format of the source's preset." },
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
      { title: 'cdp, one event', description: 'A call in the format of the Segment and RudderStack SDKs' },
    ),
    Type.Object(
      { batch: Type.Array(Type.Object({})) },
      { title: 'cdp, a batch of events', description: 'Several calls in one request' },
    ),
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
    deferred: Count('Events above the rate limit: durable, and processed when the limit allows'),
    rejected: Type.Array(RejectedItemBody, {
      description: 'Invalid items (kept as dead letters) and events dropped because of the rate limit; the first 100',
    }),
    rejected_total: RejectedItems.rejected_total,
  },
  {
    title: 'InboundAnswer',
    description:
      'The three numbers and the rejected items add up to the items of the request. If rejected_total is present, it is the number of rejected items.',
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
* The rate limit of a source never changes the status: events above it are processed later (\`deferred\`) or dropped (\`rejected\`).
* Invalid items of a batch are listed in \`rejected\`, the others are accepted. A request without any valid item returns 400.`

/** The source that a request is posted to. */
type Target = { source: Source; credentials: Credentials }

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on the inbound route as soon as the source is known, even if the request is then rejected. */
    target: Target | null
  }
}

type Deps = { directory: Pick<Directory, 'source'>; credentials: (source: Source) => Credentials; now: () => Date }
type Done = (error?: Error) => void

/** An onRequest hook: finds the source and checks the token before any of the body is read. */
function admit(deps: Deps) {
  return (request: FastifyRequest, _reply: FastifyReply, done: Done): void => {
    const settle = (source: Source | null) => {
      let problem: Problem | null
      try {
        problem = checkSource(deps, request, source)
      } catch (error) {
        return done(error as Error)
      }
      done(problem ?? undefined)
    }
    const source = deps.directory.source((request.params as { sourceConfigId: string }).sourceConfigId)
    // A failed look-up does not mean that the source does not exist: 503, never 404.
    if (source instanceof Promise) source.then(settle, error => done(problems.unavailable(undefined, undefined, error)))
    else settle(source)
  }
}

function checkSource(deps: Deps, request: FastifyRequest, source: Source | null): Problem | null {
  if (source === null) return unknownSource(request)
  const credentials = deps.credentials(source)
  request.target = { source, credentials }
  const { headers } = request.raw
  const problem = tokenProblem(credentials, headers, deps.now())
  if (problem) return problem
  const { allowed_addresses } = source.config
  if (!isAllowed(allowed_addresses, request.ip)) return problems.addressNotAllowed(request.ip)
  // Without a token the signature must be valid, which can be checked only after the body is read.
  const hasToken = showsToken(credentials, headers)
  if (hasToken) request.isAuthenticated = true
  // Unauthenticated callers must not learn that a source is disabled: without a token, the signature is checked first.
  return source.enabled || !hasToken ? null : disabled()
}

function unknownSource({ params }: FastifyRequest): Problem {
  return problems.unknown('source', (params as { sourceConfigId: string }).sourceConfigId, 'source_not_found')
}

function disabled(): Problem {
  return problems.forbidden('source_disabled', 'This source is disabled. Enable it to receive events.')
}

/** The credentials that a source accepts, prepared once for each version of the source. */
type Credentials = {
  preset: Preset | null
  tokens: { hash: Buffer; expiresAt: number }[]
  secrets: (SigningSecret & { expiresAt: number })[]
  hasSecrets: boolean
  /** Set if no secret key decrypts a signing secret. A signature that does not match is then answered 503, not 401. */
  unreadable: Error | null
}

type OpenSecret = (sealed: string) => string

/** Cached by object: the directory returns the same object until the source changes. */
function credentialsBySource(open: OpenSecret): (source: Source) => Credentials {
  const known = new WeakMap<Source, Credentials>()
  return source => {
    let credentials = known.get(source)
    if (!credentials) {
      credentials = readCredentials(source, open)
      known.set(source, credentials)
    }
    return credentials
  }
}

function readCredentials(source: Source, open: OpenSecret): Credentials {
  const preset = findPreset(source.preset)
  const secrets: Credentials['secrets'] = []
  let unreadable: Error | null = null
  for (const { sealed, expires_at } of source.signingSecrets) {
    try {
      secrets.push({ ...signingSecret(open(sealed), preset?.keyBytes), expiresAt: parseExpiry(expires_at) })
    } catch (error) {
      unreadable = error as Error
    }
  }
  return {
    preset,
    tokens: source.tokens.map(({ hash, expires_at }) => ({
      hash: Buffer.from(hash, 'hex'),
      expiresAt: parseExpiry(expires_at),
    })),
    secrets,
    hasSecrets: source.signingSecrets.length > 0,
    unreadable,
  }
}

function parseExpiry(expiresAt: string | null): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)
}

/** Whether the provider sends the signing secret itself in the Authorization header, in place of our token. */
function isSecretShown({ preset, hasSecrets }: Credentials): boolean {
  return preset?.authorizes === true && hasSecrets
}

/** Whether the request has a token. `tokenProblem` checks it. */
function showsToken(credentials: Credentials, headers: IncomingHttpHeaders): boolean {
  return headers.authorization !== undefined && !isSecretShown(credentials)
}

/**
 * Why the request's token is rejected, or null. A token may be missing if the provider's own signature is required,
 * because such providers cannot be configured to send a token.
 */
function tokenProblem(credentials: Credentials, headers: IncomingHttpHeaders, now: Date): Problem | null {
  if (!showsToken(credentials, headers)) {
    if (credentials.preset !== null && credentials.hasSecrets) return null
    return problems.unauthorized(
      'missing_credentials',
      'This source requires its token (tok_…). Send it in the header "Authorization: Bearer <token>".',
    )
  }
  const token = bearerToken(headers)
  const hash = token === null ? null : hashOfSecret(token)
  let found: Credentials['tokens'][number] | null = null
  for (const known of credentials.tokens) if (hash && isSame(known.hash, hash)) found = known
  if (found === null)
    return problems.unauthorized(
      'invalid_credentials',
      token === null
        ? 'The header Authorization must be "Bearer" followed by the token (tok_…) of this source.'
        : 'The token does not belong to this source. Use the token that was shown when the source was created, or create a new one with `kontor source rotate ID --token`.',
    )
  if (found.expiresAt <= now.getTime())
    return problems.unauthorized('token_expired', 'This token was replaced and has expired. Use the current token.')
  return null
}

function isSame(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}

const SIGNATURE_ERRORS = {
  signature_missing:
    'This source requires a signature, but the request has none. Sign the request with the signing secret of this source.',
  signature_invalid:
    'The signature does not match the body and the signing secret of this source. Sign the unchanged body with this secret.',
  signature_expired:
    'The signature is valid, but its timestamp differs from the server time by more than 5 minutes. Check the clock of the sender.',
}

/** The format of the valid signature; null if the source has no secret. Throws if the signature is missing or invalid. */
function verifiedSignature(
  source: Source,
  credentials: Credentials,
  request: { headers: IncomingHttpHeaders; body: Buffer; now: Date; signatureHeader: string },
): SignatureFormat | null {
  if (!credentials.hasSecrets) return null
  const { body, now, signatureHeader } = request
  const headers = request.headers as Headers
  const secrets = credentials.secrets.filter(({ expiresAt }) => expiresAt > now.getTime())
  const verification: Verification = credentials.preset
    ? credentials.preset.verify({ headers, body, secrets, now, custom: source.config.custom })
    : verifySignature({
        header: headers[signatureHeader],
        body,
        secrets,
        now,
        requireTimestamped: source.config.require_timestamped_signature,
      })
  if (verification.ok) return verification.format
  if (credentials.unreadable && verification.code === 'signature_invalid')
    throw problems.unavailable(
      'The signature cannot be verified at the moment. Retry shortly.',
      undefined,
      credentials.unreadable,
    )
  throw problems.unauthorized(verification.code, verification.detail ?? SIGNATURE_ERRORS[verification.code])
}
