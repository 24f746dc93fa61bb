// The company's own books, derived from its decisions and not from what it sends.
import { openAccounts, type Policy } from './accounts.ts'
import { attentionOf } from './attention.ts'
import { cashOf } from './cash.ts'
import type { Fact } from './model.ts'
import { seriesOf } from './series.ts'

export type Books = ReturnType<typeof keepBooks>

/** Amounts are minor units, instants are seconds. A window excludes its start and includes its end. */
export function keepBooks(facts: Fact[], policy: Policy = { pause: 'churn' }) {
  const accounts = openAccounts(facts, policy)
  const cash = cashOf(facts)
  return { ...accounts, ...cash, ...attentionOf(accounts, cash), ...seriesOf(accounts, cash) }
}
