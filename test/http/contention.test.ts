import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { type Contention, openContention, openProcessorShare } from '../../src/http/contention.ts'
import { openTurns } from '../../src/http/turns.ts'

test('where threads wait for processors little is under way at once, and where they do not, more again', () => {
  const { contention, waitFor } = openMachine()
  assert.equal(underWayBesideOne(contention), 24)
  waitFor(1_000, 0.9)
  assert.equal(underWayBesideOne(contention), 24, 'a flood that takes nobody’s processor is not slowed')
  waitFor(100, 0.6)
  assert.equal(underWayBesideOne(contention), 4)
  waitFor(1_000, 0.9)
  assert.equal(underWayBesideOne(contention), 24)
})

test('however crowded it is, every tenant has something under way', () => {
  const { contention, waitFor } = openMachine()
  waitFor(1_000, 0.1)
  const turns = openTurns({ capacity: contention, now: () => 0 })
  const started: string[] = []
  for (const tenant of ['a', 'b', 'c', 'd', 'e', 'a', 'b']) turns.take(tenant, 12, () => started.push(tenant))
  assert.deepEqual(started, ['a', 'b', 'c', 'd', 'e'])
})

test('what a thread had of a processor in a quiet hour says nothing of now', () => {
  const { contention, waitFor, pass } = openMachine()
  for (let i = 0; i < 5; i++) {
    waitFor(1, 0.1)
    pass(3_600_000)
  }
  assert.equal(contention.capacity(), 24)
})

test('whatever the machine does, what is under way at once stays between four and two dozen', () => {
  const times = fc.array(fc.record({ share: fc.double({ min: 0, max: 1, noNaN: true }), ms: fc.nat(500) }))
  fc.assert(
    fc.property(times, times => {
      const { contention, waitFor } = openMachine()
      for (const { share, ms } of times) {
        waitFor(ms, share)
        const capacity = contention.capacity()
        assert.ok(capacity >= 4 && capacity <= 24, `${capacity}`)
      }
    }),
  )
})

test('a thread that has something to do and does not run is told from one that runs', async () => {
  const share = openProcessorShare()
  await inOneTurn(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200))
  const asleep = share()
  await inOneTurn(() => {
    const { user } = process.threadCpuUsage()
    while (process.threadCpuUsage().user - user < 200_000);
  })
  const awake = share()
  assert.ok(asleep < 0.5, `it had nothing of a processor, and ${asleep} is told`)
  assert.ok(awake > asleep, `${awake} is not more than ${asleep}`)
})

/** A clock that is moved by hand, and a machine that gives a thread what it is told to. */
function openMachine() {
  let at = 0
  let share = 1
  const contention = openContention({ processorShare: () => share, now: () => at })
  return {
    contention,
    pass(ms: number) {
      at += ms
    },
    /** Somebody waits, all of the time. */
    waitFor(ms: number, given: number) {
      share = given
      for (const end = at + ms; at < end; at++) contention.waits()
    },
  }
}

/** How much of a flood and of a request beside it is under way at once. */
function underWayBesideOne(contention: Contention): number {
  const turns = openTurns({ capacity: contention, now: () => 0 })
  turns.take('quiet', 1, () => {})
  for (let i = 0; i < 40; i++) turns.take('flood', 1, () => {})
  return turns.underWay()
}

function inOneTurn(work: () => void): Promise<void> {
  return new Promise(resolve => {
    setImmediate(() => {
      work()
      resolve()
    })
  })
}
