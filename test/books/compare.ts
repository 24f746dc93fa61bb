// node test/books/compare.ts --seed 1 --shape canonical [--months 12] [--accounts 40] [--shuffle 7] [--only customer] [--off features]
// Sends a history to a server and prints where its reports and the company's own books differ, by month and account.
import { parseArgs } from 'node:util'
import { startServer } from '../server.ts'
import { type Business, business } from './business.ts'
import { compareAll, customerOf, sendHistory } from './comparison.ts'
import { keepBooks } from './ledger.ts'
import { SHAPES, type Shape } from './shapes.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    shape: { type: 'string', default: 'canonical' },
    months: { type: 'string', default: '12' },
    accounts: { type: 'string', default: '40' },
    shuffle: { type: 'string' },
    /** Only the facts of one customer. */
    only: { type: 'string' },
    /** Disabled features. */
    off: { type: 'string', default: '' },
    json: { type: 'boolean', default: false },
  },
})
const shape: Shape | undefined = SHAPES[values.shape]
if (!shape) throw new Error(`--shape is one of ${Object.keys(SHAPES).join(', ')}`)

const off = Object.fromEntries(values.off.split(',').map(feature => [feature, false]))
const whole = business({
  seed: Number(values.seed),
  months: Number(values.months),
  accounts: Number(values.accounts),
  ...(shape.currencies && { currencies: shape.currencies }),
  features: { ...shape.features, ...off },
})
const history = values.only ? onlyOf(whole, values.only) : whole

const server = await startServer()
try {
  await sendHistory(server, history, shape, values.shuffle ? { shuffled: Number(values.shuffle) } : {})
  const books = keepBooks(history.facts)
  const { differences, absent } = await compareAll(server, history, { books, shape })
  for (const difference of differences) {
    const { as_of, currency, what, books: ours, report } = difference
    const words = `${as_of.slice(0, 10)} ${currency} ${what}: books ${text(ours)}, report ${text(report)}`
    console.log(values.json ? JSON.stringify(difference) : words)
  }
  for (const what of absent) console.log(`the reports have no ${what}`)
  console.log(`${history.facts.length} facts, ${differences.length} differences`)
  process.exitCode = differences.length > 0 ? 1 : 0
} finally {
  await server.close()
}

function onlyOf(business: Business, customer: string): Business {
  return { ...business, facts: business.facts.filter(fact => (customerOf(fact) ?? customer) === customer) }
}

function text(value: unknown): string {
  return JSON.stringify(value)
}
