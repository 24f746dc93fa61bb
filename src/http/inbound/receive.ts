import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
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
import { namedRejections, refusalOf } from '../events/request.ts'
import { security } from '../openapi.ts'
import { problems } from '../problems.ts'
import { toSourceRejection } from '../rejections.ts'
import { admit, credentialsBySource, disabled, type OpenSecret, verifiedSignature } from './admission.ts'
import { DESCRIPTION, InboundAnswer, InboundBody, InboundParams } from './schemas.ts'

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
        bodyLimit: request =>
          request.target?.source.config.max_body_bytes ?? DEFAULT_SOURCE_CONFIG.max_body_bytes,
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
  const turn = options.inbound.throttle(source, raw.length)
  if (turn) await turn
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
  if (received === null) throw refusalOf(inspection, '')
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
  await kept(
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

/** For those who listen. What was accepted stays accepted, whether it can be shown to them or not. */
async function kept(request: FastifyRequest, keeping: Promise<unknown> | null): Promise<void> {
  if (keeping === null) return
  try {
    await keeping
  } catch (error) {
    request.log.warn({ err: error }, 'failed to store a request for listeners')
  }
}

const KEPT_HEADERS = ['content-type', 'user-agent', 'x-request-id']
const MAX_HEADER_LENGTH = 1_024

/** The headers that go with the event: the usual ones, those that the preset reads, and those that the source names. */
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
    // Whatever the source's settings say, a credential is never kept.
    if (value === undefined || isCredential(name)) continue
    kept[name] = String(value).slice(0, MAX_HEADER_LENGTH)
  }
  return kept
}
