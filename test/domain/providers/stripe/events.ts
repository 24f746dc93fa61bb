import { at } from '../../billing/subscriptions.ts'

type Fields = Record<string, unknown>

/** Unix seconds, as Stripe writes times. */
export function unix(iso: string): number {
  return at(iso) / 1000
}

export function stripeEvent(type: string, object: Fields, changes: Fields = {}): Fields {
  return {
    id: 'evt_1QyL2aB3c4D5e6F7',
    object: 'event',
    api_version: '2025-03-31.basil',
    created: unix('2025-02-01'),
    data: { object },
    livemode: true,
    pending_webhooks: 1,
    request: { id: null, idempotency_key: null },
    type,
    ...changes,
  }
}

export function price(changes: Fields = {}): Fields {
  return {
    id: 'price_1Pro',
    object: 'price',
    active: true,
    billing_scheme: 'per_unit',
    created: unix('2024-01-01'),
    currency: 'usd',
    custom_unit_amount: null,
    livemode: true,
    lookup_key: null,
    metadata: {},
    nickname: 'Pro',
    product: 'prod_Pro',
    recurring: {
      interval: 'month',
      interval_count: 1,
      meter: null,
      trial_period_days: null,
      usage_type: 'licensed',
    },
    tax_behavior: 'unspecified',
    tiers_mode: null,
    transform_quantity: null,
    type: 'recurring',
    unit_amount: 2000,
    unit_amount_decimal: '2000',
    ...changes,
  }
}

/** In API versions since 2025: periods on the items, discounts by id. */
export function subscription(changes: Fields = {}, itemChanges: Fields = {}): Fields {
  return {
    id: 'sub_1Stripe',
    object: 'subscription',
    automatic_tax: { enabled: false, liability: null },
    billing_cycle_anchor: unix('2025-01-31'),
    billing_mode: { type: 'classic' },
    cancel_at: null,
    cancel_at_period_end: false,
    canceled_at: null,
    cancellation_details: { comment: null, feedback: null, reason: null },
    collection_method: 'charge_automatically',
    created: unix('2025-01-31'),
    currency: 'usd',
    customer: 'cus_Acme',
    days_until_due: null,
    discounts: [],
    ended_at: null,
    items: {
      object: 'list',
      data: [
        {
          id: 'si_1',
          object: 'subscription_item',
          created: unix('2025-01-31'),
          current_period_end: unix('2025-02-28'),
          current_period_start: unix('2025-01-31'),
          discounts: [],
          metadata: {},
          price: price(),
          quantity: 1,
          subscription: 'sub_1Stripe',
          tax_rates: [],
          ...itemChanges,
        },
      ],
      has_more: false,
      total_count: 1,
      url: '/v1/subscription_items?subscription=sub_1Stripe',
    },
    latest_invoice: 'in_1',
    livemode: true,
    metadata: {},
    pause_collection: null,
    schedule: null,
    start_date: unix('2025-01-31'),
    status: 'active',
    trial_end: null,
    trial_start: null,
    ...changes,
  }
}

/** In API versions before 2025: periods on the subscription, plans and prices, one discount. */
export function olderSubscription(changes: Fields = {}): Fields {
  const plan = {
    id: 'price_1Pro',
    object: 'plan',
    active: true,
    aggregate_usage: null,
    amount: 2000,
    amount_decimal: '2000',
    billing_scheme: 'per_unit',
    created: unix('2024-01-01'),
    currency: 'usd',
    interval: 'month',
    interval_count: 1,
    nickname: 'Pro',
    product: 'prod_Pro',
    tiers_mode: null,
    transform_usage: null,
    usage_type: 'licensed',
  }
  const { billing_mode: _, discounts: __, ...rest } = subscription()
  return {
    ...rest,
    current_period_end: unix('2025-02-28'),
    current_period_start: unix('2025-01-31'),
    discount: null,
    plan,
    quantity: 1,
    items: {
      object: 'list',
      data: [{ id: 'si_1', object: 'subscription_item', plan, price: price(), quantity: 1 }],
    },
    ...changes,
  }
}

export function coupon(changes: Fields = {}): Fields {
  return {
    id: 'SAVE10',
    object: 'coupon',
    amount_off: null,
    created: unix('2024-01-01'),
    currency: null,
    duration: 'forever',
    duration_in_months: null,
    name: 'Save',
    percent_off: 10,
    valid: true,
    ...changes,
  }
}

export function discount(changes: Fields = {}): Fields {
  return {
    id: 'di_1',
    object: 'discount',
    coupon: coupon(),
    customer: 'cus_Acme',
    end: null,
    promotion_code: null,
    start: unix('2025-01-31'),
    subscription: 'sub_1Stripe',
    ...changes,
  }
}

export function invoice(changes: Fields = {}): Fields {
  return {
    id: 'in_1',
    object: 'invoice',
    amount_due: 2380,
    amount_paid: 0,
    amount_remaining: 2380,
    attempt_count: 0,
    attempted: false,
    billing_reason: 'subscription_cycle',
    collection_method: 'charge_automatically',
    created: unix('2025-02-01'),
    currency: 'usd',
    customer: 'cus_Acme',
    customer_email: 'billing@acme.example',
    customer_name: 'Acme Inc',
    due_date: null,
    lines: { object: 'list', data: [] },
    next_payment_attempt: null,
    number: 'ACME-0001',
    parent: {
      type: 'subscription_details',
      quote_details: null,
      subscription_details: { metadata: {}, subscription: 'sub_1Stripe' },
    },
    status: 'open',
    status_transitions: {
      finalized_at: unix('2025-02-01'),
      marked_uncollectible_at: null,
      paid_at: null,
      voided_at: null,
    },
    subtotal: 2000,
    total: 2380,
    total_taxes: [{ amount: 380, tax_behavior: 'exclusive', taxable_amount: 2000 }],
    ...changes,
  }
}

export function charge(changes: Fields = {}): Fields {
  return {
    id: 'ch_1',
    object: 'charge',
    amount: 2380,
    amount_refunded: 500,
    created: unix('2025-02-01'),
    currency: 'usd',
    customer: 'cus_Acme',
    payment_intent: 'pi_1',
    refunded: false,
    ...changes,
  }
}

export function refund(changes: Fields = {}): Fields {
  return {
    id: 're_1',
    object: 'refund',
    amount: 500,
    charge: 'ch_1',
    created: unix('2025-02-03'),
    currency: 'usd',
    payment_intent: 'pi_1',
    status: 'succeeded',
    ...changes,
  }
}
