import { isEarlierTouch, touchOf } from '../../domain/identity/attribution.ts'
import { type NewTouch, upsertTouches } from '../../store/identity/identities.ts'
import type { FreshEvent } from '../events/fresh-event.ts'
import { openMemory } from '../memory.ts'
import type { Transaction } from '../unit.ts'

export type Touches = {
  /** Keeps the first touch of everyone who was seen. */
  apply(transaction: Transaction, events: FreshEvent[]): Promise<void>
}

const MAX_REMEMBERED = 50_000

/** Most events come from people whose first touch is known: remembering it spares the database the question. */
export function openTouches(): Touches {
  const memory = openMemory(() => new Map<string, NewTouch>())

  async function apply(transaction: Transaction, events: FreshEvent[]): Promise<void> {
    const known = memory(transaction)
    const earliest = new Map<string, NewTouch>()
    for (const { tenantId, event, node } of events) {
      if (node === null) continue
      const key = `${tenantId} ${node}`
      const before = earliest.get(key) ?? known.get(key)
      // Nothing later can come before a touch that names somebody: no need to read the event's URLs.
      if (before && !before.direct && before.occurredAt < event.occurredAt) continue
      const origin = touchOf(event)
      if (!origin) continue
      const touch = { tenantId, node, occurredAt: event.occurredAt, eventId: event.id, ...origin }
      if (!before || isEarlierTouch(touch, before)) earliest.set(key, touch)
    }
    if (earliest.size === 0) return
    await upsertTouches(transaction.client, [...earliest.values()])
    transaction.afterCommit(() => {
      if (known.size + earliest.size > MAX_REMEMBERED) known.clear()
      for (const [key, touch] of earliest) {
        const before = known.get(key)
        if (!before || isEarlierTouch(touch, before)) known.set(key, touch)
      }
    })
  }

  return { apply }
}
