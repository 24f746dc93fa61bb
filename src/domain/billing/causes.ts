/** Why the MRR of a subscription changed, as far as the states before and after tell. */

import type { ItemState } from './mrr.ts'
import type { Instant, SubscriptionStatus } from './types.ts'

export const CAUSES = [
  'quantity',
  'price',
  'plan',
  'discount',
  'discount_end',
  'item_added',
  'item_removed',
  'pause',
  'resume',
  'trial_end',
  'cancellation_voluntary',
  'cancellation_failed_payment',
  'other',
] as const
export type Cause = (typeof CAUSES)[number]

type State = {
  status: SubscriptionStatus
  mrr: number
  items: ItemState[]
  cancellationReason: string | null
}

/** `discountEnds`: when discounts of the subscription or its customer ran out. */
export function causeOf(before: State, after: State, at: Instant, discountEnds: Set<Instant>): Cause {
  if (isPastGrace(after) && !isPastGrace(before)) return 'cancellation_failed_payment'
  const byStatus = before.status === after.status ? null : statusCause(before, after)
  if (byStatus) return byStatus
  const byItems = itemCause(before.items, after.items)
  if (byItems) return byItems
  // what does not count by its status has no discount taken off: that it is now is no change of the discount
  const isByStatus = before.status !== after.status && (before.mrr === 0 || after.mrr === 0)
  return isByStatus ? 'other' : discountCause(before.items, after.items, at, discountEnds)
}

/** It is past due for longer than the policy lets it count. */
function isPastGrace({ items }: State): boolean {
  return items.some(item => item.reason === 'past_due')
}

function statusCause(before: State, after: State): Cause | null {
  if (after.mrr === 0) {
    if (after.status === 'paused') return 'pause'
    if (after.status === 'unpaid') return 'cancellation_failed_payment'
    if (after.status === 'canceled') return cancellationCause(before, after)
  }
  if (before.mrr > 0) return null
  if (before.status === 'trialing') return 'trial_end'
  return before.status === 'paused' ? 'resume' : null
}

/** By what was said of it; where nothing was, an end that comes while money is owed is for want of it. */
function cancellationCause(before: State, { cancellationReason }: State): Cause {
  if (cancellationReason !== null)
    return FOR_WANT_OF_PAYMENT.test(cancellationReason)
      ? 'cancellation_failed_payment'
      : 'cancellation_voluntary'
  const isOwed = before.status === 'past_due' || before.status === 'unpaid'
  return isOwed ? 'cancellation_failed_payment' : 'cancellation_voluntary'
}

const FOR_WANT_OF_PAYMENT = /payment[ _](failed|failure|disputed)|non[ _-]?payment|unpaid/i

function itemCause(before: ItemState[], after: ItemState[]): Cause | null {
  const known = new Map(before.map(item => [item.id, item]))
  const kept = after.filter(item => known.has(item.id))
  const pairs = kept.map(item => [known.get(item.id)!, item] as const)
  const has = (differs: (a: ItemState, b: ItemState) => boolean) => pairs.some(([a, b]) => differs(a, b))
  const [isAdded, isRemoved] = [after.length > kept.length, before.length > kept.length]
  if (isAdded && isRemoved) return 'plan'
  if (isAdded) return 'item_added'
  if (isRemoved) return 'item_removed'
  if (has((a, b) => a.productId !== b.productId || planOf(a) !== planOf(b))) return 'plan'
  if (has((a, b) => isOtherTerm(a, b) || (a.unitAmount !== b.unitAmount && !isOfTiers(a, b)))) return 'price'
  return has((a, b) => a.quantity !== b.quantity) ? 'quantity' : null
}

function isOtherTerm(a: ItemState, b: ItemState): boolean {
  return a.interval !== b.interval || a.intervalCount !== b.intervalCount
}

/** Another quantity of one price may cost another amount each: told as an average, tiers look like that. */
function isOfTiers(a: ItemState, b: ItemState): boolean {
  return a.priceId !== null && a.priceId === b.priceId && a.quantity !== b.quantity
}

/** Without products, another price is another plan only where it goes by another name. */
function planOf(item: ItemState): string | null {
  return item.productId === null ? item.name : null
}

function discountCause(
  before: ItemState[],
  after: ItemState[],
  at: Instant,
  discountEnds: Set<Instant>,
): Cause {
  const taken = (items: ItemState[]) =>
    items.reduce(
      (sum, item) => sum + item.discountMrr + (item.reason === 'fully_discounted' ? item.excludedMrr! : 0),
      0,
    )
  if (taken(before) === taken(after)) return 'other'
  return discountEnds.has(at) ? 'discount_end' : 'discount'
}
