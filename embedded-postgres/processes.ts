import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { errorCode } from './error.ts'

/** Identifies a process even if its pid is recycled. `started` is safe in file names. */
export type ProcessStamp = { pid: number; started: string }

export const thisProcess = (): ProcessStamp => ({
  pid: process.pid,
  started: readStartTime(process.pid) ?? 'unknown',
})

export const isAlive = ({ pid, started }: ProcessStamp): boolean => readStartTime(pid) === started

/** The start time of a process, in a format of the operating system; null if it does not exist or is a zombie. */
export function readStartTime(pid: number): string | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null
  if (process.platform === 'linux') return startFromProc(pid)
  if (process.platform === 'win32') return pidExists(pid) ? 'running' : null
  return startFromPs(pid)
}

// Start times count from boot. The boot id distinguishes equal pids and start times of two boots.
let bootId: string | undefined

function startFromProc(pid: number): string | null {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return null
  }
  // The second field is the program's name in parentheses. It may itself contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, startTicks] = [fields[0], fields[19]]
  if (state === 'Z' || state === 'X') return null
  bootId ??= readBootId()
  return `${bootId}.${startTicks}`
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').slice(0, 8)
  } catch {
    return 'boot' // some sandboxes hide it
  }
}

function startFromPs(pid: number): string | null {
  try {
    const environment = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
    const output = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: environment,
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
    const [state, ...when] = output.split(/\s+/)
    return state === undefined || state.startsWith('Z') ? null : when.join('-').replaceAll(':', '.')
  } catch {
    return null
  }
}

/** Whether the pid is in use, including by a zombie or another user's process. */
export function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}
