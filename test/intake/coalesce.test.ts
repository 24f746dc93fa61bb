import assert from 'node:assert/strict'
import { test } from 'node:test'
import { coalesce } from '../../src/intake/coalesce.ts'
import { eventually } from '../eventually.ts'

/** Questions that are answered when the test says so. */
function asked(options: { maxItems?: number; maxInFlight?: number; gatherMs?: number } = {}) {
  const open: { items: number[]; answer(): void; fail(): void }[] = []
  const { submit: ask } = coalesce({
    run: (items: number[]) =>
      new Promise<string[]>((resolve, reject) => {
        open.push({
          items,
          answer: () => resolve(items.map(item => `answer to ${item}`)),
          fail: () => reject(new Error('no answer')),
        })
      }),
    ...{ maxItems: 100, maxInFlight: 1, ...options },
  })
  return { ask, open }
}

const turn = () => new Promise(resolve => setImmediate(resolve))

test('what is asked in one turn, or while a question is under way, goes together and is answered in order', async () => {
  const { ask, open } = asked()
  const first = [ask([1, 2]), ask([3])]
  await turn()
  const second = [ask([4]), ask([5, 6])]
  await turn()
  assert.deepEqual(
    open.map(({ items }) => items),
    [[1, 2, 3]],
  )
  open[0]!.answer()
  assert.deepEqual(await Promise.all(first), [['answer to 1', 'answer to 2'], ['answer to 3']])
  await turn()
  assert.deepEqual(open[1]!.items, [4, 5, 6])
  open[1]!.answer()
  assert.deepEqual(await Promise.all(second), [['answer to 4'], ['answer to 5', 'answer to 6']])
})

test('a group has a size, and more than one may be under way', async () => {
  const { ask, open } = asked({ maxItems: 2, maxInFlight: 2 })
  const all = [1, 2, 3, 4, 5, 6].map(item => ask([item]))
  await turn()
  await turn()
  assert.deepEqual(
    open.map(({ items }) => items),
    [
      [1, 2],
      [3, 4],
    ],
  )
  for (const question of open) question.answer()
  await turn()
  await turn()
  open[2]!.answer()
  assert.deepEqual((await Promise.all(all)).flat().at(-1), 'answer to 6')
})

test('a failed question fails those who asked it, and the next is asked', async () => {
  const { ask, open } = asked()
  const failing = ask([1])
  await turn()
  const next = ask([2])
  open[0]!.fail()
  await assert.rejects(failing, /no answer/)
  await turn()
  open[1]!.answer()
  assert.deepEqual(await next, ['answer to 2'])
})

test('after a run that several shared, the next one gathers; whoever comes alone does not wait', async () => {
  const { ask, open } = asked({ gatherMs: 2_000 })
  for (const item of [1, 2]) {
    const alone = ask([item])
    await turn()
    open.at(-1)!.answer()
    await alone
  }
  assert.deepEqual(
    open.map(({ items }) => items),
    [[1], [2]],
  )
  const shared = Promise.all([ask([3]), ask([4])])
  await turn()
  open[2]!.answer()
  await shared
  const first = ask([5])
  await turn()
  const second = ask([6])
  await turn()
  assert.equal(open.length, 3)
  await eventually('the gathered run', () => open.length === 4)
  open[3]!.answer()
  assert.deepEqual(await Promise.all([first, second]), [['answer to 5'], ['answer to 6']])
})
