import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { type FastifyReply, type FastifyRequest, LogController, type RouteOptions } from 'fastify'
import type { Logger } from 'pino'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { STATUS_CODES } from '../node-http.ts'
import { type BodiesInFlight, openBodiesInFlight } from '../overload/bodies.ts'
import { redactUrl } from '../telemetry/logging.ts'
import type { Metrics, ObserveRequest } from '../telemetry/metrics.ts'
import type { Span } from '../telemetry/otlp.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { App, Surface } from './app.ts'
import { type BodyMode, bodyReader } from './body.ts'
import { allowOrigin } from './cors.ts'
import { registerOpenApi } from './openapi.ts'
import { limitFailedCredentials } from './overload.ts'
import { type Problem, problemBody, problems, toProblem } from './problems.ts'
import { validatorCompiler } from './validation.ts'

export type ServerOptions = {
  surfaces: Surface[]
  log: Logger
  metrics: Pick<Metrics, 'request' | 'accept'>
  /** Null: requests are not traced, at no cost. */
  tracing?: Tracing | null
  /** Which proxies' X-Forwarded-For is trusted: none (false), all (true), a number of hops, or these networks. */
  trustProxy?: boolean | number | string[]
  timeouts?: Partial<Timeouts>
  /** Where clients reach this server, for the OpenAPI document. */
  publicUrl?: string | null
  /** Limit of the bytes of all request bodies held in memory, each from its arrival until the response. */
  maxInFlightBytes?: number
  /** Failed authentications per second from one address. Above it, the response is 429. Null: no limit. */
  failedAuthLimit?: number | null
  version?: string
  /** Whether an error is an outage (503, the client retries) or a bug of ours (500). */
  isUnavailable: (error: unknown) => boolean
}

type Compile = ReturnType<typeof validatorCompiler>

const DEFAULT_IN_FLIGHT_BYTES = 64 * 1_048_576
const BODY_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE']

/** All surfaces on one listener, ready to `listen`; `close` drains it. */
export async function buildServer(options: ServerOptions): Promise<App> {
  const newRequestId = requestIds()
  const timeouts = withDefaultTimeouts(options.timeouts)
  const compile = validatorCompiler()
  const app = createApp(options, { timeouts, newRequestId, compile })
  const finish = openResponses({ log: options.log, isDraining: drainOnClose(app, timeouts.drainMs) })
  const unmatched = options.metrics.request('any', 'unmatched')

  // Fastify's own log lines are useful only when something is wrong.
  app.log = options.log.child({}, { level: 'warn' })
  app.decorateRequest('startedAt', 0)
  app.decorateRequest('problem', null)
  app.decorateRequest('rawText', '')
  app.decorateRequest('caller', null as never)
  app.decorateRequest('rejectedKey', null)
  app.decorateRequest('operator', null as never)
  app.addHook('onRequest', (request, _reply, done) => {
    request.startedAt = performance.now()
    done(request.is404 ? undefined : findHostProblem(request.raw))
  })
  // By default Node responds 417 without a body. HTTP allows servers to ignore expectations that they do not know.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
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
  app.addHook('onRoute', route => addSharedHooks(route, { metrics: options.metrics, finish, compile, bodies }))
  const limited = limitFailedCredentials(options.failedAuthLimit ?? null)
  app.setErrorHandler((error, request, reply) => {
    const problem = limited(toProblem(error, options.isUnavailable), request.ip)
    request.routeOptions.config.rejections?.request(request, problem)
    reply.send(problemPayload(request, reply, problem))
  })
  app.setNotFoundHandler((request, reply) => {
    const payload = unmatchedPayload(app, request, reply)
    finish(request, reply, unmatched)
    reply.send(payload)
  })
  registerOpenApi(app, { publicUrl: options.publicUrl ?? null, version: options.version ?? '0.0.0' })
  for (const surface of options.surfaces) {
    await app.register(async scope => surface.register(scope as unknown as App))
  }
  await app.ready()
  // A preParsing hook of each route reads the body (see `addSharedHooks`). Without `hasBody`, Fastify does not look for a
  // second reader, which would cost a tenth of a small request and reject unusual Content-Types on raw routes.
  for (const method of app.supportedMethods) {
    app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  }
  return app
}

function createApp(
  options: ServerOptions,
  {
    timeouts,
    newRequestId,
    compile,
  }: { timeouts: Timeouts; newRequestId: ReturnType<typeof requestIds>; compile: Compile },
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
    // Without these, Fastify loads its own compilers.
    schemaController: {
      compilersFactory: {
        buildValidator: () => compile as never,
        buildSerializer: () => () => data => JSON.stringify(data),
      },
    },
    routerOptions: { ignoreTrailingSlash: true, caseSensitive: true, maxParamLength: 8_192 },
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    http: {
      // Node's own response to a request without Host has neither a body nor a request id. A hook responds instead.
      requireHostHeader: false,
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      connectionsCheckingInterval: Math.min(5_000, Math.max(50, timeouts.headersMs / 4)),
    },
    return503OnClosing: false,
    clientErrorHandler: clientErrorHandler(() => newRequestId({ headers: {} })),
    frameworkErrors(error, request, reply) {
      const payload = problemPayload(request, reply, toProblem(error, options.isUnavailable))
      finish(request, reply, unroutable)
      ;(reply as FastifyReply).send(payload)
    },
  }).withTypeProvider<TypeBoxTypeProvider>()
}

/** Adds the hooks that all routes share. They are bound when the route is declared, so that a request looks nothing up. */
function addSharedHooks(
  route: RouteOptions,
  shared: { metrics: ServerOptions['metrics']; finish: FinishResponse; compile: Compile; bodies: BodiesInFlight },
): void {
  const { metrics, finish, compile, bodies } = shared
  const methods = [route.method].flat()
  const isRead = methods.includes('GET') || methods.includes('HEAD')
  const observe = metrics.request(methods.join(' '), route.url)
  route.onSend = [
    ...[route.onSend ?? []].flat(),
    (request, reply, _payload, done) => {
      // Responses to one key must not be cached for others. Pages and scripts set their own cache-control.
      if (isRead && !reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
      if (request.heldBytes > 0) bodies.release(request)
      finish(request, reply, observe)
      done()
    },
  ]
  const mode: BodyMode = route.config?.body ?? (methods.some(method => BODY_METHODS.includes(method)) ? 'json' : 'none')
  if (mode === 'none') return
  route.preParsing = [bodyReader(bodies, mode, route.config?.bodyLimit), ...[route.preParsing ?? []].flat()]
  // The schema of a raw body is documentation only: the handler validates the body.
  if (mode === 'raw')
    route.validatorCompiler = part => (part.httpPart === 'body' ? () => true : compile(part as Parameters<Compile>[0]))
}

declare module 'fastify' {
  interface FastifyRequest {
    startedAt: number
    /** Why the response is an error. */
    problem: Problem | null
    /** From arrival to response; unset if requests are not traced. */
    span?: Span | null
  }
}

type FinishResponse = (request: FastifyRequest, reply: FastifyReply, observe: ObserveRequest) => void

const PAGE_POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
// An outage or a flood means thousands of 503 a second; a log line for each would make it worse.
const OUTAGE_LINE_INTERVAL_MS = 1_000
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/** What every response has in common, done just before it is sent: headers, metrics, the log line. */
function openResponses(options: { log: Logger; isDraining: () => boolean }): FinishResponse {
  const { log, isDraining } = options
  let outageLoggedAt = Number.NEGATIVE_INFINITY
  let suppressed = 0
  return (request, reply, observe) => {
    reply.header('x-request-id', request.id)
    reply.header('x-content-type-options', 'nosniff')
    reply.header('referrer-policy', 'no-referrer')
    if (isDraining()) reply.header('connection', 'close')
    const type = reply.getHeader('content-type')
    if (typeof type === 'string' && type.startsWith('text/html')) protectPage(reply)

    const status = reply.statusCode
    const now = performance.now()
    const elapsedMs = now - (request.startedAt || now)
    observe(status, elapsedMs / 1000)
    if (log.isLevelEnabled('debug')) logRequest(log, request, status, elapsedMs)
    else if (status === 503) {
      if (now - outageLoggedAt < OUTAGE_LINE_INTERVAL_MS) suppressed++
      else {
        logRequest(log, request, status, elapsedMs, { suppressed_before: suppressed })
        outageLoggedAt = now
        suppressed = 0
      }
    } else if (status >= 500) logRequest(log, request, status, elapsedMs)
  }
}

function protectPage(reply: FastifyReply): void {
  reply.header('x-frame-options', 'DENY')
  if (!reply.hasHeader('content-security-policy')) reply.header('content-security-policy', PAGE_POLICY)
}

/** One wide log line with everything about the request. */
function logRequest(log: Logger, request: FastifyRequest, status: number, elapsedMs: number, more: object = {}): void {
  const level = status < 500 ? 'debug' : status === 503 ? 'warn' : 'error'
  const { problem } = request
  log[level](
    {
      request_id: request.id,
      method: request.method,
      route: request.routeOptions.url,
      url: redactUrl(request.url),
      status,
      duration_ms: Math.round(elapsedMs * 1000) / 1000,
      ip: request.ip,
      user_agent: request.headers['user-agent'],
      tenant_id: request.caller?.tenantId,
      key_id: request.caller?.key.id ?? request.operator?.name,
      code: problem?.code,
      err: problem?.cause,
      ...more,
    },
    `${request.method} ${request.routeOptions.url ?? 'unmatched'} ${status}`,
  )
}

/** Sets status and headers, and returns the payload: bytes, because Fastify would add a charset to a string. */
function problemPayload(request: FastifyRequest, reply: FastifyReply, problem: Problem): Buffer {
  request.problem = problem
  reply.code(problem.status)
  if (problem.headers) reply.headers(problem.headers)
  reply.type('application/problem+json')
  return Buffer.from(JSON.stringify(problemBody(problem, request.id)))
}

/** For requests that match no route: 404, or 405 if the path has other methods. Returns the payload to send. */
function unmatchedPayload(app: App, request: FastifyRequest, reply: FastifyReply): Buffer | null {
  const { url } = request
  const allow = METHODS.filter(method => app.findRoute({ method, url }) !== null)
  if (allow.length === 0) return problemPayload(request, reply, problems.notFound('No resource exists at this path.'))
  allow.push('OPTIONS')
  if (request.method === 'OPTIONS') {
    reply.code(204).header('allow', allow.join(', '))
    return null
  }
  // Only `openCors` declares OPTIONS routes.
  if (app.findRoute({ method: 'OPTIONS', url }) !== null) allowOrigin(request, reply)
  return problemPayload(request, reply, problems.methodNotAllowed(request.method, allow))
}

/** RFC 9112, section 3.2. With two values, a proxy could have checked the one that Kontor does not use. */
function findHostProblem({ headers, httpVersion, rawHeaders }: IncomingMessage): Problem | undefined {
  if (headers.host === undefined)
    return httpVersion === '1.1' ? problems.malformed('The header `Host` is missing.', 'malformed_request') : undefined
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.length === 4 && rawHeaders[at]!.toLowerCase() === 'host') hosts++
  return hosts > 1 ? problems.malformed('The header `Host` occurs twice.', 'malformed_request') : undefined
}

type Timeouts = {
  /** For the whole request, its body included. */
  requestMs: number
  headersMs: number
  keepAliveMs: number
  /** How long a stop waits for requests in flight. */
  drainMs: number
}

const DEFAULT_TIMEOUTS: Timeouts = {
  requestMs: 30_000,
  headersMs: 10_000,
  // Longer than the 60 s after which load balancers drop idle connections: they must be the ones to close.
  keepAliveMs: 75_000,
  drainMs: 10_000,
}
// For a client that does not read its response.
const FINAL_WRITE_MS = 2_000
const USABLE_REQUEST_ID = /^[\w-]{1,128}$/

function withDefaultTimeouts(given: Partial<Timeouts> = {}): Timeouts {
  const timeouts = { ...DEFAULT_TIMEOUTS, ...given }
  return { ...timeouts, headersMs: Math.min(timeouts.headersMs, timeouts.requestMs) }
}

/** The client's request id if it is usable, otherwise one that no other process generates. */
function requestIds(): (request: Pick<IncomingMessage, 'headers'>) => string {
  const process = `req_${randomBytes(9).toString('base64url')}`
  let count = 0
  return ({ headers }) => {
    const given = headers['x-request-id']
    if (typeof given === 'string' && USABLE_REQUEST_ID.test(given)) return given
    return `${process}-${(++count).toString(36)}`
  }
}

/**
 * On close, responds to all requests that have arrived, closes each connection after its response, and drops the
 * connections that remain after `drainMs`. Returns a function that says whether the server is closing.
 */
function drainOnClose(app: App, drainMs: number): () => boolean {
  const sockets = new Set<Socket>()
  let isDraining = false
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  app.addHook('preClose', done => {
    isDraining = true
    // Node counts a connection that has not received anything yet as busy. Closing it loses nothing.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    const timer = setTimeout(() => app.server.closeAllConnections(), drainMs)
    timer.unref()
    app.server.once('close', () => clearTimeout(timer))
    done()
  })
  return () => isDraining
}

/** Responds to input that is not HTTP or does not arrive in time, and therefore never becomes a request. */
function clientErrorHandler(newRequestId: () => string) {
  return function respond(error: NodeJS.ErrnoException, socket: Socket): void {
    const inFlight = (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    // The client would take the response for that of the earlier request.
    if (inFlight?.req.complete) {
      inFlight.once('finish', () => respond(error, socket))
      return
    }
    if (inFlight?.headersSent) {
      socket.destroy()
      return
    }
    const problem = toClientProblem(error)
    const requestId = newRequestId()
    const body = JSON.stringify(problemBody(problem, requestId))
    socket.setTimeout(FINAL_WRITE_MS, () => socket.destroy())
    socket.end(
      [
        `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
        'content-type: application/problem+json',
        `content-length: ${Buffer.byteLength(body)}`,
        `x-request-id: ${requestId}`,
        'connection: close',
        '',
        body,
      ].join('\r\n'),
      () => socket.destroy(),
    )
  }
}

function toClientProblem({ code }: NodeJS.ErrnoException): Problem {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return problems.requestTimeout()
    case 'HPE_HEADER_OVERFLOW':
      return problems.headersTooLarge()
    default:
      return problems.malformed('This is not a valid HTTP request.', 'malformed_request')
  }
}

/** Creates a span for every request. The spans of its appends to the log are its children. */
function traceRequests(app: App, tracing: Tracing): void {
  app.decorateRequest('span', null)
  app.addHook('onRequest', (request, _reply, done) => {
    const { traceparent } = request.headers
    const sent = typeof traceparent === 'string' ? traceparent : undefined
    request.span = tracing.request(request.method, request.routeOptions.url ?? 'unmatched', sent)
    done()
  })
  // Not in onRequest: the code after reading the body runs in the async context of the connection.
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.span) tracing.within(request.span, done)
    else done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    endSpan(request, reply.statusCode)
    done()
  })
  app.addHook('onRequestAbort', (request, done) => {
    endSpan(request, null)
    done()
  })
}

function endSpan(request: FastifyRequest, status: number | null): void {
  const { span } = request
  if (!span) return
  request.span = null
  const tenantId = findTenantId(request)
  span.set({
    ...(status !== null && { 'http.response.status_code': status }),
    ...(tenantId !== null && { 'kontor.tenant': publicTenantId(tenantId) }),
  })
  span.end(status === null || status >= 500 ? { name: status === null ? 'aborted' : String(status) } : undefined)
}

function findTenantId({ caller, target, operator }: FastifyRequest): number | null {
  return caller?.tenantId ?? target?.source.tenantId ?? operator?.tenantId ?? null
}
