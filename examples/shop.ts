// Sends a product, an order and a visit, and reads the resulting sale.
import { Kontor } from '@kontor/sdk'

const kontor = new Kontor({
  url: process.env.KONTOR_URL ?? 'http://localhost:8080',
  privateKey: process.env.KONTOR_PRIVATE_KEY,
  trackingKey: process.env.KONTOR_TRACKING_KEY,
})

await kontor.products.upsert({ id: 'p-1', data: { sku: 'MUG-01', name: 'Mug', price: 12.95 } })

// A visitor arrives from a newsletter and buys. The fixed ids make it safe to run this program twice.
const visitor = 'v-1'
kontor.track({
  event_type: 'page_view',
  event_id: 'visit-1',
  visitor,
  data: { page: 'https://shop.example/?utm_source=newsletter' },
})
kontor.track({ event_type: 'convert', event_id: 'convert-o-1', visitor, data: { order_id: 'o-1' } })
await kontor.flush()

// The order record contains the amount. It has the same order id, so both describe one sale.
const order = { total: 25.9, currency: 'EUR', email: 'ada@example.com' }
await kontor.orders.upsert({ id: 'o-1', data: order }, { idempotencyKey: 'order-o-1', waitS: 10 })

for await (const sale of kontor.conversions.list()) {
  console.log(sale.source_object_id, sale.amount, sale.currency, sale.visitor)
}
await kontor.close()
