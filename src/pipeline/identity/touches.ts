import { isEarlierTouch, touchOf } from '../../domain/identity/attribution.ts'
import { type NewTouch, tenantsWithEarlierTouches, upsertTouches } from '../../store/identity/identities.ts'
import type { FreshEvent } from '../events/fresh-event.ts'
import { openMemory } from '../memory.ts'
import { takeTurn } from '../turns.ts'
import type { Transaction } from '../unit.ts'
import type { Identities } from './identity.ts'
import type { PeopleListener } from './people.ts'

export type Touches = {
  /** Keeps the first touch of everyone who was seen. */
  apply(transaction: Transaction, events: FreshEvent[]): Promise<void>
}

const MAX_REMEMBERED = 50_000

/** Most events come from people whose first touch is known: remembering it spares the database the question. */
export function openTouches({
  identities,
  onPeople,
}: {
  identities: Pick<Identities, 'isNew'>
  onPeople: PeopleListener
}): Touches {
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
    const changed = await write(transaction, [...earliest.values()])
    if (changed.length > 0) await onPeople(transaction, changed)
    transaction.afterCommit(() => {
      if (known.size + earliest.size > MAX_REMEMBERED) known.clear()
      for (const [key, touch] of earliest) {
        const before = known.get(key)
        if (!before || isEarlierTouch(touch, before)) known.set(key, touch)
      }
    })
  }

  async function write(transaction: Transaction, touches: NewTouch[]) {
    const { client } = transaction
    // Whom nobody else can see yet, nobody else can learn of meanwhile.
    const known = touches.filter(touch => !identities.isNew(transaction, touch))
    const tenantIds = known.length > 0 ? await tenantsWithEarlierTouches(client, known) : []
    if (tenantIds.length > 0) await takeTurn(transaction, tenantIds)
    return upsertTouches(client, touches)
  }

  return { apply }
}
