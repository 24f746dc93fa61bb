import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Service } from './service.ts'

/** A write or event, and what its sender knows about its outcome. */
type Sent = {
  /** Unique; identifies it in the stored data. */
  marker: string
  /** lost: there was no response, so it may have taken effect or not. */
  outcome: 'acknowledged' | 'lost'
  operationId?: string
}

export type RecordWrite = Sent & { id: string; version: number; key: string | null }

export type Traffic = { writes: RecordWrite[]; events: Sent[]; odd: string[] }

const RECORDS = 12
const SENDERS = 10

const timeOf = (version: number) => new Date(Date.UTC(2026, 0, 1) + version * 1_000).toISOString()

/**
 * Senders that continue through crashes and restarts until `stop`. Half of the record writes have an idempotency key and
 * are repeated until they are acknowledged. All other requests are sent once.
 */
export function startTraffic(service: Service) {
  const traffic: Traffic = { writes: [], events: [], odd: [] }
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  let stopping = false
  let number = 0
  const versions = new Map<string, number>()

  async function send(path: string, key: string, body: object, headers: Record<string, string> = {}) {
    const answer = await post(agent, service.url + path, { authorization: `Bearer ${key}`, ...headers }, body)
    if (answer && ![200, 202, 503].includes(answer.status)) traffic.odd.push(`${path} ${answer.status}`)
    // The server is down or busy: wait a little.
    if (!answer || answer.status === 503) await sleep(100)
    return answer
  }

  async function writeRecord(): Promise<void> {
    const n = ++number
    const id = `r-${n % RECORDS}`
    const version = (versions.get(id) ?? 0) + 1
    versions.set(id, version)
    const key = n % 2 === 0 ? `key-${n}` : null
    const sent: RecordWrite = { id, version, key, marker: `w-${n}`, outcome: 'lost' }
    const body = {
      entityType: 'order',
      id,
      sourceUpdatedAt: timeOf(version),
      data: { marker: sent.marker, version },
    }
    traffic.writes.push(sent)
    for (;;) {
      const answer = await send('/v1/orders', service.privateKey, body, key ? { 'x-idempotency-key': key } : {})
      if (answer && (answer.status === 202 || answer.status === 200)) {
        sent.outcome = 'acknowledged'
        sent.operationId = answer.body.operationId as string
        return
      }
      if (!key || stopping) return
    }
  }

  async function track(): Promise<void> {
    const marker = `e-${++number}`
    const sent: Sent = { marker, outcome: 'lost' }
    traffic.events.push(sent)
    const body = { event_type: 'page_view', visitor: `v-${number % 7}`, data: { marker } }
    const answer = await send('/v1/track/', service.trackingKey, body)
    if (answer?.status === 200) sent.outcome = 'acknowledged'
  }

  const senders = Array.from({ length: SENDERS }, async (_, i) => {
    while (!stopping) {
      await (i % 2 === 0 ? writeRecord() : track())
    }
  })
  return {
    traffic,
    /** Resolves when the last request of each sender has ended. */
    async stop() {
      stopping = true
      await Promise.all(senders)
      agent.destroy()
    },
  }
}

type Reply = { status: number; body: Record<string, unknown> }

/** Null if the connection broke. A running server must respond within two minutes. */
function post(agent: Agent, url: string, headers: Record<string, string>, body: object): Promise<Reply | null> {
  return new Promise((resolve, reject) => {
    const message = request(url, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      timeout: 120_000,
    })
    message.on('response', response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', part => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode!, body: JSON.parse(text) }))
      response.on('error', () => resolve(null))
    })
    message.on('timeout', () => {
      reject(new Error(`no response from ${url} in 120 s`))
      message.destroy()
    })
    message.on('error', () => resolve(null))
    message.end(JSON.stringify(body))
  })
}
