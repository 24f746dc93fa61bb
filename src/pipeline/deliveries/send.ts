import type { KeyObject } from 'node:crypto'
import { lookup } from 'node:dns'
import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { isPrivateAddress, literalAddress } from '../../domain/destinations/addresses.ts'
import { messageId, retryAfterMs, signedHeaders, signingKey } from '../../domain/destinations/destinations.ts'
import { storableText } from '../../domain/json/json.ts'
import type { Destination } from '../../store/destinations/destinations.ts'
import type { Due } from '../../store/destinations/outbox.ts'

/** The URL, signing keys and headers of a destination. */
export type Target = { url: string; keys: readonly KeyObject[]; headers: Readonly<Record<string, string>> }

export type Sent = {
  isDelivered: boolean
  status: number | null
  error: string | null
  /** The beginning of the response body. */
  response: string | null
  durationMs: number
  retryAfterMs: number | undefined
}

const TIMEOUT_MS = 15_000
const KEPT_RESPONSE_BYTES = 1_000
// A longer response is not read to its end. Its connection is closed.
const MAX_RESPONSE_BYTES = 65_536
const IDLE_SOCKET_MS = 10_000

export type Sender = {
  /** Never throws. The result contains the error. */
  send(target: Target, message: { id: string; body: string }): Promise<Sent>
  /** Aborts running requests. */
  close(): void
}

/**
 * Posts messages. Each connection resolves the host name and connects to the address that was checked, so a name that
 * resolves to another address later (DNS rebinding) is safe. A redirect is not followed and counts as a failure.
 */
export function openSender({
  allowPrivate,
  now,
}: {
  allowPrivate: boolean
  /** Receivers reject old signatures, so a node whose clock is wrong must not sign with its own time. */
  now: () => Date
}): Sender {
  const options = { keepAlive: true, timeout: IDLE_SOCKET_MS, ...(!allowPrivate && { lookup: publicLookup }) }
  const agents = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) }
  const underWay = new Set<AbortController>()

  async function send({ url: text, keys, headers }: Target, { id, body }: { id: string; body: string }) {
    const url = new URL(text)
    const began = performance.now()
    const aborting = new AbortController()
    const timer = setTimeout(() => aborting.abort(new Error('no answer within 15 s')), TIMEOUT_MS)
    underWay.add(aborting)
    const over = (facts: Partial<Sent>): Sent => ({
      ...{ isDelivered: false, status: null, error: null, response: null, retryAfterMs: undefined },
      durationMs: Math.round(performance.now() - began),
      ...facts,
    })
    try {
      const address = literalAddress(url.hostname)
      if (!allowPrivate && address !== null && isPrivateAddress(address)) throw new PrivateAddress(address)
      if (!allowPrivate && url.protocol !== 'https:') throw new Error('only https is allowed')
      const timestampS = Math.floor(now().getTime() / 1_000)
      const answer = await post(url, {
        agent: agents[url.protocol as keyof typeof agents],
        headers: {
          'user-agent': 'Kontor',
          ...headers,
          'content-type': 'application/json',
          ...signedHeaders(keys, { id, timestampS, body }),
        },
        body,
        signal: aborting.signal,
      })
      const status = answer.statusCode!
      const isDelivered = status >= 200 && status < 300
      const response = await readBeginning(answer, aborting.signal)
      return over({
        ...{ isDelivered, status, response },
        error: isDelivered ? null : `answered ${status}`,
        retryAfterMs: retryAfterMs(answer.headers['retry-after'], now().getTime()),
      })
    } catch (error) {
      return over({ error: errorMessage(aborting.signal.aborted ? aborting.signal.reason : error) })
    } finally {
      clearTimeout(timer)
      underWay.delete(aborting)
    }
  }

  return {
    send,
    close() {
      for (const aborting of underWay) aborting.abort(new Error('this node stopped'))
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

type Post = { agent: HttpAgent | HttpsAgent; headers: Record<string, string>; body: string; signal: AbortSignal }

function post(url: URL, { agent, headers, body, signal }: Post): Promise<IncomingMessage> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const bytes = Buffer.from(body)
    const outgoing = request(url, {
      ...{ method: 'POST', agent, signal },
      headers: { ...headers, 'content-length': bytes.length },
      maxHeaderSize: 16_384,
    })
    outgoing.on('response', resolve)
    outgoing.on('error', reject)
    outgoing.end(bytes)
  })
}

/** Reads the beginning of the response body. Reads the rest, too, up to a limit, so that the connection can be reused. */
function readBeginning(answer: IncomingMessage, signal: AbortSignal): Promise<string | null> {
  return new Promise(resolve => {
    const kept: Buffer[] = []
    let bytes = 0
    const end = () => {
      const begin = Buffer.concat(kept).subarray(0, KEPT_RESPONSE_BYTES)
      resolve(begin.length === 0 ? null : storableText(begin.toString('utf8')))
    }
    answer.on('data', (chunk: Buffer) => {
      if (bytes < KEPT_RESPONSE_BYTES) kept.push(chunk)
      bytes += chunk.length
      if (bytes > MAX_RESPONSE_BYTES) answer.destroy()
    })
    answer.on('close', end)
    // The status arrived in time and counts even if the body does not end.
    answer.on('error', end)
    signal.addEventListener('abort', end, { once: true })
  })
}

class PrivateAddress extends Error {
  constructor(address: string) {
    super(`${address} is in a private network`)
  }
}

/** Like dns.lookup, but returns public addresses only. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '', 0)
    const open = addresses.filter(({ address }) => !isPrivateAddress(address))
    if (open.length === 0) return callback(new PrivateAddress(addresses[0]?.address ?? hostname), '', 0)
    if (options.all) callback(null, open)
    else callback(null, open[0]!.address, open[0]!.family)
  })
}

/** Whether a name currently resolves to a private address. False if it cannot be resolved. */
export function leadsToPrivate(hostname: string): Promise<boolean> {
  return new Promise(resolve => {
    lookup(hostname.replace(/^\[(.*)\]$/, '$1'), { all: true }, (error, addresses) =>
      resolve(!error && addresses.some(({ address }) => isPrivateAddress(address))),
    )
  })
}

function errorMessage(error: unknown): string {
  const { message, code } = error as { message?: string; code?: string }
  // If several addresses were tried, the message is empty.
  return storableText(message || code || 'the connection failed').slice(0, 500)
}

type Opening = { open(sealed: string): string }

/** Throws if the master key cannot decrypt the secrets. */
export function buildTarget(destination: Destination, secrets: Opening, now: Date): Target {
  const good = destination.secrets.filter(({ expires_at }) => expires_at === null || new Date(expires_at) > now)
  return {
    url: destination.url,
    keys: good.map(({ sealed }) => signingKey(secrets.open(sealed))),
    headers: openHeaders(destination, secrets),
  }
}

export function openHeaders({ headers }: Destination, secrets: Opening): Record<string, string> {
  return headers === null ? {} : JSON.parse(secrets.open(headers))
}

/** The body of a delivery. */
export function buildBody({ id, type, at, data }: Omit<Due, 'attempts'>): string {
  const facts = JSON.stringify({ id: messageId(id), type, timestamp: at })
  return `${facts.slice(0, -1)},"data":${data}}`
}
