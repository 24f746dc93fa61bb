import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Taken } from '../../src/log/log.ts'
import { eventually } from '../eventually.ts'
import { withoutNats } from '../nats.ts'
import { logContract } from './contract.ts'
import { anAppend, asReader, EVERYTHING, takeOnce } from './entries.ts'
import { openJetStreamTestLog } from './open-jetstream.ts'

logContract('JetStream', openJetStreamTestLog, { claims: true, kind: 'events', skip: withoutNats })

test('a transaction takes about one megabyte and leaves the rest to others', {
  skip: withoutNats,
}, async t => {
  const { log, pool, close } = await openJetStreamTestLog()
  t.after(close)
  const body = 'x'.repeat(100_000)
  const appends = Array.from({ length: 80 }, (_, i) => anAppend({ kind: 'events', orderingKey: `key-${i}`, body }))
  await log.append(appends)
  await asReader(pool, async client => {
    const mine = await eventually('something to do', async () => some(await log.take(client, EVERYTHING)))
    const bytes = mine.flatMap(({ entries }) => entries).length * body.length
    assert.ok(bytes <= 2_000_000, `${bytes} bytes in one transaction`)
    const others = await eventually('something for another one', async () => some(await takeOnce(log, pool)))
    const owned = new Set(mine.map(({ partition }) => partition))
    assert.ok(others.every(({ partition }) => !owned.has(partition)))
  })
})

function some(taken: Taken[]): Taken[] | null {
  return taken.length > 0 ? taken : null
}
