import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coalesce } from '../../src/overload/coalesce.ts'
import { eventually } from '../eventually.ts'

/** Runs that end under the control of the test. */
function openRuns(options: { maxItems?: number; maxInFlight?: number; gatherMs?: number } = {}) {
  const open: { items: number[]; answer(): void; fail(): void }[] = []
  const { submit } = coalesce({
    run: (items: number[]) =>
      new Promise<string[]>((resolve, reject) => {
        open.push({
          items,
          answer: () => resolve(items.map(item => `result of ${item}`)),
          fail: () => reject(new Error('run failed')),
        })
      }),
    ...{ maxItems: 100, maxInFlight: 1, ...options },
  })
  return { submit, open }
}

const nextIteration = () => new Promise(resolve => setImmediate(resolve))

test('submissions of one event loop iteration, or during a run, share a run and get their results in order', async () => {
  const { submit, open } = openRuns()
  const first = [submit([1, 2]), submit([3])]
  await nextIteration()
  const second = [submit([4]), submit([5, 6])]
  await nextIteration()
  assert.deepEqual(
    open.map(({ items }) => items),
    [[1, 2, 3]],
  )
  open[0]!.answer()
  assert.deepEqual(await Promise.all(first), [['result of 1', 'result of 2'], ['result of 3']])
  await nextIteration()
  assert.deepEqual(open[1]!.items, [4, 5, 6])
  open[1]!.answer()
  assert.deepEqual(await Promise.all(second), [['result of 4'], ['result of 5', 'result of 6']])
})

test('a run has a maximum size, and several may be in progress', async () => {
  const { submit, open } = openRuns({ maxItems: 2, maxInFlight: 2 })
  const all = [1, 2, 3, 4, 5, 6].map(item => submit([item]))
  await nextIteration()
  await nextIteration()
  assert.deepEqual(
    open.map(({ items }) => items),
    [
      [1, 2],
      [3, 4],
    ],
  )
  for (const run of open) run.answer()
  await nextIteration()
  await nextIteration()
  open[2]!.answer()
  assert.deepEqual((await Promise.all(all)).flat().at(-1), 'result of 6')
})

test('a failed run fails its submissions, and the next one runs', async () => {
  const { submit, open } = openRuns()
  const failing = submit([1])
  await nextIteration()
  const next = submit([2])
  open[0]!.fail()
  await assert.rejects(failing, /run failed/)
  await nextIteration()
  open[1]!.answer()
  assert.deepEqual(await next, ['result of 2'])
})

test('after a shared run the next one gathers; a single submission does not wait', async () => {
  const { submit, open } = openRuns({ gatherMs: 2_000 })
  for (const item of [1, 2]) {
    const alone = submit([item])
    await nextIteration()
    open.at(-1)!.answer()
    await alone
  }
  assert.deepEqual(
    open.map(({ items }) => items),
    [[1], [2]],
  )
  const shared = Promise.all([submit([3]), submit([4])])
  await nextIteration()
  open[2]!.answer()
  await shared
  const first = submit([5])
  await nextIteration()
  const second = submit([6])
  await nextIteration()
  assert.equal(open.length, 3)
  await eventually('the gathered run', () => open.length === 4)
  open[3]!.answer()
  assert.deepEqual(await Promise.all([first, second]), [['result of 5'], ['result of 6']])
})
