import { planName } from '../domain/billing/account.ts'
import type { Instant } from '../domain/billing/types.ts'
import type { Db } from '../postgres/database.ts'
import { withAccounts } from '../store/billing/merges.ts'
import { type FailedInvoice, failedInvoices, type Trial, trialsBetween } from '../store/reports/outcomes.ts'
import { openLedger } from './ledger.ts'
import type { Window } from './movements.ts'
import { type ReportList, type ReportQuestion, sum, toList } from './question.ts'

type TrialOutcome = 'converted' | 'expired' | 'running'

type TrialReport = Window & {
  /** started = converted + expired + running */
  totals: { started: number; converted: number; expired: number; running: number; conversionRate: number | null }
  trials: ReportList<TrialEntry>
}

type TrialEntry = {
  subscriptionId: string
  customer: string
  planNames: string[]
  startedAt: Date
  trialEnd: Instant | null
  outcome: TrialOutcome
  endedAt: Date | null
  /** MRR at the conversion. */
  mrr: number
}

/** The results of trials that started in a window. */
export async function trialReport(db: Db, question: ReportQuestion, window: Window): Promise<TrialReport> {
  const { matched } = await openLedger(db, question)
  const entries = (await trialsBetween(db, question, window))
    .filter(({ segment, startedAt }) => matched?.includes(segment.subscriptionId, startedAt) ?? true)
    .map(trialEntry)
  const count = (outcome: TrialOutcome) => entries.filter(entry => entry.outcome === outcome).length
  const [converted, expired] = [count('converted'), count('expired')]
  return {
    ...window,
    totals: {
      started: entries.length,
      converted,
      expired,
      running: count('running'),
      // running trials have no result yet
      conversionRate: converted + expired > 0 ? converted / (converted + expired) : null,
    },
    trials: toList(entries),
  }
}

function trialEntry({ segment, startedAt, next }: Trial): TrialEntry {
  const outcome = findOutcome(next)
  return {
    subscriptionId: segment.subscriptionId,
    customer: segment.account,
    planNames: [...new Set(segment.items.flatMap(item => planName(item) ?? []))],
    startedAt,
    trialEnd: segment.trialEnd,
    outcome,
    endedAt: next?.at ?? null,
    mrr: outcome === 'converted' ? next!.mrr : 0,
  }
}

function findOutcome(next: Trial['next']): TrialOutcome {
  if (next === null) return 'running'
  return next.status === 'active' || next.status === 'past_due' ? 'converted' : 'expired'
}

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
  /** The amount owed when a payment first failed. */
  amount: number
  outcome: DunningOutcome
  resolvedAt: Instant | Date | null
}

/** The results of invoices with a first failed payment in a window. */
export async function dunningReport(db: Db, question: ReportQuestion, window: Window): Promise<DunningReport> {
  const { matched } = await openLedger(db, question)
  const entries = (await failedInvoices(db, question, window))
    .map(dunningEntry)
    .filter(({ subscriptionId, failedAt }) =>
      matched ? subscriptionId !== null && matched.includes(subscriptionId, failedAt) : true,
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
    invoices: toList(await withAccounts(db, question.tenantId, entries)),
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

/** Lost: written off, void, or still open when the subscription ends. */
function resolution({ current, subscriptionEndedAt }: FailedInvoice): Pick<DunningEntry, 'outcome' | 'resolvedAt'> {
  if (current.status === 'paid') return { outcome: 'recovered', resolvedAt: current.paidAt ?? current.from }
  if (current.status !== 'open') return { outcome: 'lost', resolvedAt: current.from }
  return subscriptionEndedAt === null
    ? { outcome: 'open', resolvedAt: null }
    : { outcome: 'lost', resolvedAt: subscriptionEndedAt }
}
