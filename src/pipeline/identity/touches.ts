import { isEarlierTouch, type TouchKind, touchOf, touchTime } from '../../domain/identity/attribution.ts'
import type { NodeKey } from '../../domain/identity/identifiers.ts'
import { findTenantsWithTouches, type NewTouch, upsertTouches } from '../../store/identity/identities.ts'
import type { FreshEvent } from '../events/events.ts'
import { takeProfileLock } from '../profile-lock.ts'
import { type Learned, openMemory, type Transaction } from '../unit.ts'

export type Touches = {
  /** Writes the first touches of each node. Returns the nodes whose first touches changed. */
  apply(transaction: Transaction, events: FreshEvent[]): Promise<NodeKey[]>
}

const MAX_REMEMBERED = 50_000

/** Most events belong to nodes whose first touch is known. Remembering it saves a query. */
export function openTouches(): Touches {
  const memory = openMemory(() => new Map<string, NewTouch>())

  return {
    async apply(transaction, events) {
      const known = memory(transaction)
      const earliest = new Map<string, NewTouch>()
      for (const { tenantId, event, node } of events) {
        if (node === null) continue
        const keyOf = (kind: TouchKind) => `${tenantId} ${node} ${kind}`
        const first = (kind: TouchKind) => earliest.get(keyOf(kind)) ?? known.get(keyOf(kind))
        // No later event can precede a touch with a source, so its URLs need not be read.
        const settled = first(event.trusted ? 'verified' : 'source')
        const time = event.trusted ? event.occurredAt : event.receivedAt
        if (settled && !settled.direct && touchTime(settled) < time.getTime()) continue
        const touch = touchOf(event)
        if (!touch) continue
        const before = first(touch.kind)
        if (!before || isEarlierTouch(touch, before)) earliest.set(keyOf(touch.kind), { tenantId, node, ...touch })
      }
      if (earliest.size === 0) return []
      transaction.learned?.touches.push({ memory: known, touches: earliest })
      return writeTouches(transaction, [...earliest.values()])
    },
  }
}

/** Call after the commit. */
export function rememberTouches(learned: Learned['touches']): void {
  for (const { memory, touches } of learned) {
    if (memory.size + touches.size > MAX_REMEMBERED) memory.clear()
    for (const [key, touch] of touches) {
      const before = memory.get(key)
      if (!before || isEarlierTouch(touch, before)) memory.set(key, touch)
    }
  }
}

async function writeTouches(transaction: Transaction, touches: NewTouch[]): Promise<NodeKey[]> {
  const { client, newNodes } = transaction
  // No other transaction can see a new node, so none can learn about it in the meantime.
  const known = touches.filter(({ tenantId, node }) => !newNodes?.has(`${tenantId} ${node}`))
  const tenantIds = known.length > 0 ? await findTenantsWithTouches(client, known) : []
  if (tenantIds.length > 0) await takeProfileLock(transaction, tenantIds)
  return upsertTouches(client, touches)
}
