import { isEarlierTouch, type TouchKind, touchOf, touchTime } from '../../domain/identity/attribution.ts'
import type { NodeKey } from '../../domain/identity/identifiers.ts'
import { findTenantsWithTouches, type NewTouch, upsertTouches } from '../../store/identity/identities.ts'
import type { FreshEvent } from '../events/events.ts'
import { takeProfileLock } from '../profile-lock.ts'
import { type FirstTouches, type Learned, openMemory, type Transaction } from '../unit.ts'

export type Touches = {
  /** Writes the first touches of each node. Returns the nodes whose first touches changed. */
  apply(transaction: Transaction, events: FreshEvent[]): Promise<NodeKey[]>
}

// Of each kind.
const MAX_REMEMBERED = 50_000

const noTouches = (): FirstTouches => ({ verified: new Map(), source: new Map(), direct: new Map() })

/** Most events belong to nodes whose first touch is known. Remembering it saves a query. */
export function openTouches(): Touches {
  const memory = openMemory(noTouches)

  return {
    async apply(transaction, events) {
      const known = memory(transaction)
      const earliest = noTouches()
      const first = (kind: TouchKind, node: number) => earliest[kind].get(node) ?? known[kind].get(node)
      for (const { tenantId, event, node } of events) {
        if (node === null) continue
        // No later event can precede a touch with a source, so its URLs need not be read.
        const settled = first(event.trusted ? 'verified' : 'source', node)
        const time = event.trusted ? event.occurredAt : event.receivedAt
        if (settled && !settled.direct && touchTime(settled) < time.getTime()) continue
        const touch = touchOf(event)
        if (!touch) continue
        const before = first(touch.kind, node)
        if (!before || isEarlierTouch(touch, before)) earliest[touch.kind].set(node, { tenantId, node, ...touch })
      }
      const touches = Object.values(earliest).flatMap(own => [...own.values()])
      if (touches.length === 0) return []
      transaction.learned?.touches.push({ memory: known, touches })
      return writeTouches(transaction, touches)
    },
  }
}

/** Call after the commit. */
export function rememberTouches(learned: Learned['touches']): void {
  for (const { memory, touches } of learned) {
    for (const touch of touches) {
      const own = memory[touch.kind]
      if (own.size >= MAX_REMEMBERED) own.clear()
      const before = own.get(touch.node)
      if (!before || isEarlierTouch(touch, before)) own.set(touch.node, touch)
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
