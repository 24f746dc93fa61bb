import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

/** What a handler answered; `error`: nobody did. */
export type Forwarded = { status?: number; ms: number; error?: string }

// About the connection that a request came on, not about the request (RFC 9110, 7.6.1), or about a form it no longer has.
const OF_THE_CONNECTION = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['host', 'content-length', 'content-encoding', 'expect'],
])

// Providers wait for 5 to 30 seconds.
const ANSWER_WITHIN_MS = 30_000
const NO_ANSWER = `no answer within ${ANSWER_WITHIN_MS / 1000} s`

/** Posts a body with the headers that it came with: Node's client leaves their spelling and order as they are. */
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
      // Whoever has answered has it: where the rest of the answer breaks off, sending it again would be a second time.
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
