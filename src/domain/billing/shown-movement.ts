import { toMajor } from '../money.ts'
import { type MovementChange, mainChange } from './movements.ts'
import { withoutNamespaces } from './namespace.ts'

type Moved = {
  account: string
  customerName: string | null
  currency: string
  at: Date
  type: string
  before: number
  after: number
  changes: MovementChange[]
}

/** A movement as it is told to others, in files and to destinations. */
export function shownMovement({ account, customerName, currency, at, type, before, after, changes }: Moved) {
  const main = mainChange(changes)
  return {
    occurred_at: at.toISOString(),
    currency,
    customer: withoutNamespaces(account),
    customer_name: customerName,
    movement_type: type,
    mrr_before: toMajor(before, currency),
    mrr_after: toMajor(after, currency),
    mrr_delta: toMajor(after - before, currency),
    subscription_ids: changes.map(({ subscriptionId }) => withoutNamespaces(subscriptionId)),
    cause: main?.cause ?? 'other',
    event_id: main?.eventId ?? null,
  }
}
