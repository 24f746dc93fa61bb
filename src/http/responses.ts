import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { redactUrl } from '../telemetry/logging.ts'
import type { ObserveRequest } from '../telemetry/metrics.ts'
import type { App } from './app.ts'
import { allowOrigin } from './cors.ts'
import { type Problem, problemBody, problems } from './problems.ts'

declare module 'fastify' {
  interface FastifyRequest {
    startedAt: number
    /** Why the response is an error. */
    problem: Problem | null
  }
}

export type FinishResponse = (request: FastifyRequest, reply: FastifyReply, observe: ObserveRequest) => void

const PAGE_POLICY =
  "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
// An outage or a flood means thousands of 503 a second; a log line for each would make it worse.
const OUTAGE_LINE_INTERVAL_MS = 1_000
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

/** What every response has in common, done just before it is sent: headers, metrics, the log line. */
export function openResponses(options: { log: Logger; isDraining: () => boolean }): FinishResponse {
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

/** One wide line: everything there is to know about the request. */
function logRequest(
  log: Logger,
  request: FastifyRequest,
  status: number,
  elapsedMs: number,
  more: object = {},
): void {
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

/** Sets status and headers, and returns what to send: bytes, because Fastify would add a charset to text. */
export function problemPayload(request: FastifyRequest, reply: FastifyReply, problem: Problem): Buffer {
  request.problem = problem
  reply.code(problem.status)
  if (problem.headers) reply.headers(problem.headers)
  reply.type('application/problem+json')
  return Buffer.from(JSON.stringify(problemBody(problem, request.id)))
}

/** For what no route answers: 404, or 405 where the path has other methods. Returns what to send. */
export function unmatchedPayload(app: App, request: FastifyRequest, reply: FastifyReply): Buffer | null {
  const { url } = request
  const allow = METHODS.filter(method => app.findRoute({ method, url }) !== null)
  if (allow.length === 0)
    return problemPayload(request, reply, problems.notFound('No resource exists at this path.'))
  allow.push('OPTIONS')
  if (request.method === 'OPTIONS') {
    reply.code(204).header('allow', allow.join(', '))
    return null
  }
  // Only `openCors` declares OPTIONS routes.
  if (app.findRoute({ method: 'OPTIONS', url }) !== null) allowOrigin(request, reply)
  return problemPayload(request, reply, problems.methodNotAllowed(allow))
}
