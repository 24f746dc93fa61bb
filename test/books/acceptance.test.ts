// Sends a company's history through both endpoints of its Stripe account, in any order. The reports of every month equal the
// company's own books, to the cent. Larger histories: node test/books/compare.ts --shape stripe-both --months 36 --shuffle 7
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { business } from './business.ts'
import { compareAll, sendHistory } from './comparison.ts'
import { keepBooks } from './ledger.ts'
import { SHAPES } from './shapes.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

test("events of two endpoints in any order give the company's own books", async () => {
  const shape = SHAPES['stripe-both']!
  const history = business({
    seed: 5,
    months: 3,
    accounts: 7,
    features: shape.features,
    currencies: ['EUR', 'JPY'],
  })
  await sendHistory(server, history, shape, { shuffled: 3 })
  const { differences, absent } = await compareAll(server, history, {
    books: keepBooks(history.facts),
    shape,
  })
  assert.deepEqual([differences, [...absent]], [[], []])
})
