// npx node test/release/write-fixture.ts writes a small sample of all data as this version stores it, for later versions to read.
import { rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { version } from '../../src/config/version.ts'
import { kontor } from '../cli/kontor.ts'
import { startServer } from '../server.ts'
import { FIXTURE_SECRET_KEY, fetchAnswers, QUESTIONS } from './fixture.ts'

const folder = fileURLToPath(new URL('.', import.meta.url))
const server = await startServer({ KONTOR_SECRET_KEY: FIXTURE_SECRET_KEY })
const { privateKey: key, trackingKey, id: tenant } = server.tenant
const source = await server.admin.sources.create({ tenant, type: 'webhook', name: 'billing' })
const at = '2026-01-31T09:30:00Z'

const post = async (path: string, bearer: string, body: unknown) => {
  const { status } = await server.request(path, { method: 'POST', key: bearer, body: JSON.stringify(body) })
  if (status >= 300) throw new Error(`${path}: ${status}`)
}
const record = (entityType: string, id: string, data: object) =>
  post(`/v1/${entityType}s`, key, { entityType, id, sourceUpdatedAt: at, data })
await record('product', 'p-1', { sku: 'MUG-01', name: 'Mug', price: 12.95 })
await record('contact', 'c-1', { email: 'ada@example.com', name: 'Ada Lovelace', company: 'Engines' })
await record('contact', 'c-2', { email: 'grace@example.com' })
await record('order', 'o-1', { total: 49.9, currency: 'EUR', contactId: 'c-1', created_at: at })
await server.request('/v1/contacts', {
  ...{ method: 'DELETE', key },
  body: JSON.stringify({ entityType: 'contact', id: 'c-2', sourceUpdatedAt: '2026-02-01T00:00:00Z' }),
})
const visit = { visitor: 'v-1', session_id: 's-1', occurred_at: '2026-01-31T09:00:00Z' }
await post('/v1/track', trackingKey, {
  ...visit,
  event_type: 'page_view',
  event_id: 'e-1',
  data: { page: 'https://shop.example/?utm_source=news' },
})
await post('/v1/track', trackingKey, {
  ...visit,
  event_type: 'convert',
  event_id: 'e-2',
  data: { order_id: 'o-1', email: 'ada@example.com' },
})
const subscription = {
  ...{ id: 'sub-1', customer: 'cus-1', customer_email: 'ada@example.com', status: 'active', currency: 'EUR' },
  ...{
    started_at: '2026-01-05T10:00:00Z',
    updated_at: '2026-01-05T10:00:00Z',
    current_period_end: '2026-02-05T10:00:00Z',
  },
  items: [{ id: 'si-1', name: 'Team', quantity: 3, unit_amount: 19.9, interval: 'month', interval_count: 1 }],
}
const billing = (id: string, event_type: string, payload: object) =>
  post(`/ingest/inbound/${source.id}`, source.token!, { inbound_event_id: id, event_type, payload })
await billing('b-1', 'subscription.created', subscription)
const item = { ...subscription.items[0], quantity: 5 }
await billing('b-2', 'subscription.updated', {
  ...subscription,
  updated_at: '2026-02-10T00:00:00Z',
  items: [item],
})
const money = {
  currency: 'EUR',
  total: 59.7,
  amount_paid: 59.7,
  finalized_at: '2026-01-05T10:00:00Z',
  paid_at: '2026-01-05T10:01:00Z',
}
await billing('b-3', 'invoice.paid', {
  id: 'in-1',
  subscription: 'sub-1',
  customer: 'cus-1',
  status: 'paid',
  ...money,
})
await server.settled()

const name = `${folder}kontor-${version}`
Object.assign(process.env, { DATABASE_URL: server.databaseUrl, KONTOR_SECRET_KEY: FIXTURE_SECRET_KEY })
await rm(`${name}.backup`, { force: true })
const { code, err } = await kontor('backup', '--to', `${name}.backup`)
if (code !== 0) throw new Error(err)
const answers = await fetchAnswers(server.url, key, QUESTIONS)
await writeFile(`${name}.json`, `${JSON.stringify({ key, answers }, null, 2)}\n`)
await server.close()
