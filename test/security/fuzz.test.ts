// Every request gets a valid response, nothing stalls, and other tenants are unaffected.
// KONTOR_FUZZ_SEED selects other requests, KONTOR_FUZZ_REQUESTS a longer run.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { chance } from '../books/random.ts'
import { isLong } from '../long.ts'
import { startServer } from '../server.ts'
import { type EvilRequest, evilRequest, type Target } from './evil-requests.ts'

const SEED = process.env.KONTOR_FUZZ_SEED ?? '1'
// A few thousand requests find most regressions.
const REQUESTS = Number(process.env.KONTOR_FUZZ_REQUESTS ?? (isLong ? 10_000 : 4_000))
const AT_ONCE = 16

const server = await startServer({ KONTOR_FAILED_AUTH_LIMIT: 'off' })
after(server.close)

/** Internal details that no response may contain: stack traces, SQL, paths. */
const INTERNAL_DETAILS = /\n\s+at |node:internal|\.ts:\d|\bselect .* from\b|\binsert into\b|violates|node_modules/i

test(`${REQUESTS} mutated requests get only valid responses, and a neighbor loses nothing`, async () => {
  const neighbor = await server.anotherTenant('neighbor')
  const kept = {
    entityType: 'product',
    id: 'kept',
    sourceUpdatedAt: '2026-01-01T00:00:00Z',
    data: { sku: 'KEPT', note: 'the neighbor’s' },
  }
  const write = await server.request('/v1/products', {
    method: 'POST',
    key: neighbor.privateKey,
    body: JSON.stringify(kept),
  })
  assert.equal(write.status, 202)
  const source = await server.admin.sources.create({ tenant: server.tenant.id, type: 'webhook' })
  const adminKey = await server.admin.keys.create({ kind: 'admin' })
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
  const target: Target = {
    routes: server.http.routeTable.filter(({ method }) => method !== 'HEAD' && method !== 'OPTIONS'),
    credentials: [
      bearer(server.tenant.privateKey),
      { 'x-api-key': server.tenant.privateKey },
      bearer(server.tenant.trackingKey),
      { 'x-write-key': server.tenant.trackingKey },
      {
        'x-api-token': source.token!,
        'x-service-token': source.token!,
        authorization: `Bearer ${source.token}`,
      },
      bearer(adminKey.key),
      bearer('private-unknown'),
      { authorization: 'Basic \u00ff' },
      {},
    ],
    ids: [
      'P1',
      'C1',
      'O1',
      'MUG-01',
      'kept',
      server.tenant.id,
      neighbor.id,
      source.id,
      adminKey.id,
      'm1',
      'e1',
      '00000000-0000-0000-0000-000000000000',
    ],
  }

  const random = chance(SEED)
  const requests = Array.from({ length: REQUESTS }, () => evilRequest(random, target))
  const violations: string[] = []
  const heapBefore = process.memoryUsage().heapUsed
  const send = async (request: EvilRequest, index: number) => {
    const answer = await server.http.inject({
      method: request.method as 'POST',
      url: ended(request.url),
      headers: request.headers,
      ...(request.body && { payload: request.body }),
    })
    const violation = findViolation(answer)
    if (violation)
      violations.push(
        `request ${index} of seed ${SEED}: ${request.method} ${request.url.slice(0, 200)} ${violation}: ${String(request.body ?? '').slice(0, 300)}`,
      )
  }
  const queue = requests.entries()
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const [index, request] of queue) await send(request, index)
    }),
  )
  assert.deepEqual(violations.slice(0, 10), [], `${violations.length} violations`)

  await server.settled()
  const read = await server.request('/v1/products/KEPT', { key: neighbor.privateKey })
  assert.deepEqual(read.body.data, kept.data)
  const { body: events } = await server.request('/v1/events', { key: neighbor.privateKey })
  assert.deepEqual(events.results, [])
  const growth = (process.memoryUsage().heapUsed - heapBefore) / 2 ** 20
  assert.ok(growth < 500, `the heap grew by ${growth.toFixed()} MB`)
})

/** Streams that would run until the client disconnects end immediately. */
function ended(url: string): string {
  return url.startsWith('/v1/events/live') ? `${url}${url.includes('?') ? '&' : '?'}seconds=0` : url
}

type Answer = { statusCode: number; headers: Record<string, unknown>; body: string }

function findViolation({ statusCode, headers, body }: Answer): string | null {
  if (statusCode >= 500 && statusCode !== 503) return `is ${statusCode} ${body.slice(0, 300)}`
  if (INTERNAL_DETAILS.test(statusCode < 400 ? '' : body)) return `shows internal details: ${body.slice(0, 300)}`
  if (statusCode < 400) return null
  if (!String(headers['content-type']).startsWith('application/problem+json'))
    return `is ${statusCode} as ${headers['content-type']}`
  if ((statusCode === 429 || statusCode === 503) && !/^\d+$/.test(String(headers['retry-after'])))
    return `is ${statusCode} without Retry-After`
  const problem = JSON.parse(body)
  if (problem.status !== statusCode || typeof problem.code !== 'string' || !problem.request_id)
    return `is an incomplete problem: ${body.slice(0, 300)}`
  return null
}
