import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Log } from '../log/log.ts'
import type { LoggerOptions } from '../telemetry/logging.ts'
import type { PoolCounts } from '../telemetry/metrics.ts'
import type { WorkerOptions, Workers } from './workers.ts'

/** What the thread is started with. */
export type ThreadData = {
  options: WorkerOptions
  logging: LoggerOptions
  /** 1 while a wake-up is on its way: a hundred appends between two looks need one message. */
  isWaking: Int32Array
}

export type ToThread = 'wake' | 'stop'

export type FromThread = 'started' | PoolCounts

/**
 * The workers in a thread of their own. Reading and normalizing a batch takes tens of milliseconds in one go; requests
 * would wait for that, and on a second core they need not.
 */
export async function startWorkerThread(
  options: WorkerOptions,
  { logging, onAppend }: { logging: LoggerOptions; onAppend: Log['onAppend'] },
): Promise<Workers> {
  const isWaking = new Int32Array(new SharedArrayBuffer(4))
  const workerData: ThreadData = { options, logging, isWaking }
  const thread = new Worker(new URL('./thread-main.ts', import.meta.url), { workerData, name: 'pipeline' })
  const tell = (message: ToThread) => thread.postMessage(message)
  let counts: PoolCounts = { totalCount: 0, idleCount: 0, waitingCount: 0 }
  thread.on('message', (message: FromThread) => {
    if (message !== 'started') counts = message
  })
  await once(thread, 'message')

  let stopping = false
  // As if it had happened here: a service without its pipeline must not look alive.
  thread.on('error', error => {
    throw error
  })
  thread.on('exit', code => {
    if (!stopping) throw new Error(`The pipeline's thread ended by itself, with code ${code}`)
  })
  const unsubscribe = onAppend(() => {
    if (Atomics.exchange(isWaking, 0, 1) === 0) tell('wake')
  })
  return {
    counts: () => counts,
    async stop() {
      stopping = true
      unsubscribe()
      const ended = once(thread, 'exit')
      tell('stop')
      await ended
    },
  }
}
