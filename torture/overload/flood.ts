import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

type FloodOptions = {
  url: string
  /** A complete HTTP request, built once and sent repeatedly. */
  request: Buffer
  /** Requests per second, independent of responses; null: each connection sends after its response. */
  rate: number | null
  connections: number
  /** Maximum requests in flight per connection. */
  depth: number
  durationMs: number
}

export type FloodResult = {
  seconds: number
  sent: number
  /** Due, but every connection was full because the server did not read. */
  held: number
  statuses: Map<number, number>
  /** Responses with 503 but without Retry-After. */
  withoutRetryAfter: number
  /** Latencies of 2xx and 503 responses in milliseconds, sorted. */
  accepted: number[]
  shed: number[]
  broken: number
  /** Still in flight at the end. */
  unanswered: number
}

type Line = { socket: Socket; underWay: number[]; rest: string }

const TICK_MS = 5

/** Sends one request over many connections, if necessary faster than the server responds, and counts the responses. */
export async function flood(options: FloodOptions): Promise<FloodResult> {
  const { request, rate, depth, durationMs } = options
  const result: FloodResult = {
    ...{ seconds: durationMs / 1_000, sent: 0, held: 0, statuses: new Map(), withoutRetryAfter: 0 },
    ...{ accepted: [], shed: [], broken: 0, unanswered: 0 },
  }
  let isOver = false
  const lines = await Promise.all(Array.from({ length: options.connections }, () => open(options.url)))
  const send = (line: Line) => {
    line.underWay.push(performance.now())
    line.socket.write(request)
    result.sent++
  }
  for (const [i, line] of lines.entries()) listen(i, line)

  function listen(i: number, line: Line): void {
    line.socket.on('data', data => {
      const answers = answersIn(line, data.toString('latin1'))
      for (const { status, hasRetryAfter } of answers) note(result, line, status, hasRetryAfter)
      if (rate === null && !isOver) for (const _ of answers) send(line)
    })
    line.socket.on('error', () => {})
    line.socket.on('close', () => {
      result.broken += line.underWay.length
      if (isOver) return
      open(options.url).then(
        next => {
          lines[i] = next
          listen(i, next)
          if (rate === null) send(next)
        },
        () => {},
      )
    })
  }

  const from = performance.now()
  if (rate === null) for (const line of lines) send(line)
  let turn = 0
  let due = 0
  while (performance.now() - from < durationMs) {
    await sleep(TICK_MS)
    if (rate === null) continue
    for (; due < (rate * (performance.now() - from)) / 1_000; due++) {
      const line = lines[turn++ % lines.length]!
      if (line.underWay.length < depth && line.socket.writable) send(line)
      else result.held++
    }
  }
  isOver = true
  await Promise.race([sleep(2_000), answered(lines)])
  for (const { socket, underWay } of lines) {
    result.unanswered += underWay.length
    underWay.length = 0
    socket.destroy()
  }
  result.accepted.sort((a, b) => a - b)
  result.shed.sort((a, b) => a - b)
  return result
}

async function answered(lines: Line[]): Promise<void> {
  while (lines.some(({ underWay }) => underWay.length > 0)) await sleep(20)
}

function open(url: string): Promise<Line> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve({ socket, underWay: [], rest: '' }))
    socket.setNoDelay()
    socket.once('error', reject)
  })
}

function note(result: FloodResult, line: Line, status: number, hasRetryAfter: boolean): void {
  const ms = performance.now() - (line.underWay.shift() ?? performance.now())
  result.statuses.set(status, (result.statuses.get(status) ?? 0) + 1)
  if (status < 300) result.accepted.push(ms)
  if (status === 503) result.shed.push(ms)
  if (status === 503 && !hasRetryAfter) result.withoutRetryAfter++
}

/** The complete response heads received so far. Bodies are short and skipped. */
function answersIn(line: Line, text: string): { status: number; hasRetryAfter: boolean }[] {
  line.rest += text
  const found: { status: number; hasRetryAfter: boolean }[] = []
  for (;;) {
    const end = line.rest.indexOf('\r\n\r\n')
    if (end < 0) return found
    const head = line.rest.slice(0, end)
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (line.rest.length < end + 4 + length) return found
    line.rest = line.rest.slice(end + 4 + length)
    found.push({ status: Number(head.slice(9, 12)), hasRetryAfter: /\r\nretry-after: \d+/i.test(head) })
  }
}

/** The percentile of sorted numbers. */
export const quantile = (sorted: number[], part: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

export function httpRequest(
  method: string,
  url: string,
  path: string,
  headers: Record<string, string>,
  body?: object,
): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body)
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `host: ${new URL(url).host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(text)}`]),
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${text}`)
}
