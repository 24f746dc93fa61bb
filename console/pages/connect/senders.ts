/** Who can send events, and how each one is connected: with a tracking key, or by webhooks to a source. */
export const SENDERS = [
  { name: 'curl', title: 'curl', by: 'key' },
  { name: 'browser', title: 'Website', by: 'key' },
  { name: 'sdk', title: 'SDK', by: 'key' },
  { name: 'segment', title: 'Segment', by: 'key' },
  { name: 'rudderstack', title: 'RudderStack', by: 'key' },
  { name: 'jitsu', title: 'Jitsu', by: 'key' },
  { name: 'stripe', title: 'Stripe', by: 'source' },
  { name: 'shopify', title: 'Shopify', by: 'source' },
  { name: 'woocommerce', title: 'WooCommerce', by: 'source' },
] as const

export type Sender = (typeof SENDERS)[number]
export type KeySender = Extract<Sender, { by: 'key' }>['name']
export type SourceSender = Extract<Sender, { by: 'source' }>['name']

export function senderOf(name: string): Sender {
  return SENDERS.find(sender => sender.name === name) ?? SENDERS[0]
}
