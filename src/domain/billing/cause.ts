import type { ItemState } from './price.ts'
import type { Instant, SubscriptionStatus } from './types.ts'

/** The causes of a change of MRR. */
export const CAUSES = [
  'new_subscription',
  'additional_subscription',
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

type CauseState = { status: SubscriptionStatus; mrr: number; items: ItemState[]; cancellationReason: string | null }

/** Judges by the states before and after. `discountEnds`: ends of discounts of the subscription or its customer. */
export function findCause(before: CauseState, after: CauseState, at: Instant, discountEnds: Set<Instant>): Cause {
  if (isPastGrace(after) && !isPastGrace(before)) return 'cancellation_failed_payment'
  const byStatus = before.status === after.status ? null : statusCause(before, after)
  if (byStatus) return byStatus
  const byItems = itemCause(before.items, after.items)
  if (byItems) return byItems
  // A status that does not count has no discount. A discount that appears with the status is no discount change.
  const isByStatus = before.status !== after.status && (before.mrr === 0 || after.mrr === 0)
  return isByStatus ? 'other' : discountCause(before.items, after.items, at, discountEnds)
}

/** Past due for longer than the policy's grace period. */
function isPastGrace({ items }: CauseState): boolean {
  return items.some(item => item.reason === 'past_due')
}

function statusCause(before: CauseState, after: CauseState): Cause | null {
  if (after.mrr === 0) {
    if (after.status === 'paused') return 'pause'
    if (after.status === 'unpaid') return 'cancellation_failed_payment'
    if (after.status === 'canceled') return cancellationCause(before, after)
  }
  if (before.mrr > 0) return null
  if (before.status === 'trialing') return 'trial_end'
  return before.status === 'paused' ? 'resume' : null
}

/** By the reason given. Without one, a cancellation while money is owed counts as a failed payment. */
function cancellationCause(before: CauseState, { cancellationReason }: CauseState): Cause {
  if (cancellationReason !== null)
    return FAILED_PAYMENT.test(cancellationReason) ? 'cancellation_failed_payment' : 'cancellation_voluntary'
  const isOwed = before.status === 'past_due' || before.status === 'unpaid'
  return isOwed ? 'cancellation_failed_payment' : 'cancellation_voluntary'
}

const FAILED_PAYMENT = /payment[ _](failed|failure|disputed)|non[ _-]?payment|unpaid/i

function itemCause(before: ItemState[], after: ItemState[]): Cause | null {
  const known = new Map(before.map(item => [item.id, item]))
  const kept = after.filter(item => known.has(item.id))
  const pairs = kept.map(item => [known.get(item.id)!, item] as const)
  const has = (differs: (a: ItemState, b: ItemState) => boolean) => pairs.some(([a, b]) => differs(a, b))
  const [isAdded, isRemoved] = [after.length > kept.length, before.length > kept.length]
  if (isAdded && isRemoved) return 'plan'
  if (isAdded) return 'item_added'
  if (isRemoved) return 'item_removed'
  if (has((a, b) => a.productId !== b.productId || planKey(a) !== planKey(b))) return 'plan'
  if (has((a, b) => hasOtherInterval(a, b) || (a.unitAmount !== b.unitAmount && !isTierChange(a, b)))) return 'price'
  return has((a, b) => a.quantity !== b.quantity) ? 'quantity' : null
}

function hasOtherInterval(a: ItemState, b: ItemState): boolean {
  return a.interval !== b.interval || a.intervalCount !== b.intervalCount
}

/** Tiers reported as an average: another quantity of the same price has another unit amount. */
function isTierChange(a: ItemState, b: ItemState): boolean {
  return a.priceId !== null && a.priceId === b.priceId && a.quantity !== b.quantity
}

/** Without a product, the name identifies the plan. */
function planKey(item: ItemState): string | null {
  return item.productId === null ? item.name : null
}

function discountCause(before: ItemState[], after: ItemState[], at: Instant, discountEnds: Set<Instant>): Cause {
  const taken = (items: ItemState[]) =>
    items.reduce(
      (sum, item) => sum + item.discountMrr + (item.reason === 'fully_discounted' ? item.excludedMrr! : 0),
      0,
    )
  if (taken(before) === taken(after)) return 'other'
  return discountEnds.has(at) ? 'discount_end' : 'discount'
}
