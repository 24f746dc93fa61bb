// The pipeline in its own thread (see startWorkerThread).
import { parentPort, workerData } from 'node:worker_threads'
import { otelVariables } from '../config/config.ts'
import { version } from '../config/version.ts'
import { openLogger } from '../telemetry/logging.ts'
import { openTracing } from '../telemetry/tracing.ts'
import { type FromThread, startWorkers, type ThreadData, type ToThread } from './workers.ts'

const COUNT_EVERY_MS = 1_000

const port = parentPort!
const { options, logging, isWaking } = workerData as ThreadData
const send = (message: FromThread) => port.postMessage(message)

const tracing = await openTracing(otelVariables(), version)
const workers = await startWorkers(options, {
  tracing,
  logger: openLogger(logging),
  onAppend(listener) {
    const receive = (message: ToThread) => {
      if (message !== 'wake') return
      // Before the read, because entries appended from now on need a new message.
      Atomics.store(isWaking, 0, 0)
      listener()
    }
    port.on('message', receive)
    return () => port.off('message', receive)
  },
})
const counting = setInterval(() => send(workers.counts()), COUNT_EVERY_MS)

port.on('message', async (message: ToThread) => {
  if (message !== 'stop') return
  clearInterval(counting)
  await workers.stop()
  await tracing?.close()
  port.close()
})
send('started')
