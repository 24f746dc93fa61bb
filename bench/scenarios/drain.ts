import { load } from '../load.ts'
import { countRows, loadService } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { type Service, startService } from '../service.ts'
import { cdpBatches, trackingEvents } from '../traffic.ts'

const BACKLOG = 100_000
const ALL_BUT_WORKERS = ['--surfaces', 'data,events,inbound,console']

/** How fast a backlog is processed that accumulated without workers, compared with the sustained accept rate. */
export const drain: Scenario = async options => {
  const service = await startService(options)
  try {
    const sustained = await loadService(service, {
      traffic: trackingEvents(),
      connections: options.connections,
      seconds: options.seconds,
      authorization: service.tracking,
    })
    const sustainedPerSecond = sustained.requests / sustained.doneAfterS

    await service.restart(ALL_BUT_WORKERS)
    const before = await countRows(service, 'events')
    const waiting = await gather(service)
    await service.restart([])
    const startedAt = performance.now()
    const alreadyDone = (await countRows(service, 'events')) - before
    await service.drained()
    const seconds = (performance.now() - startedAt) / 1000
    const drained = (await countRows(service, 'events')) - before - alreadyDone
    return {
      facts: {
        sustained,
        sustainedPerSecond,
        waiting,
        drained,
        seconds,
        drainedPerSecond: drained / seconds,
      },
      bars: [
        {
          what: 'drain rate / sustained rate',
          value: drained / seconds / sustainedPerSecond,
          atLeast: 1.5,
        },
        { what: 'events lost', value: Math.max(0, waiting - drained - alreadyDone), atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}

/** Single events are slow to send, so a tenth of the backlog is single events and the rest is batches. */
async function gather(service: Service): Promise<number> {
  const sending = { url: service.url, authorization: service.tracking, connections: 16, seconds: 1 }
  let events = 0
  while (events < BACKLOG / 10) events += (await load({ ...sending, traffic: trackingEvents() })).requests
  while (events < BACKLOG) events += 100 * (await load({ ...sending, traffic: cdpBatches() })).requests
  return events
}
