import { load } from '../load.ts'
import { loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { cdpBatches, contactReads, productWrites, trackingEvents } from '../traffic.ts'

/** All kinds of requests at once. None may fail or starve. */
export const mixed: Scenario = async options => {
  const { seconds } = options
  const service = await startService(options)
  try {
    const { url, tracking, private: data } = service
    const quarter = { url, connections: Math.max(1, options.connections >> 2), seconds }
    const [events, batches, writes, reads] = await Promise.all([
      loadService(service, { ...quarter, traffic: trackingEvents(), authorization: tracking, warmUp: false }),
      load({ ...quarter, traffic: cdpBatches(), authorization: tracking, connections: 4 }),
      load({ ...quarter, traffic: productWrites(), authorization: data }),
      load({ ...quarter, traffic: contactReads(1), authorization: data }),
    ])
    return {
      facts: { events, batches, writes, reads },
      bars: [
        {
          what: 'errors',
          // the contact does not exist, and its 404 counts as a read
          value: events.refused + batches.refused + writes.refused + events.broken + writes.broken + reads.broken,
          atMost: 0,
        },
        { what: 'seconds until the last entry is processed', value: events.drainedAfterS, atMost: 5 },
      ],
    }
  } finally {
    await service.stop()
  }
}
