import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTime } from '../../src/runtime/clock.ts'

const START = Date.parse('2026-01-31T12:00:00Z')

test('an imprecise read of the time never turns it back, so that a later arrival stays the later one', () => {
  const step = fc.record({
    passedMs: fc.double({ min: 0, max: 20_000, noNaN: true }),
    errorMs: fc.integer({ min: -499, max: 499 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50 }), steps => {
      let monotonic = 0
      const time = createTime(START, () => monotonic)
      let last = START
      for (const { passedMs, errorMs } of steps) {
        monotonic += passedMs
        time.set(START + monotonic + errorMs, monotonic)
        for (let call = 0; call < 3; call++) {
          const now = time.now().getTime()
          assert.ok(now >= last, `${now} after ${last}`)
          last = now
        }
        assert.ok(Math.abs(last - (START + monotonic)) <= 1_001)
      }
    }),
  )
})

test('a small correction takes effect while time passes, a large one immediately', () => {
  let monotonic = 0
  const time = createTime(START, () => monotonic)
  const now = () => time.now().getTime() - START
  time.set(START - 450, 0)
  assert.equal(now(), 0)
  monotonic = 100
  assert.equal(now(), 10)
  monotonic = 1_000
  assert.equal(now(), 550)
  time.set(START - 3_600_000, 1_000)
  assert.equal(now(), -3_600_000)
})
