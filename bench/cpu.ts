import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const TICKS_PER_S = 100

/** CPU seconds that a process and its children have used (children: PostgreSQL's backends). Null without /proc. */
export function cpuSeconds(pid: number, withChildren = false): number | null {
  try {
    let ticks = 0
    for (const entry of withChildren ? readdirSync('/proc') : [String(pid)]) {
      if (!/^\d+$/.test(entry)) continue
      const fields = readStat(entry)
      if (fields && (entry === String(pid) || fields[1] === String(pid))) {
        ticks += Number(fields[11]) + Number(fields[12])
        // of children that have exited
        if (withChildren) ticks += Number(fields[13]) + Number(fields[14])
      }
    }
    return ticks / TICKS_PER_S
  } catch {
    return null
  }
}

/** CPU seconds of every thread of a process, by the name of the thread. */
export function threadSeconds(pid: number): Record<string, number> {
  const seconds: Record<string, number> = {}
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const fields = readStat(`${pid}/task/${thread}`)
    if (!fields) continue
    const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8').trim()
    seconds[name] = (seconds[name] ?? 0) + (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S
  }
  return seconds
}

/** The fields after the name (which may contain spaces): state, parent, … */
function readStat(pid: string): string[] | null {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  } catch {
    return null
  }
}

/** How many cores other processes use before the measurement, as an estimate of noise. Null without /proc. */
export async function backgroundCores(): Promise<number | null> {
  const before = busyTicks()
  if (before === null) return null
  await sleep(1_000)
  return (busyTicks()! - before) / TICKS_PER_S
}

function busyTicks(): number | null {
  const ticks = machineTicks()
  if (ticks === null) return null
  const [user, nice, system, , , irq, softirq] = ticks
  return user! + nice! + system! + irq! + softirq!
}

/**
 * CPU seconds that this virtual machine wanted and its host gave to others. They appear only under load, so they are
 * measured during a run. 0 on a machine of its own, null without /proc.
 */
export function stolenSeconds(): number | null {
  const ticks = machineTicks()
  return ticks === null ? null : (ticks[7] ?? 0) / TICKS_PER_S
}

/** user, nice, system, idle, iowait, irq, softirq, steal */
function machineTicks(): number[] | null {
  try {
    return readFileSync('/proc/stat', 'utf8').split('\n')[0]!.split(/\s+/).slice(1).map(Number)
  } catch {
    return null
  }
}
