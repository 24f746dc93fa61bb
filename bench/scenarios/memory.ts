import { readFileSync } from 'node:fs'
import { load } from '../load.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { cdpBatches } from '../traffic.ts'

const EVENTS = 1_000_000
const MEGABYTE = 1_000_000

/** Memory of the server process during a million events, and whether it grows. */
export const memory: Scenario = async options => {
  const service = await startService(options)
  try {
    const traffic = cdpBatches()
    const samples: { events: number; megabytes: number }[] = []
    for (let events = 0; events < EVENTS; ) {
      const sending = { url: service.url, authorization: service.tracking, connections: 8, seconds: 5 }
      events += 100 * (await load({ ...sending, traffic })).requests
      await service.drained()
      samples.push({ events, megabytes: residentBytes(service.pid) / MEGABYTE })
    }
    const last = samples.at(-1)!.megabytes
    const middle = samples[samples.length >> 1]!.megabytes
    return {
      facts: { samples },
      bars: [
        { what: 'MB resident after a million events', value: last, atMost: 250 },
        { what: 'memory at the end / halfway', value: last / middle, atMost: 1.15 },
      ],
    }
  } finally {
    await service.stop()
  }
}

export function residentBytes(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]
  return Number(kibibytes) * 1024
}
