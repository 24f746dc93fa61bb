import { type Entry, type EntryKind, orderOf } from '../domain/entry.ts'
import type { PartitionName } from '../log/log.ts'
import type { NewDeadLetter } from '../store/entries/dead-letters.ts'
import type { Parked } from '../store/entries/parked.ts'
import type { Kind, Unit } from './unit.ts'

// A request may hold 5,000 events. Applied in one transaction they held all readers up for one to three seconds, because
// nobody reads past a transaction that is still open; five hundred take an eighth of one.
const MAX_UNITS_OF_ENTRY = 500

/** An entry that is to take effect in this transaction. */
export type Planned = { partition: PartitionName; entry: Entry; parked: Parked | null }

export type Decoded = {
  units: Unit[]
  /** The items of entries that can never take effect. */
  rejected: Map<Entry, NewDeadLetter[]>
  /** What is left of large entries: it waits for its next turn, and meanwhile it is that of others. */
  rest: Unit[]
  /** Whole entries that stay behind such a rest, because they have the same order. */
  behindRest: Planned[]
}

/** An entry that cannot be read is a unit that fails: in its place, so that what is behind it waits. */
export function decode(entries: Planned[], kinds: Record<EntryKind, Kind>): Decoded {
  const decoded: Decoded = { units: [], rejected: new Map(), rest: [], behindRest: [] }
  const ordersWithRest = new Set<string>()
  for (const planned of entries) {
    const { partition, entry, parked } = planned
    if (ordersWithRest.size > 0 && ordersWithRest.has(orderOf(entry))) {
      decoded.behindRest.push(planned)
      continue
    }
    try {
      const { works, rejected } = kinds[entry.kind].decode(entry)
      for (const [i, work] of works.entries()) {
        const part = i < MAX_UNITS_OF_ENTRY ? decoded.units : decoded.rest
        part.push({ entry, partition, parked, work })
      }
      if (works.length > MAX_UNITS_OF_ENTRY) ordersWithRest.add(orderOf(entry))
      if (rejected.length > 0) decoded.rejected.set(entry, rejected)
    } catch (error) {
      decoded.units.push({ entry, partition, parked, work: undefined, unreadable: { error } })
    }
  }
  return decoded
}
