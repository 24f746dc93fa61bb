// What a run of many test files shares (`npm test`): one throw-away PostgreSQL, which the files find through the
// environment; and at its end nothing may be left of them.
import { randomUUID } from 'node:crypto'
import { startTestCluster } from './database.ts'
import { eventually } from './eventually.ts'
import { leakedProcesses, RUN_VARIABLE } from './leaked-processes.ts'

let cluster: Awaited<ReturnType<typeof startTestCluster>>

export async function globalSetup(): Promise<void> {
  process.env[RUN_VARIABLE] = randomUUID()
  cluster = await startTestCluster()
}

/** An error thrown here would fail the run without a word about it. */
export async function globalTeardown(): Promise<void> {
  await endLeakedProcesses(process.env[RUN_VARIABLE]!)
  await cluster.stop()
}

async function endLeakedProcesses(run: string): Promise<void> {
  // Those that are just ending are given a moment.
  const isOver = () => leakedProcesses(run).length === 0
  await eventually('the processes of the tests to end', isOver, { withinMs: 5_000 }).catch(() => {
    for (const { pid, command } of leakedProcesses(run)) {
      console.error(`A test left a process behind, which is ended now: ${pid} ${command}`)
      process.kill(pid, 'SIGKILL')
    }
    process.exitCode = 1
  })
}
