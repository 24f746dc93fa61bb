import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from './app.ts'

// The headers that browser SDKs send; the last two are Jitsu's. RudderStack adds its own, which all start with rsa-.
const ALLOWED_HEADERS =
  'authorization, content-type, content-encoding, x-retry-count, anonymousid, sentat, x-write-key, x-request-id, ' +
  'x-enable-debug, x-ip-policy'
const RUDDERSTACK_HEADER = /^rsa-[a-z0-9-]{1,60}$/
const EXPOSED_HEADERS = 'x-request-id, retry-after'
const MAX_AGE_S = '86400'

/**
 * Allows every origin on the routes declared on `app` after this call: tracking keys are public, and no cookie is read.
 * Register it before authentication, so that the page that sent a rejected request can read the error.
 */
export function openCors(app: App): void {
  const opened = new Set<string>()
  app.addHook('onRequest', (request, reply, done) => {
    allowOrigin(request, reply)
    done()
  })
  app.addHook('onRoute', function (this: App, route) {
    if (opened.has(route.url)) return
    opened.add(route.url)
    this.route({ method: 'OPTIONS', url: route.routePath, schema: { hide: true }, handler: answerPreflight })
  })
}

export function allowOrigin(request: FastifyRequest, reply: FastifyReply): void {
  // also without an Origin: a cache may serve a response to a server's request to a browser
  reply.header('access-control-allow-origin', '*')
  if (request.raw.headers.origin !== undefined) {
    reply.header('access-control-expose-headers', EXPOSED_HEADERS)
  }
}

function answerPreflight(request: FastifyRequest, reply: FastifyReply): void {
  const wanted = request.headers['access-control-request-headers']?.toLowerCase().split(',') ?? []
  const own = wanted.map(name => name.trim()).filter(name => RUDDERSTACK_HEADER.test(name))
  reply
    .code(204)
    .header('access-control-allow-methods', 'GET, POST, OPTIONS')
    .header('access-control-allow-headers', [ALLOWED_HEADERS, ...own].join(', '))
    .header('access-control-max-age', MAX_AGE_S)
    .header('vary', 'access-control-request-headers')
    .send()
}
