// The company's own books, kept from its decisions and from nothing that it sends to anybody.
import { openAccounts, type Policy } from './accounts.ts'
import { attentionOf } from './attention.ts'
import { cashOf } from './cash.ts'
import type { Fact } from './model.ts'
import { seriesOf } from './series.ts'

export type Books = ReturnType<typeof keepBooks>

/** Amounts are minor units, instants seconds. A window is after its first instant, up to and with its second. */
export function keepBooks(facts: Fact[], policy: Policy = { pause: 'churn' }) {
  const accounts = openAccounts(facts, policy)
  const cash = cashOf(facts)
  return { ...accounts, ...cash, ...attentionOf(accounts, cash), ...seriesOf(accounts, cash) }
}
