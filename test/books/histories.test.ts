// More histories: node test/books/histories.ts --count 100000 --seed 1
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareHistory, compareRefunds, modelMrr, SHAPES } from './histories.ts'

const SEEDS = Array.from({ length: 1_000 }, (_, n) => 1_000_000 + n)

test('random histories with imports, discounts for some items, inclusive tax and closings give the MRR of the documented rules', () => {
  assert.deepEqual(
    SEEDS.flatMap(seed => compareHistory(seed)),
    [],
  )
})

test('an amount off that is split over items with equal remainders', () => {
  for (const seed of [40_799, 78_897])
    assert.deepEqual(
      SHAPES.flatMap(shape => compareHistory(seed, shape)),
      [],
    )
})

test('random refunds of a charge, in any order and incomplete, add up to at least its refunded total', () => {
  assert.deepEqual(SEEDS.flatMap(compareRefunds), [])
})

test('the model gives the examples of the guide', () => {
  const item = { id: 'i', product: 'a', minor: 1990, quantity: 3, unit: 'month', count: 1 } as const
  const discount = { id: 'd', percent: 10, minor: null, duration: 'repeating', end: 100, products: null } as const
  const state = { at: 0, status: 'active', items: [item], discounts: [discount], taxPercent: 0 }
  assert.deepEqual([modelMrr(state, 99), modelMrr(state, 100)], [5373, 5970])
  const taxed = { ...state, items: [{ ...item, minor: 11_900, quantity: 1 }], discounts: [], taxPercent: 19 }
  assert.equal(modelMrr(taxed, 0), 10_000)
  // an amount above the price of its item is not subtracted from others
  const amount = { ...discount, percent: null, minor: 20_000, end: null, duration: 'forever', products: ['b'] } as const
  const limited = { ...state, items: [item, { ...item, product: 'b' }], discounts: [{ ...amount, products: ['b'] }] }
  assert.equal(modelMrr(limited, 0), 5970)
})
