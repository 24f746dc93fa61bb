/** Monthly recurring revenue of one subscription at one instant, item by item; the policy is in policy.ts. */

import { divideHalfUp } from '../money.ts'
import { type Line, type LinesAt, linesOf, perMonth, type Ratio, type Terms } from './pricing.ts'
import type { Ruling } from './standing.ts'
import type { Instant, Item, ReasonCode, SubscriptionStatus } from './types.ts'

/** An item's part in MRR. `grossMrr` − `discountMrr` = `mrr`, always; an excluded item has a reason and no `mrr`. */
export type ItemState = {
  /** null: the one row that stands for a subscription without items. */
  id: string | null
  priceId: string | null
  productId: string | null
  name: string | null
  quantity: number | null
  /** Decimal text in major units. */
  unitAmount: string | null
  interval: string | null
  intervalCount: number | null
  usageType: Item['usageType'] | null
  currentPeriodStart: Instant | null
  currentPeriodEnd: Instant | null
  grossMrr: number
  discountMrr: number
  mrr: number
  included: boolean
  reason: ReasonCode | null
  /** Gross MRR that an excluded item would have; null where it cannot be priced, and on included items. */
  excludedMrr: number | null
}

type MrrTerms = Terms & {
  status: SubscriptionStatus
  /** By the policy; without it the status alone decides. */
  ruling?: Ruling | null
  startedAt: Instant | null
  testMode?: true | null
  itemsIncomplete?: true | null
}

/** Why a subscription does not count as a whole, in the order in which reasons are looked for. */
function subscriptionReason(terms: MrrTerms, at: Instant): ReasonCode | null {
  if (terms.testMode) return 'test_mode'
  if (terms.currency === null) return 'missing_currency'
  if (terms.ruling === 'past_due') return 'past_due'
  switch (terms.ruling === 'counts' ? 'active' : terms.status) {
    case 'active':
    case 'past_due':
      break
    case 'unknown':
      return 'incomplete'
    default:
      return terms.status as Exclude<SubscriptionStatus, 'active' | 'past_due' | 'unknown'>
  }
  if (terms.startedAt !== null && at < terms.startedAt) return 'not_started'
  return terms.items.length === 0 ? 'missing_items' : null
}

export function itemStates(terms: MrrTerms, at: Instant, linesAt: LinesAt = linesOf(terms)): ItemState[] {
  const reason = subscriptionReason(terms, at)
  if (terms.items.length === 0) return [excluded(NO_ITEM, reason ?? 'missing_items', null)]
  const states = linesAt(at).map(line => itemState(line, reason))
  // those that were told count, and a row says that there are more
  return terms.itemsIncomplete && reason === null
    ? [...states, excluded(NO_ITEM, 'items_incomplete', null)]
    : states
}

function itemState(line: Line, subscriptionReason: ReasonCode | null): ItemState {
  const gross = line.gross && monthly(line.gross, line.item)
  const reason = subscriptionReason ?? line.fault ?? (gross === 0 ? 'free' : null)
  if (reason !== null) return excluded(line.item, reason, gross)
  const mrr = monthly(line.net!, line.item)
  return {
    ...facts(line.item),
    grossMrr: gross!,
    discountMrr: gross! - mrr,
    mrr,
    included: mrr > 0,
    reason: mrr > 0 ? null : 'fully_discounted',
    excludedMrr: mrr > 0 ? null : gross,
  }
}

/** Rounded half-up, once, after discounts. */
function monthly(amount: Ratio, item: Item): number {
  const { n, d } = perMonth(amount, item)
  return Number(divideHalfUp(n, d))
}

type ItemFacts = Omit<ItemState, 'grossMrr' | 'discountMrr' | 'mrr' | 'included' | 'reason' | 'excludedMrr'>

const NO_ITEM: ItemFacts = {
  id: null,
  priceId: null,
  productId: null,
  name: null,
  quantity: null,
  unitAmount: null,
  interval: null,
  intervalCount: null,
  usageType: null,
  currentPeriodStart: null,
  currentPeriodEnd: null,
}

function facts(item: ItemFacts): ItemFacts {
  return {
    id: item.id,
    priceId: item.priceId,
    productId: item.productId,
    name: item.name,
    quantity: item.quantity,
    unitAmount: item.unitAmount,
    interval: item.interval,
    intervalCount: item.intervalCount,
    usageType: item.usageType,
    currentPeriodStart: item.currentPeriodStart,
    currentPeriodEnd: item.currentPeriodEnd,
  }
}

function excluded(item: ItemFacts, reason: ReasonCode, excludedMrr: number | null): ItemState {
  return { ...facts(item), grossMrr: 0, discountMrr: 0, mrr: 0, included: false, reason, excludedMrr }
}

export function totalMrr(items: ItemState[]): number {
  return items.reduce((sum, item) => sum + item.mrr, 0)
}

export function arrOf(mrr: number): number {
  return 12 * mrr
}

/** Average MRR per paying account, half-up to the minor unit; 0 when nobody pays. */
export function arpaOf(mrr: number, accounts: number): number {
  return accounts > 0 ? Number(divideHalfUp(BigInt(mrr), BigInt(accounts))) : 0
}
