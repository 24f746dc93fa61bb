import { isEarlierTouch, touchOf } from '../domain/attribution.ts'
import { type NewTouch, upsertTouches } from '../store/identities.ts'
import type { FreshEvent } from './events.ts'
import type { Transaction } from './unit.ts'

export type Touches = {
  /** Keeps the first touch of everyone who was seen. */
  apply(transaction: Transaction, events: FreshEvent[]): Promise<void>
  forget(): void
}

const MAX_REMEMBERED = 50_000

/** Most events come from people whose first touch is known: remembering it spares the database the question. */
export function openTouches(): Touches {
  const known = new Map<string, NewTouch>()

  async function apply({ client, afterCommit }: Transaction, events: FreshEvent[]): Promise<void> {
    const earliest = new Map<string, NewTouch>()
    for (const { tenantId, event, node } of events) {
      const touch = node === null ? null : touchOf(event)
      if (!touch || node === null) continue
      const one = { tenantId, node, occurredAt: event.occurredAt, eventId: event.id, ...touch }
      const key = `${tenantId} ${node}`
      const before = earliest.get(key) ?? known.get(key)
      if (!before || isEarlierTouch(one, before)) earliest.set(key, one)
    }
    if (earliest.size === 0) return
    await upsertTouches(client, [...earliest.values()])
    afterCommit(() => {
      if (known.size + earliest.size > MAX_REMEMBERED) known.clear()
      for (const [key, touch] of earliest) {
        const before = known.get(key)
        if (!before || isEarlierTouch(touch, before)) known.set(key, touch)
      }
    })
  }

  return { apply, forget: () => known.clear() }
}
