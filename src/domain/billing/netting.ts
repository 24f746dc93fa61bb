/** Movements of one account on one day as one, where the policy says so. */

import { type Movement, type MovementChange, movementType } from './movements.ts'

type Moved = Pick<Movement, 'type' | 'before' | 'after' | 'changes'> & { account: string; occurredAt: Date }

/** Of movements that are given the oldest first: each day's as one at the time of its last, none where nothing is left of it. */
export function nettedWithinDays<Entry extends Moved>(
  movements: Entry[],
  dayOf: (at: Date) => string,
): Entry[] {
  const days = Map.groupBy(movements, ({ account, occurredAt }) => `${dayOf(occurredAt)} ${account}`)
  return [...days.values()]
    .flatMap(day => netted(day) ?? [])
    .sort((a, b) => a.occurredAt.getTime() - b.occurredAt.getTime() || (a.account < b.account ? -1 : 1))
}

function netted<Entry extends Moved>(day: Entry[]): Entry | null {
  if (day.length === 1) return day[0]!
  const { before } = day[0]!
  const last = day.at(-1)!
  const { after } = last
  if (before === after) return null
  const isFirst = day.some(({ type }) => type === 'new')
  return { ...last, before, type: movementType(before, after, isFirst), changes: nettedChanges(day) }
}

/** Of each subscription its first state before and its last after, by the last cause. */
function nettedChanges(day: Moved[]): MovementChange[] {
  const bySubscription = Map.groupBy(
    day.flatMap(({ changes }) => changes),
    ({ subscriptionId }) => subscriptionId,
  )
  return [...bySubscription.values()]
    .map(changes => ({ ...changes.at(-1)!, before: changes[0]!.before }))
    .filter(({ before, after }) => before !== after)
}
