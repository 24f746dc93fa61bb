// A company's history told by both endpoints of its Stripe account, in any order: what reports say of every month is what its
// own books say, to the cent. Larger ones by hand: node test/books/compare.ts --shape stripe-both --months 36 --shuffle 7
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { business } from './business.ts'
import { compareAll, tell } from './comparison.ts'
import { keepBooks } from './ledger.ts'
import { SHAPES } from './shapes.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

test("two endpoints' events in any order come to the company's own books", async () => {
  const shape = SHAPES['stripe-both']!
  const history = business({
    seed: 5,
    months: 3,
    accounts: 7,
    features: shape.features,
    currencies: ['EUR', 'JPY'],
  })
  await tell(server, history, shape, { shuffled: 3 })
  const { differences, absent } = await compareAll(server, history, {
    books: keepBooks(history.facts),
    shape,
  })
  assert.deepEqual([differences, [...absent]], [[], []])
})
