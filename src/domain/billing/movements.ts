/** How the MRR of an account changes, and why: one movement per account, currency and instant. */

import type { Cause } from './causes.ts'
import type { Segment } from './timeline.ts'
import type { Instant } from './types.ts'

export const MOVEMENT_TYPES = ['new', 'expansion', 'contraction', 'churn', 'reactivation'] as const
export type MovementType = (typeof MOVEMENT_TYPES)[number]

export type Movement = {
  at: Instant
  type: MovementType
  before: number
  after: number
  /** The subscriptions behind it: each one's own MRR before and after. */
  changes: MovementChange[]
}

/** `cause` and the event behind it are left out where they are not known. */
export type MovementChange = {
  subscriptionId: string
  before: number
  after: number
  cause?: Cause
  eventId?: string
}

type AccountLedger = { currency: string; movements: Movement[] }

type Priced = Pick<Segment, 'subscriptionId' | 'from' | 'to' | 'currency' | 'mrr'> & {
  cause?: Cause | null
  eventId?: string | null
}

type Value = Pick<Priced, 'mrr' | 'cause' | 'eventId'>

/** From when on to derive, and in which currencies the account had moved before. */
type LedgerStart = { at: Instant; movedIn: Set<string> }

/**
 * All segments of one account's subscriptions, in any order and in all their currencies; with `start`, those that end then
 * or later.
 */
export function deriveAccount(segments: Priced[], start: LedgerStart | null = null): AccountLedger[] {
  const currencies = [...new Set(segments.map(segment => segment.currency))].filter(code => code !== null)
  return currencies
    .sort()
    .map(currency =>
      ledgerOf(
        currency,
        segments.filter(segment => segment.currency === currency),
        start,
      ),
    )
    .filter(ledger => ledger.movements.length > 0)
}

function ledgerOf(currency: string, segments: Priced[], start: LedgerStart | null): AccountLedger {
  const current = new Map<string, number>()
  const byInstant = new Map<Instant, Map<string, Value>>()
  const set = (at: Instant, subscriptionId: string, value: Value) => {
    const values = byInstant.get(at) ?? new Map<string, Value>()
    byInstant.set(at, values.set(subscriptionId, value))
  }
  // in order of time a segment's end comes before the start of the next one, which overwrites it
  for (const segment of [...segments].sort((a, b) => a.from - b.from)) {
    if (start && segment.from < start.at) current.set(segment.subscriptionId, segment.mrr)
    else set(segment.from, segment.subscriptionId, segment)
    if (segment.to !== null) set(segment.to, segment.subscriptionId, { mrr: 0 })
  }
  const movements: Movement[] = []
  let isFirst = !start?.movedIn.has(currency)
  let total = [...current.values()].reduce((sum, mrr) => sum + mrr, 0)
  for (const at of [...byInstant.keys()].sort((a, b) => a - b)) {
    const changes = changesAt(byInstant.get(at)!, current)
    const after = changes.reduce((sum, change) => sum + change.after - change.before, total)
    for (const change of changes) current.set(change.subscriptionId, change.after)
    if (after === total) continue
    movements.push({ at, type: movementType(total, after, isFirst), before: total, after, changes })
    total = after
    isFirst = false
  }
  return { currency, movements }
}

function changesAt(values: Map<string, Value>, current: Map<string, number>): MovementChange[] {
  return [...values]
    .map(([subscriptionId, { mrr, cause, eventId }]) => ({
      subscriptionId,
      before: current.get(subscriptionId) ?? 0,
      after: mrr,
      ...(cause && { cause }),
      ...(eventId && { eventId }),
    }))
    .filter(change => change.before !== change.after)
    .sort((a, b) => (a.subscriptionId < b.subscriptionId ? -1 : 1))
}

/** What moved most: a movement of several subscriptions at one instant has the cause of that one. */
export function mainChange(changes: MovementChange[]): MovementChange | undefined {
  const size = ({ before, after }: MovementChange) => Math.abs(after - before)
  return changes.reduce<MovementChange | undefined>(
    (most, change) => (most && size(most) >= size(change) ? most : change),
    undefined,
  )
}

/** An account's first rise is new, every later one from nothing a reactivation. */
export function movementType(before: number, after: number, isFirst: boolean): MovementType {
  if (before === 0) return isFirst ? 'new' : 'reactivation'
  if (after === 0) return 'churn'
  return after > before ? 'expansion' : 'contraction'
}
