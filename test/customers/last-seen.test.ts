import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { parseTenantId } from '../../src/domain/tenants/tenants.ts'
import { MINUTE_MS } from '../../src/domain/time.ts'
import type { FreshEvent } from '../../src/pipeline/events/events.ts'
import { openLastSeen, rememberSeen } from '../../src/pipeline/identity/last-seen.ts'
import type { Learned } from '../../src/pipeline/unit.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { configVersion } from '../../src/store/tenants/config-version.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { inDays } from '../subscriptions/shop.ts'
import { peopleOf } from './people.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

test('a visit is noted after a transaction that rolled back, and not twice within a minute', async () => {
  const tenant = await server.tenantWithServerKey('last-seen')
  const people = peopleOf(server, tenant)
  await people.contact('c1', { email: 'ada@example.com' }, inDays(-50))
  await people.settled()
  const tenantId = parseTenantId(tenant.id)!
  const { rows } = await server.pool.query(
    `update identities set last_seen_at = '2020-01-01' where tenant_id = $1 and kind = 'contact' returning node`,
    [tenantId],
  )
  const node = Number(rows[0].node)
  const lastSeen = openLastSeen()
  const start = Date.now()
  const isCurrent = async () => {
    const { rows } = await server.pool.query(
      `select last_seen_at > '2021-01-01' as current from identities where tenant_id = $1 and node = $2`,
      [tenantId, node],
    )
    return rows[0].current as boolean
  }
  const visit = async (afterMs: number, { fails = false } = {}) => {
    const receivedAt = new Date(start + afterMs)
    const event = { trusted: false, occurredAt: receivedAt, receivedAt }
    const learned: Learned = { nodes: [], touches: [], seen: [], suppressed: [] }
    await inTransaction(server.pool, async client => {
      const transaction = { client, now: receivedAt, configVersion: await configVersion(client), learned }
      await lastSeen(transaction, [{ tenantId, node, event } as FreshEvent], [])
      if (fails) throw new Error('rolled back')
    })
    rememberSeen(learned.seen)
  }
  await assert.rejects(visit(0, { fails: true }), /rolled back/)
  assert.equal(await isCurrent(), false)
  await visit(1)
  assert.equal(await isCurrent(), true, 'what was rolled back is not remembered')
  await server.pool.query(`update identities set last_seen_at = '2020-01-01' where tenant_id = $1`, [tenantId])
  await visit(2)
  assert.equal(await isCurrent(), false, 'noted less than a minute ago')
  await visit(2 + MINUTE_MS)
  assert.equal(await isCurrent(), true)
})

test('the event that links a visitor with a customer counts, also right after an anonymous one', async () => {
  const people = peopleOf(server, await server.tenantWithServerKey('linked'))
  await people.contact('c1', { email: 'ada@example.com', created_at: inDays(-300) }, inDays(-300))
  await people.order('o1', { contactId: 'c1', total: 5, currency: 'EUR', created_at: inDays(-300) }, inDays(-300))
  await people.settled()
  const start = new Date().toISOString()
  await people.track({ event_type: 'page_view', visitor: 'v1' })
  await people.settled()
  await people.track({ event_type: 'sign_up', visitor: 'v1', data: { email: 'ada@example.com' } })
  await people.settled()
  const [row] = await people.customers()
  assert.ok(row.last_seen_at >= start, row.last_seen_at)
})
