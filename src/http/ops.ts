import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer } from '../node-http.ts'

type Readiness = { ok: boolean; checks: Record<string, string> }
export type OpsMetrics = { text(): Promise<string>; contentType: string }
export type Ops = { port: number; close(): Promise<void> }

// Less than the second that orchestrators commonly wait for a probe.
const READINESS_TIMEOUT_MS = 900

/** The operations listener. It requires no credentials and must listen on a private address. */
export async function startOps(options: {
  port: number
  host: string
  metrics: OpsMetrics
  readiness: () => Promise<Readiness>
  /** Identifies this server: `kontor status` prints it. */
  about?: object
}): Promise<Ops> {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '/').split('?')[0]!.replace(/(.)\/$/, '$1')
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return send(response, 405, { error: 'method_not_allowed' })
    }
    switch (path) {
      case '/healthz':
        return send(response, 200, { status: 'alive', ...options.about })
      case '/readyz': {
        const { ok, checks } = await readinessOrReason(options.readiness)
        return send(response, ok ? 200 : 503, { status: ok ? 'ready' : 'not_ready', checks })
      }
      case '/metrics': {
        const text = await options.metrics.text()
        response.writeHead(200, { 'content-type': options.metrics.contentType }).end(text)
        return
      }
      default:
        return send(response, 404, { error: 'not_found', paths: ['/healthz', '/readyz', '/metrics'] })
    }
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => {
      if (!response.headersSent) send(response, 500, { error: 'internal_error' })
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      server.closeAllConnections()
      return closed
    },
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response
    .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    .end(`${JSON.stringify(body)}\n`)
}

async function readinessOrReason(readiness: () => Promise<Readiness>): Promise<Readiness> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Readiness>(resolve => {
    timer = setTimeout(() => {
      resolve({ ok: false, checks: { readiness: `no response within ${READINESS_TIMEOUT_MS} ms` } })
    }, READINESS_TIMEOUT_MS)
  })
  try {
    return await Promise.race([readiness(), late])
  } catch (error) {
    return { ok: false, checks: { readiness: error instanceof Error ? error.message : String(error) } }
  } finally {
    clearTimeout(timer)
  }
}
