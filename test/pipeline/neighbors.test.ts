import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newEntryId } from '../../src/domain/ids.ts'
import { parseTenantId } from '../../src/domain/tenants/tenants.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { eventually } from '../eventually.ts'
import { type OwnServer, startServer } from '../server.ts'

let server: OwnServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

const CALLS = 12_000

async function countEvents(tenant: string): Promise<number> {
  const { rows } = await server.pool.query<{ count: number }>('select count(*) from events where tenant_id = $1', [
    parseTenantId(tenant),
  ])
  return rows[0]!.count
}

test('an event behind thousands of identify calls of one profile is applied before most of them', async () => {
  const flooding = await server.anotherTenant('flooding')
  const log = openPostgresLog({ pool: server.pool })
  const identify = (visitor: string) => ({
    claim: null,
    entry: {
      id: newEntryId(Date.now()),
      tenantId: parseTenantId(flooding.id)!,
      kind: 'events' as const,
      orderingKey: visitor,
      receivedAt: new Date(),
      context: JSON.stringify({ route: 'cdp', kind: 'identify', ip: null, headers: {} }),
      body: JSON.stringify({ anonymousId: visitor, userId: 'u-1', messageId: visitor }),
    },
  })
  const track = (visitor: string) =>
    server.request('/v1/track', {
      method: 'POST',
      key: server.tenant.trackingKey,
      body: JSON.stringify({ event_type: 'x', visitor }),
    })
  await track('before')
  await server.settled()
  await log.append(Array.from({ length: CALLS }, (_, index) => identify(`v-${index}`)))
  await track('behind')
  await eventually('the event of the neighbor', async () => (await countEvents(server.tenant.id)) === 2)
  const applied = await countEvents(flooding.id)
  assert.ok(applied < CALLS * 0.75, `${applied} of ${CALLS} calls were applied before the event`)
  await server.settled()
  assert.equal(await countEvents(flooding.id), CALLS)
})
