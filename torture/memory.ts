import { readFileSync } from 'node:fs'
import type { KontorProcess } from './deployment/process.ts'

const EVERY_MS = 250

/** Samples the resident memory of processes and keeps the maximum of each. */
export function watchMemory(processes: KontorProcess[]) {
  const peakMb = new Map<string, number>()
  const timer = setInterval(() => {
    for (const { name, pid } of processes) {
      const mb = pid === null ? 0 : residentMb(pid)
      if (mb > (peakMb.get(name) ?? 0)) peakMb.set(name, mb)
    }
  }, EVERY_MS)
  return {
    peakMb,
    stop: () => clearInterval(timer),
  }
}

export function residentMb(pid: number): number {
  try {
    const kb = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Math.round(Number(kb ?? 0) / 1024)
  } catch {
    return 0
  }
}
