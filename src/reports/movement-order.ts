import type { MovementEntry, MovementOrder } from '../store/reports/movements.ts'

/** Movements that stand by time, as they are asked for; of the same size the oldest first. */
export function inOrder(entries: MovementEntry[], order: MovementOrder): MovementEntry[] {
  const sizeOf = ({ before, after }: MovementEntry) => Math.abs(after - before)
  return order === 'time' ? entries : entries.toSorted((a, b) => sizeOf(b) - sizeOf(a))
}
