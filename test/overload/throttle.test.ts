import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openThrottle } from '../../src/overload/throttle.ts'

/** A manual clock; sleeps are recorded. */
function openTest() {
  let at = 0
  const waits: number[] = []
  const throttle = openThrottle({
    maxWaitingBytes: 1_000,
    now: () => at,
    sleep: async ms => {
      waits.push(ms)
    },
  })
  return {
    throttle,
    waits,
    pass(ms: number) {
      at += ms
    },
  }
}

const limit = { events: 10, per_seconds: 60 }
const fast = { events: 1_000, per_seconds: 1 }

test('a source within its limit never waits', () => {
  const { throttle } = openTest()
  for (let i = 0; i < 100_000; i++) {
    assert.equal(throttle.wait('a', limit, 1), null)
    throttle.record('a', limit, 100, false)
  }
})

test('over its limit, 300 requests per second are answered, or five times the limit if that is more', async () => {
  for (const [rate, perSecond] of [
    [limit, 300],
    [fast, 5_000],
  ] as const) {
    const { throttle, waits } = openTest()
    throttle.record('a', rate, 1, true)
    for (let i = 0; i < 2 * perSecond; i++) await throttle.wait('a', rate, 1)
    // A burst of a tenth of a second passed without waiting.
    assert.ok(Math.abs(waits.at(-1)! - 1_900) <= 4, String(waits.at(-1)))
    assert.equal(throttle.wait('b', rate, 1), null, 'other sources do not wait')
  }
})

test('ten events of a batch count like a request, and no request waits longer than five seconds', async () => {
  const { throttle, waits } = openTest()
  throttle.record('a', limit, 3_301, true)
  await throttle.wait('a', limit, 1)
  assert.equal(Math.round(waits.at(-1)!), 1_000)
  throttle.record('a', limit, 1_000_000, true)
  await throttle.wait('a', limit, 1)
  assert.equal(Math.round(waits.at(-1)!), 5_000)
})

test('throttling ends two seconds after the last event over the limit', async () => {
  const { throttle, pass } = openTest()
  throttle.record('a', limit, 30_000, true)
  pass(1_999)
  assert.notEqual(throttle.wait('a', limit, 1), null)
  pass(2)
  assert.equal(throttle.wait('a', limit, 1), null)
})

test('the memory of waiting requests is bounded; further requests are rejected', async () => {
  const { throttle } = openTest()
  throttle.record('a', limit, 30_000, true)
  const first = throttle.wait('a', limit, 900)
  await assert.rejects(throttle.wait('a', limit, 900)!, /waiting/)
  await first
  await throttle.wait('a', limit, 900)
})
