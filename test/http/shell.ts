import assert from 'node:assert/strict'
import { connect } from 'node:net'
import type { TestContext } from 'node:test'
import type { App } from '../../src/http/app.ts'
import type { ProblemBody } from '../../src/http/problems.ts'
import { buildServer, type ServerOptions } from '../../src/http/server.ts'
import { isUnavailable } from '../../src/postgres/database.ts'
import { openLogger } from '../../src/telemetry/logging.ts'
import { type Metrics, openMetrics } from '../../src/telemetry/metrics.ts'

export type Shell = { app: App; metrics: Metrics; lines: Record<string, unknown>[] }

/** A server with the given routes, and everything that it logs. It is closed when the test ends. */
export async function openShell(
  t: TestContext,
  register: (app: App) => void | Promise<void>,
  options: Partial<ServerOptions> = {},
): Promise<Shell> {
  const lines: Record<string, unknown>[] = []
  const metrics = openMetrics()
  const log = openLogger({
    level: 'debug',
    pretty: false,
    to: { write: line => lines.push(JSON.parse(line)) },
  })
  const app = await buildServer({
    surfaces: [{ name: 'routes under test', register }],
    log,
    metrics,
    isUnavailable,
    ...options,
  })
  t.after(() => app.close())
  return { app, metrics, lines }
}

export async function listen(app: App): Promise<number> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  const address = app.server.address()
  assert(address !== null && typeof address === 'object')
  return address.port
}

/** Sends raw bytes and returns everything received until the server closes the connection. */
export function exchange(port: number, ...parts: (string | Buffer)[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => {
      for (const part of parts) socket.write(part)
    })
    socket.setEncoding('utf8')
    socket.on('data', text => {
      answer += text
    })
    socket.on('error', error => (answer === '' ? reject(error) : resolve(answer)))
    socket.on('close', () => resolve(answer))
  })
}

/** The problem in a response. Checks what every problem must have. */
export function problemIn(answer: { statusCode: number; headers: Record<string, unknown>; body: string }): ProblemBody {
  assert.equal(answer.headers['content-type'], 'application/problem+json')
  const problem = JSON.parse(answer.body) as ProblemBody
  assert.equal(problem.status, answer.statusCode)
  assert.equal(problem.request_id, answer.headers['x-request-id'])
  for (const field of ['type', 'title', 'detail'] as const) assert.equal(typeof problem[field], 'string')
  assert.match(problem.code, /^[a-z][a-z_]+$/)
  return problem
}
