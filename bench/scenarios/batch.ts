import { countRows, loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { cdpBatches } from '../traffic.ts'

const ITEMS = 100

/** CDP batches of 100. The time ends when the last event is processed. */
export const batch: Scenario = async options => {
  const service = await startService(options)
  try {
    const traffic = cdpBatches()
    await loadService(service, { ...sending(2), warmUp: false })
    await service.drained()
    const before = await countRows(service, 'events')
    const accepted = await loadService(service, { ...sending(options.seconds), warmUp: false })
    const processed = (await countRows(service, 'events')) - before

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
          atLeast: 50_000,
        },
        { what: 'errors', value: accepted.refused + accepted.broken, atMost: 0 },
        // wrk does not count responses after its end, so a few more batches are processed than it reports
        { what: 'events lost', value: Math.max(0, accepted.requests * ITEMS - processed), atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}
