import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

/** The response of a handler; `error` if there was none. */
export type Forwarded = { status?: number; ms: number; error?: string }

// Hop-by-hop headers (RFC 9110, 7.6.1), and headers that describe an encoding that the body no longer has.
const OF_THE_CONNECTION = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['host', 'content-length', 'content-encoding', 'expect'],
])

// Providers time out after 5 to 30 seconds.
const ANSWER_WITHIN_MS = 30_000
const NO_ANSWER = `no response within ${ANSWER_WITHIN_MS / 1000} s`

/** Posts a body with its original headers. Node's client preserves their case and order. */
export function forward({
  target,
  headers,
  body,
  signal,
}: {
  target: URL
  headers: [string, string][]
  body: Buffer
  signal: AbortSignal
}): Promise<Forwarded> {
  const send = target.protocol === 'https:' ? requestHttps : requestHttp
  const startedAt = performance.now()
  const took = () => Math.round(performance.now() - startedAt)
  const named = new Set(
    (headers.find(([name]) => /^connection$/i.test(name))?.[1] ?? '').toLowerCase().split(/[\s,]+/),
  )
  const isKept = (name: string) => !OF_THE_CONNECTION.has(name) && !named.has(name)
  const sent = headers.filter(([name]) => isKept(name.toLowerCase()))
  const own: [string, string][] = [
    ['Host', target.host],
    ['Content-Length', String(body.length)],
  ]
  return new Promise(resolve => {
    const fail = (error: Error & { code?: string }) =>
      resolve({ ms: took(), error: signal.aborted ? 'stopped' : error.message || error.code || error.name })
    try {
      const outgoing = send(target, {
        method: 'POST',
        headers: [...own, ...sent].flat(),
        agent: false,
        signal,
      })
      const timer = setTimeout(() => outgoing.destroy(new Error(NO_ANSWER)), ANSWER_WITHIN_MS)
      outgoing.on('close', () => clearTimeout(timer))
      outgoing.on('error', fail)
      // A handler that sent a status has received the request. If the rest of its response breaks off, a retry would deliver twice.
      outgoing.on('response', answer => {
        const answered = () => resolve({ status: answer.statusCode!, ms: took() })
        answer.on('error', answered).on('close', answered)
        answer.resume()
      })
      outgoing.end(body)
    } catch (error) {
      fail(error as Error)
    }
  })
}
