import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { json } from './rows.ts'

let server: TestServer
let tenant: TestTenant
before(async () => {
  server = await startServer()
  // A server key: an unverified event that is older than a day is no touch.
  tenant = await server.tenantWithServerKey('touches')
})
after(() => server.close())

const at = (second: number) => `2026-01-01T00:00:0${second}Z`
const visits = [
  { event_type: 'page_view', occurred_at: at(1), data: { page: 'https://shop.example/' } },
  {
    event_type: 'page_view',
    occurred_at: at(2),
    data: { page: 'https://shop.example/', referrer: 'https://news.example/story' },
  },
  {
    event_type: 'page_view',
    occurred_at: at(3),
    data: { page: 'https://shop.example/?utm_source=letter&utm_medium=email&utm_campaign=may' },
  },
]

async function send(visitor: string, order: number[], together: boolean): Promise<void> {
  for (const index of order) {
    const body = json({ ...visits[index], visitor })
    await server.request('/v1/track/', { method: 'POST', key: tenant.trackingKey, body })
    if (!together) await server.settled()
  }
}

test('the first touch is the first with a source, and direct only if there is none, in any order', async () => {
  const orders = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ]
  for (const together of [true, false]) {
    for (const order of orders) await send(`${order} ${together}`, order, together)
  }
  await send('direct', [0, 0], false)
  await server.settled()
  const { rows } = await server.pool.query(
    `select i.value as visitor, t.source, t.medium, t.campaign, t.direct, t.occurred_at from touches t
     join identities i using (tenant_id, node)`,
  )
  assert.equal(rows.length, 2 * orders.length + 1)
  for (const { visitor, ...touch } of rows) {
    assert.deepEqual(
      touch,
      visitor === 'direct'
        ? { source: 'direct', medium: null, campaign: null, direct: true, occurred_at: new Date(at(1)) }
        : {
            source: 'news.example',
            medium: 'referral',
            campaign: null,
            direct: false,
            occurred_at: new Date(at(2)),
          },
      visitor,
    )
  }
})
