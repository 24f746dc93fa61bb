import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { endWithUs } from './end.ts'

const root = join(import.meta.dirname, '../..')
const preload = join(import.meta.dirname, 'clock-preload.mjs')
// Allows for a busy machine and a fault that makes PostgreSQL unavailable, such as a dump and restore of a gigabyte.
const START_PATIENCE_MS = 300_000

export type Role = 'server' | 'http' | 'worker'

type ProcessOptions = {
  name: string
  role: Role
  args: string[]
  env: Record<string, string>
  opsPort: number
  /** null: it serves no requests */
  url: string | null
  logFile: string
  /** The file with the clock offset; null uses the machine's clock. */
  clockFile: string | null
  /** Called if the process exits unexpectedly. */
  onDeath: (words: string) => void
}

export type KontorProcess = ReturnType<typeof kontorProcess>

/** One `kontor start`. Like a service manager, restarts it one second after an unexpected exit. */
export function kontorProcess(options: ProcessOptions) {
  const { name, role, url, opsPort } = options
  let child: ChildProcess | null = null
  let state: 'stopped' | 'starting' | 'running' = 'stopped'
  let frozen = false
  let turn: Promise<unknown> = Promise.resolve()

  /** Serializes the actions of concurrent faults on one process. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = turn.then(work, work)
    turn = result.catch(() => {})
    return result
  }

  function launch(): ChildProcess {
    const log = openSync(options.logFile, 'a')
    const words = [...nodeFlags(), join(root, 'src/main.mjs'), 'start', ...options.args]
    const launched = spawn(process.execPath, words, {
      env: environment(options),
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    endWithUs(() => launched.kill('SIGKILL'))
    launched.on('exit', (code, signal) => {
      if (child !== launched || state !== 'running') return
      options.onDeath(`${name} ended by itself (${signal ?? code}): ${lastWords(options.logFile)}`)
      state = 'starting'
      setTimeout(() => inTurn(async () => state === 'starting' && (await bringUp())).catch(() => {}), 1_000)
    })
    return launched
  }

  async function start(): Promise<void> {
    if (state !== 'stopped') return
    state = 'starting'
    await bringUp()
  }

  /** Resolves when it is running. Retries a start that fails while PostgreSQL is unavailable. */
  async function bringUp(): Promise<void> {
    const deadline = Date.now() + START_PATIENCE_MS
    while (state === 'starting') {
      const launched = launch()
      child = launched
      if (await there(launched, deadline)) {
        if (state === 'starting') state = 'running'
        return
      }
      if (!hasEnded(launched)) await end(launched, 'SIGKILL')
      if (Date.now() > deadline) {
        state = 'stopped' // a later start may succeed
        throw new Error(`${name} did not start:\n${lastWords(options.logFile)}`)
      }
      await sleep(500)
    }
  }

  async function there(launched: ChildProcess, deadline: number): Promise<boolean> {
    while (Date.now() < deadline) {
      if (hasEnded(launched)) return false
      if ((await answers(`http://127.0.0.1:${opsPort}/healthz`)) && (url === null || (await answers(url)))) return true
      await sleep(50)
    }
    return false
  }

  async function stopWith(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const ending = child
    state = 'stopped'
    child = null
    if (ending === null) return null
    if (frozen) ending.kill('SIGCONT')
    frozen = false
    return hasEnded(ending) ? ending.exitCode : end(ending, signal)
  }

  return {
    name,
    role,
    url,
    opsUrl: `http://127.0.0.1:${opsPort}`,
    clockFile: options.clockFile,
    logFile: options.logFile,
    start: () => inTurn(start),
    get pid(): number | null {
      return child?.pid ?? null
    },
    kill: () => inTurn(() => stopWith('SIGKILL')),
    /** Asks it to stop and returns the exit code. */
    terminate: () => inTurn(() => stopWith('SIGTERM')),
    /** Freezes the process: connections stay open, but it does not respond. */
    freeze() {
      frozen = child?.kill('SIGSTOP') ?? false
    },
    thaw() {
      child?.kill('SIGCONT')
      frozen = false
    },
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}

async function end(child: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
  return child.exitCode
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
    await response.body?.cancel()
    return true
  } catch {
    return false
  }
}

/** The Node options of `npm start`. */
function nodeFlags(): string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return (scripts.start as string).split(' ').filter(word => word.startsWith('--'))
}

/** Removes the Kontor settings of the current environment. */
function environment({ env, opsPort, clockFile, logFile }: ProcessOptions): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(KONTOR_(?!TEST_)|DATABASE_URL|NATS_|PG|npm_|NODE_)/.test(name),
  )
  return {
    ...Object.fromEntries(own),
    KONTOR_OPS_PORT: String(opsPort),
    KONTOR_LOG_LEVEL: 'warn',
    KONTOR_LOG_FORMAT: 'json',
    // Saves a third of the CPU of every start but the first.
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(dirname(logFile), 'compile-cache'),
    ...(clockFile && { NODE_OPTIONS: `--import=${preload}`, TORTURE_CLOCK_FILE: clockFile }),
    ...env,
  }
}

function lastWords(logFile: string): string {
  return readFileSync(logFile, 'utf8').trim().split('\n').slice(-3).join(' | ').slice(-600)
}

/** Starts one process at a time, because each start takes a second of CPU. */
export async function startAll(processes: KontorProcess[]): Promise<void> {
  for (const process of processes) await process.start()
}
