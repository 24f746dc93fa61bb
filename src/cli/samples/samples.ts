import { cdp, events, paddle, webhook } from './others.ts'
import type { MakeSample, SampleTarget } from './sample.ts'
import { shopify, woocommerce } from './shops.ts'
import { stripe } from './stripe.ts'

export type NamedSample = { name: string; target: SampleTarget; make: MakeSample }

/** Every sample by its name: events of a page as they are called, others behind who sends them. */
export const SAMPLES: readonly NamedSample[] = [
  ...named('', 'events', events),
  ...named('stripe.', { preset: 'stripe' }, stripe),
  ...named('shopify.', { preset: 'shopify' }, shopify),
  ...named('woocommerce.', { preset: 'woocommerce' }, woocommerce),
  ...named('paddle.', { preset: 'paddle' }, paddle),
  ...named('webhook.', { type: 'webhook' }, webhook),
  ...named('cdp.', { type: 'cdp' }, cdp),
]

function named(prefix: string, target: SampleTarget, samples: Record<string, MakeSample>): NamedSample[] {
  return Object.entries(samples).map(([name, make]) => ({ name: prefix + name, target, make }))
}
