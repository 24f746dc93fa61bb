/** What a subscription was, and what it was worth, from when to when. */

import type { Cause } from './causes.ts'
import type { ChargeCycle } from './charges.ts'
import type { ItemState } from './mrr.ts'
import type { Acquisition, Instant, SubscriptionStatus } from './types.ts'

/** A stretch of time in which nothing about the subscription changed; `to` is exclusive, null: until further notice. */
export type Segment = {
  subscriptionId: string
  from: Instant
  to: Instant | null
  /** Whose MRR it is: the customer, else the e-mail, else the subscription itself. */
  account: string
  customer: string | null
  customerName: string | null
  customerEmail: string | null
  status: SubscriptionStatus
  currency: string | null
  mrr: number
  /** MRR less what is scheduled to cancel. */
  committedMrr: number
  /** Never empty: a subscription without items has one row with id null. */
  items: SegmentItem[]
  /** When the subscription began, or is going to. */
  startedAt: Instant
  trialEnd: Instant | null
  currentPeriodStart: Instant | null
  currentPeriodEnd: Instant | null
  /** Set while a cancellation is scheduled or its date unknown (`cancelsAt` null, `cancelling` true). */
  cancelling: boolean
  cancelsAt: Instant | null
  cancelRequestedAt: Instant | null
  cancellationReason: string | null
  collectionMethod: string | null
  acquisition: Acquisition | null
  /** As its metadata says. */
  country?: string
  /** A source's trial run, that is not money. */
  testMode?: true
  /** Why MRR is another than before, and the event behind it; left out where it is not. */
  cause?: Cause
  eventId?: string
  cautions?: Caution[]
  cycles: ChargeCycle[]
}

export type Caution = 'items_incomplete' | 'inclusive_tax_unknown' | 'id_of_two_customers'

/** `since`: from when the item has been excluded for this reason, without a break; null on included items. */
export type SegmentItem = ItemState & { since: Instant | null }
