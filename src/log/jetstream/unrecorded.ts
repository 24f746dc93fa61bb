import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

/**
 * How many entries this process has acknowledged that PostgreSQL does not know of yet, in a file: it survives a kill of the process. If the
 * stream is then lost too, the next start still counts them. Not synced, because a loss of power that takes this file is rare and the
 * number is only reported. A write takes about 5 µs, once per message.
 */
export type Unrecorded = {
  /** What killed processes on this machine left, and how long ago. `created`: of the stream that they wrote to. */
  found: { entries: number; created: string | null; agoMs: number }
  /** `created`: of the stream that this process writes to. */
  set(entries: number, created: string | null): void
  close(): void
}

const NOTHING = { entries: 0, created: null, agoMs: 0 }
const IN_MEMORY: Unrecorded = { found: NOTHING, set() {}, close() {} }
const DIGITS = 15
// A time with nanoseconds
const CREATED_LENGTH = 40

export function openUnrecorded(directory: string | null, stream: string): Unrecorded {
  if (directory === null) return IN_MEMORY
  try {
    if (!existsSync(directory)) mkdirSync(directory, { mode: 0o700 })
    return openIn(directory, `acknowledged-${stream}-`)
  } catch {
    // The counts are then lost with the process, as on a machine without a data directory.
    return IN_MEMORY
  }
}

function openIn(directory: string, prefix: string): Unrecorded {
  const left = readdirSync(directory).filter(name => name.startsWith(prefix) && !isAlive(name.slice(prefix.length)))
  const found = left.map(name => readCount(join(directory, name))).reduce(addCounts, NOTHING)
  const own = `${prefix}${process.pid}`
  const path = join(directory, own)
  const file = openSync(path, left.includes(own) ? 'r+' : 'w', 0o600)
  let isClosed = false
  const set = (entries: number, created: string | null) => {
    if (isClosed) return
    try {
      writeSync(file, `${String(entries).padStart(DIGITS)} ${(created ?? '').padEnd(CREATED_LENGTH)}`, 0)
    } catch {
      // A full disk must not fail a request that is durable.
    }
  }
  set(found.entries, found.created)
  for (const name of left) if (name !== own) rmSync(join(directory, name), { force: true })
  return {
    found,
    set,
    close() {
      if (!isClosed) closeSync(file)
      isClosed = true
    },
  }
}

type Count = Unrecorded['found']

function readCount(path: string): Count {
  const [, entries, created] = /^ *(\d+) ?(\S*)/.exec(readFileSync(path, 'utf8')) ?? []
  if (!Number(entries)) return NOTHING
  return { entries: Number(entries), created: created || null, agoMs: Math.max(0, Date.now() - statSync(path).mtimeMs) }
}

function addCounts(a: Count, b: Count): Count {
  return { entries: a.entries + b.entries, created: a.created ?? b.created, agoMs: Math.max(a.agoMs, b.agoMs) }
}

/** Another process. In a container, a process may have the number of the one that was killed. */
function isAlive(pid: string): boolean {
  if (pid === String(process.pid)) return false
  try {
    process.kill(Number(pid), 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
