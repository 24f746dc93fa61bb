import { readFileSync } from 'node:fs'
import { load } from '../load.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { cdpBatches } from '../traffic.ts'

const EVENTS = 1_000_000
const MEBIBYTE = 1_048_576

/** Memory of the server process during a million events, and whether it grows. */
export const memory: Scenario = async options => {
  const service = await startService(options)
  try {
    const traffic = cdpBatches()
    const samples: { events: number; mebibytes: number }[] = []
    for (let events = 0; events < EVENTS; ) {
      const sending = { url: service.url, authorization: service.tracking, connections: 8, seconds: 5 }
      events += 100 * (await load({ ...sending, traffic })).requests
      await service.drained()
      samples.push({ events, mebibytes: residentBytes(service.pid) / MEBIBYTE })
    }
    const last = samples.at(-1)!.mebibytes
    const middle = samples[samples.length >> 1]!.mebibytes
    return {
      facts: { samples },
      bars: [
        { what: 'MiB resident after a million events', value: last, atMost: 300 },
        { what: 'memory at the end / halfway', value: last / middle, atMost: 1.15 },
      ],
    }
  } finally {
    await service.stop()
  }
}

function residentBytes(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]
  return Number(kibibytes) * 1024
}
