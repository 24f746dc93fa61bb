// The ways in which one history can be told.
import type { Business, Features } from './business.ts'
import { CANONICAL_FEATURES, canonicalEvents } from './canonical.ts'
import { CHARGEBEE_CURRENCIES, CHARGEBEE_FEATURES, chargebeeEvents } from './chargebee.ts'
import { PADDLE_CURRENCIES, PADDLE_FEATURES, paddleEvents } from './paddle.ts'
import { stripeEvents } from './stripe.ts'

/** Bodies in their order, as one endpoint receives them. */
export type Delivery = { preset?: string; bodies: string[] }

export type Shape = {
  features: Partial<Features>
  currencies?: string[]
  deliveries(history: Business): Delivery[]
}

export const SHAPES = {
  canonical: {
    features: CANONICAL_FEATURES,
    deliveries: history => [{ bodies: inBatches(canonicalEvents(history)) }],
  },
  'stripe-old': {
    features: {},
    deliveries: history => [{ preset: 'stripe', bodies: inBatches(stripeEvents(history, 'old')) }],
  },
  'stripe-new': {
    features: {},
    deliveries: history => [{ preset: 'stripe', bodies: inBatches(stripeEvents(history, 'new')) }],
  },
  /** Two endpoints of one account, one of each version. */
  'stripe-both': {
    features: {},
    deliveries: history => [
      { preset: 'stripe', bodies: inBatches(stripeEvents(history, 'old')) },
      { preset: 'stripe', bodies: inBatches(stripeEvents(history, 'new')) },
    ],
  },
  paddle: {
    features: PADDLE_FEATURES,
    currencies: PADDLE_CURRENCIES,
    deliveries: history => [{ preset: 'paddle', bodies: oneByOne(paddleEvents(history)) }],
  },
  chargebee: {
    features: CHARGEBEE_FEATURES,
    currencies: CHARGEBEE_CURRENCIES,
    deliveries: history => [{ preset: 'chargebee', bodies: oneByOne(chargebeeEvents(history)) }],
  },
} satisfies Record<string, Shape>

export type ShapeName = keyof typeof SHAPES

export function isShape(name: string): name is ShapeName {
  return Object.hasOwn(SHAPES, name)
}

function oneByOne(events: unknown[]): string[] {
  return events.map(event => JSON.stringify(event))
}

function inBatches(events: unknown[]): string[] {
  const bodies: string[] = []
  for (let i = 0; i < events.length; i += 200) bodies.push(JSON.stringify(events.slice(i, i + 200)))
  return bodies
}
