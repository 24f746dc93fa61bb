import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { openConnection, ownerReader } from '../../src/log/jetstream/connection.ts'
import { streamsSeen } from '../../src/log/jetstream/known-streams.ts'
import { leaveStreams } from '../../src/log/jetstream/leave.ts'
import { openJetStreamLog } from '../../src/log/jetstream/log.ts'
import { connectTo, type NatsSettings } from '../../src/log/jetstream/nats.ts'
import { compareVersions, ensureStream } from '../../src/log/jetstream/stream.ts'
import { LogRefused, LogUnavailable } from '../../src/log/log.ts'
import { eventually } from '../eventually.ts'
import { testNats, withoutNats } from '../nats.ts'
import { bodies, readAll } from './entries.ts'
import { openTestLog } from './open.ts'
import { anEvent, natsSettings, useStreams } from './open-jetstream.ts'

describe('moving a stream between servers and databases', { skip: withoutNats }, () => {
  const streams = useStreams('moves')
  const { access, createSettings, opened, manage } = streams

  test('older entries of the PostgreSQL log are read before newer entries in NATS', async () => {
    const log = await opened(createSettings())
    await streams.postgres.log.append([anEvent('1'), anEvent('2')])
    await log.append([anEvent('3')])
    assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), ['1', '2', '3'])
    await log.close()
  })

  test('a start without NATS is refused while the stream has unread entries, with their number', async () => {
    const settings = createSettings()
    const log = await opened(settings)
    await log.append([anEvent('a'), anEvent('b'), anEvent('c')])
    await log.close()
    // NATS cannot be queried without credentials: the last known number counts.
    await assert.rejects(
      leaveStreams(streams.postgres.pool, null),
      /3 when it was last seen.*kontor start --surfaces worker/s,
    )
    const other = createSettings()
    await assert.rejects(leaveStreams(streams.postgres.pool, other), /contains 3 unprocessed entries/)
    const again = await opened(settings)
    assert.equal((await readAll(again, streams.postgres.pool)).length, 3)
    await again.close()
    await leaveStreams(streams.postgres.pool, null)
  })

  test('switching to NATS, back and to NATS again reads every entry exactly once', async () => {
    const settings = createSettings()
    for (const round of ['1', '2', '3']) {
      const log = await opened(settings)
      await log.append([anEvent(`a${round}`), anEvent(`b${round}`)])
      assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), [`a${round}`, `b${round}`])
      await log.close()
      await leaveStreams(streams.postgres.pool, null)
    }
  })

  test('a stream with other writers cannot be left, and after a writer was killed its unread entries are counted', async () => {
    const settings = createSettings()
    const log = await opened(settings)
    await log.append([anEvent('a')])
    for (const other of [null, createSettings()])
      await assert.rejects(leaveStreams(streams.postgres.pool, other), /Another node .+ last seen \d+ s ago/)
    await assert.rejects(opened(createSettings()), /Another node/)
    assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), ['a'])
    // As if the writer had been killed after it acknowledged another entry.
    await log.append([anEvent('b')])
    const killed = () =>
      streams.postgres.pool.query(`update jetstream_writers set seen_at = now() - interval '31 seconds'`)
    await killed()
    await assert.rejects(leaveStreams(streams.postgres.pool, createSettings()), /contains 1 unprocessed entry/)
    assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), ['b'])
    await killed()
    await leaveStreams(streams.postgres.pool, createSettings())
    // The writer is still alive and reads what it acknowledges. Once another one starts, Kontor queries NATS again.
    await log.append([anEvent('c')])
    await (await opened(settings)).close()
    await killed()
    await assert.rejects(leaveStreams(streams.postgres.pool, createSettings()), /contains 1 unprocessed entry/)
    assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), ['c'])
    await log.close()
    await leaveStreams(streams.postgres.pool, null)
  })

  test('a stream of the same name at other servers is refused while the first has writers, and their positions stay', async t => {
    const settings = createSettings()
    const log = await opened(settings)
    await log.append([anEvent('a')])
    assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), ['a'])
    const elsewhere = await testNats()
    t.after(elsewhere.end)
    await eventually('it to say which stream it has found', async () => {
      const said = await streams.postgres.pool.query('select from jetstream_writers where created is not null')
      return said.rowCount === 1
    })
    await assert.rejects(opened(natsSettings(elsewhere.url, { stream: settings.stream })), /is not the one/)
    await log.append([anEvent('b')])
    await log.close()
    const other = natsSettings(elsewhere.url, { stream: settings.stream })
    // There are no writers any more, but unread entries would be lost, whatever the new stream's name.
    await assert.rejects(opened(other), /which contained one unprocessed entry/)
    await assert.rejects(leaveStreams(streams.postgres.pool, { ...other, stream: 'x' }), /1 when it was last seen/)
    const again = await opened(settings)
    assert.deepEqual(bodies(await readAll(again, streams.postgres.pool)), ['b'])
    await again.close()
    // After moving there and back, processed entries are not read again.
    const moved = await opened(other)
    await moved.append([anEvent('c')])
    assert.deepEqual(bodies(await readAll(moved, streams.postgres.pool)), ['c'])
    await moved.close()
    const back = await opened(settings)
    await back.append([anEvent('d')])
    assert.deepEqual(bodies(await readAll(back, streams.postgres.pool)), ['d'])
    await back.close()
  })

  describe('with two databases', () => {
    /** The same installation in another database, as after loading a dump. */
    let copy: Awaited<ReturnType<typeof openTestLog>>
    before(async () => {
      copy = await openTestLog()
      const { rows } = await streams.postgres.pool.query('select id from installation')
      await copy.pool.query('update installation set id = $1', [rows[0].id])
    })
    after(() => copy.close())
    const BELONGS = /belongs to another database.+KONTOR_NATS_STREAM.+KONTOR_NATS_TAKE_OVER=true/

    test('a stream belongs to one database: the other is refused until it takes over, then the first is, and nothing is purged', async () => {
      const settings = createSettings()
      const original = await opened(settings)
      await original.append([anEvent('read')])
      await readAll(original, streams.postgres.pool)
      await assert.rejects(opened({ ...settings, maxBytes: 2 ** 20 }, { database: copy }), BELONGS)
      await original.append([anEvent('unread')])
      const successor = await opened({ ...settings, takesOver: true }, { database: copy })
      await assert.rejects(original.outside.forgetRead(), BELONGS)
      await eventually('the first to be refused', async () => {
        await original.outside.upkeep().catch(() => {})
        const appended = await original.append([anEvent('unread')]).catch((error: Error) => error.message)
        return typeof appended === 'string' && BELONGS.test(appended)
      })
      assert.deepEqual(await readAll(original, streams.postgres.pool), [])
      assert.deepEqual([...new Set(bodies(await readAll(successor, copy.pool)))], ['read', 'unread'])
      await original.close()
      // The stream's content no longer belongs to the first database.
      const notes = await leaveStreams(streams.postgres.pool, createSettings())
      assert.match(notes.join(), /belongs to another database: its entries are not processed here/)
      await successor.close()
      await assert.rejects(opened(settings), BELONGS)
      // It has written nothing, so NATS is not queried, which would need credentials.
      await leaveStreams(streams.postgres.pool, null)
      await (await opened(settings, { database: copy })).close()
    })

    test('a database that is replaced while in use keeps its stream', async () => {
      const settings = createSettings()
      const log = await opened(settings, { database: copy })
      const ownerNow = () =>
        manage(async manager => (await manager.streams.info(settings.stream)).config.metadata!.kontor_owner)
      const before = await ownerNow()
      await log.append([anEvent('before')])
      await copy.pool.query('update installation set id = gen_random_uuid()')
      await eventually('the stream to belong to the new one', async () => {
        await log.outside.upkeep()
        return (await ownerNow()) !== before
      })
      await log.append([anEvent('after')])
      assert.deepEqual(bodies(await readAll(log, copy.pool)), ['before', 'after'])
      await (await opened(settings, { database: copy })).close()
      await log.close()
    })

    test('a stream of an earlier version has no owner: if two databases claim it at the same time, one gets it', async () => {
      const settings = createSettings()
      await (await opened(settings)).close()
      await manage(async manager => {
        const { config } = await manager.streams.info(settings.stream)
        const { kontor_owner: _, ...metadata } = config.metadata!
        await manager.streams.update(settings.stream, { ...config, metadata })
      })
      const both = await Promise.allSettled([opened(settings), opened(settings, { database: copy })])
      assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
      for (const result of both) if (result.status === 'fulfilled') await result.value.close()
    })
  })

  test('the durability promise covers only what is known about NATS', async () => {
    const promise = async (given: Partial<NatsSettings>) => {
      const log = await opened(createSettings(given))
      const status = await log.outside.status()
      await log.close()
      return status.promise
    }
    assert.equal(await promise({}), 'process-crash only')
    assert.equal(await promise({ isSynced: true }), 'synced')
    assert.equal(await promise({ systemAccess: access('sys') }), 'synced')
    // Neither user prevents events from being accepted.
    for (const user of ['app', 'unknown']) {
      const warnings: string[] = []
      const log = await opened(createSettings({ systemAccess: access(user) }), { warnings })
      assert.equal(log.outside.promise(), 'process-crash only')
      await log.close()
      assert.deepEqual(warnings, ['cannot find out whether NATS syncs; acknowledged means process-crash only'])
    }
    assert.ok(compareVersions('2.9.10', '2.10.27') < 0)
    assert.ok(compareVersions('2.10.27', '2.10.27') === 0)
    assert.ok(compareVersions('2.11.0-RC.1', '2.10.27') > 0)
  })

  test('a different number of partitions is reported, and the stream keeps its own', async () => {
    const settings = createSettings()
    assert.equal((await (await opened(settings)).outside.status()).differs, null)
    const log = await opened({ ...settings, partitions: 2 })
    const { partitions, differs } = await log.outside.status()
    assert.deepEqual(
      [partitions, differs?.split('. ')[0]],
      [
        settings.partitions,
        `KONTOR_NATS_PARTITIONS is 2, but the stream ${settings.stream} was created with ${settings.partitions} and keeps them`,
      ],
    )
    const [seen] = (await streamsSeen(streams.postgres.pool)).filter(({ name }) => name === settings.stream)
    assert.deepEqual([seen!.unread, seen!.writers.length, seen!.leftAt], [0, 2, null])
    await streams.close()
  })

  test('a stream with weaker settings or of another program is refused with a reason', async () => {
    const settings = createSettings()
    await (await opened(settings)).close()
    await manage(async manager => {
      const { config } = await manager.streams.info(settings.stream)
      await manager.streams.update(settings.stream, { ...config, discard: 'old' })
    })
    await assert.rejects(opened(settings), /discards old messages/)
    const foreign = createSettings()
    await manage(manager => manager.streams.add({ name: foreign.stream, subjects: [`${foreign.stream}.x`] }))
    await assert.rejects(opened(foreign), /did not create it/)
  })

  const edits: [object, RegExp][] = [
    [{ max_msgs_per_subject: 3 }, /drops all but the newest 3 messages of a subject.+--max-msgs-per-subject=-1/],
    [{ max_msgs: 5 }, /is limited to 5 messages.+--max-msgs=-1/],
    [{ max_msg_size: 1_000 }, /is limited to messages of 1000 bytes.+--max-msg-size=-1/],
    [
      { max_age: 120e9 },
      /drops its messages after 120 s, not after 86400 s \(KONTOR_LOG_RETENTION\).+--max-age=86400s/,
    ],
    [{ max_age: 0 }, /keeps its messages for ever, not after 86400 s.+--max-age=86400s/],
    [{ duplicate_window: 1e9 }, /recognizes repeated messages for 1 s only.+--dupe-window=120s/],
  ]
  test('a stream that was edited by hand is refused at start, and while running until it is corrected', async () => {
    const settings = createSettings()
    const said: string[] = []
    const log = await opened(settings, { warnings: said })
    await log.append([anEvent('before')])
    const { config } = await manage(manager => manager.streams.info(settings.stream))
    for (const [edit, words] of edits) {
      await manage(manager => manager.streams.update(settings.stream, { ...config, ...edit }))
      await assert.rejects(opened(settings), words)
      const refused = async () => {
        await log.outside.upkeep()
        return log.append([anEvent('during')]).then(
          () => null,
          (error: Error) => error,
        )
      }
      await eventually('it to be refused', async () => words.test((await refused())?.message ?? ''))
      assert.match((await log.outside.status()).refused!, words)
      // What was accepted is still read.
      await readAll(log, streams.postgres.pool)
      await manage(manager => manager.streams.update(settings.stream, config))
      await eventually('it to be accepted again', async () => (await refused()) === null)
    }
    assert.equal(said.filter(message => /stream is refused/.test(message)).length, edits.length)
    // A setting that changes is not an edit by hand.
    await (await opened({ ...settings, maxAgeMs: 3_600_000 })).close()
    await log.close()
  })

  test('an account or a server with less storage than the settings need is refused with a reason', async t => {
    const small = await testNats({
      settings: `accounts {
        APP { jetstream: { max_file: 10MB }, users: [{ user: app, password: app-password }] }
      }`,
    })
    t.after(small.end)
    const settings = natsSettings(small.url, { access: { ...access('app'), servers: [new URL(small.url).host] } })
    await assert.rejects(opened(settings), /less space than KONTOR_NATS_MAX_BYTES \(268435456 bytes\).+max_file_store/)
    // The stream exists, and the setting or the account has changed since.
    const log = await opened({ ...settings, maxBytes: 8_000_000 })
    await log.close()
    await small.reload(`accounts {
        APP { jetstream: { max_file: 4MB }, users: [{ user: app, password: app-password }] }
      }`)
    const refused = () =>
      opened({ ...settings, maxBytes: 8_000_000 }).then(
        async log => log.close().then(() => ''),
        (error: Error) => error.message,
      )
    const words = /account is limited to 4\d+ bytes, and KONTOR_NATS_MAX_BYTES requires 8000000/
    await eventually('NATS to have the new limit', async () => words.test(await refused()))
  })

  test('a server older than 2.10.27 is always refused', async t => {
    const sockets = new Set<Socket>()
    const old = createServer(socket => {
      sockets.add(socket)
      socket.write(
        `INFO {"server_id":"old","version":"2.10.26","headers":true,"jetstream":true,"max_payload":1048576}\r\n`,
      )
      socket.on('data', data => data.includes('PING') && socket.write('PONG\r\n')).on('error', () => {})
    })
    await new Promise<void>(resolve => old.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      for (const socket of sockets) socket.destroy()
      old.close()
    })
    const { port } = old.address() as AddressInfo
    await assert.rejects(
      opened(natsSettings(`nats://127.0.0.1:${port}`, { isSynced: true })),
      /The NATS server is 2\.10\.26, and Kontor needs 2\.10\.27 or newer/,
    )
  })

  test('an error that only the operator can fix is reported immediately with a reason, and does not fail the lag query', async () => {
    const refusals: [Partial<NatsSettings['access']>, RegExp][] = [
      [access('unknown'), /does not accept these credentials.*NATS_URL/],
      [{ user: null, password: null }, /requires credentials: set them in NATS_URL/],
      [access('plain'), /account of this NATS user has no JetStream/],
      [{ tls: true }, /does not support TLS.*write nats:/],
      [{ credentialsFile: '/nowhere' }, /file \/nowhere does not exist: set NATS_CREDS/],
    ]
    for (const [given, words] of refusals) {
      const settings = createSettings({ access: { ...access('app'), ...given } })
      await assert.rejects(opened(settings), error => error instanceof LogRefused && words.test(error.message))
    }
    const settings = createSettings({ access: access('unknown') })
    const log = openJetStreamLog({
      ...{ pool: streams.postgres.pool, settings, postgres: streams.postgres.log, name: 'test' },
    })
    assert.ok((await log.lag()).every(({ partition }) => partition.startsWith('postgres/')))
    assert.match((await log.outside.status()).refused!, /does not accept/)
    await log.close()
  })

  test('an outage is logged once, and so is the recovery', async () => {
    const alone = await testNats()
    const said: string[] = []
    const logger = {
      error: () => assert.fail(),
      warn: (_: object, message: string) => said.push(message),
      info: (_: object, message: string) => said.push(message),
    }
    const connection = openConnection(natsSettings(alone.url), {
      name: 'test',
      owner: ownerReader(streams.postgres.pool),
      logger,
    })
    await alone.stop()
    // Several attempts, half a second apart.
    await assert.rejects(connection.waitReadable(1_200), LogUnavailable)
    await alone.start()
    await connection.waitReadable()
    assert.deepEqual(said, ['NATS is unreachable', 'NATS has recovered'])
    await connection.close()
    await alone.end()
  })

  test('a deleted stream is created again and read from its beginning', async () => {
    const settings = createSettings()
    const log = await opened(settings)
    await log.append([anEvent('before'), anEvent('gone')])
    await readAll(log, streams.postgres.pool)
    await manage(manager => manager.streams.delete(settings.stream))
    await eventually('the stream to be there again', async () => {
      return log.append([anEvent('after')]).then(
        () => true,
        () => false,
      )
    })
    assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), ['after'])
    await log.close()
  })

  test('a connection lost during the stream lookup is reported with a reason', async () => {
    const alone = await testNats()
    const settings = natsSettings(alone.url)
    const connected = await connectTo(settings.access, 'test')
    await alone.end()
    await eventually('the client to notice', async () => connected.connection.info === undefined)
    await assert.rejects(ensureStream(connected, settings, { owner: 'test', formerOwner: null }), LogUnavailable)
    await connected.connection.close()
  })

  test('an entry whose parts were deleted after it was read causes no warning at the next start', async () => {
    const settings = createSettings()
    const log = await opened(settings)
    await log.append([anEvent(randomBytes(1_200_000).toString('base64'))])
    await readAll(log, streams.postgres.pool)
    await log.append([anEvent('behind it')])
    assert.equal((await readAll(log, streams.postgres.pool)).length, 1)
    await log.close()
    await manage(manager => manager.streams.purge(settings.stream, { filter: `${settings.stream}.log.*.part.>` }))
    const warnings: string[] = []
    const again = await opened(settings, { warnings })
    await again.append([anEvent('after')])
    assert.deepEqual(bodies(await readAll(again, streams.postgres.pool)), ['after'])
    await again.close()
    assert.deepEqual(warnings, [])
  })

  test('many messages of other publishers are reported once, not one by one', async () => {
    const settings = createSettings()
    const said: string[] = []
    const log = await opened(settings, { warnings: said })
    const { connection, js } = await connectTo(access('app'), 'test')
    for (const body of ['a', 'b', 'c']) {
      await js.publish(`${settings.stream}.log.0`, body)
      await log.append([anEvent(body)])
      assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), [body])
    }
    await connection.close()
    await log.close()
    assert.deepEqual(said, [`message 1 of ${settings.stream}.log.0 is not from Kontor and is skipped`])
  })

  test('a repeated publish adds nothing twice', async () => {
    const settings = createSettings()
    const log = await opened(settings)
    const event = anEvent('once')
    await Promise.all([log.append([event]), log.append([event])])
    assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), ['once'])
    await log.close()
  })

  test('a publish that NATS calls a duplicate of a missing message is not acknowledged', async () => {
    const settings = createSettings()
    const log = await opened(settings)
    const event = anEvent('gone')
    await log.append([event])
    const { connection, manager } = await connectTo(settings.access, 'test')
    await manager.streams.deleteMessage(settings.stream, 1)
    await connection.close()
    await assert.rejects(log.append([event]), LogUnavailable)
    await log.close()
  })
})
