import { recordReading } from '../../src/import/readings.ts'
import { csvRows } from '../../src/import/rows.ts'
import { openSend, recordTarget, runImport } from '../../src/import/run.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'

const ROWS = 200_000
const MEBIBYTE = 1_048_576
const NO_ERRORS = { write: async () => {}, bytes: () => 0, close: async () => {} }
const NO_JOURNAL = { load: async () => null, save: async () => {}, end: async () => {} }

/** Imports a CSV file of products through the public API, and measures the memory of the importer. */
export const importRows: Scenario = async options => {
  const service = await startService(options)
  const { signal } = new AbortController()
  const send = openSend(service.url, signal)
  let halfWay = 0
  try {
    const startedAt = performance.now()
    const totals = await runImport({
      rows: () => csvRows(file(), () => {}),
      reading: recordReading('product', { mapping: null, time: new Date() }),
      target: recordTarget(send, service.private.slice('Bearer '.length), 'product'),
      journal: NO_JOURNAL,
      errors: async () => NO_ERRORS,
      onRejected: () => {},
      onResumed: () => {},
      onProgress({ read }) {
        if (halfWay === 0 && read >= ROWS / 2) halfWay = process.memoryUsage.rss()
      },
      onEnd: () => {},
      signal,
    })
    const seconds = (performance.now() - startedAt) / 1000
    return {
      facts: { ...totals, seconds, mebibytes: process.memoryUsage.rss() / MEBIBYTE },
      bars: [
        { what: 'rows per second', value: ROWS / seconds, atLeast: 5_000 },
        { what: 'rows lost', value: ROWS - totals.accepted, atMost: 0 },
        {
          what: 'memory at the end / halfway',
          value: process.memoryUsage.rss() / halfWay,
          atMost: 1.3,
        },
      ],
    }
  } finally {
    send.close()
    await service.stop()
  }
}

async function* file(): AsyncGenerator<string> {
  yield 'id,sourceUpdatedAt,sku,name,price\n'
  for (let from = 0; from < ROWS; from += 1_000) {
    const rows = Array.from({ length: 1_000 }, (_, i) => from + i)
    yield rows.map(n => `p-${n},2026-01-01T00:00:00Z,SKU-${n},"Mug, size ${n}",12.90\n`).join('')
  }
}
