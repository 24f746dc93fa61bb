import { countRows, loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { cdpBatches, cdpBatchesOfOnePerson } from '../traffic.ts'

const ROUNDS = 2

/** Batches of one person (one partition) compared with those of thousands of people, in alternating rounds. */
export const hotKey: Scenario = async ({ seconds }) => {
  const service = await startService()
  try {
    const rates: Record<'spread' | 'hot', number[]> = { spread: [], hot: [] }
    const kinds = { spread: cdpBatches(), hot: cdpBatchesOfOnePerson() }
    let errors = 0
    const sending = { connections: 16, authorization: service.tracking, warmUp: false }
    await loadService(service, { ...sending, traffic: kinds.spread, seconds: 2 })
    for (let round = 0; round < ROUNDS; round++) {
      for (const kind of ['spread', 'hot'] as const) {
        const before = await countRows(service, 'events')
        const sent = await loadService(service, {
          ...sending,
          traffic: kinds[kind],
          seconds: Math.ceil(seconds / ROUNDS),
        })
        rates[kind].push(((await countRows(service, 'events')) - before) / sent.doneAfterS)
        errors += sent.refused + sent.broken
      }
    }
    return {
      facts: rates,
      bars: [
        { what: 'events of one person, processed per second', value: mean(rates.hot), atLeast: 25_000 },
        {
          what: 'events of one person / of many, processed per second',
          value: mean(rates.hot) / mean(rates.spread),
          atLeast: 0.4,
        },
        { what: 'errors', value: errors, atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}

const mean = (numbers: number[]) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length
