import type { NormalizedEvent } from '../../domain/events/events.ts'
import { MINUTE_MS } from '../../domain/time.ts'
import type { EventSum } from '../../store/sums/events.ts'

/** What events add to the sums that series are read from: a row a minute, type and source, however many they are. */
export function sumEvents(events: { tenantId: number; event: NormalizedEvent }[]): EventSum[] {
  const sums = new Map<string, EventSum>()
  for (const { tenantId, event } of events) {
    const minute = Math.floor(event.occurredAt.getTime() / MINUTE_MS)
    const key = `${tenantId} ${minute} ${event.source} ${event.eventType}`
    const sum = sums.get(key)
    if (sum) sum.count++
    else {
      const { eventType, source } = event
      sums.set(key, {
        tenantId,
        minute: new Date(minute * MINUTE_MS).toISOString(),
        eventType,
        source,
        count: 1,
      })
    }
  }
  return [...sums.values()]
}
