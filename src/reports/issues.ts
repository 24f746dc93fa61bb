import type { InvoiceState } from '../domain/billing/cash.ts'
import type { Slice } from '../domain/list-slices.ts'
import type { Db } from '../postgres/database.ts'
import { invoicesWithIssues, issueCounts, unpaidSubscriptions } from '../store/reports/attention.ts'
import type { Narrowed } from './ledger.ts'
import type { ReportQuestion } from './question.ts'

/** Invoices with something wrong, and unpaid subscriptions without such an invoice. */
export type Issues = {
  counts: { invoices: number; subscriptions: number }
  invoices(slice: Slice): Promise<InvoiceState[]>
  /** Their ids. */
  subscriptions(slice: Slice): Promise<string[]>
}

export async function openIssues(
  db: Db,
  question: ReportQuestion,
  narrowed: Narrowed | null,
): Promise<Issues> {
  const counts = await issueCounts(db, question)
  if (narrowed === null) {
    return {
      counts,
      invoices: slice => invoicesWithIssues(db, question, slice),
      subscriptions: slice => unpaidSubscriptions(db, question, slice),
    }
  }
  const isLeft = (id: string | null) => id !== null && narrowed.holds(id, question.asOf)
  const all = (limit: number) => ({ offset: 0, limit })
  const invoices = (await invoicesWithIssues(db, question, all(counts.invoices))).filter(invoice =>
    isLeft(invoice.subscriptionId),
  )
  const subscriptions = (await unpaidSubscriptions(db, question, all(counts.subscriptions))).filter(isLeft)
  return {
    counts: { invoices: invoices.length, subscriptions: subscriptions.length },
    invoices: async ({ offset, limit }) => invoices.slice(offset, offset + limit),
    subscriptions: async ({ offset, limit }) => subscriptions.slice(offset, offset + limit),
  }
}
