import { randomBytes } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { App } from './app.ts'
import { type Problem, problemBody, problems } from './problems.ts'

export type Timeouts = {
  /** For the whole request, its body included. */
  requestMs: number
  headersMs: number
  keepAliveMs: number
  /** How long a stop waits for requests in flight. */
  drainMs: number
}

const DEFAULTS: Timeouts = {
  requestMs: 30_000,
  headersMs: 10_000,
  // Longer than the 60 s after which load balancers drop idle connections: they must be the ones to close.
  keepAliveMs: 75_000,
  drainMs: 10_000,
}
// For a client that does not read its answer.
const FINAL_WRITE_MS = 2_000
const USABLE_REQUEST_ID = /^[\w-]{1,128}$/

export function timeoutsOf(given: Partial<Timeouts> = {}): Timeouts {
  const timeouts = { ...DEFAULTS, ...given }
  return { ...timeouts, headersMs: Math.min(timeouts.headersMs, timeouts.requestMs) }
}

/** The sender's id where it is usable, else one that no other process generates. */
export function requestIds(): (request: Pick<IncomingMessage, 'headers'>) => string {
  const process = `req_${randomBytes(9).toString('base64url')}`
  let count = 0
  return ({ headers }) => {
    const given = headers['x-request-id']
    if (typeof given === 'string' && USABLE_REQUEST_ID.test(given)) return given
    return `${process}-${(++count).toString(36)}`
  }
}

/**
 * Closing answers what has arrived and what is in flight, each on a connection that then ends, and drops what is
 * left after `drainMs`. Returns whether the server is closing.
 */
export function drainOnClose(app: App, drainMs: number): () => boolean {
  const sockets = new Set<Socket>()
  let isDraining = false
  app.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  app.addHook('preClose', done => {
    isDraining = true
    // Node counts a connection on which nothing has come yet as busy; nothing is lost with it.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    const timer = setTimeout(() => app.server.closeAllConnections(), drainMs)
    timer.unref()
    app.server.once('close', () => clearTimeout(timer))
    done()
  })
  return () => isDraining
}

/** Answers what cannot be parsed as HTTP or does not arrive in time, and so never becomes a request. */
export function clientErrorHandler(newRequestId: () => string) {
  return (error: NodeJS.ErrnoException, socket: Socket): void => {
    const inFlight = (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage
    if (error.code === 'ECONNRESET' || !socket.writable || inFlight?.headersSent) {
      socket.destroy()
      return
    }
    const problem = problemOfClientError(error)
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

function problemOfClientError({ code }: NodeJS.ErrnoException): Problem {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return problems.requestTimeout()
    case 'HPE_HEADER_OVERFLOW':
      return problems.headersTooLarge()
    default:
      return problems.malformed('This is not a valid HTTP request.', 'malformed_request')
  }
}
