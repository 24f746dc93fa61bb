import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DAY_MS, HOUR_MS } from '../../src/domain/time.ts'
import { startReceiver } from '../destinations/receiver.ts'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { startServer, type TestServer } from '../server.ts'

/** The clock of the node is set back by a year while the server runs. */

const RealDate = Date
const YEAR_MS = 365 * DAY_MS
class LateDate extends RealDate {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [RealDate.now() - YEAR_MS] : given) as [number]))
  }
  static override now = () => RealDate.now() - YEAR_MS
}

let server: TestServer & { close(): Promise<void> }
let receiver: Awaited<ReturnType<typeof startReceiver>>
before(async () => {
  server = await startServer({ KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' })
  receiver = await startReceiver()
})
after(async () => {
  globalThis.Date = RealDate
  await server.close()
  await receiver.close()
})

const track = (event: object) =>
  server.request('/v1/track', { method: 'POST', key: server.tenant.trackingKey, body: JSON.stringify(event) })

test('a clock that is set back by a year stops no retry, no delivery and no key', async () => {
  await server.pool.query(`
    create function refuse_blocked() returns trigger language plpgsql as $$
    begin
      if new.event_type = 'blocked' then raise exception 'blocked'; end if;
      return new;
    end $$;
    create trigger refuse_blocked before insert on events for each row execute function refuse_blocked()`)
  const { destinations, keys } = server.admin
  await destinations.create({ tenant: server.tenant.id, url: `${receiver.url}/hooks`, what: ['events'] })
  const ended = await keys.create({ kind: 'admin', expires_at: new Date(Date.now() + YEAR_MS).toISOString() })
  await server.pool.query(`update api_keys set expires_at = now() - interval '1 day' where id = $1`, [ended.id])
  const kept = await keys.create({ tenant: server.tenant.id, kind: 'private' })
  const source = await makeSource(server)

  await track({ event_type: 'before', visitor: 'v-1' })
  await track({ event_type: 'blocked', visitor: 'v-2' })
  await eventually('the event to be parked', async () => {
    const { rows } = await server.pool.query('select from parked_entries')
    return rows.length === 1
  })
  await eventually('the first message', () => receiver.on('/hooks').length === 1)

  globalThis.Date = LateDate as DateConstructor
  await server.pool.query('drop trigger refuse_blocked on events')
  await server.pool.query('update parked_entries set next_attempt_at = now()')
  await track({ event_type: 'after', visitor: 'v-3' })
  await eventually('all messages', () => receiver.on('/hooks').length === 3)

  const headers = { origin: server.url, 'x-kontor-console': '1' }
  const body = JSON.stringify({ key: ended.key })
  const signIn = await server.request('/console/session', { method: 'POST', body, headers })
  assert.equal(signIn.status, 401)
  const rotated = await keys.rotate(kept.id)
  assert.ok(Date.parse(rotated.previous.expires_at) > RealDate.now() + HOUR_MS, rotated.previous.expires_at)
  assert.equal((await server.request('/v1/events', { key: kept.key })).status, 200)
  const replaced = await server.admin.sources.rotate(source.id, { what: 'token' })
  assert.notEqual(replaced.token, source.token)
  assert.equal((await source.post({ inbound_event_id: 'a', event_type: 'x', payload: {} })).status, 200)
})
