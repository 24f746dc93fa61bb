// Each line marked with `wrong` must not compile, and no other.
import { Kontor, KontorError } from '@kontor/sdk'
import { verifyWebhook } from '@kontor/sdk/webhooks'

const kontor = new Kontor({ url: 'https://kontor.example' })

new Kontor({}) // wrong: no url
new Kontor({ url: 'x', key: 'private-x' }) // wrong: no such option
kontor.products.upsert({ data: {} }) // wrong: no id
kontor.products.upsert({ id: 1 }) // wrong: a number
kontor.products.upsert({ id: 'p-1', sourceUpdatedAt: 17 }) // wrong: neither a Date nor a string
kontor.products.upsert({ id: 'p-1', entityType: 'order' }) // wrong: the resource determines it
kontor.products.upsert({ id: 'p-1' }, { wait: 3 }) // wrong: waitS
kontor.products.get('MUG-01').then(product => product.id) // wrong: may be null
kontor.products.list({ updated_since: '2026-01-01' }) // wrong: updatedSince
kontor.invoices.get('i-1') // wrong: no such resource
kontor.track({ visitor: 'v-1' }) // wrong: no event_type
kontor.track({ event_type: 'x', vistor: 'v-1' }) // wrong: a typo
kontor.track({ event_type: 'x', data: 'text' }) // wrong: not an object
kontor.events.list({ eventType: 'x' }) // wrong: event_type
kontor.subscriptions.overview({}) // wrong: no currency
kontor.subscriptions.attention({ currency: 'EUR', days: 31 }) // wrong: 30, 60 or 90
kontor.subscriptions.overview({ currency: 'EUR' }).then(report => report.mmr) // wrong: a typo
verifyWebhook({ secret: 's', body: { parsed: true }, headers: {} }) // wrong: the raw body
export async function handle(headers: Record<string, string>): Promise<string> {
  if (verifyWebhook({ secret: 's', body: '', headers })) return 'good' // wrong: not awaited
  for await (const result of kontor.orders.upsertMany([{ id: 'o-1' }])) result.operationId // wrong: may be rejected
  return new KontorError({ code: 'x', message: '' }).satus // wrong: a typo
}
