import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { kontor, startKontor, temporaryDirectory, useDatabase } from '../cli/kontor.ts'
import { startNode } from '../events/node.ts'
import { openWire } from '../events/wire.ts'
import { eventually } from '../eventually.ts'
import { testNats, withoutNats } from '../nats.ts'
import { startServer, TEST_SECRET_KEY } from '../server.ts'

const json = JSON.stringify
type Report = { findings: { code: string; what: string }[] }

describe('what a node on JetStream reports', { skip: withoutNats }, () => {
  async function open(t: TestContext, given: Record<string, string> = {}) {
    // The last one opened is closed first.
    const closers: (() => Promise<unknown>)[] = []
    t.after(async () => {
      for (const close of closers.reverse()) await close()
    })
    const nats = await testNats()
    closers.push(nats.end)
    const settings = { NATS_URL: nats.url, KONTOR_OPS_PORT: '0', ...given }
    const server = await startServer(settings)
    closers.push(server.close)
    const post = (url: string, path: string, key: string, body: object) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      return fetch(url + path, { method: 'POST', headers, body: json(body) })
    }
    const track = async (url: string, body: object) =>
      (await post(url, '/v1/track', server.tenant.trackingKey, body)).status
    return { nats, settings, server, post, track, onClose: (close: () => Promise<unknown>) => closers.push(close) }
  }
  const readiness = async (opsUrl: string | null) => {
    const response = await fetch(`${opsUrl}/readyz`)
    return { status: response.status, checks: ((await response.json()) as { checks: Record<string, string> }).checks }
  }

  test('doctor distinguishes a full stream from an absent NATS, and status shows the promise of the server', async t => {
    const { nats, server, settings, track } = await open(t, {
      ...{ KONTOR_SURFACES: 'events', KONTOR_NATS_MAX_BYTES: '1MiB', KONTOR_NATS_SYNCED: 'true' },
    })
    // Not synced: the settings of the command are not those of the server.
    useDatabase(server.databaseUrl, { NATS_URL: settings.NATS_URL, KONTOR_NATS_MAX_BYTES: '1MiB' })
    const codes = async () => {
      const { findings } = (await kontor('doctor', '--json')).json() as Report
      return findings.map(({ code }) => code).filter(code => /^nats_(away|full)$/.test(code))
    }
    assert.equal((await readiness(server.opsUrl)).status, 200)
    const { jetstream } = (await kontor('status')).json() as { jetstream: { promise: string } }
    assert.equal(jetstream.promise, 'synced')
    assert.deepEqual(await codes(), [])
    const fill = () => track(server.url, { event_type: 'x', data: { fill: randomBytes(36_000).toString('base64') } })
    await eventually('the stream to be full', async () => (await fill()) === 503)
    await eventually('doctor to report it', async () => {
      await fill()
      return (await codes()).includes('nats_full')
    })
    assert.deepEqual(await codes(), ['nats_full'])
    const full = await eventually('readiness to fail', async () => {
      await fill()
      const found = await readiness(server.opsUrl)
      return found.status === 503 && found
    })
    assert.match(full.checks.nats!, /the stream is full/)
    await nats.stop()
    await eventually('doctor to report that NATS is gone', async () => (await codes()).includes('nats_away'))
  })

  test('without PostgreSQL, a node that accepts events stays ready, and one that serves records does not', async t => {
    const { server, settings, track, onClose } = await open(t)
    const url = new URL(server.databaseUrl)
    const wire = await openWire({ host: url.hostname, port: Number(url.port) })
    onClose(wire.close)
    url.port = String(wire.port)
    const receiving = await startNode(server, 'events,inbound', url.href, settings)
    onClose(receiving.close)
    const serving = await startNode(server, 'data', url.href, settings)
    onClose(serving.close)
    assert.equal(await track(receiving.url, { event_type: 'x' }), 200)
    for (const outage of [wire.freeze, wire.cut]) {
      outage()
      const { status, checks } = await readiness(receiving.opsUrl)
      assert.deepEqual([status, /no response|terminated|refused|reset/i.test(checks.database!)], [200, true])
      assert.equal((await readiness(serving.opsUrl)).status, 503)
      assert.equal(await track(receiving.url, { event_type: 'x' }), 200)
    }
    wire.reconnect()
    await eventually('the other one to be ready', async () => (await readiness(serving.opsUrl)).status === 200)
  })

  test('after kill -9 and the loss of its store, the number of lost events is an upper bound', async t => {
    const { nats, settings, server, track, onClose } = await open(t, { KONTOR_SURFACES: 'data,console' })
    await server.stop()
    const data = await temporaryDirectory(t)
    const node = { ...settings, DATABASE_URL: server.databaseUrl, KONTOR_SECRET_KEY: TEST_SECRET_KEY }
    const start = (surfaces: string) =>
      startKontor(t, ['start', '--data', data], {
        ...{ ...node, KONTOR_SURFACES: surfaces, KONTOR_PORT: '0', KONTOR_OPS_PORT: 'off', KONTOR_LOG_FORMAT: 'json' },
      })
    const urlOf = (running: ReturnType<typeof startKontor>) =>
      eventually(
        'the node to listen',
        async () => /http:\/\/[\w.]+:\d+/.exec(running.out() + running.err())?.[0] ?? null,
        {
          state: () => running.out() + running.err(),
        },
      )
    const killed = start('events')
    const url = await urlOf(killed)
    const send = (name: string, count: number) =>
      Promise.all(Array.from({ length: count }, (_, i) => track(url, { event_type: name, event_id: `${name} ${i}` })))
    assert.deepEqual([...new Set(await send('noted', 30))], [200])
    await eventually('the node to record what is unread', async () => {
      const { rows } = await server.pool.query('select coalesce(sum(entries), 0)::int as n from jetstream_unread')
      return rows[0].n === 30
    })
    // Acknowledged just before the kill.
    const statuses = await send('not noted', 200)
    killed.child.kill('SIGKILL')
    await killed.ended
    assert.deepEqual([...new Set(statuses)], [200])
    await nats.stop()
    await rm(join(nats.directory, 'jetstream'), { recursive: true })
    await nats.start()
    await server.pool.query(`update jetstream_writers set seen_at = now() - interval '31 seconds'`)
    const next = start('events,worker')
    onClose(async () => {
      next.child.kill('SIGKILL')
      await next.ended
    })
    const lost = await eventually('the loss to be found', async () => {
      const { rows } = await server.pool.query('select coalesce(sum(entries), 0)::int as n from jetstream_losses')
      return rows[0].n > 0 && (rows[0].n as number)
    })
    assert.ok(lost >= 230 && lost <= 430, `${lost}`)
  })

  test('after kill -9 and the loss of its store, a start serves records and reads until the killed node counts as gone', async t => {
    const { nats, settings, server, post, track, onClose } = await open(t, { KONTOR_SURFACES: 'data,events' })
    for (let i = 0; i < 5; i++) assert.equal(await track(server.url, { event_type: 'lost', event_id: `l-${i}` }), 200)
    await eventually('the node to record what is unread', async () => {
      const { rows } = await server.pool.query('select sum(entries)::int as entries from jetstream_unread')
      return rows[0].entries === 5
    })
    // What a killed node leaves.
    const { rows } = await server.pool.query('select * from jetstream_writers')
    await server.stop()
    await server.pool.query(`insert into jetstream_writers (stream, process, name, created) values ($1, $2, $3, $4)`, [
      rows[0].stream,
      rows[0].process,
      rows[0].name,
      rows[0].created,
    ])
    await nats.stop()
    await rm(join(nats.directory, 'jetstream'), { recursive: true })
    await nats.start()

    const node = await startNode(server, '', undefined, { ...settings, KONTOR_SURFACES: 'data,events,worker' })
    onClose(node.close)
    const product = { entityType: 'product', id: 'p', sourceUpdatedAt: '2026-01-01T00:00:00Z', data: {} }
    const { privateKey } = server.tenant
    assert.equal((await post(node.url, '/v1/products', privateKey, product)).status, 202)
    assert.equal(await track(node.url, { event_type: 'too early' }), 503)
    await eventually('the record to be readable', async () => {
      const headers = { authorization: `Bearer ${privateKey}` }
      return (await fetch(`${node.url}/v1/products/p`, { headers })).status === 200
    })
    await server.pool.query(`update jetstream_writers set seen_at = now() - interval '31 seconds' where process = $1`, [
      rows[0].process,
    ])
    await eventually('events to be accepted', async () => (await track(node.url, { event_type: 'after' })) === 200)
    await eventually('them to be processed', async () => {
      const { rows } = await server.pool.query(`select from events where event_type = 'after'`)
      return rows.length > 0
    })
    const losses = await server.pool.query('select sum(entries)::int as entries from jetstream_losses')
    // An upper bound: the event that was accepted right after the loss may be counted, too.
    assert.ok([5, 6].includes(losses.rows[0].entries), losses.rows[0].entries)
  })
})

test('readiness fails while PostgreSQL answers and stores nothing, and recovers by itself', async t => {
  const server = await startServer({ KONTOR_OPS_PORT: '0' })
  t.after(server.close)
  const product = { entityType: 'product', id: 'p', sourceUpdatedAt: '2026-01-01T00:00:00Z', data: {} }
  const write = async () =>
    (await server.request('/v1/products', { method: 'POST', key: server.tenant.privateKey, body: json(product) }))
      .status
  const readiness = async () => (await fetch(`${server.opsUrl}/readyz`)).status
  assert.deepEqual([await write(), await readiness()], [202, 200])
  // As on a full disk.
  await server.pool.query(
    `create function full_disk() returns trigger language plpgsql as $$ begin
       raise exception 'could not extend file' using errcode = '53100';
     end $$;
     create trigger full_disk before insert on log for each row execute function full_disk()`,
  )
  assert.deepEqual([await write(), await readiness()], [503, 503])
  assert.equal(await readiness(), 503)
  await server.pool.query('drop trigger full_disk on log')
  assert.deepEqual([await readiness(), await write()], [200, 202])
  const { rows } = await server.pool.query('select from log where tenant_id = 0')
  assert.equal(rows.length, 0)
})
