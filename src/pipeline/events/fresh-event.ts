import type { NormalizedEvent } from '../../domain/events/events.ts'
import type { Transaction } from '../unit.ts'

/** An event that takes effect now: no duplicate. */
export type FreshEvent = {
  tenantId: number
  event: NormalizedEvent
  node: number | null
  /** Of somebody who is not to be recorded: what is derived from it names nobody. */
  nameless?: true
}

/** For what is derived from events: called with each of them once. */
export type EventListener = (transaction: Transaction, events: FreshEvent[]) => Promise<void>
