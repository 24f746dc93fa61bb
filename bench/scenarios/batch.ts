import { countOf, loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { cdpBatches } from '../traffic.ts'

const ITEMS = 100

/** CDP batches of 100: the clock stops when the last event has been processed. */
export const batch: Scenario = async options => {
  const service = await startService(options)
  try {
    const traffic = cdpBatches()
    await loadService(service, { ...sending(2), warmUp: false })
    await service.drained()
    const before = await countOf(service, 'events')
    const accepted = await loadService(service, { ...sending(options.seconds), warmUp: false })
    const processed = (await countOf(service, 'events')) - before

    function sending(seconds: number) {
      return { traffic, connections: 16, seconds, authorization: service.tracking }
    }
    return {
      facts: {
        accepted,
        acceptedEventsPerSecond: accepted.perSecond * ITEMS,
        processedEvents: processed,
      },
      bars: [
        {
          what: 'events accepted and processed per second',
          value: processed / accepted.doneAfterS,
          atLeast: 25_000,
        },
        { what: 'errors', value: accepted.refused + accepted.broken, atMost: 0 },
        // wrk counts no answer that comes after its time is up: a few batches more are processed than it knows of
        { what: 'events lost', value: Math.max(0, accepted.requests * ITEMS - processed), atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}
