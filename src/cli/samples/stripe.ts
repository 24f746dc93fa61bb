// As Stripe's API reference shows them, shortened (API version 2025-03-31.basil).
import { idWith, type MakeSample, person, unix } from './sample.ts'

const DAY = 86_400
const MONTH = 30 * DAY

function event(type: string, at: Date, object: object, previous?: object) {
  return {
    ...{ id: idWith('evt_'), object: 'event', api_version: '2025-03-31.basil', created: unix(at) },
    data: { object, ...(previous && { previous_attributes: previous }) },
    ...{
      livemode: false,
      pending_webhooks: 1,
      request: { id: idWith('req_', 14), idempotency_key: null },
      type,
    },
  }
}

function subscription(at: Date, more: object = {}) {
  const started = unix(at)
  const id = idWith('sub_')
  const price = {
    ...{
      id: idWith('price_'),
      object: 'price',
      active: true,
      currency: 'eur',
      nickname: 'Pro',
      product: idWith('prod_', 14),
    },
    ...{ type: 'recurring', unit_amount: 2900, unit_amount_decimal: '2900', billing_scheme: 'per_unit' },
    recurring: { interval: 'month', interval_count: 1, usage_type: 'licensed' },
  }
  const item = {
    ...{ id: idWith('si_', 14), object: 'subscription_item', subscription: id, quantity: 1, price },
    ...{ current_period_start: started, current_period_end: started + MONTH },
  }
  return {
    ...{
      id,
      object: 'subscription',
      customer: idWith('cus_', 14),
      status: 'active',
      currency: 'eur',
      created: started,
    },
    ...{
      start_date: started,
      billing_cycle_anchor: started,
      cancel_at_period_end: false,
      canceled_at: null,
      ended_at: null,
    },
    ...{
      collection_method: 'charge_automatically',
      discounts: [],
      latest_invoice: idWith('in_'),
      metadata: {},
      trial_end: null,
    },
    items: { object: 'list', data: [item], has_more: false },
    ...more,
  }
}

function invoice(at: Date, more: object = {}) {
  const { name, email } = person()
  const subscriptionId = idWith('sub_')
  const line = {
    ...{
      id: idWith('il_'),
      object: 'line_item',
      amount: 2900,
      currency: 'eur',
      description: '1 × Pro (at €29.00 / month)',
    },
    ...{ quantity: 1, period: { start: unix(at), end: unix(at) + MONTH } },
  }
  return {
    ...{
      id: idWith('in_'),
      object: 'invoice',
      number: `${idWith('', 8).toUpperCase()}-0001`,
      currency: 'eur',
      created: unix(at),
    },
    ...{
      customer: idWith('cus_', 14),
      customer_name: name,
      customer_email: email,
      billing_reason: 'subscription_cycle',
    },
    ...{
      subtotal: 2900,
      total: 2900,
      amount_due: 2900,
      amount_paid: 2900,
      amount_remaining: 0,
      attempt_count: 1,
      attempted: true,
    },
    parent: {
      type: 'subscription_details',
      subscription_details: { subscription: subscriptionId, metadata: {} },
    },
    lines: { object: 'list', data: [line], has_more: false },
    ...{
      status: 'paid',
      status_transitions: {
        finalized_at: unix(at),
        paid_at: unix(at),
        marked_uncollectible_at: null,
        voided_at: null,
      },
    },
    ...more,
  }
}

export const stripe: Record<string, MakeSample> = {
  'customer.created': now => {
    const { name, email } = person()
    const customer = {
      id: idWith('cus_', 14),
      object: 'customer',
      created: unix(now),
      email,
      name,
      metadata: {},
      currency: 'eur',
    }
    return { body: event('customer.created', now, customer) }
  },
  'customer.subscription.created': now => ({
    body: event('customer.subscription.created', now, subscription(now)),
  }),
  'customer.subscription.updated': now => ({
    body: event('customer.subscription.updated', now, subscription(now, { cancel_at_period_end: true }), {
      cancel_at_period_end: false,
    }),
  }),
  'customer.subscription.deleted': now => ({
    body: event(
      'customer.subscription.deleted',
      now,
      subscription(now, { status: 'canceled', canceled_at: unix(now), ended_at: unix(now) }),
    ),
  }),
  'invoice.paid': now => ({ body: event('invoice.paid', now, invoice(now)) }),
  'invoice.payment_failed': now => ({
    body: event(
      'invoice.payment_failed',
      now,
      invoice(now, {
        ...{
          status: 'open',
          amount_paid: 0,
          amount_remaining: 2900,
          next_payment_attempt: unix(now) + 3 * DAY,
        },
        status_transitions: {
          finalized_at: unix(now),
          paid_at: null,
          marked_uncollectible_at: null,
          voided_at: null,
        },
      }),
    ),
  }),
  'payment_intent.succeeded': now => {
    const intent = {
      ...{
        id: idWith('pi_'),
        object: 'payment_intent',
        amount: 4990,
        amount_received: 4990,
        currency: 'eur',
        created: unix(now),
      },
      ...{
        customer: idWith('cus_', 14),
        receipt_email: person().email,
        status: 'succeeded',
        metadata: {},
        latest_charge: idWith('ch_'),
      },
    }
    return { body: event('payment_intent.succeeded', now, intent) }
  },
  'checkout.session.completed': now => {
    const { name, email } = person()
    const session = {
      ...{
        id: idWith('cs_test_', 58),
        object: 'checkout.session',
        amount_subtotal: 4990,
        amount_total: 4990,
        currency: 'eur',
      },
      ...{
        created: unix(now),
        mode: 'payment',
        payment_status: 'paid',
        status: 'complete',
        payment_intent: idWith('pi_'),
      },
      ...{ customer: idWith('cus_', 14), customer_details: { email, name }, metadata: {} },
    }
    return { body: event('checkout.session.completed', now, session) }
  },
  'charge.refunded': now => {
    const id = idWith('ch_')
    const charge = {
      ...{
        id,
        object: 'charge',
        amount: 4990,
        amount_captured: 4990,
        amount_refunded: 4990,
        currency: 'eur',
        created: unix(now) - DAY,
      },
      ...{
        customer: idWith('cus_', 14),
        payment_intent: idWith('pi_'),
        paid: true,
        refunded: true,
        status: 'succeeded',
        metadata: {},
      },
    }
    return { body: event('charge.refunded', now, charge, { amount_refunded: 0, refunded: false }) }
  },
}
