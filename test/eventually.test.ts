import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from './eventually.ts'

test('a wait ends with the first answer', async () => {
  let looks = 0
  assert.equal(await eventually('the third look', () => (++looks === 3 ? looks : null)), 3)
  assert.equal(await eventually('nothing but an answer', async () => 0), 0)
})

test('a timeout reports what was waited for, and the last state', async () => {
  await assert.rejects(
    eventually('rain', () => false, { withinMs: 20, state: async () => ({ sky: 'blue' }) }),
    /waited 0\.02 s for rain; at the end: \{ sky: 'blue' \}/,
  )
})

test('an error while looking ends the wait', async () => {
  const broken = () => {
    throw new Error('no window')
  }
  await assert.rejects(eventually('rain', broken), /no window/)
})
