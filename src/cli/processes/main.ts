import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { LogRefused } from '../../log/log.ts'
import { startRuntime } from '../../runtime/runtime.ts'
import { openLogger } from '../../telemetry/logging.ts'
import { processOutput, reportFailedOutput } from '../output.ts'
import { closeInTime, dropRoot, limitHeapGrowth, STUCK_EXIT_CODE } from '../server-process.ts'
import type { FromHttpProcess, HttpProcessData, ToHttpProcess } from './processes.ts'

// A terminal sends these signals to every process. The primary process decides when this one stops.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
limitHeapGrowth()
reportFailedOutput()

const [data] = (await once(process, 'message')) as [HttpProcessData]
const { config, connection, logging } = data
const send = (message: FromHttpProcess) => process.connected && process.send!(message)
const runtime = await startRuntime({
  config: { ...config, surfaces: config.surfaces.filter(surface => surface !== 'worker'), opsPort: null },
  connection,
  log: openLogger(logging),
  isOneOfSeveral: true,
  directory: config.dataDir,
}).catch(async (error: NodeJS.ErrnoException) => {
  const { message, code, syscall } = error
  const { address, port } = error as Partial<AddressInfo>
  const isRefused = error instanceof LogRefused
  send({ is: 'failed', message, isRefused, details: { code, syscall, address, port } })
  process.disconnect()
  return process.exit(1)
})
await dropRoot({ user: config.user, isEmbedded: config.databaseUrl === null })

let isNotified = false
runtime.onAppend(() => {
  // All appends of one event loop iteration share one message.
  if (isNotified) return
  isNotified = true
  setImmediate(() => {
    isNotified = false
    send({ is: 'appended' })
  })
})
process.on('message', async (message: ToHttpProcess) => {
  if (message.request === 'stop') await stop()
  else send({ is: 'metrics', requestId: message.requestId, sample: await runtime.sampleMetrics() })
})
// The primary process was killed, so no process would stop this one.
process.on('disconnect', stop)
send({ is: 'listening', url: runtime.url })

async function stop(): Promise<void> {
  const isInTime = await closeInTime(runtime.close, config.drainTimeoutMs, processOutput())
  process.exit(isInTime ? 0 : STUCK_EXIT_CODE)
}
