import { REASONS } from './exclusions.ts'
import type { ReasonCode } from './types.ts'

/** Who told of a subscription: a provider in its own words, or null: Kontor's own fields. */
export type Teller = string | null

/** Where somebody else's words are meant, in which amounts are written otherwise: Stripe counts in minor units. */
const STRIPE_HINTS: Partial<Record<ReasonCode, string>> = {
  missing_items: 'Send the subscription as Stripe has it, with its `items.data`.',
  missing_price:
    "Give the price an amount in the subscription's currency at Stripe (`unit_amount` in minor units, or `currency_options`), and let Stripe send the subscription again.",
  missing_interval:
    'Give the item a recurring price at Stripe (`recurring.interval`), and let Stripe send the subscription again.',
  tiered_price_unknown:
    'Stripe leaves tiers out of its events: send the subscription as the API has it with `expand[]=items.data.price.tiers`.',
}

const PROVIDER_HINTS: Partial<Record<ReasonCode, (name: string) => string>> = {
  missing_items: name => `Let ${name} send the subscription again, with its items.`,
  missing_price: name =>
    `Give the item a price in the currency of the subscription at ${name}, and let it send the subscription again.`,
  missing_interval: name =>
    `Say how often the item is billed at ${name}, and let it send the subscription again.`,
  tiered_price_unknown: name =>
    `Let ${name} send the subscription with the tiers of its price, or its amount.`,
}

const NAMES: Record<string, string> = {
  ...{ shopify: 'Shopify', woocommerce: 'WooCommerce', paddle: 'Paddle', chargebee: 'Chargebee' },
  ...{ recurly: 'Recurly', lago: 'Lago', revenuecat: 'RevenueCat' },
}

/** Whether the advice depends on who told of the subscription. */
export const hasHintsByTeller = (code: ReasonCode): boolean => code in PROVIDER_HINTS

/** What to do about it, in the words of whoever told of the subscription. */
export function fixHintOf(code: ReasonCode, teller: Teller): string {
  const name = teller === null ? undefined : NAMES[teller]
  const hint = teller === 'stripe' ? STRIPE_HINTS[code] : name && PROVIDER_HINTS[code]?.(name)
  return hint || REASONS[code].fixHint
}
