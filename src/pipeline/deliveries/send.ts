import type { KeyObject } from 'node:crypto'
import { lookup } from 'node:dns'
import type { IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { isPrivateAddress, literalAddress, mailAddressOf } from '../../domain/destinations/addresses.ts'
import {
  type DestinationType,
  messageId,
  retryAfterMs,
  signedHeaders,
  signingKey,
} from '../../domain/destinations/destinations.ts'
import { escapeSlack } from '../../domain/destinations/markup.ts'
import { renderMessage } from '../../domain/destinations/readable.ts'
import { storableText } from '../../domain/json/json.ts'
import { Agent as HttpAgent, request as requestHttp } from '../../node-http.ts'
import type { Destination } from '../../store/destinations/destinations.ts'
import { type MailSettings, sendMail } from './mail.ts'

/** A message to send. `data`: JSON. */
export type Sendable = { id: string; type: string; at: Date; data: string }

/** The URL, signing keys and headers of a destination. */
export type Target = {
  type: DestinationType
  url: string
  keys: readonly KeyObject[]
  headers: Readonly<Record<string, string>>
}

export type Sent = {
  isDelivered: boolean
  status: number | null
  error: string | null
  /** The beginning of the response body. */
  response: string | null
  durationMs: number
  retryAfterMs: number | undefined
}

const TIMEOUT_S = 15
// Mail servers may check a message for viruses before they accept it.
const MAIL_TIMEOUT_S = 60
const KEPT_RESPONSE_BYTES = 1_000
// A longer response is not read to its end. Its connection is closed.
const MAX_RESPONSE_BYTES = 65_536
const IDLE_SOCKET_MS = 10_000

export type Sender = {
  /** Never throws. The result contains the error. */
  send(target: Target, message: Sendable): Promise<Sent>
  /** Aborts running requests. */
  close(): void
}

export type SenderOptions = {
  allowPrivate: boolean
  /** Null: e-mail is not configured. */
  mail: MailSettings | null
  /** For links in messages to people; null if unknown. */
  consoleUrl: string | null
  /** Receivers reject old signatures, so a node whose clock is wrong must not sign with its own time. */
  now: () => Date
}

/**
 * Sends messages by POST or e-mail. Each connection to a URL resolves the host name and connects to the address that was
 * checked, so a name that resolves to another address later (DNS rebinding) is safe. A redirect is not followed and counts as
 * a failure. The mail server is a setting of the operator and may be in a private network.
 */
export function openSender({ allowPrivate, mail, consoleUrl, now }: SenderOptions): Sender {
  const options = { keepAlive: true, timeout: IDLE_SOCKET_MS, ...(!allowPrivate && { lookup: publicLookup }) }
  const agents = { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) }
  const underWay = new Set<AbortController>()

  async function send(target: Target, message: Sendable): Promise<Sent> {
    const began = performance.now()
    const aborting = new AbortController()
    const seconds = target.type === 'email' ? MAIL_TIMEOUT_S : TIMEOUT_S
    const timer = setTimeout(() => aborting.abort(new Error(`no response within ${seconds} s`)), seconds * 1_000)
    underWay.add(aborting)
    const over = (facts: Partial<Sent>): Sent => ({
      ...{ isDelivered: false, status: null, error: null, response: null, retryAfterMs: undefined },
      durationMs: Math.round(performance.now() - began),
      ...facts,
    })
    try {
      const deliver = target.type === 'email' ? mailTo : postTo
      return over(await deliver(target, message, aborting.signal))
    } catch (error) {
      const status = (error as { responseCode?: number }).responseCode ?? null
      return over({ status, error: errorMessage(aborting.signal.aborted ? aborting.signal.reason : error) })
    } finally {
      clearTimeout(timer)
      underWay.delete(aborting)
    }
  }

  async function mailTo({ url }: Target, message: Sendable, signal: AbortSignal): Promise<Partial<Sent>> {
    if (mail === null) throw new Error('e-mail is not configured: set KONTOR_SMTP_URL')
    const content = renderMessage(message, consoleUrl)
    const response = await sendMail(mail, { id: messageId(message.id), to: mailAddressOf(url), content }, signal)
    return { isDelivered: true, status: Number.parseInt(response, 10) || null, response: storableText(response) }
  }

  async function postTo(target: Target, message: Sendable, signal: AbortSignal): Promise<Partial<Sent>> {
    const url = new URL(target.url)
    const address = literalAddress(url.hostname)
    if (!allowPrivate && address !== null && isPrivateAddress(address)) throw new PrivateAddress(address)
    if (!allowPrivate && url.protocol !== 'https:') throw new Error('only https is allowed')
    const body = buildBody(target, message, consoleUrl)
    const id = messageId(message.id)
    const timestampS = Math.floor(now().getTime() / 1_000)
    const answer = await post(url, {
      agent: agents[url.protocol as keyof typeof agents],
      headers: {
        'user-agent': 'Kontor',
        ...target.headers,
        'content-type': 'application/json',
        ...(target.type === 'webhook' && signedHeaders(target.keys, { id, timestampS, body })),
      },
      body,
      signal,
    })
    const status = answer.statusCode!
    const isDelivered = status >= 200 && status < 300
    return {
      ...{ isDelivered, status, response: await readBeginning(answer, signal) },
      error: isDelivered ? null : `answered ${status}`,
      retryAfterMs: retryAfterMs(answer.headers['retry-after'], now().getTime()),
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

type Post = {
  agent: InstanceType<typeof HttpAgent> | HttpsAgent
  headers: Record<string, string>
  body: string
  signal: AbortSignal
}

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
    outgoing.on('upgrade', (_, socket) => {
      socket.destroy()
      reject(new Error('answered 101'))
    })
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

/** Throws if the secret key cannot decrypt the secrets. */
export function buildTarget(destination: Destination, secrets: Opening, now: Date): Target {
  const good = destination.secrets.filter(({ expires_at }) => expires_at === null || new Date(expires_at) > now)
  return {
    type: destination.type,
    url: destination.url,
    keys: good.map(({ sealed }) => signingKey(secrets.open(sealed))),
    headers: openHeaders(destination, secrets),
  }
}

export function openHeaders({ headers }: Destination, secrets: Opening): Record<string, string> {
  return headers === null ? {} : JSON.parse(secrets.open(headers))
}

/** The body of a delivery; of an e-mail, its subject and text. */
export function buildBody({ type }: Pick<Target, 'type'>, message: Sendable, consoleUrl: string | null): string {
  if (type === 'email') {
    const { subject, text } = renderMessage(message, consoleUrl)
    return `${subject}\n\n${text}`
  }
  if (type === 'slack') return JSON.stringify({ text: escapeSlack(renderMessage(message, consoleUrl).chat) })
  const facts = JSON.stringify({ id: messageId(message.id), type: message.type, timestamp: message.at })
  return `${facts.slice(0, -1)},"data":${message.data}}`
}
