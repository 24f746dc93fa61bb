// Where the thread of the pipeline begins (see thread.ts).
import { parentPort, workerData } from 'node:worker_threads'
import { openLogger } from '../http/logging.ts'
import type { FromThread, ThreadData, ToThread } from './thread.ts'
import { startWorkers } from './workers.ts'

const COUNT_EVERY_MS = 1_000

const port = parentPort!
const { options, logging, isWaking } = workerData as ThreadData
const tell = (message: FromThread) => port.postMessage(message)

const listeners = new Set<() => void>()
const workers = await startWorkers(options, {
  logger: openLogger(logging),
  onAppend(listener) {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
})
const counting = setInterval(() => tell(workers.counts()), COUNT_EVERY_MS)

port.on('message', async (message: ToThread) => {
  if (message === 'wake') {
    // Before the look: what is appended from here on sends a message of its own.
    Atomics.store(isWaking, 0, 0)
    for (const listener of listeners) listener()
  } else {
    clearInterval(counting)
    await workers.stop()
    port.close()
  }
})
tell('started')
