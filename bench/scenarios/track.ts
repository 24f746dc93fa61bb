import { load } from '../load.ts'
import { besideFloor, countRows, loadService, type Options } from '../measure.ts'
import type { Scenario } from '../scenario.ts'
import { startService } from '../service.ts'
import { trackingEvents } from '../traffic.ts'

/** Single durable events with a running worker; then half of that load for the tail latency. */
export const track: Scenario = async (options: Options) => {
  const { connections, seconds } = options
  const traffic = trackingEvents()
  const service = await startService(options)
  try {
    const authorization = service.tracking
    const { floor, result } = await besideFloor({ kind: 'parse' }, { traffic, connections }, async () => {
      const full = await loadService(service, { traffic, connections, seconds, authorization })
      const rate = full.perSecond / 2
      const half = await load({ url: service.url, traffic, connections, seconds: 5, authorization, rate })
      await service.drained()
      return { full, half, events: await countRows(service, 'events') }
    })
    const { full, half } = result
    return {
      facts: { floor, ...result },
      bars: [
        { what: 'throughput / floor', value: full.perSecond / floor.perSecond, atLeast: 0.5 },
        { what: 'p99 at half load / p50 of the floor', value: half.p99Ms / floor.p50Ms, atMost: 5 },
        { what: 'errors', value: full.refused + full.broken + half.refused + half.broken, atMost: 0 },
      ],
    }
  } finally {
    await service.stop()
  }
}
