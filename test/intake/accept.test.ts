import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAccept as open } from '../../src/intake/accept.ts'
import type { Append, Appended } from '../../src/log/log.ts'
import { POSTGRES_FLUSHES } from '../../src/log/postgres/log.ts'
import { Overloaded } from '../../src/overload/limits.ts'
import { anAppend } from '../log/entries.ts'

const MEBIBYTE = 1_048_576

const openAccept = (options: Omit<Parameters<typeof open>[0], 'groupOf'>) =>
  open({ groupOf: () => POSTGRES_FLUSHES, ...options })

/** A log whose appends end under the control of the test. */
function heldLog() {
  const flushes: { batch: Append[]; succeed(): void; fail(error: Error): void }[] = []
  const append = (batch: Append[]) =>
    new Promise<Appended[]>((resolve, reject) => {
      flushes.push({
        batch,
        succeed: () => resolve(batch.map(() => ({ duplicateOf: null }))),
        fail: reject,
      })
    })
  return { append, flushes }
}

const numbered = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => anAppend({ body: String(from + i) }))

const bodiesOf = (batch: Append[]) => batch.map(({ entry }) => entry.body)

/** Lets everything that is ready run. */
const turn = () => new Promise<void>(resolve => setImmediate(() => setImmediate(resolve)))

test('a single request is flushed immediately', async () => {
  const { append, flushes } = heldLog()
  const { accept } = openAccept({ append, maxPendingBytes: MEBIBYTE })
  const accepted = accept(numbered(0, 1))
  await turn()
  assert.equal(flushes.length, 1)
  flushes[0]!.succeed()
  assert.deepEqual(await accepted, [{ duplicateOf: null }])
})

test('accept resolves after the append, not before', async () => {
  const { append, flushes } = heldLog()
  const { accept } = openAccept({ append, maxPendingBytes: MEBIBYTE })
  let answered = false
  const accepted = accept(numbered(0, 1)).then(() => {
    answered = true
  })
  await turn()
  assert.equal(answered, false)
  flushes[0]!.succeed()
  await accepted
})

test('requests of one event loop iteration share a flush, and so do waiting requests, in order', async () => {
  const { append, flushes } = heldLog()
  const { accept } = openAccept({ append, maxPendingBytes: MEBIBYTE })
  const all = [accept(numbered(0, 1)), accept(numbered(1, 2))]
  await turn()
  all.push(accept(numbered(3, 1)))
  await turn()
  // Two flushes are in progress: all further requests wait.
  for (let i = 0; i < 50; i++) all.push(accept(numbered(4 + i * 2, 2)))
  await turn()
  assert.deepEqual(
    flushes.map(({ batch }) => bodiesOf(batch)),
    [['0', '1', '2'], ['3']],
  )
  flushes[1]!.succeed()
  await turn()
  assert.equal(flushes.length, 3)
  assert.deepEqual(
    bodiesOf(flushes[2]!.batch),
    Array.from({ length: 100 }, (_, i) => String(4 + i)),
  )
  flushes[0]!.succeed()
  flushes[2]!.succeed()
  assert.equal((await Promise.all(all)).length, 53)
})

test('each request gets the results of its own entries', async () => {
  const { accept } = openAccept({
    maxPendingBytes: MEBIBYTE,
    append: async batch =>
      batch.map(({ entry }) => ({
        duplicateOf: {
          operationId: entry.body,
          bodyHash: Buffer.alloc(0),
          entityType: 'order',
          recordId: null,
        },
      })),
  })
  const answers = await Promise.all([accept(numbered(0, 2)), accept(numbered(2, 1)), accept(numbered(3, 3))])
  assert.deepEqual(
    answers.map(answer => answer.map(({ duplicateOf }) => duplicateOf!.operationId)),
    [['0', '1'], ['2'], ['3', '4', '5']],
  )
})

test('a failed flush fails its own requests and no others', async () => {
  const { append, flushes } = heldLog()
  const { accept, pendingBytes } = openAccept({ append, maxPendingBytes: MEBIBYTE })
  const first = [accept(numbered(0, 1)), accept(numbered(1, 1))]
  await turn()
  const second = accept(numbered(2, 1))
  await turn()
  const third = accept(numbered(3, 1))
  flushes[0]!.fail(new Error('the disk is full'))
  for (const request of first) await assert.rejects(request, /the disk is full/)
  flushes[1]!.succeed()
  await second
  flushes[2]!.succeed()
  await third
  assert.equal(pendingBytes(), 0)
})

test('above the limit requests are rejected immediately, and accepted again below it', async () => {
  const { append, flushes } = heldLog()
  let shed = 0
  const { accept, pendingBytes } = openAccept({
    append,
    maxPendingBytes: MEBIBYTE,
    metrics: { flushed: () => {}, shed: () => shed++ },
  })
  const large = () => [anAppend({ body: 'x'.repeat(400_000) })]
  const taken = [accept(large()), accept(large())]
  await assert.rejects(accept(large()), Overloaded)
  assert.equal(shed, 1)
  assert.ok(pendingBytes() <= MEBIBYTE)
  await turn()
  for (const flush of flushes) flush.succeed()
  await Promise.all(taken)
  assert.equal(pendingBytes(), 0)
  const again = accept(large())
  await turn()
  flushes.at(-1)!.succeed()
  await again
})

test('a request larger than the limit is accepted if nothing else waits', async () => {
  const { accept } = openAccept({
    append: async batch => batch.map(() => ({ duplicateOf: null })),
    maxPendingBytes: 1_000,
  })
  assert.deepEqual(await accept([anAppend({ body: 'x'.repeat(5_000) })]), [{ duplicateOf: null }])
})

test('one flush is bounded in entries and in bytes', async () => {
  const { append, flushes } = heldLog()
  const { accept } = openAccept({ append, maxPendingBytes: 64 * MEBIBYTE })
  const all = [...numbered(0, 2_500).map(append => accept([append]))]
  for (let i = 0; i < 10; i++) all.push(accept([anAppend({ body: 'x'.repeat(MEBIBYTE) })]))
  let seen = 0
  while (seen < 2_510) {
    await turn()
    for (const { batch, succeed } of flushes.splice(0)) {
      seen += batch.length
      assert.ok(batch.length <= 1_000)
      assert.ok(bodiesOf(batch).join('').length <= 5 * MEBIBYTE)
      succeed()
    }
  }
  await Promise.all(all)
})

test('drained waits only for accepted requests', async () => {
  const { append, flushes } = heldLog()
  const { accept, drained } = openAccept({ append, maxPendingBytes: MEBIBYTE })
  await drained()
  const accepted = accept(numbered(0, 1))
  let isDrained = false
  const done = drained().then(() => {
    isDrained = true
  })
  await turn()
  assert.equal(isDrained, false)
  flushes[0]!.succeed()
  await done
  await accepted
})
