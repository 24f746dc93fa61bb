import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import {
  type AdaptiveCapacity,
  measureProcessorShare,
  openAdaptiveCapacity,
  openFairQueue,
} from '../../src/overload/fair-queue.ts'

test('the capacity shrinks while threads wait for processors and grows back afterwards', () => {
  const { capacity, waitFor } = openMachine()
  assert.equal(countRunning(capacity), 24)
  waitFor(1_000, 0.9)
  assert.equal(countRunning(capacity), 24, 'a flood that leaves processors idle is not slowed down')
  waitFor(100, 0.6)
  assert.equal(countRunning(capacity), 4)
  waitFor(1_000, 0.9)
  assert.equal(countRunning(capacity), 24)
})

test('on the busiest machine every tenant has a running request', () => {
  const { capacity, waitFor } = openMachine()
  waitFor(1_000, 0.1)
  const queue = openFairQueue({ capacity, now: () => 0 })
  const started: string[] = []
  for (const tenant of ['a', 'b', 'c', 'd', 'e', 'a', 'b']) queue.enter(tenant, 12, () => started.push(tenant))
  assert.deepEqual(started, ['a', 'b', 'c', 'd', 'e'])
})

test('the processor share of a quiet hour does not change the capacity', () => {
  const { capacity, waitFor, pass } = openMachine()
  for (let i = 0; i < 5; i++) {
    waitFor(1, 0.1)
    pass(3_600_000)
  }
  assert.equal(capacity.current(), 24)
})

test('the capacity stays between 4 and 24', () => {
  const times = fc.array(fc.record({ share: fc.double({ min: 0, max: 1, noNaN: true }), ms: fc.nat(500) }))
  fc.assert(
    fc.property(times, times => {
      const { capacity, waitFor } = openMachine()
      for (const { share, ms } of times) {
        waitFor(ms, share)
        const current = capacity.current()
        assert.ok(current >= 4 && current <= 24, `${current}`)
      }
    }),
  )
})

test('the processor share distinguishes a thread that runs from one that waits', async () => {
  const share = measureProcessorShare()
  await inOneIteration(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200))
  const asleep = share()
  await inOneIteration(() => {
    const { user } = process.threadCpuUsage()
    while (process.threadCpuUsage().user - user < 200_000);
  })
  const awake = share()
  assert.ok(asleep < 0.5, `the thread did not run, but its share is ${asleep}`)
  assert.ok(awake > asleep, `${awake} is not more than ${asleep}`)
})

/** A manual clock, and a machine with a given processor share. */
function openMachine() {
  let at = 0
  let share = 1
  const capacity = openAdaptiveCapacity({ processorShare: () => share, now: () => at })
  return {
    capacity,
    pass(ms: number) {
      at += ms
    },
    /** Requests wait all the time. */
    waitFor(ms: number, given: number) {
      share = given
      for (const end = at + ms; at < end; at++) capacity.onWait()
    },
  }
}

/** How many requests of a flood and of a quiet tenant run at once. */
function countRunning(capacity: AdaptiveCapacity): number {
  const queue = openFairQueue({ capacity, now: () => 0 })
  queue.enter('quiet', 1, () => {})
  for (let i = 0; i < 40; i++) queue.enter('flood', 1, () => {})
  return queue.running()
}

function inOneIteration(work: () => void): Promise<void> {
  return new Promise(resolve => {
    setImmediate(() => {
      work()
      resolve()
    })
  })
}
