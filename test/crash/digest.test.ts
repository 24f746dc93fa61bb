import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseTenantId } from '../../src/domain/tenants/tenants.ts'
import { queueDigests } from '../../src/jobs/digests.ts'
import { eventually } from '../eventually.ts'
import { headerOf, startMailServer } from '../mail-server.ts'
import { openService } from './service.ts'

const RECIPIENTS = 60

/** Delivery is at least once: a mail that was being sent when the server was killed is sent again, with its id. */
test('killed while a digest is being sent: each recipient gets it, and no one again who is recorded as having it', async t => {
  const mail = await startMailServer(t)
  if (!mail) return
  process.env.KONTOR_SMTP_URL = `smtp://127.0.0.1:${mail.port}?tls=off`
  process.env.KONTOR_SMTP_FROM = 'kontor@example.com'
  const service = await openService()
  t.after(() => service.close())
  await service.start()
  const ask = async (method: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${service.adminKey}`, 'content-type': 'application/json' }
    const response = await fetch(`${service.url}/admin/v1${path}`, { method, headers, body: JSON.stringify(body) })
    assert.ok(response.ok, await response.text())
  }
  const addresses = Array.from({ length: RECIPIENTS }, (_, index) => `person-${index}@example.com`)
  for (const address of addresses)
    await ask('POST', '/destinations', { tenant: service.tenant, url: `mailto:${address}`, what: ['digests'] })
  const weekday = new Date().toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' }).toLowerCase()
  await ask('PATCH', `/tenants/${service.tenant}/digest`, { weekday, hour: 0 })

  const tenantId = parseTenantId(service.tenant)!
  await service.withDatabase(async pool => {
    await queueDigests({ pool, now: () => new Date() })
    await pool.query(`update digests set due_at = due_at - interval '7 days' where tenant_id = $1`, [tenantId])
    await queueDigests({ pool, now: () => new Date() })
  })
  await service.withDatabase(async pool => {
    const recorded = async () => (await pool.query('select from delivery_attempts')).rowCount
    await eventually('the first recorded deliveries', async () => (await recorded())! > 0)
    await service.kill('server')
  })

  const done = await service.withDatabase(async pool => {
    const { rows } = await pool.query<{ url: string }>(
      `select d.url from delivery_attempts a join destinations d on d.id = a.destination_id where a.outcome = 'delivered'`,
    )
    return rows.map(({ url }) => url.slice('mailto:'.length))
  })
  await service.start()
  await service.withDatabase(async pool => {
    const left = async () => (await pool.query('select from delivery_queue')).rowCount
    await eventually('all deliveries', async () => (await left()) === 0)
    await queueDigests({ pool, now: () => new Date() })
    const { rows } = await pool.query(`select count(*)::int as digests from outbox where what = 'digests'`)
    assert.deepEqual(rows, [{ digests: 1 }])
  })
  const mailsTo = (address: string) => mail.received.filter(({ to }) => to.includes(address))
  t.diagnostic(`${done.length} recorded before the kill, ${mail.received.length} mails`)
  for (const address of addresses) {
    const mails = mailsTo(address)
    assert.ok(mails.length > 0, `${address} got no digest`)
    assert.equal(new Set(mails.map(got => headerOf(got, 'message-id'))).size, 1, `${address} got two digests`)
  }
  assert.ok(done.length > 0)
  for (const address of done) assert.equal(mailsTo(address).length, 1, `${address} got the digest again`)
})
