import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DAY_MS } from '../../src/domain/time.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { peopleOf } from './people.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const now = Date.now()
const inDays = (days: number) => new Date(now + days * DAY_MS).toISOString()

const open = async (name: string) => peopleOf(server, await server.tenantWithServerKey(name))
type People = Awaited<ReturnType<typeof open>>

/** Events of one visitor, by the days at which they occurred. */
async function journey(people: People, visitor: string, events: [type: string, days: number, data?: object][]) {
  for (const [event_type, days, data] of events)
    await people.track({ event_type, visitor, occurred_at: inDays(days), ...(data && { data }) })
}

async function funnel(people: People, query: Record<string, unknown>) {
  const { status, body } = await people.ask('/v1/funnel', query)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const peopleIn = (body: { steps: { people: number }[] }) => body.steps.map(({ people }) => people)
const page = (path: string) => ({ page: `https://shop.example${path}` })

test('counts people in order, within the days, with rates and the median time', async () => {
  const people = await open('order')
  await journey(people, 'all', [
    ['visit', -9],
    ['sign_up', -8],
    ['purchase', -7, { order_id: 'o1', amount: 1, currency: 'EUR' }],
  ])
  await journey(people, 'slow', [
    ['visit', -9],
    ['sign_up', -5],
  ])
  await journey(people, 'wrong order', [
    ['sign_up', -9],
    ['visit', -8],
  ])
  // The first visit is too early, the second is not.
  await journey(people, 'second try', [
    ['visit', -29],
    ['visit', -6],
    ['sign_up', -5.5],
  ])
  await journey(people, 'only', [
    ['visit', -2],
    ['visit', -1],
  ])
  await journey(people, 'outside', [
    ['visit', -50],
    ['sign_up', -49],
  ])
  await server.settled()
  const body = await funnel(people, { steps: 'visit,sign_up,purchase', within_days: 3 })
  assert.deepEqual(body.steps, [
    { name: 'visit', people: 5, rate: null, total_rate: 1, median_seconds: null },
    { name: 'sign_up', people: 2, rate: 0.4, total_rate: 0.4, median_seconds: 64_800 },
    { name: 'purchase', people: 1, rate: 0.5, total_rate: 0.2, median_seconds: 172_800 },
  ])
  assert.deepEqual(peopleIn(await funnel(people, { steps: 'visit,sign_up', within_days: 30 })), [5, 3])
  assert.deepEqual(peopleIn(await funnel(people, { steps: 'sign_up,visit' })), [4, 1])
  assert.deepEqual(peopleIn(await funnel(people, { steps: 'nothing,visit' })), [0, 0])
  const { steps } = await funnel(people, { steps: 'visit,sign_up', since: inDays(-100), until: inDays(-40) })
  assert.deepEqual(peopleIn({ steps }), [1, 1])
})

test('a person with several visitor ids counts once, also after a merge', async () => {
  const people = await open('persons')
  await journey(people, 'phone', [['visit', -3]])
  await journey(people, 'laptop', [
    ['visit', -2],
    ['sign_up', -1],
  ])
  await server.settled()
  const query = { steps: 'visit,sign_up' }
  assert.deepEqual(peopleIn(await funnel(people, query)), [2, 1])
  for (const visitor of ['phone', 'laptop']) await people.track({ event_type: 'login', visitor, user_id: 'u1' })
  await server.settled()
  assert.deepEqual(peopleIn(await funnel(people, query)), [1, 1])
})

test('page patterns match the path of page views, in all formats', async () => {
  const people = await open('pages')
  await journey(people, 'a', [
    ['page_view', -3, page('/pricing?plan=pro#top')],
    ['page_view', -2, page('/docs/a_b')],
  ])
  await journey(people, 'b', [
    ['page_view', -3, page('/pricing/teams')],
    ['page_view', -2, page('/docs/axb')],
  ])
  await journey(people, 'c', [
    ['page_view', -3, page('')],
    ['page_view', -2, page('/about')],
  ])
  await journey(people, 'd', [
    ['click', -3, page('/pricing')],
    ['page_view', -2, { page: 1e3, huge: '1e400000' }],
  ])
  await journey(people, 'f', [
    ['page_view', -3, page('/%C3%BCber-uns/50%25')],
    ['page_view', -2, page('/straße')],
  ])
  const { status } = await server.request('/v1/batch', {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${people.tenant.trackingKey}:`).toString('base64')}` },
    body: JSON.stringify({
      batch: [
        { type: 'page', anonymousId: 'e', properties: { url: 'https://shop.example/pricing' }, timestamp: inDays(-3) },
        {
          type: 'page',
          anonymousId: 'e',
          context: { page: { url: 'https://shop.example/docs/a_b' } },
          timestamp: inDays(-2),
        },
      ],
    }),
  })
  assert.equal(status, 200)
  await server.settled()
  const count = async (...steps: string[]) => peopleIn(await funnel(people, { steps: steps.join(',') }))
  assert.deepEqual(await count('page:/pricing*', 'page:/docs/*'), [3, 3])
  assert.deepEqual(await count('page:/pricing', 'page:/docs/a_b'), [2, 2])
  assert.deepEqual(await count('page:/', 'page:*out'), [1, 1])
  assert.deepEqual(await count('page:/pri%', 'page_view'), [0, 0])
  for (const about of ['/über-uns/50%', '/%C3%BCber-uns/*', '/über*'])
    for (const street of ['/straße', '/stra%C3%9Fe'])
      assert.deepEqual(await count(`page:${about}`, `page:${street}`), [1, 1], `${about} ${street}`)
  // One event is not two steps.
  assert.deepEqual(await count('page_view', 'page:/about'), [5, 1])
  assert.deepEqual(await count('page:/about', 'page_view'), [1, 0])
})

test('breakdown counts by the channel or the source of the first touch', async () => {
  const people = await open('breakdown')
  await journey(people, 'a', [
    ['page_view', -3, page('/?utm_source=google&utm_medium=cpc')],
    ['sign_up', -2],
  ])
  await journey(people, 'b', [['page_view', -3, page('/?utm_source=bing&utm_medium=cpc')]])
  await journey(people, 'c', [
    ['page_view', -3, page('/')],
    ['sign_up', -2],
  ])
  await server.settled()
  const by = async (breakdown: string) =>
    (await funnel(people, { steps: 'page_view,sign_up', breakdown })).breakdown.map(
      (group: { name: string; steps: { people: number }[] }) => [group.name, ...peopleIn(group)],
    )
  assert.deepEqual((await by('channel')).sort(), [
    ['direct', 1, 1],
    ['paid_search', 2, 1],
  ])
  assert.deepEqual((await by('source')).sort(), [
    ['bing', 1, 0],
    ['direct', 1, 1],
    ['google', 1, 1],
  ])
})

test('invalid funnels are validation errors, the route needs events:read, other tenants see nothing', async () => {
  const people = await open('hostile funnels')
  await journey(people, 'a', [
    ['a', -2],
    ['b', -1],
  ])
  await server.settled()
  const invalid: [Record<string, string>, string][] = [
    [{}, '/steps'],
    [{ steps: 'a' }, '/steps'],
    [{ steps: 'a,' }, '/steps'],
    [{ steps: 'a,a' }, '/steps'],
    [{ steps: 'a,b,c,d,e,f,g' }, '/steps'],
    [{ steps: 'a,page:pricing' }, '/steps'],
    [{ steps: 'a,page:/*a*b*c*d' }, '/steps'],
    [{ steps: `a,${'b'.repeat(201)}` }, '/steps'],
    [{ steps: 'a,b', within_days: '0' }, '/within_days'],
    [{ steps: 'a,b', breakdown: 'country' }, '/breakdown'],
    [{ steps: 'a,b', since: '2026-02-01', until: '2026-01-01' }, '/since'],
    [{ steps: 'a,b', since: '2020-01-01' }, '/since'],
  ]
  for (const [query, pointer] of invalid) {
    const { status, body } = await people.ask('/v1/funnel', query)
    assert.deepEqual([status, body.errors?.[0]?.pointer], [400, pointer], JSON.stringify(query))
  }
  for (const steps of ["a';select 1--,b", '\u0000,b', 'page:/\\,page:/%\\', 'a\ud800,b'])
    assert.deepEqual(peopleIn(await funnel(people, { steps })), [0, 0], steps)
  const { key } = await server.admin.keys.create({
    tenant: people.tenant.id,
    kind: 'private',
    scopes: ['contacts:read'] as never,
  })
  assert.equal((await people.ask('/v1/funnel', { steps: 'a,b' }, key)).status, 403)
  const other = await open('others')
  assert.deepEqual(peopleIn(await funnel(other, { steps: 'a,b' })), [0, 0])
})
