// Shared by all test files of a run (`npm test`): one temporary PostgreSQL, which the files find through the
// environment. At the end, no process or database of the run may remain.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type BrowserServer, chromium } from 'playwright-core'
import { CHROMIUM, CHROMIUM_OPTIONS, SHARED_BROWSER_VARIABLE } from './chromium.ts'
import { startTestCluster } from './database.ts'
import { eventually } from './eventually.ts'
import { leakedProcesses, RUN_VARIABLE } from './leaked-processes.ts'
import { SHARED_SERVER_VARIABLE } from './server.ts'

let sharedServer: ChildProcess | undefined
let browser: BrowserServer | undefined
let cluster: Awaited<ReturnType<typeof startTestCluster>> | undefined

export async function globalSetup(): Promise<void> {
  process.env[RUN_VARIABLE] = randomUUID()
  // On Ctrl-C or another signal, Node would exit without the teardown. The next run cleans up after a killed run.
  process.on('exit', endUnfinished)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(1))
  cluster = await startTestCluster()
  const used = process.env.KONTOR_TEST_USES ?? ''
  if (used.includes('sharedServer')) sharedServer = await startSharedServer()
  if (used.includes('launchChromium') && existsSync(CHROMIUM)) {
    browser = await chromium.launchServer(CHROMIUM_OPTIONS)
    process.env[SHARED_BROWSER_VARIABLE] = browser.wsEndpoint()
  }
}

async function startSharedServer(): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('./shared-server.ts', import.meta.url))
  const server = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
  const line = once(createInterface({ input: server.stdout }), 'line')
  const exit = once(server, 'exit').then(([code]) => {
    throw new Error(`The server that test files share exited with code ${code}.`)
  })
  const [where] = (await Promise.race([line, exit])) as [string]
  exit.catch(() => undefined)
  process.env[SHARED_SERVER_VARIABLE] = where
  return server
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
    // it has already exited
  }
}

/** An error thrown here would fail the run without a message. */
export async function globalTeardown(): Promise<void> {
  await browser?.close()
  if (sharedServer) {
    const ended = once(sharedServer, 'exit')
    sharedServer.stdin!.end()
    await ended
  }
  await endLeakedProcesses(process.env[RUN_VARIABLE]!)
  await cluster?.stop()
  cluster = undefined
}

async function endLeakedProcesses(run: string): Promise<void> {
  // Wait a moment for processes that are exiting.
  const isOver = () => leakedProcesses(run).length === 0
  await eventually('the processes of the tests to end', isOver, { withinMs: 5_000 }).catch(() => {
    for (const { pid, command } of leakedProcesses(run)) {
      console.error(`A test left a process behind, which is ended now: ${pid} ${command}`)
      kill(pid)
    }
    process.exitCode = 1
  })
}
