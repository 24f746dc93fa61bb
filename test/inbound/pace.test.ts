import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPace } from '../../src/intake/pace.ts'

/** A clock that only `sleep` moves. */
function paced() {
  let at = 0
  const waits: number[] = []
  const pace = openPace({
    maxWaitingBytes: 1_000,
    now: () => at,
    sleep: async ms => {
      waits.push(ms)
    },
  })
  return {
    pace,
    waits,
    pass(ms: number) {
      at += ms
    },
  }
}

const limit = { events: 10, per_seconds: 60 }
const fast = { events: 1_000, per_seconds: 1 }

test('a source within its limit never waits', () => {
  const { pace } = paced()
  for (let i = 0; i < 100_000; i++) {
    assert.equal(pace.turn('a', limit, 1), null)
    pace.note('a', limit, 100, false)
  }
})

test('over its limit 300 requests are answered a second, or five times its limit if that is more', async () => {
  for (const [rate, perSecond] of [
    [limit, 300],
    [fast, 5_000],
  ] as const) {
    const { pace, waits } = paced()
    pace.note('a', rate, 1, true)
    for (let i = 0; i < 2 * perSecond; i++) await pace.turn('a', rate, 1)
    // A tenth of a second's worth came at once.
    assert.ok(Math.abs(waits.at(-1)! - 1_900) <= 4, String(waits.at(-1)))
    assert.equal(pace.turn('b', rate, 1), null, 'nobody else waits')
  }
})

test('ten events of a batch count like a request, and nobody waits for longer than five seconds', async () => {
  const { pace, waits } = paced()
  pace.note('a', limit, 3_301, true)
  await pace.turn('a', limit, 1)
  assert.equal(Math.round(waits.at(-1)!), 1_000)
  pace.note('a', limit, 1_000_000, true)
  await pace.turn('a', limit, 1)
  assert.equal(Math.round(waits.at(-1)!), 5_000)
})

test('it is forgotten two seconds after the last event over the limit', async () => {
  const { pace, pass } = paced()
  pace.note('a', limit, 30_000, true)
  pass(1_999)
  assert.notEqual(pace.turn('a', limit, 1), null)
  pass(2)
  assert.equal(pace.turn('a', limit, 1), null)
})

test('what waits is bounded in memory: more is turned away', async () => {
  const { pace } = paced()
  pace.note('a', limit, 30_000, true)
  const first = pace.turn('a', limit, 900)
  await assert.rejects(pace.turn('a', limit, 900)!, /waiting/)
  await first
  await pace.turn('a', limit, 900)
})
