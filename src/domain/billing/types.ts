/**
 * What billing systems tell us, in one shape. Everything here is plain JSON: instants are epoch milliseconds, amounts
 * are whole minor units of the currency, and prices that may be finer than that are decimal text in major units.
 */

/** Epoch milliseconds. */
export type Instant = number

export type SubscriptionStatus =
  | 'active'
  | 'past_due'
  | 'trialing'
  | 'unpaid'
  | 'incomplete'
  | 'incomplete_expired'
  | 'canceled'
  | 'paused'
  | 'unknown'

/**
 * A subscription as its source described it at one time: always the whole object, never a difference. Fields that
 * may be left out are left out where there is nothing to say: what was kept before there was such a field reads alike.
 */
export type SubscriptionVersion = SubscriptionFacts & {
  id: string
  /** When the source says this became so: `updated_at`, or a Stripe event's `created`. */
  sourceAt: Instant
  change: 'created' | 'updated' | 'deleted'
  /** The provider's id of the event: the same event from two endpoints is one. */
  fact?: string
  /** Tells apart what its source says of one instant. */
  sequence?: number
  /** Our own id of the event; it is kept beside the version. */
  eventId?: string
  /** What was otherwise before the change, as far as the event says so. */
  before?: Partial<SubscriptionFacts>
}

/** What a version says of the subscription itself. */
export type SubscriptionFacts = {
  customer: string | null
  customerName: string | null
  customerEmail: string | null
  status: SubscriptionStatus
  currency: string | null
  startedAt: Instant | null
  trialEnd: Instant | null
  currentPeriodStart: Instant | null
  currentPeriodEnd: Instant | null
  /** Where the billing cycle is counted from, if the source says so: tells a 31st from a 28th. */
  billingAnchor: Instant | null
  cancelAtPeriodEnd: boolean
  cancelAt: Instant | null
  canceledAt: Instant | null
  endedAt: Instant | null
  cancellationReason: string | null
  collectionMethod: string | null
  acquisition: Acquisition | null
  items: Item[]
  /** In the order they apply, after the items' own. */
  discounts: Discount[]
  /** A source's trial run: kept, and never money. */
  testMode?: true | null
  /** The event says nothing of items and discounts: those of before hold. */
  itemsUntold?: true | null
  /** Of more items than the source told. */
  itemsIncomplete?: true | null
  /** Prices hold tax, and nobody knows how much. */
  inclusiveTaxUnknown?: true | null
  /** The customer's own discounts, while the subscription has none. */
  inherited?: Discount[]
  /** When a pause ends by itself. */
  resumesAt?: Instant | null
  /** As its metadata says. */
  country?: string
}

export type Acquisition = { source: string; medium: string | null; campaign: string | null }

export type Item = {
  id: string
  priceId: string | null
  productId: string | null
  name: string | null
  /** null: given, but not a quantity. */
  quantity: number | null
  /** What the price is multiplied by: differs from `quantity` where units are sold in packs. */
  billedQuantity: number | null
  /** Decimal text in major units; may be finer than the currency's minor unit. */
  unitAmount: string | null
  tiered: boolean
  tiers?: Tiers
  /** Percent of tax that the price holds, as decimal text. */
  inclusiveTax?: string
  /** As given, in lower case: what is supported is the engine's question. */
  interval: string | null
  /** null: given, but not a positive whole number. */
  intervalCount: number | null
  usageType: 'licensed' | 'metered' | 'one_time'
  currentPeriodStart: Instant | null
  currentPeriodEnd: Instant | null
  discounts: Discount[]
}

/** What units cost by how many there are: each part at the price of its tier, or all at the price of the one reached. */
export type Tiers = {
  mode: 'graduated' | 'volume'
  /** In order; `upTo` null: without end. Amounts are decimal text in major units. */
  steps: { upTo: number | null; unitAmount: string; flatAmount: string }[]
}

/** Without `percentOff` and `amountOff` its terms are unknown: what it is named by may tell them. */
export type Discount = {
  id?: string
  couponId?: string
  promotionCodeId?: string
  startsAt?: Instant
  /** Decimal text, 0 to 100. */
  percentOff: string | null
  /** Minor units per billing period. */
  amountOff: number | null
  duration: 'forever' | 'once' | 'repeating' | 'unknown'
  endsAt: Instant | null
  /** It was taken away or replaced then, before its time. */
  isCut?: true
  /** Only items of these products; null: all. */
  productIds: string[] | null
}

/** Objects that subscriptions name, and that are told by themselves. */
export type TermKind = 'customer' | 'discount' | 'promotion_code' | 'coupon'

export type CouponTerms = {
  percentOff: string | null
  /** Minor units by currency. */
  amountsOff: Record<string, number>
  duration: Discount['duration']
  months: number | null
  productIds: string[] | null
}

/** One telling of such an object; what it does not say is left out. */
export type Term = {
  kind: TermKind
  id: string
  sourceAt: Instant
  name?: string
  email?: string
  coupon?: CouponTerms
  couponId?: string
  promotionCodeId?: string
  customer?: string
  subscription?: string
  /** The discount is the customer's: it counts for each of its subscriptions that has none of its own. */
  ofCustomer?: boolean
  startsAt?: Instant
  endsAt?: Instant
  /** Taken away before its end. */
  deletedAt?: Instant
}

export type InvoiceStatus = 'draft' | 'open' | 'paid' | 'uncollectible' | 'void' | 'unknown'

/** An invoice as its source described it at one time. */
export type InvoiceVersion = {
  id: string
  sourceAt: Instant
  /** Tells apart what its source says of one instant. */
  sequence?: number
  number: string | null
  subscriptionId: string | null
  customer: string | null
  customerName: string | null
  customerEmail: string | null
  status: InvoiceStatus
  currency: string | null
  total: number | null
  tax: number | null
  amountDue: number | null
  amountPaid: number | null
  amountRemaining: number | null
  attemptCount: number
  nextPaymentAttemptAt: Instant | null
  dueAt: Instant | null
  finalizedAt: Instant | null
  paidAt: Instant | null
  failure: PaymentFailure | null
}

export type PaymentFailure = {
  kind: 'payment_failed' | 'action_required'
  code: string | null
  message: string | null
}

/** One telling of a payment: of the money itself, or only of which invoice it is for. */
export type Payment = {
  /** The payment intent's, else the charge's. */
  id: string
  sourceAt: Instant
  told: 'charge' | 'payment_intent' | 'invoice_payment' | 'invoice'
  invoiceId: string | null
  customer: string | null
  /** null: it does not say how it went. */
  status: 'succeeded' | 'failed' | null
  amount: number | null
  currency: string | null
  at: Instant
  failure: PaymentFailure | null
  /** What was tried to collect, where the telling has no room for an invoice: it may be of one all the same. */
  unlinkedAmount?: number
}

/** A payment that was tried in vain. */
export type FailedAttempt = { at: Instant; failure: PaymentFailure }

/** Money that goes back. `superseded`: known under another name. */
export type CashReturn = { refund: Refund; superseded: boolean }

export type Refund = {
  id: string
  sourceAt: Instant
  /** Left out on refunds; a credit note is what was paid back outside of the provider. */
  kind?: 'dispute' | 'credit_note'
  /** The payment that it is of, as payments are named. */
  paymentId?: string
  invoiceId: string | null
  chargeId: string | null
  customer: string | null
  amount: number | null
  currency: string | null
  createdAt: Instant
  /** False once the refund failed or was canceled: the money stayed. */
  counts: boolean
  /**
   * Read off a charge's running total because the event did not list its refunds. It stands in only until a refund
   * of the same charge is known by its own id.
   */
  fromChargeTotal: boolean
}

/** What one billing event says. */
export type BillingChange =
  /** With discounts that it shows whole: they are known from then on, wherever they are named by id. */
  | { kind: 'subscription'; version: SubscriptionVersion; terms?: Term[] }
  /** With the payments that the invoice names; left out where invoices never name any. */
  | { kind: 'invoice'; version: InvoiceVersion; payments?: Payment[] }
  | { kind: 'cash'; payments: Payment[]; refunds: Refund[] }
  | { kind: 'terms'; terms: Term[] }

export const INTERVALS = ['day', 'week', 'month', 'year'] as const
export type Interval = (typeof INTERVALS)[number]

export type ReasonCode =
  | 'test_mode'
  | 'other_currency'
  | 'missing_currency'
  | 'canceled'
  | 'incomplete'
  | 'incomplete_expired'
  | 'unpaid'
  | 'past_due'
  | 'trialing'
  | 'paused'
  | 'not_started'
  | 'missing_items'
  | 'items_incomplete'
  | 'missing_price'
  | 'missing_interval'
  | 'unsupported_interval'
  | 'one_time_price'
  | 'metered_usage'
  | 'tiered_price_unknown'
  | 'discount_terms_unknown'
  | 'free'
  | 'fully_discounted'
  | 'pending_subscription'
