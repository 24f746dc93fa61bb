import { summarizeAccount } from '../domain/billing/account.ts'
import { computeArr } from '../domain/billing/price.ts'
import type { Segment } from '../domain/billing/timeline.ts'
import type { Instant } from '../domain/billing/types.ts'
import type { Db } from '../postgres/database.ts'
import { type AccountFacts, accountFacts, withPaymentIssues } from '../store/reports/accounts.ts'
import type { Ledger } from './ledger.ts'
import type { ReportList, ReportQuestion } from './question.ts'

export const UNATTRIBUTED = 'unattributed'

export type AccountEntry = {
  customer: string
  customerName: string | null
  customerEmail: string | null
  mrr: number
  arr: number
  committedMrr: number
  subscriptions: number
  activeSubscriptions: number
  status: string
  planNames: string[]
  acquisitionSource: string
  customerSince: Instant | null
  nextBillingAt: Instant | null
  hasPaymentIssue: boolean
}

/** The largest MRR first. */
export function accountList(
  db: Db,
  question: ReportQuestion,
  ledger: Ledger,
  count: number,
): ReportList<AccountEntry> {
  return {
    count,
    rows: async slice => accountEntries(db, question, ledger, await ledger.accounts(slice, count)),
  }
}

/** One entry an account, in their order. */
export async function accountEntries(
  db: Db,
  question: ReportQuestion,
  ledger: Ledger,
  accounts: string[],
): Promise<AccountEntry[]> {
  if (accounts.length === 0) return []
  const { tenantId, currency, asOf } = question
  const segments = await ledger.segments(accounts)
  const facts = await accountFacts(db, tenantId, accounts)
  const issues = await withPaymentIssues(db, question, {
    subscriptions: segments.map(segment => segment.subscriptionId),
    customers: accounts,
  })
  const byAccount = Map.groupBy(segments, segment => segment.account)
  return accounts.map(account => {
    const all = byAccount.get(account) ?? []
    const own = all.filter(segment => segment.currency === currency)
    const hasPaymentIssue =
      issues.customers.has(account) ||
      own.some(
        ({ subscriptionId, status }) => status === 'unpaid' || issues.subscriptions.has(subscriptionId),
      )
    return { ...accountEntry(account, own, all, facts.get(account), asOf), hasPaymentIssue }
  })
}

function accountEntry(
  account: string,
  own: Segment[],
  all: Segment[],
  facts: AccountFacts | undefined,
  asOf: Date,
): Omit<AccountEntry, 'hasPaymentIssue'> {
  const known = { customer: account, acquisitionSource: facts?.source ?? UNATTRIBUTED }
  if (all.length === 0) {
    return { ...known, ...NOTHING, customerName: facts?.name ?? null, customerEmail: facts?.email ?? null }
  }
  // without a subscription in this currency, who it is is still known
  const summary = summarizeAccount(own.length > 0 ? own : all, asOf.getTime())
  const names = {
    customerName: summary.customerName ?? facts?.name ?? null,
    customerEmail: summary.customerEmail ?? facts?.email ?? null,
  }
  if (own.length === 0) {
    return { ...known, ...NOTHING, ...names, status: summary.status, customerSince: summary.customerSince }
  }
  return {
    ...known,
    ...names,
    mrr: summary.mrr,
    arr: computeArr(summary.mrr),
    committedMrr: summary.committedMrr,
    subscriptions: summary.subscriptions,
    activeSubscriptions: summary.activeSubscriptions,
    status: summary.status,
    planNames: summary.planNames,
    customerSince: summary.customerSince,
    nextBillingAt: summary.nextBillingAt,
  }
}

const NOTHING = {
  mrr: 0,
  arr: 0,
  committedMrr: 0,
  subscriptions: 0,
  activeSubscriptions: 0,
  status: 'unknown',
  planNames: [],
  customerSince: null,
  nextBillingAt: null,
}
