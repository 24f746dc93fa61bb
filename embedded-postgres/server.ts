import { type ChildProcess, spawn } from 'node:child_process'
import { copyFile, open, rename, rmdir, stat, truncate } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Account } from './account.ts'
import { type Binaries, cannotStart, programOptions, run } from './binaries.ts'
import { EmbeddedError, errorCode, explain, findCause, withExplanation } from './error.ts'
import type { Home } from './home.ts'
import { endOrphans, findPostmaster, type Postmaster, removeStaleFiles, waitForExit } from './postmaster.ts'
import { isAlive } from './processes.ts'
export type Installation = {
  home: Home
  account: Account | null
  binaries: Binaries
  log: (message: string) => void
  whileStarting: () => void
}

const silenceLimitMs = 30_000 // without progress in PostgreSQL's log
const largestLogBytes = 10 * 1024 ** 2

/** Starts PostgreSQL and waits until it is ready. It survives the exit of this process and Ctrl-C in its terminal. */
export async function launch(installation: Installation): Promise<Postmaster> {
  const deadline = Date.now() + silenceLimitMs
  for (;;) {
    await removeStaleFiles(installation.home)
    const attempt = await tryLaunch(installation)
    if ('postmaster' in attempt) return attempt.postmaster
    if (!attempt.output.includes('shared memory block') || Date.now() > deadline) {
      throw explain(`PostgreSQL did not start (its log: ${installation.home.logFile}).`, attempt.output)
    }
    await endOrphans(installation.home)
    await sleep(50)
  }
}

async function tryLaunch(installation: Installation): Promise<{ postmaster: Postmaster } | { output: string }> {
  const { home, account, binaries } = installation
  const logFile = await openLog(home)
  try {
    const { size: logStart } = await logFile.stat()
    const { failure } = spawnServer(home, account, binaries, logFile.fd)
    installation.whileStarting()
    for (const isStuck = progressWatch(home); !(await isStuck()); await sleep(5)) {
      if (failure.error) throw failure.error
      if (failure.hasEnded) return { output: await tail(home, logStart) }
      const postmaster = await findPostmaster(home)
      if (postmaster?.status === 'ready') return { postmaster }
    }
    return { output: await giveUp(installation, logStart) }
  } finally {
    await logFile.close()
  }
}

/** Crash recovery may take minutes and logs its progress every few seconds. Only a silent log counts as stuck. */
function progressWatch(home: Home): () => Promise<boolean> {
  let [lastSize, deadline] = [-1, 0]
  return async () => {
    const size = await logSize(home)
    if (size !== lastSize) deadline = Date.now() + silenceLimitMs
    lastSize = size
    return Date.now() > deadline
  }
}

async function giveUp(installation: Installation, logStart: number): Promise<string> {
  const postmaster = await findPostmaster(installation.home)
  if (postmaster) await stopServer(installation, postmaster, 'fast')
  return `No sign of life for ${silenceLimitMs / 1000} s.\n${await tail(installation.home, logStart)}`
}

function spawnServer(home: Home, account: Account | null, binaries: Binaries, logFile: number) {
  const failure: { hasEnded: boolean; error?: Error } = { hasEnded: false }
  const args = ['-D', home.data, '-c', `config_file=${home.settingsFile}`]
  let child: ChildProcess
  if (process.platform === 'win32') {
    // pg_ctl drops administrator rights, with which PostgreSQL refuses to run. It exits before the server is ready.
    const options = `-c "config_file=${home.settingsFile}"`
    child = spawn(binaries.pgCtl, ['start', '-W', '-s', '-D', home.data, '-o', options], {
      ...programOptions(account, binaries.pgCtl),
      stdio: ['ignore', logFile, logFile],
    })
    child.on('exit', status => {
      failure.hasEnded = status !== 0
    })
  } else {
    child = spawn(binaries.postgres, args, {
      ...programOptions(account, binaries.postgres),
      detached: true,
      stdio: ['ignore', logFile, logFile],
    })
    child.on('exit', () => {
      failure.hasEnded = true
    })
  }
  child.on('error', error => {
    failure.error = cannotStart(error, account, binaries.postgres)
  })
  child.unref()
  return { failure }
}

/** Opens the log file for appending. A large one is first renamed to `.1`, which replaces the previous one. */
async function openLog(home: Home) {
  if ((await logSize(home)) > largestLogBytes) await rename(home.logFile, `${home.logFile}.1`)
  return open(home.logFile, 'a', 0o600)
}

/**
 * Rotates the log while PostgreSQL runs. PostgreSQL keeps the file open in append mode, so the file is copied and truncated. A line
 * that is written between the two steps is lost.
 */
export async function rotateLog(home: Home): Promise<void> {
  if ((await logSize(home)) <= largestLogBytes) return
  await copyFile(home.logFile, `${home.logFile}.1`)
  await truncate(home.logFile)
}

const logSize = (home: Home) =>
  stat(home.logFile).then(
    ({ size }) => size,
    () => 0,
  )

async function tail(home: Home, from: number): Promise<string> {
  const handle = await open(home.logFile, 'r')
  try {
    const { size } = await handle.stat()
    const start = Math.max(from, size - 8192)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - start), 0, size - start, start)
    return buffer.toString('utf8', 0, bytesRead).trim().split('\n').slice(-15).join('\n')
  } finally {
    await handle.close()
  }
}

/** Waits while PostgreSQL is starting or stopping. Returns it once it is ready, or null once it has stopped. */
export async function waitUntilSettled(installation: Installation): Promise<Postmaster | null> {
  const { home, log } = installation
  const isStuck = progressWatch(home)
  for (;;) {
    const postmaster = await findPostmaster(home)
    if (postmaster === null || postmaster.status === 'ready') return postmaster
    if (await isStuck()) {
      log(`PostgreSQL (process ${postmaster.pid}) has been ${postmaster.status} for too long: restarting it.`)
      await stopServer(installation, postmaster, 'fast')
      return null
    }
    await sleep(10)
  }
}

const signals = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const
type Mode = keyof typeof signals

/**
 * Stops PostgreSQL. smart: PostgreSQL stops after the last client has disconnected, and this function waits at most 5 s for it.
 * fast: PostgreSQL disconnects the clients and writes a checkpoint. If that takes longer than 20 s, it is stopped immediately, and
 * the next start recovers from the write-ahead log.
 */
export async function stopServer(
  installation: Installation,
  postmaster: Postmaster,
  mode: 'smart' | 'fast',
): Promise<void> {
  const { home, log } = installation
  await request(installation, postmaster, mode)
  if (!(await waitForExit(postmaster, mode === 'smart' ? 5_000 : 20_000))) {
    if (mode === 'smart') return log('PostgreSQL stops when its last client has disconnected.')
    log('PostgreSQL did not stop in time: stopping it immediately. The next start recovers.')
    await request(installation, postmaster, 'immediate')
    if (!(await waitForExit(postmaster, 10_000))) {
      throw new EmbeddedError(`PostgreSQL (process ${postmaster.pid}) does not stop. Its log: ${home.logFile}`)
    }
  }
  // A socket directory outside the home is no longer needed.
  if (postmaster.host.startsWith('/') && !postmaster.host.startsWith(home.directory)) {
    await rmdir(postmaster.host).catch(() => {})
  }
}

async function request({ home, account, binaries }: Installation, postmaster: Postmaster, mode: Mode): Promise<void> {
  if (process.platform === 'win32') {
    await run(account, binaries.pgCtl, ['stop', '-W', '-s', '-m', mode, '-D', home.data])
    return
  }
  try {
    process.kill(postmaster.pid, signals[mode])
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error
  }
}

const CHECK_EVERY_MS = 1_000
const RETRY_MS = 10_000

/**
 * Watches PostgreSQL, whose main process may die (out of memory, a stray kill) while the server that owns it lives. Calls `restart`
 * until it succeeds, and `upkeep` regularly while PostgreSQL runs.
 */
export function keepRunning({
  postmaster,
  restart,
  upkeep,
  log,
}: {
  postmaster: Postmaster
  restart: () => Promise<Postmaster>
  upkeep: () => Promise<void>
  log: (message: string) => void
}): { stop(): Promise<void> } {
  let current = postmaster
  let stopping = false
  let restarting: Promise<unknown> = Promise.resolve()
  let lastFailure: string | null = null
  let timer = setTimeout(check, CHECK_EVERY_MS).unref()

  async function check(): Promise<void> {
    let nextMs = CHECK_EVERY_MS
    if (!isAlive(current)) {
      const restarted = tryRestart()
      restarting = restarted
      if (!(await restarted)) nextMs = RETRY_MS
    } else await upkeep().catch(() => {})
    if (!stopping) timer = setTimeout(check, nextMs).unref()
  }

  async function tryRestart(): Promise<boolean> {
    if (lastFailure === null) log('PostgreSQL exited unexpectedly. Restarting it.')
    try {
      current = await withExplanation('PostgreSQL could not be started.', restart)
      log('PostgreSQL is running again. No acknowledged data was lost.')
      lastFailure = null
      return true
    } catch (error) {
      const { message } = error as Error
      const failure = findCause(message) ?? message
      if (failure !== lastFailure) log(`${message}\nThe next attempts follow every 10 seconds.`)
      lastFailure = failure
      return false
    }
  }

  return {
    async stop() {
      stopping = true
      clearTimeout(timer)
      await restarting
    },
  }
}
