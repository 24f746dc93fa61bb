import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from './app.ts'

// What the browser SDKs send, the last two Jitsu's (RudderStack adds headers of its own, all beginning with rsa-).
const ALLOWED_HEADERS =
  'authorization, content-type, content-encoding, x-retry-count, anonymousid, sentat, x-write-key, x-request-id, ' +
  'x-enable-debug, x-ip-policy'
const RUDDERSTACK_HEADER = /^rsa-[a-z0-9-]{1,60}$/
const EXPOSED_HEADERS = 'x-request-id, retry-after'
const MAX_AGE_S = '86400'

/**
 * Opens the routes declared on `app` after this call to every origin: their key is public by nature and no cookie
 * is read. Register it before authentication, so that a refusal can be read by the page that caused it.
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
    this.route({
      method: 'OPTIONS',
      url: route.routePath,
      schema: { hide: true },
      handler: answerPreflight,
    })
  })
}

export function allowOrigin(request: FastifyRequest, reply: FastifyReply): void {
  // also without an Origin: what a cache keeps from a server's request may be given to a browser
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
