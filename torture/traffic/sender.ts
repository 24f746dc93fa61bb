import { setTimeout as sleep } from 'node:timers/promises'
import type { Shop } from '../deployment/shops.ts'
import type { Item, Ledger } from '../ledger.ts'
import type { Random } from '../random.ts'
import type { Answer, Client } from './client.ts'

/** A request about items of the ledger. */
export type Request = {
  shop: Shop
  path: string
  method?: string
  headers: Record<string, string>
  body: object
  items: Item[]
  /** The response for each item. */
  read?: (answer: Answer) => { operations?: (string | null)[]; rejected?: number[] }
  /** Allowed statuses besides 503. */
  expects: number[]
}

export type Sender = ReturnType<typeof openSender>

/** Sends requests and records them in the ledger. */
export function openSender({
  client,
  ledger,
  random,
  urls,
}: {
  client: Client
  ledger: Ledger
  random: Random
  urls: () => string[]
}) {
  let count = 0
  let isOver = false
  let hasHurry = false
  /** Acknowledged claimed requests to repeat later; the oldest are kept longest. */
  const acknowledged: Request[] = []
  const MOST_KEPT = 4_000

  async function once(request: Request, { url = random.pick(urls()), patienceMs = 15_000 } = {}) {
    const { shop, path, method = 'POST', headers, body, items, expects } = request
    const n = ledger.sent(shop.tenant, items)
    const answer = await client.send({ url: url + path, method, headers, body, patienceMs })
    ledger.answered(n, {
      status: answer?.status ?? 0,
      ...(answer && answer.status < 300 && request.read?.(answer)),
    })
    if (answer && ![...expects, 503].includes(answer.status))
      ledger.violation(`${method} ${path} was answered ${answer.status}: ${JSON.stringify(answer.body).slice(0, 300)}`)
    if (answer?.status === 503 && !/^\d+$/.test(String(answer.headers['retry-after'])))
      ledger.violation(`${method} ${path} was answered 503 without Retry-After`)
    return answer
  }

  return {
    marker: () => `m${++count}`,
    once,
    /** Sends a claimed request until its outcome is certain. */
    async untilCertain(request: Request): Promise<Answer | null> {
      for (let pauseMs = 100; ; pauseMs = Math.min(2 * pauseMs, 1_000)) {
        const answer = await once(request)
        if (answer && answer.status < 500) {
          if (answer.status < 300) keep(request)
          return answer
        }
        if (hasHurry) return null
        await sleep(pauseMs)
      }
    },
    acknowledged,
    get isOver() {
      return isOver
    },
    /** Sends no new requests; claimed requests continue until their outcome is certain. */
    stop() {
      isOver = true
    },
    giveUp() {
      hasHurry = true
    },
  }

  function keep(request: Request): void {
    if (acknowledged.length < MOST_KEPT) acknowledged.push(request)
    else acknowledged[random.integer(MOST_KEPT / 2, MOST_KEPT - 1)] = request
  }
}
