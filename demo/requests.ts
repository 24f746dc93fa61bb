/** The server rejected a request, and a retry would not help. */
export class Refused extends Error {
  override name = 'Refused'
}

type Request = { path: string; key: string; body: unknown; method?: 'DELETE'; idempotencyKey?: string }
export type Send = (request: Request) => Promise<Record<string, unknown>>

const ATTEMPTS = 25
const PAUSE_MS = 300

// Not from Node, because this module also runs in browsers.
const sleep = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

/**
 * Sends JSON and returns the JSON of the response. Retries temporary failures: no connection, 429, 5xx, and 401, because a server
 * may cache for up to two seconds that a key does not exist.
 */
export function openSend(url: string): Send {
  return async request => {
    for (let attempt = 1; ; attempt++) {
      const { status, text, retryAfterS } = await post(url, request)
      if (status >= 200 && status < 300) return JSON.parse(text) as Record<string, unknown>
      const isTemporary = status === 0 || status === 429 || status >= 500 || (status === 401 && attempt < 10)
      if (!isTemporary || attempt === ATTEMPTS) throw new Refused(refusal(url, request, status, text))
      await sleep(retryAfterS === null ? PAUSE_MS : retryAfterS * 1000)
    }
  }
}

type Answer = { status: number; text: string; retryAfterS: number | null }

async function post(url: string, { path, key, body, method, idempotencyKey }: Request): Promise<Answer> {
  try {
    const response = await fetch(url + path, {
      method: method ?? 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(idempotencyKey && { 'x-idempotency-key': idempotencyKey }),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    })
    const retryAfterS = Number(response.headers.get('retry-after') ?? Number.NaN)
    return {
      status: response.status,
      text: await response.text(),
      retryAfterS: Number.isInteger(retryAfterS) ? retryAfterS : null,
    }
  } catch (error) {
    const { message, cause } = error as Error
    return { status: 0, text: cause instanceof Error ? cause.message : message, retryAfterS: null }
  }
}

function refusal(url: string, { path }: Request, status: number, text: string): string {
  if (status === 0) return `${url} did not respond: ${text}`
  const missing = status === 404 ? ' Check that this server runs the surfaces data, events and inbound.' : ''
  return `${url}${path} answered ${status}: ${text.slice(0, 500)}${missing}`
}

/** Processes the list with bounded concurrency. */
export async function forEachLimited<T>(
  list: T[],
  atATime: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0
  async function worker(): Promise<void> {
    while (next < list.length) await work(list[next++]!)
  }
  await Promise.all(Array.from({ length: Math.min(atATime, list.length) }, worker))
}

export function splitChunks<T>(list: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size))
}
