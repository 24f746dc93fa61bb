import http from 'node:http'
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject } from '../domain/json/json.ts'

/** The service rejected a request permanently, or was unreachable for too long. */
export class NotSent extends Error {
  override name = 'NotSent'
}

export type Answer = { status: number; body: Record<string, unknown> }
export type Send = (request: { path: string; key: string; type: string; text: string }) => Promise<Answer>

const PATIENCE_MS = 120_000
const PAUSE_MS = 250
const TIMEOUT_MS = 60_000
// A server caches for two seconds that a key does not exist.
const KEY_PATIENCE_MS = 10_000

/**
 * Posts a request and returns the response: 2xx, or a 4xx about the content. Retries temporary failures: no connection, 429, 5xx,
 * and 401 while the key is not yet known. Sends no user agent, because it would be stored with every event.
 */
export function openSend(url: string, signal: AbortSignal): Send & { close(): void } {
  const { request, Agent } = url.startsWith('https:') ? https : http
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const post = ({ path, key, type, text }: Parameters<Send>[0]) =>
    new Promise<{ status: number; text: string; retryAfterS: number }>(resolve => {
      const headers = {
        authorization: `Bearer ${key}`,
        'content-type': type,
        'content-length': Buffer.byteLength(text),
      }
      const sent = request(
        `${url}${path}`,
        { method: 'POST', agent, headers, timeout: TIMEOUT_MS },
        response => {
          const chunks: Buffer[] = []
          response.on('data', chunk => chunks.push(chunk))
          response.on('error', error => resolve({ status: 0, text: error.message, retryAfterS: 0 }))
          response.on('end', () => {
            const retryAfterS = Number(response.headers['retry-after'] ?? 0) || 0
            resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString(), retryAfterS })
          })
        },
      )
      sent.on('timeout', () => sent.destroy(new Error('no response within a minute')))
      sent.on('error', error => resolve({ status: 0, text: error.message, retryAfterS: 0 }))
      sent.end(text)
    })
  const send: Send = async wanted => {
    const startedAt = performance.now()
    for (;;) {
      const { status, text, retryAfterS } = await post(wanted)
      const body = parsed(text)
      if (status >= 200 && status < 300) {
        if (body === null) throw new NotSent(`${url} did not respond like a Kontor server: ${text.slice(0, 200)}`)
        return { status, body }
      }
      const waited = performance.now() - startedAt
      const mayPass = status === 0 || status === 429 || status >= 500
      const patience = mayPass ? PATIENCE_MS : status === 401 ? KEY_PATIENCE_MS : 0
      // a proxy with a smaller size limit may answer with its own text
      if (status === 400 || status === 413)
        return { status, body: body ?? { detail: `was rejected with status ${status}` } }
      if (waited > patience || signal.aborted) throw new NotSent(refusal(url, wanted.path, status, text))
      await sleep(Math.max(PAUSE_MS, retryAfterS * 1000), undefined, { signal }).catch(() => undefined)
    }
  }
  return Object.assign(send, { close: () => agent.destroy() })
}

function parsed(text: string): Answer['body'] | null {
  try {
    const body: unknown = JSON.parse(text)
    return isObject(body) ? body : null
  } catch {
    return null
  }
}

function refusal(url: string, path: string, status: number, text: string): string {
  if (status === 0) return `${url} did not respond: ${text}`
  const missing = status === 404 ? ' Check that this server runs the surfaces data, events and inbound.' : ''
  return `${url}${path} answered ${status}: ${text.slice(0, 500)}${missing}`
}
