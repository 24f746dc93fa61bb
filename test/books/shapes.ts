// The formats in which one history can be sent.
import type { Business } from './business.ts'
import { CANONICAL_FEATURES, canonicalEvents } from './canonical.ts'
import { CHARGEBEE_CURRENCIES, CHARGEBEE_FEATURES, chargebeeEvents } from './chargebee.ts'
import type { Features } from './features.ts'
import { transactionId } from './paddle/objects.ts'
import { PADDLE_CURRENCIES, PADDLE_FEATURES, paddleEvents } from './paddle.ts'
import { stripeEvents, type Version } from './stripe.ts'

/** Bodies in the order in which one endpoint receives them. */
type Delivery = { preset?: string; bodies: string[] }

type Reorder = (events: unknown[]) => unknown[]

export type Shape = {
  features: Partial<Features>
  currencies?: string[]
  deliveries(history: Business, reorder?: Reorder): Delivery[]
  /** The provider's id of an invoice, and whether items have ids. */
  invoiceName(id: string): string
  hasItemIds: boolean
  hasPlanNames: boolean
}

const BY_OUR_NAMES = { invoiceName: (id: string) => id, hasItemIds: true, hasPlanNames: true }

export const SHAPES: Record<string, Shape> = {
  canonical: {
    ...BY_OUR_NAMES,
    features: CANONICAL_FEATURES,
    deliveries: (history, reorder) => [{ bodies: inBatches(canonicalEvents(history), reorder) }],
  },
  'stripe-old': stripe('old'),
  'stripe-new': stripe('new'),
  /** Two endpoints of one account, one of each version. */
  'stripe-both': stripe('old', 'new'),
  paddle: {
    features: PADDLE_FEATURES,
    currencies: PADDLE_CURRENCIES,
    deliveries: (history, reorder) => [{ preset: 'paddle', bodies: oneByOne(paddleEvents(history), reorder) }],
    invoiceName: transactionId,
    hasItemIds: false,
    hasPlanNames: true,
  },
  chargebee: {
    features: CHARGEBEE_FEATURES,
    currencies: CHARGEBEE_CURRENCIES,
    deliveries: (history, reorder) => [{ preset: 'chargebee', bodies: oneByOne(chargebeeEvents(history), reorder) }],
    invoiceName: id => id,
    hasItemIds: false,
    // items are identified by their price
    hasPlanNames: false,
  },
}

function stripe(...versions: Version[]): Shape {
  return {
    ...BY_OUR_NAMES,
    features: {},
    deliveries: (history, reorder) =>
      versions.map(version => ({
        preset: 'stripe',
        bodies: inBatches(stripeEvents(history, version), reorder),
      })),
  }
}

function oneByOne(events: unknown[], reorder: Reorder = inOrder): string[] {
  return reorder(events).map(event => JSON.stringify(event))
}

function inBatches(events: unknown[], reorder: Reorder = inOrder): string[] {
  const ordered = reorder(events)
  const bodies: string[] = []
  for (let i = 0; i < ordered.length; i += 200) bodies.push(JSON.stringify(ordered.slice(i, i + 200)))
  return bodies
}

function inOrder(events: unknown[]): unknown[] {
  return events
}
