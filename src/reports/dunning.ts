import type { Instant } from '../domain/billing/types.ts'
import type { Db } from '../postgres/database.ts'
import { type FailedInvoice, failedInvoices } from '../store/reports/dunning.ts'
import type { Window } from './movements.ts'
import { openLedger } from './open-ledger.ts'
import { listOf, type ReportList, type ReportQuestion, sum } from './question.ts'

type DunningOutcome = 'recovered' | 'lost' | 'open'

type Amount = { count: number; amount: number }

export type DunningReport = Window & {
  /** failed = recovered + lost + open */
  totals: Record<'failed' | DunningOutcome, Amount> & { recoveryRate: number | null }
  invoices: ReportList<DunningEntry>
}

type DunningEntry = {
  invoiceId: string
  invoiceNumber: string | null
  subscriptionId: string | null
  customer: string | null
  failedAt: Date
  failureCode: string | null
  failureMessage: string | null
  /** What was owed when a payment first failed. */
  amount: number
  outcome: DunningOutcome
  resolvedAt: Instant | Date | null
}

/** What became of the invoices of which a payment first failed in a window. */
export async function dunningReport(
  db: Db,
  question: ReportQuestion,
  window: Window,
): Promise<DunningReport> {
  const { narrowed } = await openLedger(db, question)
  const entries = (await failedInvoices(db, question, window))
    .map(dunningEntry)
    .filter(({ subscriptionId, failedAt }) =>
      narrowed ? subscriptionId !== null && narrowed.holds(subscriptionId, failedAt) : true,
    )
  const total = (own: DunningEntry[]) => ({ count: own.length, amount: sum(own, entry => entry.amount) })
  const of = (outcome: DunningOutcome) => total(entries.filter(entry => entry.outcome === outcome))
  const [recovered, lost] = [of('recovered'), of('lost')]
  const decided = recovered.amount + lost.amount
  return {
    ...window,
    totals: {
      failed: total(entries),
      recovered,
      lost,
      open: of('open'),
      recoveryRate: decided > 0 ? recovered.amount / decided : null,
    },
    invoices: listOf(entries),
  }
}

function dunningEntry(invoice: FailedInvoice): DunningEntry {
  const { failed, current, failedAt } = invoice
  return {
    invoiceId: current.invoiceId,
    invoiceNumber: current.number,
    subscriptionId: current.subscriptionId,
    customer: current.customer ?? current.customerEmail,
    failedAt,
    failureCode: failed.failure?.code ?? null,
    failureMessage: failed.failure?.message ?? null,
    amount: failed.amountRemaining,
    ...resolution(invoice),
  }
}

/** An invoice that is written off or void is lost, and so is one that is open when its subscription ends. */
function resolution({
  current,
  subscriptionEndedAt,
}: FailedInvoice): Pick<DunningEntry, 'outcome' | 'resolvedAt'> {
  if (current.status === 'paid') return { outcome: 'recovered', resolvedAt: current.paidAt ?? current.from }
  if (current.status !== 'open') return { outcome: 'lost', resolvedAt: current.from }
  return subscriptionEndedAt === null
    ? { outcome: 'open', resolvedAt: null }
    : { outcome: 'lost', resolvedAt: subscriptionEndedAt }
}
