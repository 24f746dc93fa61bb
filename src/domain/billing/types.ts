/**
 * Billing objects in one shape, independent of the provider. Everything is plain JSON. Instants are epoch milliseconds.
 * Amounts are integers in minor units of the currency. Prices can be finer than that: they are decimal strings in major units.
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
 * A subscription as one event described it: always the whole object, never a difference. Optional fields are omitted
 * when they have no value, so versions stored before a field existed stay readable.
 */
export type SubscriptionVersion = SubscriptionFacts & {
  id: string
  /** The source's time of the change: `updated_at`, or `created` of a Stripe event. */
  sourceAt: Instant
  change: 'created' | 'updated' | 'deleted'
  /** The provider's event id. It identifies an event that two endpoints delivered. */
  fact?: string
  /** Orders versions with the same `sourceAt`. */
  sequence?: number
  /** Kontor's event id. It is stored beside the version, not in it. */
  eventId?: string
  /** Previous values of the changed fields, if the event includes them. */
  before?: Partial<SubscriptionFacts>
}

/** The state of the subscription in one version. */
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
  /** The start of the billing cycle, if the source reports it. It distinguishes a cycle on the 31st from one on the 28th. */
  billingAnchor: Instant | null
  cancelAtPeriodEnd: boolean
  cancelAt: Instant | null
  canceledAt: Instant | null
  endedAt: Instant | null
  cancellationReason: string | null
  collectionMethod: string | null
  acquisition: Acquisition | null
  items: Item[]
  /** In order of application, after the discounts of the items. */
  discounts: Discount[]
  /** Test data of the provider: stored, but never counted. */
  testMode?: true | null
  /** Another billing system owns the subscription and reports it: stored, but never counted. */
  billedElsewhere?: true | null
  /** The event has no items and discounts: the previous ones remain valid. */
  itemsUnchanged?: true | null
  /** The event lists only some of the items. */
  itemsIncomplete?: true | null
  /** Discounts of the customer. They apply while the subscription has none. */
  inherited?: Discount[]
  /** The scheduled end of a pause. */
  resumesAt?: Instant | null
  /** The collection of payments is paused during a trial. After the trial, the status is then `paused`. */
  collectionPaused?: true | null
  /** From its metadata. */
  country?: string
  /** Short values only. It may contain personal data, which an erasure removes. */
  metadata?: Record<string, string>
}

export type Acquisition = { source: string; medium: string | null; campaign: string | null }

export type Item = {
  id: string
  priceId: string | null
  productId: string | null
  name: string | null
  /** null: present, but not a number. */
  quantity: number | null
  /** The factor of the price. It differs from `quantity` if units are sold in packs. */
  billedQuantity: number | null
  /** A decimal string in major units. It can be finer than the minor unit of the currency. */
  unitAmount: string | null
  tiered: boolean
  tiers?: Tiers
  /** The tax percentage included in the price, as a decimal string. */
  inclusiveTax?: string
  /**
   * Set if an invoice decides about the tax. Until then: `inclusive`: the price includes tax at an unknown rate; `unknown`: it
   * may include tax; `exclusive`: it is taken as net.
   */
  taxMode?: 'inclusive' | 'unknown' | 'exclusive'
  /** The subscription does not show the price. Its invoices do, without tax. */
  priceFromInvoice?: true
  /** As received, in lower case. It may be an interval that pricing does not support. */
  interval: string | null
  /** null: present, but not a positive integer. */
  intervalCount: number | null
  usageType: 'licensed' | 'metered' | 'one_time'
  currentPeriodStart: Instant | null
  currentPeriodEnd: Instant | null
  discounts: Discount[]
}

/** Prices by quantity. Graduated: each unit has the price of its tier. Volume: all units have the price of the tier reached. */
export type Tiers = {
  mode: 'graduated' | 'volume'
  /** In ascending order; `upTo` null: no upper bound. Amounts are decimal strings in major units. */
  steps: { upTo: number | null; unitAmount: string; flatAmount: string }[]
}

/** Without `percentOff` and `amountOff` its terms are unknown. They may be found by one of its ids. */
export type Discount = {
  id?: string
  couponId?: string
  promotionCodeId?: string
  startsAt?: Instant
  /** A decimal string, 0 to 100. */
  percentOff: string | null
  /** Minor units per billing period. */
  amountOff: number | null
  duration: 'forever' | 'once' | 'repeating' | 'unknown'
  endsAt: Instant | null
  /** It was removed or replaced at `endsAt`, before its regular end. */
  isCut?: true
  /** Applies only to items of these products or prices; null: to all. */
  productIds: string[] | null
}

/** Objects that subscriptions refer to and that have events of their own. */
export type TermKind = 'customer' | 'discount' | 'promotion_code' | 'coupon' | 'tax'

export type CouponTerms = {
  percentOff: string | null
  /** Minor units by currency. */
  amountsOff: Record<string, number>
  duration: Discount['duration']
  months: number | null
  /** Products or prices; null: all. Omitted if the object does not have the field: then other versions of it decide. */
  productIds?: string[] | null
}

/** The tax of a price according to an invoice. */
export type TaxSplit = {
  /** Of the net price, as a decimal string; null: unknown. */
  percent: string | null
  /** Whether the price includes it. Omitted if the invoice does not say so: then `net` decides. */
  inclusive?: boolean
  /** The net price of one unit, as a decimal string in major units. */
  net?: string
  /** `net` is that of all items together. */
  isTotal?: true
}

/** One version of such an object. Unknown fields are omitted. */
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
  /** The discount belongs to the customer. It applies to each subscription of the customer that has no discount. */
  ofCustomer?: boolean
  startsAt?: Instant
  endsAt?: Instant
  /** Removed before its end. */
  deletedAt?: Instant
  /** Of a `tax` term, whose id is that of the subscription: by price, or by `*` for all prices. */
  taxes?: Record<string, TaxSplit>
}

export type InvoiceStatus = 'draft' | 'open' | 'paid' | 'uncollectible' | 'void' | 'unknown'

/** An invoice as one event described it. */
export type InvoiceVersion = {
  id: string
  sourceAt: Instant
  /** Orders versions with the same `sourceAt`. */
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
  /** What it is for; omitted if no line has a service period. */
  services?: ServicePeriod[]
}

/** A part of an invoice without tax, after discounts, and the time it is for. Null: its period is unknown. */
export type ServicePeriod = { amount: number; from: Instant | null; to: Instant | null }

/** A reduction of an invoice. Whether money was returned is a separate fact. */
export type CreditNote = {
  id: string
  sourceAt: Instant
  invoiceId: string | null
  /** Without tax. */
  amount: number | null
  currency: string | null
  createdAt: Instant
  /** False if it was voided. */
  counts: boolean
}

export type PaymentFailure = { kind: 'payment_failed' | 'action_required'; code: string | null; message: string | null }

/** One report of a payment: of the money itself, or only of the invoice it belongs to. */
export type Payment = {
  /** The id of the payment intent, else of the charge. */
  id: string
  sourceAt: Instant
  reportedBy: 'charge' | 'payment_intent' | 'invoice_payment' | 'invoice'
  invoiceId: string | null
  customer: string | null
  /** null: the result is unknown. */
  status: 'succeeded' | 'failed' | null
  amount: number | null
  currency: string | null
  at: Instant
  failure: PaymentFailure | null
  /** The amount of a payment whose event has no field for an invoice. It may still belong to one. */
  unlinkedAmount?: number
}

/** A failed payment attempt. */
export type FailedAttempt = { at: Instant; failure: PaymentFailure }

/** Money returned. `superseded`: the same money is also known under another id. */
export type CashReturn = { refund: Refund; superseded: boolean }

export type Refund = {
  id: string
  sourceAt: Instant
  /** Omitted for refunds. A credit note is money paid back outside of the provider. */
  kind?: 'dispute' | 'credit_note'
  /** The id of the refunded payment. */
  paymentId?: string
  invoiceId: string | null
  chargeId: string | null
  customer: string | null
  amount: number | null
  currency: string | null
  createdAt: Instant
  /** False if the refund failed or was canceled. */
  counts: boolean
  /** As the provider names it. Omitted if the provider does not report it; `kontor reconcile` compares it. */
  status?: string | null
  /** `amount` is the refunded total of a charge: a lower bound of its refunds. */
  fromChargeTotal: boolean
}

/** A value that is present and cannot be read. */
export type Unreadable = {
  /** Its path in the object. */
  field: string
  /** The beginning of its JSON text. */
  value: string
}

/** The effect of one billing event. */
export type BillingChange =
  /** `terms`: discounts that the event contains in full. Later events may refer to them by id. */
  | { kind: 'subscription'; version: SubscriptionVersion; terms?: Term[]; unreadable?: Unreadable[] }
  /** `payments`: those that the invoice refers to; omitted if invoices of the provider never do. */
  | { kind: 'invoice'; version: InvoiceVersion; payments?: Payment[]; unreadable?: Unreadable[] }
  | { kind: 'cash'; payments: Payment[]; refunds: Refund[]; credits?: CreditNote[]; unreadable?: Unreadable[] }
  | { kind: 'terms'; terms: Term[] }

export const INTERVALS = ['day', 'week', 'month', 'year'] as const
export type Interval = (typeof INTERVALS)[number]

export type ReasonCode =
  | 'test_mode'
  | 'billed_elsewhere'
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
