// Must compile, without the types of any platform.
import { type BatchItemResult, Kontor, KontorError, type StoredRecord, type TrackedEvent } from '@kontor/sdk'
import { signWebhook, verifyWebhook } from '@kontor/sdk/webhooks'

interface Mug {
  sku: string
  price: number
}

const kontor = new Kontor({
  url: 'https://kontor.example',
  privateKey: 'private-x',
  trackingKey: 'trk_x',
  maxRetries: 3,
})

export async function everything(mug: Mug): Promise<void> {
  const written = await kontor.products.upsert({ id: 'p-1', sourceUpdatedAt: new Date(), data: mug }, { waitS: 5 })
  const status: 'queued' | 'applied' | 'superseded' | 'failed' | undefined = written.status
  const stored: StoredRecord<Mug> | null = await kontor.products.get<Mug>('MUG-01')
  const price: number | undefined = stored?.data.price
  const order = await kontor.orders.get('o-1')
  const field: unknown = order?.data.total

  const results: BatchItemResult[] = []
  for await (const result of kontor.contacts.upsertMany(new Set([{ id: 'c-1', externalId: 'x' }]))) results.push(result)
  for (const result of results) {
    if (result.accepted) result.operationId.toUpperCase()
    else result.errors.map(({ pointer, message }) => pointer + message)
  }
  for await (const product of kontor.products.list({ updatedSince: new Date() })) product.data?.sku

  const event: TrackedEvent = { event_type: 'page_view', visitor: 'v-1', data: { page: '/' } }
  const taken: boolean = kontor.track(event)
  for await (const { occurred_at, source } of kontor.events.list({ since: '2026-01-01' })) {
    const known: 'tracking' | 'cdp' | 'webhook' | 'automation' = source
    console_(occurred_at, known)
  }
  for await (const { amount } of kontor.conversions.list()) console_(amount === null ? 0 : amount * 2)

  const { mrr, accounts } = await kontor.subscriptions.overview({
    currency: 'EUR',
    as_of: new Date(),
    page_size: 10,
  })
  const rows: number = accounts.results.length + mrr
  const attention = await kontor.subscriptions.attention({ currency: 'EUR', days: 60 })
  for await (const account of kontor.subscriptions.accounts({ currency: 'EUR' })) account.customer.toUpperCase()
  for await (const row of kontor.subscriptions.timeline({ currency: 'EUR', customer: 'c' })) console_(row.mrr_delta)
  for await (const { mrr_delta } of kontor.subscriptions.movements({ currency: 'EUR' })) console_(mrr_delta.toFixed())
  const forecast = await kontor.subscriptions.forecast({ currency: 'EUR', months: 6 })
  const { months } = await kontor.subscriptions.books({ month: '2026-10' })
  console_(forecast.opening_mrr, months[0]?.closed_at)
  const account = await kontor.subscriptions.account({ currency: 'EUR', subscription_id: 's' })
  console_(status, price, field, taken, rows, attention.days, account?.summary.mrr)
}

export async function failures(error: unknown): Promise<string> {
  if (error instanceof KontorError) return `${error.status} ${error.code} ${error.requestId} ${error.errors.length}`
  const signature: string = await signWebhook({ secret: 's', body: new Uint8Array(), timestamp: 1 })
  const ok: boolean = await verifyWebhook({
    secret: ['s'],
    body: '',
    headers: { 'x-service-signature': signature },
  })
  return String(ok)
}

declare function console_(...values: unknown[]): void
