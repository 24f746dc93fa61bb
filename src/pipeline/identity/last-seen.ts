import { MINUTE_MS } from '../../domain/time.ts'
import { noteSeen, type SeenNode } from '../../store/customers/refresh.ts'
import type { FreshEvent } from '../events/events.ts'
import { type Learned, openMemory, type Transaction } from '../unit.ts'

/**
 * Notes when the nodes of these events were last seen, if their people are customers, or become customers by a sale or a link
 * of this transaction.
 */
export type LastSeen = (
  transaction: Transaction,
  events: FreshEvent[],
  sales: { node: number | null }[],
) => Promise<void>

// The stored times are correct to 15 minutes, so a node that was noted in the last minute needs no query.
const NOTED_MS = MINUTE_MS
const MAX_REMEMBERED = 50_000

export function openLastSeen(): LastSeen {
  const memory = openMemory(() => new Map<number, number>())

  return async (transaction, events, sales) => {
    const noted = memory(transaction)
    const buyers = new Set(sales.map(({ node }) => node))
    const seen = new Map<number, SeenNode>()
    for (const { tenantId, node, event } of events) {
      if (node === null) continue
      // Anyone can state any time, so that of an unverified event is its receipt.
      const at = event.trusted && event.occurredAt < event.receivedAt ? event.occurredAt : event.receivedAt
      const isCustomer = buyers.has(node) || transaction.movedNodes?.has(node) === true
      const notedAt = noted.get(node)
      if (!isCustomer && notedAt !== undefined && at.getTime() < notedAt + NOTED_MS) continue
      const before = seen.get(node)
      if (!before || before.at < at) seen.set(node, { tenantId, node, at, isCustomer })
    }
    if (seen.size === 0) return
    const nodes = [...seen.values()]
    transaction.learned?.seen.push({ memory: noted, seen: nodes })
    await noteSeen(transaction.client, nodes)
  }
}

/** Call after the commit. */
export function rememberSeen(learned: Learned['seen']): void {
  for (const { memory, seen } of learned) {
    if (memory.size + seen.length > MAX_REMEMBERED) memory.clear()
    for (const { node, at } of seen) memory.set(node, at.getTime())
  }
}
