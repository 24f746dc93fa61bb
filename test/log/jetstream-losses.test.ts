import assert from 'node:assert/strict'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { openConnection, ownerReader } from '../../src/log/jetstream/connection.ts'
import { openPublisher } from '../../src/log/jetstream/log.ts'
import { choosePartition } from '../../src/log/log.ts'
import { eventually } from '../eventually.ts'
import { testNats, withoutNats } from '../nats.ts'
import { anAppend, bodies, readAll } from './entries.ts'
import { anEvent, natsSettings, useStreams } from './open-jetstream.ts'

describe('losses of NATS', { skip: withoutNats }, () => {
  const streams = useStreams('losses')
  const { createSettings, opened, manage } = streams

  test('unread entries lost with a purged or deleted stream are reported, read entries are not', async () => {
    const settings = createSettings()
    const said: string[] = []
    const log = await opened(settings, { warnings: said })
    const lost = async () => (await log.outside.status()).lost?.entries ?? 0
    await log.append([anEvent('read')])
    await log.outside.upkeep()
    await readAll(log, streams.postgres.pool)
    await log.outside.forgetRead()
    await log.lag()
    await log.outside.upkeep()
    assert.equal(await lost(), 0)
    await log.append([anEvent('1'), anEvent('2'), anEvent('3')])
    await log.lag()
    await log.outside.upkeep()
    await manage(manager => manager.streams.purge(settings.stream))
    await log.append([anEvent('after')])
    await log.lag()
    await log.outside.upkeep()
    assert.equal(await lost(), 3)
    assert.deepEqual(bodies(await readAll(log, streams.postgres.pool)), ['after'])
    // Entries counted in the seconds before a loss are not recorded.
    await streams.postgres.pool.query(`update jetstream_losses set noticed_at = noticed_at - interval '1 minute'`)
    await log.append([anEvent('4'), anEvent('5')])
    await log.lag()
    await log.outside.upkeep()
    await log.close()
    await manage(manager => manager.streams.delete(settings.stream))
    const again = await opened(settings, { warnings: said })
    assert.equal((await again.outside.status()).lost?.entries, 5)
    assert.equal(said.filter(message => /acknowledged entries were lost/.test(message)).length, 2)
    await again.close()
  })

  test('the number of lost entries is an upper bound: acknowledged entries that no one has counted yet are in it', async () => {
    const settings = createSettings()
    const said: string[] = []
    const log = await opened(settings, { warnings: said })
    const other = await opened(settings, { warnings: said })
    const send = async (own: typeof log, name: string, count: number) => {
      for (let i = 0; i < count; i++)
        await own.append([anAppend({ kind: 'events', body: `${name} ${i}`, orderingKey: `${i}` })])
    }
    await send(log, 'noted', 100)
    await log.lag()
    await log.outside.upkeep()
    await send(log, 'not noted', 40)
    await send(other, 'of another node', 30)
    // As a limit of three messages per subject does.
    await manage(async manager => {
      for (let partition = 0; partition < settings.partitions; partition++)
        await manager.streams.purge(settings.stream, { filter: `${settings.stream}.log.${partition}`, keep: 3 })
    })
    for (const own of [log, other]) {
      await own.lag()
      await own.outside.upkeep()
    }
    const left = 3 * settings.partitions
    const { entries } = (await log.outside.status()).lost!
    assert.ok(entries >= 170 - left && entries <= 170, `${entries}`)
    assert.equal((await readAll(log, streams.postgres.pool)).length, left)
    await log.close()
    await other.close()
  })

  test('entries of a node that finds a replaced stream late, after another node or after a kill, are counted', async t => {
    for (const isKilled of [false, true]) {
      const directory = await mkdtemp(join(tmpdir(), 'kontor-unrecorded-'))
      t.after(() => rm(directory, { recursive: true }))
      const settings = createSettings()
      const [first, late] = [await opened(settings), await opened(settings, { directory })]
      const lost = async () => (await first.outside.status()).lost?.entries ?? 0
      const isAccepted = (log: typeof first) =>
        log.append([anEvent('after')]).then(
          () => true,
          () => false,
        )
      await late.append([anEvent('1'), anEvent('2'), anEvent('3')])
      const file = join(directory, (await readdir(directory))[0]!)
      const count = await readFile(file)
      if (isKilled) await late.close()
      await manage(manager => manager.streams.delete(settings.stream))
      if (isKilled) await writeFile(file, count)
      await eventually('the stream to be created again', () => isAccepted(isKilled ? first : late))
      if (isKilled) await first.outside.upkeep()
      const again = isKilled ? await opened(settings, { directory }) : late
      // A node that is alive must have found the new stream before another one uses it: either may be the first.
      await eventually('the loss to be counted', async () => {
        for (const log of [first, again]) await log.outside.upkeep().catch(() => {})
        return (await lost()) > 0 && (await isAccepted(first)) && (await isAccepted(again))
      })
      const counted = await lost()
      // Entries that a node wrote before it found out that the stream is new may be in it.
      assert.ok(counted >= 3, `${counted}`)
      await Promise.all([first.close(), again.close()])
    }
  })

  test('entries that another node wrote after a loss do not reduce its number', async () => {
    const settings = createSettings({ partitions: 1 })
    const [log, other] = [await opened(settings), await opened(settings)]
    await log.append(Array.from({ length: 10 }, (_, i) => anEvent(`lost ${i}`)))
    await log.lag()
    await log.outside.upkeep()
    await manage(manager => manager.streams.purge(settings.stream))
    await other.append(Array.from({ length: 10 }, (_, i) => anEvent(`new ${i}`)))
    await other.close()
    await log.lag()
    await log.outside.upkeep()
    assert.ok((await log.outside.status()).lost!.entries >= 10)
    await log.close()
  })

  test('entries lost with an older copy of the store are counted, even if their numbers are used again', async t => {
    const alone = await testNats()
    t.after(alone.end)
    const settings = natsSettings(alone.url, { stream: 'rolled-back' })
    const [store, saved] = [join(alone.directory, 'jetstream'), join(alone.directory, 'saved')]
    const log = await opened(settings)
    await log.append([anEvent('kept')])
    await readAll(log, streams.postgres.pool)
    await alone.stop()
    await cp(store, saved, { recursive: true })
    await alone.start()
    await eventually('NATS to be back', () =>
      log.append([anEvent('lost 1')]).then(
        () => true,
        () => false,
      ),
    )
    for (let i = 2; i <= 5; i++) await log.append([anEvent(`lost ${i}`)])
    // Until the connection has found the stream again, there is nothing to note.
    await eventually('the unread entries to be noted', async () => {
      await log.lag()
      await log.outside.upkeep()
      const { rows } = await streams.postgres.pool.query(
        `select from jetstream_unread where stream = 'rolled-back' having sum(entries) = 5`,
      )
      return rows.length > 0
    })
    await alone.stop()
    await rm(store, { recursive: true })
    await cp(saved, store, { recursive: true })
    await alone.start()
    await eventually('NATS to be back', () =>
      log.append([anEvent('new 1')]).then(
        () => true,
        () => false,
      ),
    )
    for (let i = 2; i <= 7; i++) await log.append([anEvent(`new ${i}`)])
    const lost = await eventually('the loss to be found', async () => {
      await log.lag()
      await log.outside.upkeep()
      return (await log.outside.status()).lost
    })
    assert.equal(lost.entries, 5)
    assert.equal((await readAll(log, streams.postgres.pool)).length, 7)
    await log.close()
  })

  test('messages that reuse sequence numbers after a server lost unsynced messages are read', async () => {
    const settings = createSettings()
    const log = await opened(settings)
    await log.append([anEvent('read')])
    await readAll(log, streams.postgres.pool)
    await log.close()
    await streams.postgres.pool.query('update jetstream_cursors set seq = 1000 where stream = $1', [settings.stream])
    const again = await opened(settings)
    await again.append([anEvent('number 2 again')])
    assert.deepEqual(bodies(await readAll(again, streams.postgres.pool)), ['number 2 again'])
    await again.close()
  })

  test('after a server lost its newest messages, new messages are read even before a worker knows of the loss, and none twice', async t => {
    const alone = await testNats()
    t.after(alone.end)
    const settings = natsSettings(alone.url, { stream: 'tail' })
    const [store, saved] = [join(alone.directory, 'jetstream'), join(alone.directory, 'saved')]
    const partition = choosePartition(1, 'key', settings.partitions)
    const named = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`)
    const send = async (names: string[]) => {
      // A separate connection, because the publisher does not maintain positions.
      const connection = openConnection(settings, { name: 'test', owner: ownerReader(streams.postgres.pool) })
      const publisher = openPublisher(connection, settings.stream)
      for (const name of names) await publisher.publish(partition, [anEvent(name)])
      await connection.close()
    }
    const read = async () => {
      const log = await opened(settings)
      const entries = await readAll(log, streams.postgres.pool)
      await log.close()
      return bodies(entries)
    }
    const log = await opened(settings)
    await log.append([anAppend({ kind: 'events', body: 'of another key', orderingKey: 'another' })])
    await log.close()
    await send(named('kept', 3))
    assert.equal((await read()).length, 4)
    await alone.stop()
    await cp(store, saved, { recursive: true })
    await alone.start()
    await send(named('lost', 10))
    assert.deepEqual(await read(), named('lost', 10))
    for (const count of [5, 15, 7]) {
      await alone.stop()
      await rm(store, { recursive: true })
      await cp(saved, store, { recursive: true })
      await alone.start()
      await send(named('new', count))
      assert.deepEqual(await read(), named('new', count))
    }
  })
})
