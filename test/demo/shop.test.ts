import assert from 'node:assert/strict'
import test from 'node:test'
import { PRODUCTS } from '../../demo/catalog.ts'
import { type Shop, shopYear } from '../../demo/shop.ts'
import { createYear, DAY_MS } from '../../demo/year.ts'
import { END, everyShop } from './shops.ts'

test('the same seed and end generate the same year, byte for byte', () => {
  const year = createYear({ seed: 7, scale: 1, end: END })
  assert.equal(JSON.stringify(shopYear(year)), JSON.stringify(shopYear({ ...year })))
})

test('a year that ends during a day has visits on that day, and nothing after its end', () => {
  const end = END + 15 * 3_600_000
  const { events } = shopYear(createYear({ seed: 1, scale: 1, end }))
  const times = events.map(({ at }) => at)
  assert.ok(Math.max(...times) < end)
  const onLastDay = times.filter(at => at >= END)
  assert.ok(onLastDay.length > 20, `${onLastDay.length} events`)
  assert.ok(new Set(onLastDay).size > onLastDay.length / 2, 'not all at the same time')
})

test('another seed generates another shop', () => {
  const listContacts = (seed: number) =>
    shopYear(createYear({ seed, scale: 1, end: END })).contacts.map(({ data }) => `${data.firstName} ${data.city}`)
  assert.notDeepEqual(listContacts(1), listContacts(2))
})

test('shops of different seeds and scales share no id', () => {
  const years = [
    createYear({ seed: 1, scale: 1, end: END }),
    createYear({ seed: 12, scale: 1, end: END }),
    createYear({ seed: 1, scale: 2, end: END }),
  ]
  const ids = years.flatMap(year => listIds(shopYear(year)))
  assert.equal(new Set(ids).size, ids.length)
})

test('a shop has about the documented size, and grows with its scale', () => {
  everyShop(({ counts }) => {
    assert.equal(counts.products, PRODUCTS.length)
    assert.equal(counts.contacts, 300)
    assert.equal(counts.visits, 8_000)
    assert.ok(counts.orders > 600 && counts.orders < 1_350, `${counts.orders} orders`)
    assert.ok(counts.subscriptions > 150 && counts.subscriptions < 290, `${counts.subscriptions} subscriptions`)
  })
  const twice = shopYear(createYear({ seed: 1, scale: 2, end: END })).counts
  assert.equal(twice.contacts, 600)
  assert.equal(twice.visits, 16_000)
})

test('no id is used twice', () => {
  everyShop(shop => {
    const ids = listIds(shop)
    assert.equal(new Set(ids).size, ids.length)
  })
})

test('everything happens within the year, oldest first', () => {
  everyShop((shop, { start, end }) => {
    const lists = [
      shop.events.map(({ at }) => at),
      shop.billing.map(({ occurred_at }) => Date.parse(occurred_at)),
      shop.orders.map(({ sourceUpdatedAt }) => Date.parse(sourceUpdatedAt)),
    ]
    for (const times of lists) {
      // the pages before the first order of the first day
      assert.ok(times[0]! >= start - DAY_MS)
      assert.ok(times.at(-1)! <= end)
      assert.deepEqual(
        times,
        times.toSorted((a, b) => a - b),
      )
    }
  })
})

test('the total of an order is the sum of its lines, discount and shipping, and its contact exists', () => {
  everyShop(shop => {
    const contacts = new Map(shop.contacts.map(({ id, data }) => [id, data]))
    for (const { id, data } of shop.orders) {
      const lines = data.lines as { quantity: number; unit_price: number; total: number }[]
      assert.ok(lines.length > 0)
      for (const line of lines) assert.equal(cents(line.total), line.quantity * cents(line.unit_price))
      const goods = lines.reduce((sum, line) => sum + cents(line.total), 0)
      assert.equal(cents(data.total), goods - cents(data.discount ?? 0) + cents(data.shipping), id)
      assert.ok(cents(data.refunded ?? 0) <= cents(data.total))
      const contact = contacts.get(data.contactId as string)
      assert.equal(contact?.email, data.email)
      assert.ok((contact?.created_at as string) <= (data.created_at as string))
    }
  })
})

test('a sale on the site has the id and the amount of its order', () => {
  everyShop(shop => {
    const totals = new Map(shop.orders.map(({ id, data }) => [id, data.total]))
    const sales = shop.events.filter(({ body }) => body.event_type === 'convert')
    assert.ok(sales.length > 0.6 * shop.counts.orders)
    for (const { body, route } of sales) {
      const data = body.data as { order_id: string; amount: number }
      assert.equal(route, 'native')
      assert.equal(data.amount, totals.get(data.order_id))
    }
  })
})

test('nearly every person who signs up is identified in the visits, with the e-mail address of the contact', () => {
  everyShop(shop => {
    const emails = new Map<string, unknown>()
    for (const { body } of shop.events) {
      const traits = (body.type === 'identify' ? body.traits : body.data) as { email?: string }
      if (body.type === 'identify') emails.set(body.userId as string, traits.email)
      if (body.event_type === 'identify') emails.set(body.user_id as string, traits.email)
    }
    assert.ok(emails.size > 0.8 * shop.contacts.length && emails.size < shop.contacts.length)
    for (const { id, data } of shop.contacts) if (emails.has(id)) assert.equal(emails.get(id), data.email)
  })
})

test('visits come from several sources, with campaign links and referrers', () => {
  const { events } = shopYear(createYear({ seed: 1, scale: 1, end: END }))
  const text = JSON.stringify(events)
  for (const source of ['newsletter', 'google', 'instagram', 'second-cup-podcast', 'friends'])
    assert.ok(text.includes(`utm_source=${source}`), source)
  assert.ok(text.includes('https://www.brewjournal.example/'))
})

function listIds(shop: Shop): string[] {
  return [
    ...[...shop.products, ...shop.contacts, ...shop.orders].map(({ idempotencyKey }) => idempotencyKey),
    ...shop.products.map(({ data }) => `sku ${data.sku}`),
    ...shop.contacts.map(({ data }) => `mail ${data.email}`),
    ...shop.events.map(({ body }) => String(body.event_id ?? body.messageId)),
    ...shop.billing.map(({ inbound_event_id }) => inbound_event_id),
  ]
}

function cents(amount: unknown): number {
  return Math.round((amount as number) * 100)
}
