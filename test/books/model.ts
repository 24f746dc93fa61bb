// The data of the simulated company. Amounts are whole minor units, instants whole seconds. All values are immutable.
import type { Unit } from './calendar.ts'

export type Tier = { upTo: number | null; unitAmount: number; flatAmount: number }

export type Price = {
  id: string
  product: string
  name: string
  currency: string
  /** Any other value is an error in the catalog. */
  interval: Unit | (string & {})
  intervalCount: number | null
  usage: 'licensed' | 'metered'
  /** Per seat and period, or per unit of usage; may have fractions of a minor unit. */
  unitAmount: number | null
  tiers: { mode: 'graduated' | 'volume'; tiers: Tier[] } | null
}

export type TaxRate = { id: string; name: string; country: string; percent: number; inclusive: boolean }

export type Coupon = {
  id: string
  name: string
  percentOff: number | null
  amountOff: number | null
  currency: string | null
  duration: 'once' | 'repeating' | 'forever'
  months: number | null
  createdAt: number
  promotionCode: { id: string; code: string } | null
  livemode: boolean
}

/** A granted coupon, for one subscription or for all of a customer. */
export type Discount = {
  id: string
  coupon: Coupon
  customer: string
  subscription: string | null
  start: number
  end: number | null
}

export type Customer = {
  id: string
  name: string
  email: string
  country: string
  createdAt: number
  livemode: boolean
  discount: Discount | null
  /** Below 0: a credit, which the next invoice uses. */
  balance: number
  currency: string | null
}

export type Item = { id: string; price: Price; quantity: number; createdAt: number }

type SubscriptionStatus =
  | 'incomplete'
  | 'incomplete_expired'
  | 'trialing'
  | 'active'
  | 'past_due'
  | 'unpaid'
  | 'paused'
  | 'canceled'

export type PauseBehavior = 'void' | 'keep_as_draft' | 'mark_uncollectible'
export type Acquisition = { source: string; medium: string; campaign: string }
type Collection = 'charge_automatically' | 'send_invoice'
export type CancelReason = 'cancellation_requested' | 'payment_failed' | 'payment_disputed'

export type Subscription = {
  id: string
  customer: string
  currency: string
  livemode: boolean
  createdAt: number
  startedAt: number
  status: SubscriptionStatus
  items: Item[]
  discounts: Discount[]
  tax: TaxRate | null
  taxOn: 'subscription' | 'items'
  trialStart: number | null
  trialEnd: number | null
  /** Renewals are counted from here. */
  anchor: number
  periodStart: number
  periodEnd: number
  cancelAt: number | null
  cancelAtPeriodEnd: boolean
  canceledAt: number | null
  endedAt: number | null
  cancelReason: CancelReason | null
  pause: { since: number; resumesAt: number | null; behavior: PauseBehavior } | null
  collection: Collection
  daysUntilDue: number | null
  acquisition: Acquisition | null
  /** The acquisition source in the subscription; null: none. */
  country: string | null
  latestInvoice: string | null
}

export type Line = {
  id: string
  kind: 'item' | 'proration' | 'usage' | 'one_off'
  item: Item | null
  description: string
  quantity: number
  /** Before discounts, including inclusive tax. */
  amount: number
  discounts: { discount: Discount; amount: number }[]
  tax: number
  periodStart: number
  periodEnd: number
}

export type Failure = { code: string; declineCode: string | null; message: string }

export type Invoice = {
  id: string
  number: string | null
  customer: string
  subscription: string | null
  currency: string
  livemode: boolean
  reason: 'subscription_create' | 'subscription_cycle' | 'subscription_update' | 'manual'
  status: 'draft' | 'open' | 'paid' | 'uncollectible' | 'void'
  lines: Line[]
  taxRate: TaxRate | null
  discounts: Discount[]
  subtotal: number
  discounted: number
  tax: number
  total: number
  /** The customer's balance, 0 or below, before and after finalization. */
  startingBalance: number
  endingBalance: number | null
  amountDue: number
  amountPaid: number
  amountRemaining: number
  creditedBeforePayment: number
  creditedAfterPayment: number
  createdAt: number
  finalizedAt: number | null
  paidAt: number | null
  voidedAt: number | null
  uncollectibleAt: number | null
  dueAt: number | null
  collection: Collection
  attempts: number
  nextAttemptAt: number | null
  failure: Failure | null
  needsAction: boolean
  periodStart: number
  periodEnd: number
}

/** One payment attempt, for an invoice or without one. */
export type Payment = {
  id: string
  /** The same for all attempts to collect one amount. */
  intent: string
  /** The id of Stripe's invoice payment, the same for all attempts; null: no invoice. */
  invoicePayment: string | null
  invoice: string | null
  subscription: string | null
  customer: string
  currency: string
  livemode: boolean
  amount: number
  at: number
  outcome: 'succeeded' | 'failed' | 'requires_action'
  failure: Failure | null
  description: string
}

export type Refund = {
  id: string
  payment: Payment
  amount: number
  createdAt: number
  status: 'succeeded' | 'failed'
  failedAt: number | null
  creditNote: string | null
}

export type CreditNote = {
  id: string
  number: string
  invoice: Invoice
  amount: number
  createdAt: number
  /** Refunded by the payment provider or outside of it, kept as a balance, or deducted from an open invoice. */
  how: 'refund' | 'out_of_band' | 'balance' | 'less_owed'
  refund: string | null
}

export type Dispute = {
  id: string
  payment: Payment
  amount: number
  createdAt: number
  status: 'needs_response' | 'won' | 'lost'
  closedAt: number | null
}

/** The cause of a change of MRR, according to the decision behind it. */
export type Cause =
  | 'new_subscription'
  | 'additional_subscription'
  | 'quantity'
  | 'price'
  | 'plan'
  | 'discount'
  | 'discount_end'
  | 'item_added'
  | 'item_removed'
  | 'pause'
  | 'resume'
  | 'trial_end'
  | 'cancellation_voluntary'
  | 'cancellation_failed_payment'
  | 'other'

export type FactBody =
  | { kind: 'coupon'; what: 'created'; after: Coupon }
  | { kind: 'customer'; what: 'created' | 'updated'; after: Customer; before: Customer | null }
  | { kind: 'discount'; what: 'created' | 'deleted'; discount: Discount }
  | {
      kind: 'subscription'
      what: 'created' | 'updated' | 'paused' | 'resumed' | 'deleted' | 'trial_will_end'
      after: Subscription
      before: Subscription | null
      cause: Cause
    }
  | {
      kind: 'invoice'
      what:
        | 'created'
        | 'finalized'
        | 'sent'
        | 'updated'
        | 'payment_failed'
        | 'payment_action_required'
        | 'overdue'
        | 'paid'
        | 'voided'
        | 'marked_uncollectible'
      after: Invoice
      before: Invoice | null
    }
  | { kind: 'payment'; payment: Payment }
  | {
      kind: 'refund'
      what: 'created' | 'failed'
      after: Refund
      before: Refund | null
      refundedInAll: number
    }
  | { kind: 'credit_note'; what: 'created'; after: CreditNote }
  | { kind: 'dispute'; what: 'created' | 'closed'; after: Dispute; before: Dispute | null }

/** A decision or an occurrence, in order. */
export type Fact = FactBody & { at: number; order: number }

export type FactOf<Kind extends Fact['kind']> = Extract<Fact, { kind: Kind }>
