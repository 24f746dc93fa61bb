import type { Db } from '../postgres/database.ts'
import { type CashFact, cashFacts } from '../store/reports/cash.ts'
import { type Cash, cashBetween } from '../store/reports/totals.ts'
import type { Narrowed } from './ledger.ts'
import { type ReportQuestion, sum } from './question.ts'

/** What was invoiced and collected in (since, asOf]: of what a filter leaves, fact by fact as it stood at its time. */
export async function cashSince(
  db: Db,
  question: ReportQuestion,
  since: Date,
  narrowed: Narrowed | null,
): Promise<Cash> {
  const { tenantId, currency, asOf, now } = question
  if (narrowed === null) {
    return cashBetween(db, tenantId, currency, { since, until: asOf, fromSums: asOf >= now })
  }
  // instants are whole milliseconds
  const window = { since: new Date(since.getTime() + 1), until: new Date(asOf.getTime() + 1) }
  return cashOf(leftOf(await cashFacts(db, question, window), narrowed))
}

/** Facts of subscriptions that the filter left at that time. */
function leftOf(facts: CashFact[], narrowed: Narrowed): CashFact[] {
  return facts.filter(
    ({ subscriptionId, occurredAt }) => subscriptionId !== null && narrowed.holds(subscriptionId, occurredAt),
  )
}

/** What facts come to. */
export function cashOf(facts: CashFact[]): Cash {
  const of = (kind: CashFact['kind'], recurring: boolean) =>
    facts.filter(fact => fact.kind === kind && fact.recurring === recurring)
  const amount = (rows: CashFact[]) => sum(rows, fact => fact.amount)
  const invoices = facts.filter(fact => fact.kind === 'invoice')
  const payments = of('payment', true)
  return {
    invoiced: amount(invoices),
    invoices: invoices.length,
    collected: amount(payments),
    payments: payments.length,
    refunded: amount(of('refund', true)),
    disputed: amount(of('dispute', true)),
    oneOff: amount(of('payment', false)) - amount(of('refund', false)) - amount(of('dispute', false)),
  }
}
