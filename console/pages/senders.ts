import { convertCommand, trackCommand } from '../samples.ts'
/** The senders, and how each is connected: with a tracking key, or by webhooks to a source. */
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

export function findSender(name: string): Sender {
  return SENDERS.find(sender => sender.name === name) ?? SENDERS[0]
}

type Snippet = { title: string; text: string }

/** The snippets of a sender with the key filled in. */
export function buildSnippets(sender: KeySender, key: string): Snippet[] {
  return SNIPPETS[sender](key, location.origin)
}

const SNIPPETS: Record<KeySender, (key: string, url: string) => Snippet[]> = {
  curl: key => [
    { title: 'Send an event', text: trackCommand(key) },
    { title: 'Send a sale', text: convertCommand(key) },
  ],
  browser: (key, url) => [
    {
      title: 'Add to the head of every page',
      text: `<script>
  window.kontor = window.kontor || []
  ;['track', 'identify', 'reset'].forEach(function (method) {
    kontor[method] = kontor[method] || function () {
      kontor.push([method].concat([].slice.call(arguments)))
    }
  })
</script>
<script async src="${url}/k.js" data-key="${key}"></script>`,
    },
    {
      title: 'Call after a purchase',
      text: `kontor.track('convert', { order_id: 'A-1001', amount: 49.9, currency: 'EUR' })`,
    },
  ],
  sdk: (key, url) => [
    { title: 'Install', text: `npm install ${url}/sdk/js.tgz` },
    {
      title: 'On a server',
      text: `import { Kontor } from '@kontor/sdk'

const kontor = new Kontor({ url: '${url}', trackingKey: '${key}' })
kontor.track({ event_type: 'signup', visitor: 'v-1', data: { plan: 'pro' } })
await kontor.flush()`,
    },
  ],
  segment: (key, url) => [
    {
      title: 'On a server: @segment/analytics-node',
      text: `import { Analytics } from '@segment/analytics-node'

const analytics = new Analytics({ writeKey: '${key}', host: '${url}' })
analytics.track({ userId: 'u-1', event: 'Signed Up', properties: { plan: 'pro' } })
await analytics.closeAndFlush()`,
    },
    {
      title: 'In a browser: @segment/analytics-next',
      text: `import { AnalyticsBrowser } from '@segment/analytics-next'

const analytics = AnalyticsBrowser.load({ writeKey: '${key}', cdnURL: '${url}' })
analytics.page()`,
    },
  ],
  rudderstack: (key, url) => [
    {
      title: '@rudderstack/rudder-sdk-node',
      text: `import Analytics from '@rudderstack/rudder-sdk-node'

const analytics = new Analytics('${key}', { dataPlaneUrl: '${url}' })
analytics.track({ userId: 'u-1', event: 'Signed Up' })
await analytics.flush()`,
    },
  ],
  jitsu: (key, url) => [
    {
      title: '@jitsu/js',
      text: `import { jitsuAnalytics } from '@jitsu/js'

const analytics = jitsuAnalytics({ host: '${url}', writeKey: '${key}:x', s2s: true })
await analytics.track('Signed Up', { plan: 'pro' }, { userId: 'u-1' })`,
    },
  ],
}
