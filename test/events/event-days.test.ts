import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { computeDaysOf } from './computed-days.ts'
import { json, type Row } from './rows.ts'

// Visitors and funnels read the columns of finished days: docs/decisions/0042-columns-of-a-day.md.

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

async function post(path: string, key: string, body: object): Promise<void> {
  const answer = await server.request(path, { method: 'POST', key, body: json(body) })
  assert.equal(answer.status, 200, `${path} ${json(answer.body)}`)
}

test('visitors and funnels of computed days read no events, in any time zone', async () => {
  const tenant = await server.anotherTenant('computed days')
  const tenantId = Number(tenant.id.slice(4))
  const batch = Array.from({ length: 60 }, (_, index) => ({
    ...{ type: index % 4 === 0 ? 'page' : 'track', event: `step ${index % 3}`, anonymousId: `v-${index % 11}` },
    timestamp: new Date(Date.parse('2026-03-01T22:00:00Z') + index * 97 * 60_000).toISOString(),
    properties: { url: `https://shop.example/products/${index % 5}?a=1` },
  }))
  await post('/v1/batch', tenant.trackingKey, { batch })
  await server.settled()
  const read = async (path: string) => (await server.request(path, { key: tenant.privateKey })).body
  const window = 'since=2026-03-01T00:00:00Z&until=2026-03-06T12:00:00Z'
  const answers = async () => {
    const found: Row[] = []
    for (const time_zone of ['UTC', 'Asia/Kolkata', 'America/New_York']) {
      await server.admin.policies.set(tenant.id, { time_zone })
      for (const query of ['interval=day', 'interval=hour', 'interval=day&cut=true'])
        found.push(await read(`/v1/events/visitors?${query}&${window}`))
    }
    for (const steps of ['step 1,step 2', 'page:/products/*,step 1', 'page:*/4,page:/products/1', 'step 0,page'])
      found.push(await read(`/v1/funnel?steps=${encodeURIComponent(steps)}&within_days=2&${window}`))
    return found
  }
  const fromEvents = await answers()
  assert.ok(fromEvents.every(({ total, steps }) => total > 0 || steps[0].people > 0))
  await computeDaysOf(server.pool, tenant)
  // Without events, only the columns can give the same answers.
  await server.pool.query('delete from events where tenant_id = $1', [tenantId])
  assert.deepEqual(await answers(), fromEvents)
})

test('a funnel counts the pages of a day with more paths than its columns can name', async () => {
  const tenant = await server.tenantWithServerKey('many paths')
  const timestamp = new Date(Date.now() - DAY_MS).toISOString()
  const view = (anonymousId: string, path: string) => ({
    ...{ type: 'page', anonymousId, timestamp, messageId: `${anonymousId} ${path.slice(0, 20)}` },
    properties: { url: `https://shop.example${path}` },
  })
  for (let first = 0; first < 2_250; first += 450) {
    const batch = Array.from({ length: 450 }, (_, i) => view('v1', `/many/${first + i}/${'x'.repeat(1_900)}`))
    await post('/v1/batch', tenant.trackingKey, { batch })
  }
  await post('/v1/batch', tenant.trackingKey, {
    batch: [view('v2', '/many/x'), view('v2', '/done'), view('v3', '/done'), view('v1', '/a_c'), view('v2', '/abc')],
  })
  await server.settled()
  await computeDaysOf(server.pool, tenant)
  const { rows } = await server.pool.query(
    `select visitors is not null as "hasVisitors", nodes is not null as "hasEvents" from event_days
     where tenant_id = $1`,
    [Number(tenant.id.slice(4))],
  )
  assert.deepEqual(rows, [{ hasVisitors: true, hasEvents: false }])
  for (const [steps, expected] of [
    ['page:/many/*,page:/done', [2, 1]],
    ['page:/many/*,page:/a_c', [2, 1]],
    ['page:*x,page:*c', [2, 2]],
  ] as const) {
    const { body } = await server.request(`/v1/funnel?${new URLSearchParams({ steps })}`, { key: tenant.privateKey })
    assert.deepEqual(
      body.steps.map(({ people }: Row) => people),
      expected,
      steps,
    )
  }
})

const AGENTS: [device: string, context: object][] = [
  ['phone', { userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Mobile/15E148 Safari/604.1' }],
  ['phone', { userAgent: 'Mozilla/5.0 (Linux; Android 15; Pixel 9) Chrome/138.0.0.0 Mobile Safari/537.36' }],
  ['phone', { device: { type: 'iOS' } }],
  ['tablet', { userAgent: 'Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) Version/18.5 Mobile/15E148 Safari/604.1' }],
  ['tablet', { userAgent: 'Mozilla/5.0 (Linux; Android 14; SM-X910) Chrome/138.0.0.0 Safari/537.36' }],
  ['computer', { userAgent: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/138.0.0.0 Safari/537.36' }],
  ['other', { userAgent: 'analytics-node/2.1 (Linux)' }],
  ['other', { userAgent: 7, device: { type: ['ios'] } }],
  ['other', {}],
]

test('a funnel of one device counts the people who started on it', async () => {
  const tenant = await server.tenantWithServerKey('devices')
  const at = (hours: number) => new Date(Date.now() - DAY_MS + hours * HOUR_MS).toISOString()
  const visits = AGENTS.flatMap(([, context], i) => [
    {
      type: 'page',
      anonymousId: `v${i}`,
      timestamp: at(0),
      context,
      properties: { url: 'https://shop.example/%C3%A4' },
    },
    // The second step happens on a server.
    { type: 'track', event: 'Signed Up', anonymousId: `v${i}`, timestamp: at(1) },
  ])
  await post('/v1/batch', tenant.trackingKey, { batch: visits })
  await server.settled()
  const count = async (query: Record<string, string>) => {
    const search = new URLSearchParams({ steps: 'page:/ä,Signed Up', ...query })
    const { body } = await server.request(`/v1/funnel?${search}`, { key: tenant.privateKey })
    return body.steps.map(({ people }: Row) => people)
  }
  const assertDevices = async () => {
    for (const device of ['phone', 'tablet', 'computer', 'other']) {
      const people = AGENTS.filter(([own]) => own === device).length
      assert.deepEqual(await count({ device }), [people, people], device)
    }
    assert.deepEqual(await count({}), [AGENTS.length, AGENTS.length])
  }
  await assertDevices()
  await computeDaysOf(server.pool, tenant)
  await assertDevices()
  const { status } = await server.request('/v1/funnel?steps=a,b&device=watch', { key: tenant.privateKey })
  assert.equal(status, 400)
})

test('the device of a tracking event is that of its request', async () => {
  const tenant = await server.tenantWithServerKey('device of a request')
  const headers = { 'user-agent': 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Mobile/15E148' }
  const events = ['visit', 'purchase', 'sign_up'].map(event_type => ({ event_type, visitor: 'v1', data: {} }))
  for (const event of events)
    await server.request('/v1/track/', {
      ...{ method: 'POST', key: tenant.trackingKey, headers, body: json(event) },
    })
  await server.settled()
  // A purchase is a sale, which is not in the columns of a day.
  for (const first of ['visit', 'purchase'])
    for (const [device, people] of [
      ['phone', 1],
      ['computer', 0],
      ['other', 0],
    ] as const) {
      const path = `/v1/funnel?steps=${first},sign_up&device=${device}`
      const { body } = await server.request(path, { key: tenant.privateKey })
      assert.deepEqual(
        body.steps.map((step: Row) => step.people),
        [people, people],
        path,
      )
    }
})
