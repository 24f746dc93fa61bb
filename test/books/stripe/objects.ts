// Products, prices, customers and subscriptions of Stripe's newest API version, with the types of its package.
import type Stripe from 'stripe'
import type { Coupon, Customer, Discount, Item, Price, Subscription, TaxRate } from '../model.ts'

/** The maximum length of lists in objects; `has_more` indicates more. */
export const INLINE_LIMIT = 10

/** A string in JSON, which Stripe's package converts to its own type. */
export function decimal(value: number): Stripe.Decimal {
  return String(value) as unknown as Stripe.Decimal
}

export function list<Entry>(entries: Entry[], url: string): Stripe.ApiList<Entry> {
  return {
    object: 'list',
    data: entries.slice(0, INLINE_LIMIT),
    has_more: entries.length > INLINE_LIMIT,
    url,
  }
}

/** Whole minor units, or null if the amount has fractions. */
function whole(amount: number | null): number | null {
  return amount !== null && Number.isInteger(amount) ? amount : null
}

export function priceObject(price: Price, livemode: boolean): Stripe.Price {
  const { unitAmount, tiers } = price
  return {
    id: price.id,
    object: 'price',
    active: true,
    billing_scheme: tiers ? 'tiered' : 'per_unit',
    created: 1_600_000_000,
    currency: price.currency.toLowerCase(),
    custom_unit_amount: null,
    livemode,
    lookup_key: null,
    metadata: {},
    nickname: price.name,
    product: price.product,
    recurring: {
      interval: price.interval,
      interval_count: price.intervalCount as number,
      meter: price.usage === 'metered' ? 'mtr_calls' : null,
      trial_period_days: null,
      usage_type: price.usage,
    },
    tax_behavior: 'unspecified',
    // Tiers are expanded: without them the price of the seats is unknown.
    ...(tiers && {
      tiers: tiers.tiers.map(tier => ({
        flat_amount: tier.flatAmount === 0 ? null : tier.flatAmount,
        flat_amount_decimal: tier.flatAmount === 0 ? null : decimal(tier.flatAmount),
        unit_amount: tier.unitAmount,
        unit_amount_decimal: decimal(tier.unitAmount),
        up_to: tier.upTo,
      })),
    }),
    tiers_mode: tiers?.mode ?? null,
    transform_quantity: null,
    type: 'recurring',
    unit_amount: whole(unitAmount),
    unit_amount_decimal: unitAmount === null ? null : decimal(unitAmount),
  }
}

export function planObject(price: Price, livemode: boolean): Stripe.Plan {
  const { tiers } = priceObject(price, livemode)
  return {
    id: price.id,
    object: 'plan',
    active: true,
    amount: whole(price.unitAmount),
    amount_decimal: price.unitAmount === null ? null : decimal(price.unitAmount),
    billing_scheme: price.tiers ? 'tiered' : 'per_unit',
    created: 1_600_000_000,
    currency: price.currency.toLowerCase(),
    interval: price.interval,
    interval_count: price.intervalCount as number,
    livemode,
    metadata: {},
    meter: price.usage === 'metered' ? 'mtr_calls' : null,
    nickname: price.name,
    product: price.product,
    ...(tiers && { tiers }),
    tiers_mode: price.tiers?.mode ?? null,
    transform_usage: null,
    trial_period_days: null,
    usage_type: price.usage,
  }
}

export function taxRateObject(rate: TaxRate, livemode: boolean): Stripe.TaxRate {
  return {
    id: rate.id,
    object: 'tax_rate',
    active: true,
    country: rate.country,
    created: 1_600_000_000,
    description: null,
    display_name: rate.name,
    effective_percentage: rate.percent,
    flat_amount: null,
    inclusive: rate.inclusive,
    jurisdiction: rate.country,
    jurisdiction_level: 'country',
    livemode,
    metadata: {},
    percentage: rate.percent,
    rate_type: 'percentage',
    state: null,
    tax_type: rate.country === 'US' ? 'sales_tax' : 'vat',
  }
}

export function couponObject(coupon: Coupon): Stripe.Coupon {
  return {
    id: coupon.id,
    object: 'coupon',
    amount_off: coupon.amountOff,
    created: coupon.createdAt,
    currency: coupon.currency?.toLowerCase() ?? null,
    duration: coupon.duration,
    duration_in_months: coupon.months,
    livemode: coupon.livemode,
    max_redemptions: null,
    metadata: {},
    name: coupon.name,
    percent_off: coupon.percentOff,
    redeem_by: null,
    times_redeemed: 0,
    valid: true,
  }
}

export function promotionCodeObject(coupon: Coupon): Stripe.PromotionCode {
  return {
    id: coupon.promotionCode!.id,
    object: 'promotion_code',
    active: true,
    code: coupon.promotionCode!.code,
    created: coupon.createdAt,
    customer: null,
    customer_account: null,
    expires_at: null,
    livemode: coupon.livemode,
    max_redemptions: null,
    metadata: {},
    promotion: { type: 'coupon', coupon: coupon.id },
    restrictions: {
      first_time_transaction: false,
      minimum_amount: null,
      minimum_amount_currency: null,
    },
    times_redeemed: 0,
  }
}

/** `expand` replaces the coupon id by the coupon. */
export function discountObject(discount: Discount, { expand = false } = {}): Stripe.Discount {
  const { coupon } = discount
  return {
    id: discount.id,
    object: 'discount',
    checkout_session: null,
    customer: discount.customer,
    customer_account: null,
    end: discount.end,
    invoice: null,
    invoice_item: null,
    promotion_code: coupon.promotionCode?.id ?? null,
    source: { type: 'coupon', coupon: expand ? couponObject(coupon) : coupon.id },
    start: discount.start,
    subscription: discount.subscription,
    subscription_item: null,
  }
}

export function customerObject(customer: Customer): Stripe.Customer {
  return {
    id: customer.id,
    object: 'customer',
    address: {
      city: null,
      country: customer.country,
      line1: null,
      line2: null,
      postal_code: null,
      state: null,
    },
    balance: customer.balance,
    created: customer.createdAt,
    currency: customer.currency?.toLowerCase() ?? null,
    customer_account: null,
    default_source: null,
    delinquent: false,
    description: null,
    discount: customer.discount ? discountObject(customer.discount) : null,
    email: customer.email,
    invoice_prefix: 'KONTOR',
    invoice_settings: {
      custom_fields: null,
      default_payment_method: null,
      footer: null,
      rendering_options: null,
    },
    livemode: customer.livemode,
    metadata: {},
    name: customer.name,
    next_invoice_sequence: 1,
    phone: null,
    preferred_locales: [],
    shipping: null,
    tax_exempt: 'none',
    test_clock: null,
  }
}

export function itemObject(item: Item, subscription: Subscription): Stripe.SubscriptionItem {
  const { livemode, tax, taxOn } = subscription
  return {
    id: item.id,
    object: 'subscription_item',
    billing_thresholds: null,
    created: item.createdAt,
    current_period_end: subscription.periodEnd,
    current_period_start: subscription.periodStart,
    current_trial: null,
    discounts: [],
    metadata: {},
    plan: planObject(item.price, livemode),
    price: priceObject(item.price, livemode),
    ...(item.price.usage === 'licensed' && { quantity: item.quantity }),
    subscription: subscription.id,
    tax_rates: tax && taxOn === 'items' ? [taxRateObject(tax, livemode)] : [],
  }
}

export function metadataOf({ acquisition, country }: Subscription): Record<string, string> {
  return {
    ...(acquisition && {
      utm_source: acquisition.source,
      utm_medium: acquisition.medium,
      ...(acquisition.campaign && { utm_campaign: acquisition.campaign }),
    }),
    ...(country && { country }),
  }
}

export function subscriptionObject(subscription: Subscription, { expand = false } = {}): Stripe.Subscription {
  const { id, tax, taxOn, livemode, pause, status, cancelReason } = subscription
  const isEnding = subscription.canceledAt !== null
  return {
    id,
    object: 'subscription',
    application: null,
    application_fee_percent: null,
    automatic_tax: { disabled_reason: null, enabled: false, liability: null },
    billing_cycle_anchor: subscription.anchor,
    billing_cycle_anchor_config: null,
    billing_mode: { flexible: { proration_discounts: 'included' }, type: 'flexible' },
    billing_schedules: [],
    billing_thresholds: null,
    cancel_at: subscription.cancelAt,
    cancel_at_period_end: subscription.cancelAtPeriodEnd,
    canceled_at: subscription.canceledAt,
    cancellation_details: {
      comment: null,
      feedback: null,
      feedback_option: null,
      reason: cancelReason ?? (isEnding ? 'cancellation_requested' : null),
    },
    collection_method: subscription.collection,
    created: subscription.createdAt,
    currency: subscription.currency.toLowerCase(),
    customer: subscription.customer,
    customer_account: null,
    days_until_due: subscription.daysUntilDue,
    default_payment_method: null,
    default_source: null,
    default_tax_rates: tax && taxOn === 'subscription' ? [taxRateObject(tax, livemode)] : [],
    description: null,
    discounts: subscription.discounts.map(discount => (expand ? discountObject(discount, { expand }) : discount.id)),
    ended_at: subscription.endedAt,
    invoice_settings: {
      account_tax_ids: null,
      custom_fields: null,
      description: null,
      footer: null,
      issuer: { type: 'self' },
    },
    items: list(
      subscription.items.map(item => itemObject(item, subscription)),
      `/v1/subscription_items?subscription=${id}`,
    ),
    latest_invoice: subscription.latestInvoice,
    livemode,
    managed_payments: null,
    metadata: metadataOf(subscription),
    next_pending_invoice_item_invoice: null,
    on_behalf_of: null,
    pause_collection: pause ? { behavior: pause.behavior, resumes_at: pause.resumesAt } : null,
    payment_settings: {
      payment_method_options: null,
      payment_method_types: null,
      save_default_payment_method: 'off',
    },
    pending_invoice_item_interval: null,
    pending_setup_intent: null,
    pending_update: null,
    schedule: null,
    start_date: subscription.startedAt,
    status,
    test_clock: null,
    transfer_data: null,
    trial_end: subscription.trialEnd,
    trial_settings: {
      end_behavior: { billing_cycle_anchor: null, missing_payment_method: 'pause' },
    },
    trial_start: subscription.trialStart,
  }
}
