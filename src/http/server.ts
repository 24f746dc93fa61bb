import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyReply, type FastifyRequest, LogController, type RouteOptions } from 'fastify'
import type { Logger } from 'pino'
import { type BodiesInFlight, openBodiesInFlight } from '../overload/bodies.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { App, Surface } from './app.ts'
import { type BodyMode, bodyReader } from './body.ts'
import { clientErrorHandler, drainOnClose, requestIds, type Timeouts, timeoutsOf } from './connections.ts'
import { registerOpenApi } from './openapi.ts'
import { limitFailedCredentials } from './overload.ts'
import { problemOf } from './problems.ts'
import { type FinishResponse, openResponses, problemPayload, unmatchedPayload } from './responses.ts'
import { traceRequests } from './tracing.ts'
import { validatorCompiler } from './validation.ts'

export type ServerOptions = {
  surfaces: Surface[]
  log: Logger
  metrics: Pick<Metrics, 'request' | 'accept'>
  /** Null: requests are not traced, and pay nothing for it. */
  tracing?: Tracing | null
  /** Whose X-Forwarded-For is believed: nobody's, everybody's, that of so many hops, or of these networks. */
  trustProxy?: boolean | number | string[]
  timeouts?: Partial<Timeouts>
  /** Where clients reach this server, for the OpenAPI document. */
  publicUrl?: string | null
  /** How many bytes of request bodies may be held at a time, from their arrival until the answer. */
  maxInFlightBytes?: number
  /** Failed credentials a second from one address, beyond which they are answered 429; null: no limit. */
  failedAuthLimit?: number | null
  version?: string
  /** Whether an error is an outage (503, try again) or a fault of ours (500). */
  isUnavailable: (error: unknown) => boolean
}

type Compile = ReturnType<typeof validatorCompiler>

const DEFAULT_IN_FLIGHT_BYTES = 64 * 1_048_576
const BODY_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE']

/** All surfaces on one listener, ready to `listen`; `close` drains it. */
export async function buildServer(options: ServerOptions): Promise<App> {
  const newRequestId = requestIds()
  const timeouts = timeoutsOf(options.timeouts)
  const app = createApp(options, timeouts, newRequestId)
  const finish = openResponses({ log: options.log, isDraining: drainOnClose(app, timeouts.drainMs) })
  const unmatched = options.metrics.request('any', 'unmatched')
  const compile = validatorCompiler()

  // Fastify's own lines are of use only when something is wrong
  app.log = options.log.child({}, { level: 'warn' })
  app.decorateRequest('startedAt', 0)
  app.decorateRequest('problem', null)
  app.decorateRequest('rawText', '')
  app.decorateRequest('caller', null as never)
  app.decorateRequest('rejectedKey', null)
  app.decorateRequest('operator', null as never)
  app.setValidatorCompiler(compile)
  app.setSerializerCompiler(() => data => JSON.stringify(data))
  app.addHook('onRequest', (request, _reply, done) => {
    request.startedAt = performance.now()
    done()
  })
  if (options.tracing) traceRequests(app, options.tracing)
  const bodies = openBodiesInFlight({
    maxBytes: options.maxInFlightBytes ?? DEFAULT_IN_FLIGHT_BYTES,
    onRejected: options.metrics.accept.shed,
  })
  app.decorateRequest('heldBytes', 0)
  app.decorateRequest('isAuthenticated', false)
  app.decorateRequest('markAuthenticated', function markAuthenticated(this: FastifyRequest) {
    bodies.markAuthenticated(this)
  })
  app.addHook('onRoute', route =>
    addSharedHooks(route, { metrics: options.metrics, finish, compile, bodies }),
  )
  const limited = limitFailedCredentials(options.failedAuthLimit ?? null)
  app.setErrorHandler((error, request, reply) => {
    const problem = limited(problemOf(error, options.isUnavailable), request.ip)
    request.routeOptions.config.rejections?.request(request, problem)
    reply.send(problemPayload(request, reply, problem))
  })
  app.setNotFoundHandler((request, reply) => {
    const payload = unmatchedPayload(app, request, reply)
    finish(request, reply, unmatched)
    reply.send(payload)
  })
  await registerOpenApi(app, { publicUrl: options.publicUrl ?? null, version: options.version ?? '0.0.0' })
  for (const surface of options.surfaces) {
    await app.register(async scope => surface.register(scope as unknown as App))
  }
  await app.ready()
  // Bodies are read by the routes' own preParsing hook (see `addSharedHooks`); told that no method has one, Fastify does not
  // look for a second reader, which would cost a tenth of a small request and refuse unusual Content-Types of raw routes.
  for (const method of app.supportedMethods) {
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  }
  return app
}

function createApp(
  options: ServerOptions,
  timeouts: Timeouts,
  newRequestId: ReturnType<typeof requestIds>,
): App {
  const trusted = options.trustProxy ?? false
  const unroutable = options.metrics.request('any', 'unroutable')
  const finish = openResponses({ log: options.log, isDraining: () => false })
  return Fastify({
    trustProxy: typeof trusted === 'number' ? (_address, hop) => hop < trusted : trusted,
    genReqId: newRequestId,
    logController: new LogController({ disableRequestLogging: true }),
    // A child logger for every request costs more than it is worth: the request's log line has its id.
    childLoggerFactory: () => options.log,
    routerOptions: { ignoreTrailingSlash: true, caseSensitive: true, maxParamLength: 8_192 },
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    http: {
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      connectionsCheckingInterval: Math.min(5_000, Math.max(50, timeouts.headersMs / 4)),
    },
    return503OnClosing: false,
    clientErrorHandler: clientErrorHandler(() => newRequestId({ headers: {} })),
    frameworkErrors(error, request, reply) {
      const payload = problemPayload(request, reply, problemOf(error, options.isUnavailable))
      finish(request, reply, unroutable)
      ;(reply as FastifyReply).send(payload)
    },
  }).withTypeProvider<TypeBoxTypeProvider>()
}

/** What a route shares with all others, bound when it is declared: a request looks nothing up. */
function addSharedHooks(
  route: RouteOptions,
  shared: {
    metrics: ServerOptions['metrics']
    finish: FinishResponse
    compile: Compile
    bodies: BodiesInFlight
  },
): void {
  const { metrics, finish, compile, bodies } = shared
  const methods = [route.method].flat()
  const isRead = methods.includes('GET') || methods.includes('HEAD')
  const observe = metrics.request(methods.join(' '), route.url)
  route.onSend = [
    ...[route.onSend ?? []].flat(),
    (request, reply, _payload, done) => {
      // What a key may see must not be cached for others; pages and scripts set their own cache-control.
      if (isRead && !reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
      if (request.heldBytes > 0) bodies.release(request)
      finish(request, reply, observe)
      done()
    },
  ]
  const mode: BodyMode =
    route.config?.body ?? (methods.some(method => BODY_METHODS.includes(method)) ? 'json' : 'none')
  if (mode === 'none') return
  route.preParsing = [bodyReader(bodies, mode, route.config?.bodyLimit), ...[route.preParsing ?? []].flat()]
  // The schema of a raw body is documentation: its handler decides what is good.
  if (mode === 'raw')
    route.validatorCompiler = part =>
      part.httpPart === 'body' ? () => true : compile(part as Parameters<Compile>[0])
}
