import type { Attempt, Item } from '../ledger.ts'

/** The final outcome of an item as its sender knows it. */
export type Outcome = {
  tenant: string
  item: Item
  /** when it was first acknowledged; null: never */
  acknowledgedAt: number | null
  firstSentAt: number
  /** requests without a certain answer */
  unclear: number
  /** all operation ids in acknowledgements; more than one means that a key was accepted twice */
  operations: Set<string>
}

/** By tenant and marker. Acknowledged: exactly once. Else: at most as often as it is unclear, and under a claim once. */
export function computeOutcomes(attempts: Attempt[]): Map<string, Outcome> {
  const outcomes = new Map<string, Outcome>()
  for (const attempt of attempts)
    for (const [index, item] of attempt.items.entries()) {
      const key = `${attempt.tenant}/${item.marker}`
      const outcome = outcomes.get(key) ?? newOutcome(attempt, item)
      outcomes.set(key, outcome)
      note(outcome, attempt, index)
    }
  return outcomes
}

const newOutcome = ({ tenant, sentAt }: Attempt, item: Item): Outcome => ({
  tenant,
  item,
  acknowledgedAt: null,
  firstSentAt: sentAt,
  unclear: 0,
  operations: new Set(),
})

function note(outcome: Outcome, { status, sentAt, operations, rejected }: Attempt, index: number): void {
  if (status === 0 || status >= 500) outcome.unclear++
  if (status < 200 || status >= 300 || rejected?.includes(index)) return
  outcome.acknowledgedAt ??= sentAt
  const operation = operations?.[index]
  if (operation) outcome.operations.add(operation)
}

/** How often the item must be stored at least and at most. */
export function bounds({ item, acknowledgedAt, unclear }: Outcome): { least: number; most: number } {
  if (item.invalid) return { least: 0, most: 0 }
  const isThere = acknowledgedAt !== null
  return { least: isThere && !item.old ? 1 : 0, most: isThere || unclear > 0 ? 1 : 0 }
}
