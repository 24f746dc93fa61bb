import { execFile, execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import autocannon from 'autocannon'

/** In every request, "@@" in path and body is replaced by a unique number, and "@now@" in the body by the time in seconds. */
export type Sent = { method: 'GET' | 'POST' | 'DELETE'; path: string; body?: string }

export type LoadOptions = {
  url: string
  traffic: Sent[]
  authorization: string
  /** Signs the bodies that contain "@@". */
  signingSecret?: string
  connections: number
  seconds: number
  /** Requests per second; without it, as many as possible. */
  rate?: number
}

export type LoadResult = {
  perSecond: number
  requests: number
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** responses other than 2xx */
  refused: number
  /** connections that failed, broke or timed out */
  broken: number
}

let runs = 0

export async function load(options: LoadOptions): Promise<LoadResult> {
  const run = `${process.pid}x${++runs}x`
  return hasWrk() ? withWrk(options, run) : withAutocannon(options, run)
}

let wrkFound: boolean | undefined

/** wrk uses a fraction of the CPU of a load generator in JavaScript, which matters on two cores. */
export function hasWrk(): boolean {
  if (wrkFound === undefined) {
    try {
      execFileSync('which', ['wrk'], { stdio: 'ignore' })
      wrkFound = true
    } catch {
      wrkFound = false
    }
  }
  return wrkFound
}

const LATENCY_GUESS_MS = 3

async function withWrk(options: LoadOptions, run: string): Promise<LoadResult> {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-bench-'))
  try {
    const file = join(directory, 'traffic')
    writeFileSync(file, options.traffic.map(({ method, path, body }) => `${method}\t${path}\t${body ?? ''}\n`).join(''))
    const pauseMs = options.rate ? Math.max(0, (1000 * options.connections) / options.rate - LATENCY_GUESS_MS) : 0
    const { stdout } = await promisify(execFile)(
      'wrk',
      [
        ...['-t', '1', '-c', String(options.connections), '-d', `${Math.ceil(options.seconds)}s`, '--timeout', '10s'],
        ...['-s', join(import.meta.dirname, 'wrk.lua'), options.url],
        ...[
          '--',
          file,
          options.authorization,
          run,
          String(pauseMs),
          ...(options.signingSecret ? [options.signingSecret] : []),
        ],
      ],
      { env: { ...process.env, ...(options.rate && { BENCH_PACED: '1' }) } },
    )
    const { seconds, ...result } = JSON.parse(/RESULT (.*)/.exec(stdout)![1]!)
    return { ...result, perSecond: result.requests / seconds }
  } finally {
    await rm(directory, { recursive: true })
  }
}

async function withAutocannon(options: LoadOptions, run: string): Promise<LoadResult> {
  let sent = 0
  const result = await autocannon({
    url: options.url,
    connections: options.connections,
    duration: options.seconds,
    ...(options.rate && { overallRate: Math.round(options.rate) }),
    headers: { authorization: options.authorization, 'content-type': 'application/json' },
    requests: [
      {
        setupRequest(request) {
          const { method, path, body } = options.traffic[sent++ % options.traffic.length]!
          const number = run + sent
          const text = body?.replaceAll('@@', number).replaceAll('@now@', new Date().toISOString().slice(0, 19))
          return {
            ...request,
            method,
            path: path.replaceAll('@@', number),
            ...(text !== undefined && { body: text }),
            ...(text !== undefined &&
              options.signingSecret && { headers: { ...request.headers, ...sign(text, options.signingSecret) } }),
          }
        },
      },
    ],
  })
  return {
    perSecond: result.requests.total / result.duration,
    requests: result.requests.total,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    maxMs: result.latency.max,
    refused: result.non2xx,
    broken: result.errors,
  }
}

function sign(body: string, secret: string): Record<string, string> {
  const time = Math.floor(Date.now() / 1000)
  const digest = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')
  return { 'x-service-signature': `t=${time},v1=${digest}` }
}
