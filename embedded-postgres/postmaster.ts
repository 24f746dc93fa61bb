import { execFile } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { codeOf, EmbeddedError } from './error.ts'
import type { Home } from './home.ts'
import { isAlive, type ProcessStamp, pidExists, startOf } from './processes.ts'
import { socketPath } from './socket.ts'

/** The main process of a running PostgreSQL, as its postmaster.pid describes it. */
export type Postmaster = ProcessStamp & {
  status: 'starting' | 'ready' | 'stopping'
  port: number
  /** A socket directory or a loopback address. */
  host: string
}

export const pidFile = (home: Home) => join(home.data, 'postmaster.pid')

// One of its processes that was just made answers on its socket until it notices that its main process was killed.
const LOOKS = 30
const LOOK_EVERY_MS = 100

/** The running PostgreSQL of this home; null when there is none, whatever stale files say. */
export async function findPostmaster(home: Home, looks = LOOKS): Promise<Postmaster | null> {
  const lines = await readPidFile(home)
  if (lines === null) return null
  const pid = Number(lines[0])
  const [port, socketDirectory, address] = [Number(lines[3]), lines[4] ?? '', lines[5] ?? '']
  const started = startOf(pid)
  if (started === null || !isOurs(pid, home.data)) {
    if (socketDirectory !== '' && (await answers(socketPath(socketDirectory, port)))) {
      const wasReplaced = (await readPidFile(home))?.[0] !== lines[0]
      if (wasReplaced) return findPostmaster(home)
      if (looks > 1) {
        await sleep(LOOK_EVERY_MS)
        return findPostmaster(home, looks - 1)
      }
      throw new EmbeddedError(
        `PostgreSQL is running on ${home.data} out of reach, most likely in another container that has the same data ` +
          'directory. Stop that one first, or give this one a directory of its own.',
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
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

/** Whether that process is PostgreSQL on this data, not another one that got the pid of one that crashed. */
function isOurs(pid: number, data: string): boolean {
  if (process.platform !== 'linux') return true // PostgreSQL's own judgement has to do
  try {
    return isSameDirectory(`/proc/${pid}/cwd`, data) // PostgreSQL works in its data directory
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
  }
  // Root in a container may not look at the working directory of another user's process, but at its command line.
  const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  if (!/^postgres\b/.test(basename(program))) return false
  const claimed = args[args.indexOf('-D') + 1]
  try {
    return claimed === undefined || isSameDirectory(claimed, data)
  } catch {
    return true // the directory was renamed under the running server: rather too careful than two on the same data
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
 * Removes the files of a PostgreSQL that is gone where it would mistake them for a live one's: its pid now belongs to another
 * process. Where the pid is free PostgreSQL does so itself, after making sure that no process of it is left.
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
 * Ends the processes of a PostgreSQL whose main process was killed. Idle ones end by themselves, but one in the middle of a long
 * query would not notice, and PostgreSQL rightly refuses to start beside it.
 */
export async function endOrphans(home: Home): Promise<void> {
  for (const { pid, command } of await allProcesses()) {
    if (!command.startsWith(`postgres: ${home.name}: `)) continue
    try {
      process.kill(pid, 'SIGQUIT')
    } catch {
      // ended by itself
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

/** Waits until the process has ended; false when it has not within the time. */
export async function ended(process: ProcessStamp, limitMs: number): Promise<boolean> {
  const deadline = Date.now() + limitMs
  while (isAlive(process)) {
    if (Date.now() > deadline) return false
    await sleep(10)
  }
  return true
}
