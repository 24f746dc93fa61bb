// What a run of many test files shares (`npm test`): one throw-away PostgreSQL, which the files find through the
// environment; and at its end nothing may be left of them.
import { randomUUID } from 'node:crypto'
import { startTestCluster } from './database.ts'
import { eventually } from './eventually.ts'
import { leakedProcesses, RUN_VARIABLE } from './leaked-processes.ts'

let cluster: Awaited<ReturnType<typeof startTestCluster>> | undefined

export async function globalSetup(): Promise<void> {
  process.env[RUN_VARIABLE] = randomUUID()
  // Ctrl-C, or whoever ends the run: Node would leave without the teardown. A run that is killed is tidied up after by the next one.
  process.on('exit', endUnfinished)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))
  cluster = await startTestCluster()
}

function endUnfinished(): void {
  if (cluster === undefined) return
  for (const { pid } of leakedProcesses(process.env[RUN_VARIABLE]!)) kill(pid)
  cluster.stopAtOnce()
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has ended before
  }
}

/** An error thrown here would fail the run without a word about it. */
export async function globalTeardown(): Promise<void> {
  await endLeakedProcesses(process.env[RUN_VARIABLE]!)
  await cluster?.stop()
  cluster = undefined
}

async function endLeakedProcesses(run: string): Promise<void> {
  // Those that are just ending are given a moment.
  const isOver = () => leakedProcesses(run).length === 0
  await eventually('the processes of the tests to end', isOver, { withinMs: 5_000 }).catch(() => {
    for (const { pid, command } of leakedProcesses(run)) {
      console.error(`A test left a process behind, which is ended now: ${pid} ${command}`)
      kill(pid)
    }
    process.exitCode = 1
  })
}
