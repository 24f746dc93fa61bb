import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { fillEvents } from './events-list.ts'

const ROWS = 1_000_000

/** A million events as NDJSON over HTTP. */
export const exportRows: Scenario = async options => {
  const service = await startService(options)
  try {
    await fillEvents(service)
    const startedAt = performance.now()
    const response = await fetch(`${service.url}/v1/export/events`, {
      headers: { authorization: service.private },
    })
    let rows = 0
    for await (const chunk of response.body!) rows += newlinesIn(chunk)
    const seconds = (performance.now() - startedAt) / 1000
    return {
      facts: { rows, seconds },
      bars: [
        { what: 'events per second', value: rows / seconds, atLeast: 30_000 },
        { what: 'events missing', value: ROWS - rows, atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}

function newlinesIn(bytes: Uint8Array): number {
  let count = 0
  for (let i = bytes.indexOf(10); i >= 0; i = bytes.indexOf(10, i + 1)) count++
  return count
}
