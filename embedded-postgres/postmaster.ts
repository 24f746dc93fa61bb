import { execFile } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { EmbeddedError, errorCode } from './error.ts'
import type { Home } from './home.ts'
import { isAlive, type ProcessStamp, pidExists, readStartTime } from './processes.ts'
import { socketPath } from './socket.ts'

/** The main process of a running PostgreSQL, as its postmaster.pid describes it. */
export type Postmaster = ProcessStamp & {
  status: 'starting' | 'ready' | 'stopping'
  port: number
  /** A socket directory or a loopback address. */
  host: string
}

export const pidFile = (home: Home) => join(home.data, 'postmaster.pid')

// A child process that was just forked answers on the socket until it notices that the main process was killed.
const CHECKS = 30
const CHECK_INTERVAL_MS = 100

/** The running PostgreSQL of this home; null if there is none, even if stale files exist. */
export async function findPostmaster(home: Home, checks = CHECKS): Promise<Postmaster | null> {
  const lines = await readPidFile(home)
  if (lines === null) return null
  const pid = Number(lines[0])
  const [port, socketDirectory, address] = [Number(lines[3]), lines[4] ?? '', lines[5] ?? '']
  const started = readStartTime(pid)
  if (started === null || !isOurs(pid, home.data)) {
    if (socketDirectory !== '' && (await answers(socketPath(socketDirectory, port)))) {
      const wasReplaced = (await readPidFile(home))?.[0] !== lines[0]
      if (wasReplaced) return findPostmaster(home)
      if (checks > 1) {
        await sleep(CHECK_INTERVAL_MS)
        return findPostmaster(home, checks - 1)
      }
      throw new EmbeddedError(
        `PostgreSQL is already running on ${home.data}, most likely in another container that uses the same data ` +
          'directory. Stop that container first, or use another data directory.',
      )
    }
    return null
  }
  const written = lines[7]?.trim()
  const status = written === 'ready' || written === 'stopping' ? written : 'starting'
  return { pid, started, status, port, host: socketDirectory === '' ? address : socketDirectory }
}

async function readPidFile(home: Home): Promise<string[] | null> {
  try {
    return (await readFile(pidFile(home), 'utf8')).split('\n')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

/** Whether the process is PostgreSQL on this data, and not an unrelated process with a recycled pid. */
function isOurs(pid: number, data: string): boolean {
  if (process.platform !== 'linux') return true // rely on PostgreSQL's own check
  try {
    return isSameDirectory(`/proc/${pid}/cwd`, data) // the data directory is PostgreSQL's working directory
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false
  }
  // Root in a container may not read the working directory of another user's process, but may read its command line.
  const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  if (!/^postgres\b/.test(basename(program))) return false
  const claimed = args[args.indexOf('-D') + 1]
  try {
    return claimed === undefined || isSameDirectory(claimed, data)
  } catch {
    return true // the directory was renamed while the server ran: never risk two servers on the same data
  }
}

function isSameDirectory(a: string, b: string): boolean {
  const [first, second] = [statSync(a), statSync(b)]
  return first.ino === second.ino && first.dev === second.dev
}

function answers(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.on('connect', () => resolve(true))
    socket.on('error', () => resolve(false))
    socket.on('close', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}

/**
 * Removes the pid and lock files of a dead PostgreSQL if another process now has its pid: PostgreSQL would refuse to start. If the
 * pid is free, PostgreSQL removes them itself, after it has checked that none of its processes is left.
 */
export async function removeStaleFiles(home: Home): Promise<void> {
  const lines = await readPidFile(home)
  if (lines === null) return
  const [pid, port, socketDirectory] = [Number(lines[0]), Number(lines[3]), lines[4] ?? '']
  if (pid > 0 && !pidExists(pid)) return
  await rm(pidFile(home), { force: true })
  if (socketDirectory !== '') await rm(`${socketPath(socketDirectory, port)}.lock`, { force: true })
}

/**
 * Ends the child processes of a PostgreSQL whose main process was killed. Idle ones exit on their own. One that runs a long query
 * does not notice, and PostgreSQL refuses to start while it runs.
 */
export async function endOrphans(home: Home): Promise<void> {
  for (const { pid, command } of await allProcesses()) {
    if (!command.startsWith(`postgres: ${home.name}: `)) continue
    try {
      process.kill(pid, 'SIGQUIT')
    } catch {
      // it has exited
    }
  }
}

async function allProcesses(): Promise<{ pid: number; command: string }[]> {
  if (process.platform === 'win32') return []
  if (process.platform !== 'linux') {
    const { stdout } = await promisify(execFile)('ps', ['-axo', 'pid=,command='])
    return stdout
      .split('\n')
      .map(line => ({ pid: Number.parseInt(line, 10), command: line.trim().replace(/^\d+ +/, '') }))
  }
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
  return Promise.all(
    pids.map(async pid => ({
      pid: Number(pid),
      command: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
    })),
  )
}

/** Waits until the process has exited. Returns false if it still runs after `limitMs`. */
export async function waitForExit(process: ProcessStamp, limitMs: number): Promise<boolean> {
  const deadline = Date.now() + limitMs
  while (isAlive(process)) {
    if (Date.now() > deadline) return false
    await sleep(10)
  }
  return true
}
