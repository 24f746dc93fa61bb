import type { FastifyRequest } from 'fastify'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import type { Span } from '../telemetry/otlp.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { App } from './app.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Where requests are traced, from its arrival until it is answered. */
    span?: Span | null
  }
}

/** A span for every request; what its handler appends to the log is part of it. */
export function traceRequests(app: App, tracing: Tracing): void {
  app.decorateRequest('span', null)
  app.addHook('onRequest', (request, _reply, done) => {
    const { traceparent } = request.headers
    const sent = typeof traceparent === 'string' ? traceparent : undefined
    request.span = tracing.request(request.method, request.routeOptions.url ?? 'unmatched', sent)
    done()
  })
  // Here, not on arrival: what reads the body goes on in the context of the connection.
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.span) tracing.within(request.span, done)
    else done()
  })
  app.addHook('onResponse', (request, reply, done) => {
    end(request, reply.statusCode)
    done()
  })
  app.addHook('onRequestAbort', (request, done) => {
    end(request, null)
    done()
  })
}

function end(request: FastifyRequest, status: number | null): void {
  const { span } = request
  if (!span) return
  request.span = null
  const tenantId = tenantOf(request)
  span.set({
    ...(status !== null && { 'http.response.status_code': status }),
    ...(tenantId !== null && { 'kontor.tenant': publicTenantId(tenantId) }),
  })
  span.end(
    status === null || status >= 500 ? { name: status === null ? 'aborted' : String(status) } : undefined,
  )
}

function tenantOf({ caller, target, operator }: FastifyRequest): number | null {
  return caller?.tenantId ?? target?.source.tenantId ?? operator?.tenantId ?? null
}
