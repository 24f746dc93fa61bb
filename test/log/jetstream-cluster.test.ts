import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { leaveStreams } from '../../src/log/jetstream/leave.ts'
import { openJetStreamLog } from '../../src/log/jetstream/log.ts'
import { connectTo } from '../../src/log/jetstream/nats.ts'
import { startNatsCluster } from '../../torture/deployment/nats-cluster.ts'
import { randomFrom } from '../../torture/random.ts'
import { eventually } from '../eventually.ts'
import { withoutNats } from '../nats.ts'
import { anAppend, bodies, readAll } from './entries.ts'
import { openTestLog } from './open.ts'
import { natsSettings } from './open-jetstream.ts'

test('positions are not reset by a server without quorum, but are once it has a majority', {
  skip: withoutNats,
}, async t => {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-nats-'))
  const cluster = await startNatsCluster(directory, { count: 3, random: randomFrom('cluster') })
  const postgres = await openTestLog()
  t.after(async () => {
    // A frozen server does not exit.
    await cluster.heal()
    await cluster.stop()
    await postgres.close()
    await rm(directory, { recursive: true, force: true })
  })
  const { pool } = postgres
  const servers = cluster.url.split(',').map(url => new URL(url).host)
  const settingsOn = (hosts: string[]) => {
    const settings = natsSettings(cluster.url.split(',')[0]!)
    return { ...settings, access: { ...settings.access, servers: hosts } }
  }
  const openOn = (hosts: string[]) =>
    openJetStreamLog({ pool, settings: settingsOn(hosts), postgres: postgres.log, name: 'test' })

  const log = openOn(servers)
  await eventually('the cluster to make the stream', () => started(log))
  await log.append([anAppend({ kind: 'events', body: 'read' })])
  assert.deepEqual(bodies(await readAll(log, pool)), ['read'])
  await log.close()

  const { connection, manager } = await connectTo(settingsOn(servers).access, 'test')
  const leader = (await manager.streams.info('kontor')).cluster!.leader!
  await connection.close()
  const index = Number(leader.split('-')[1])
  for (const [i, server] of cluster.servers.entries()) if (i !== index) server.freeze()
  // As if the others had received a thousand more messages that this server lacks.
  await pool.query(`update jetstream_cursors set seq = 1000 where stream = 'kontor'`)
  // Without the others, it does not confirm that everything is read.
  const elsewhere = { ...settingsOn([servers[index]!]), stream: 'elsewhere' }
  await assert.rejects(leaveStreams(pool, elsewhere), /do not confirm that everything is read/)
  const alone = openOn([servers[index]!])
  await assert.rejects(alone.outside.start(3_000))
  await alone.close()
  const positions = await pool.query<{ seq: number }>(`select distinct seq from jetstream_cursors`)
  assert.deepEqual(positions.rows, [{ seq: 1000 }])

  await cluster.heal()
  const again = openOn(servers)
  await eventually('the cluster to answer', () => started(again))
  await eventually('the cluster to take it', () =>
    again.append([anAppend({ kind: 'events', body: 'after' })]).then(
      () => true,
      () => false,
    ),
  )
  const everywhere = { ...settingsOn(servers), stream: 'elsewhere' }
  const leaving = () => leaveStreams(pool, everywhere).then(() => 'left', String)
  await eventually('its number to be reported', async () => /contains \d+ unprocessed entr/.test(await leaving()))
  assert.ok(bodies(await readAll(again, pool)).includes('after'))
  await again.close()
  await eventually('all to be confirmed as read', async () => (await leaving()) === 'left')
  assert.equal((await pool.query('select from jetstream_streams where left_at is null')).rowCount, 0)
})

function started(log: ReturnType<typeof openJetStreamLog>): Promise<boolean> {
  return log.outside.start(5_000).then(
    () => true,
    () => false,
  )
}
