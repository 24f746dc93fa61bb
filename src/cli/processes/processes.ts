import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import { LogRefused } from '../../log/log.ts'
import type { Connection } from '../../postgres/database.ts'
import type { HttpProcesses } from '../../runtime/runtime.ts'
import type { LoggerOptions } from '../../telemetry/logging.ts'
import type { MetricsSample } from '../../telemetry/metrics.ts'

/** The first message to a process. */
export type HttpProcessData = { config: Config; connection: Connection; logging: LoggerOptions }

export type ToHttpProcess = { request: 'metrics'; requestId: number } | { request: 'stop' }

export type FromHttpProcess =
  | { is: 'listening'; url: string }
  | { is: 'failed'; message: string; isRefused: boolean; details: Record<string, unknown> }
  | { is: 'appended' }
  | { is: 'metrics'; requestId: number; sample: MetricsSample }

// A process that exits immediately after each start must not use a whole core for restarts.
const RESTART_AFTER_MS = 1_000
// A scrape omits processes that do not respond within this time.
const METRICS_WITHIN_MS = 1_000

/**
 * Several processes that serve requests on one port. Whichever is free accepts the next connection, and each is a separate node
 * on the same log and store. This primary process restarts them, and receives their append notifications and metrics.
 */
export async function openHttpProcesses(
  data: HttpProcessData & { count: number; logger: Logger },
): Promise<HttpProcesses> {
  const { count, logger, ...first } = data
  const listeners = new Set<() => void>()
  const pending = new Map<number, (sample: MetricsSample) => void>()
  let lastRequestId = 0
  let isStopping = false
  // Each process accepts connections itself. With round-robin scheduling, a connection that is being handed to a process that
  // dies stays open and is never answered.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  cluster.setupPrimary({
    exec: fileURLToPath(new URL('./main.ts', import.meta.url)),
    args: [],
    // Preserves maps and dates in the configuration.
    serialization: 'advanced',
  })
  const running = () => Object.values(cluster.workers ?? {}).filter(worker => worker !== undefined)
  const send = (worker: Worker, message: ToHttpProcess) => worker.isConnected() && worker.send(message)

  function open(): Promise<string> {
    const worker = cluster.fork()
    worker.send(first)
    return new Promise((resolve, reject) => {
      worker.on('message', (message: FromHttpProcess) => {
        if (message.is === 'appended') for (const listener of listeners) listener()
        else if (message.is === 'metrics') pending.get(message.requestId)?.(message.sample)
        else if (message.is === 'listening') resolve(message.url)
        else if (message.isRefused) reject(new LogRefused(message.message))
        else reject(Object.assign(new Error(message.message), message.details))
      })
      worker.once('error', reject)
      worker.once('exit', code => reject(new Error(`An HTTP process exited with code ${code} before it was listening`)))
    })
  }

  async function openAgain(): Promise<void> {
    await sleep(RESTART_AFTER_MS, undefined, { ref: false })
    if (!isStopping) await open().catch(() => undefined) // the exit listener below restarts it
  }

  async function stop(): Promise<void> {
    isStopping = true
    const ended = running().map(worker => once(worker, 'exit'))
    for (const worker of running()) send(worker, { request: 'stop' })
    await Promise.all(ended)
  }

  let urls: string[]
  try {
    urls = await Promise.all(Array.from({ length: count }, open))
  } catch (error) {
    await stop()
    throw error
  }
  cluster.on('exit', (worker, code, signal) => {
    if (isStopping) return
    logger.error({ pid: worker.process.pid, code, signal }, 'an HTTP process exited and is restarted')
    openAgain()
  })

  return {
    url: urls[0]!,
    count,
    onAppend(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    async metrics() {
      const samples = running().map(async worker => {
        const requestId = ++lastRequestId
        const answered = new Promise<MetricsSample>(resolve => pending.set(requestId, resolve))
        send(worker, { request: 'metrics', requestId })
        const sample = await Promise.race([answered, sleep(METRICS_WITHIN_MS, undefined, { ref: false })])
        pending.delete(requestId)
        return sample
      })
      return (await Promise.all(samples)).filter(sample => sample !== undefined)
    },
    close: stop,
  }
}
