import { summarizeAccount } from '../../domain/billing/accounts.ts'
import { arrOf } from '../../domain/billing/mrr.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import type { Db } from '../../postgres/database.ts'
import {
  type AccountFacts,
  accountFacts,
  accountSlice,
  segmentsOfAccounts,
  troubled,
} from '../../store/reports/accounts.ts'
import type { Ask } from './query.ts'
import type { ReportList } from './report.ts'
import { AccountRow, type Row } from './rows.ts'

export const UNATTRIBUTED = 'unattributed'

export function accountList(db: Db, ask: Ask, count: number): ReportList {
  const { tenantId, currency, asOf } = ask
  return {
    row: AccountRow,
    count,
    rows: async slice => accountRows(db, ask, await accountSlice(db, tenantId, currency, asOf, slice, count)),
  }
}

/** One row an account, in their order. */
export async function accountRows(db: Db, ask: Ask, accounts: string[]): Promise<Row<typeof AccountRow>[]> {
  if (accounts.length === 0) return []
  const { tenantId, currency, asOf } = ask
  const segments = await segmentsOfAccounts(db, tenantId, accounts, asOf)
  const facts = await accountFacts(db, tenantId, accounts)
  const trouble = await troubled(db, tenantId, currency, asOf, {
    subscriptions: segments.map(segment => segment.subscriptionId),
    customers: accounts,
  })
  const byAccount = Map.groupBy(segments, segment => segment.account)
  return accounts.map(account => {
    const all = byAccount.get(account) ?? []
    const own = all.filter(segment => segment.currency === currency)
    const hasIssue =
      trouble.customers.has(account) ||
      own.some(
        ({ subscriptionId, status }) => status === 'unpaid' || trouble.subscriptions.has(subscriptionId),
      )
    return { ...summaryRow(account, own, all, facts.get(account), asOf), has_payment_issue: hasIssue }
  })
}

type Summary = Omit<Row<typeof AccountRow>, 'has_payment_issue'>

function summaryRow(
  account: string,
  own: Segment[],
  all: Segment[],
  facts: AccountFacts | undefined,
  asOf: Date,
): Summary {
  const known = {
    customer: account,
    acquisition_source: facts?.source ?? UNATTRIBUTED,
  }
  if (all.length === 0) {
    return { ...known, ...NOTHING, customer_name: facts?.name ?? null, customer_email: facts?.email ?? null }
  }
  // without a subscription in this currency, who it is is still known
  const summary = summarizeAccount(own.length > 0 ? own : all, asOf.getTime())
  const names = {
    customer_name: summary.customerName ?? facts?.name ?? null,
    customer_email: summary.customerEmail ?? facts?.email ?? null,
  }
  if (own.length === 0) {
    return { ...known, ...NOTHING, ...names, status: summary.status, customer_since: summary.customerSince }
  }
  return {
    ...known,
    ...names,
    mrr: summary.mrr,
    arr: arrOf(summary.mrr),
    committed_mrr: summary.committedMrr,
    subscriptions: summary.subscriptions,
    active_subscriptions: summary.activeSubscriptions,
    status: summary.status,
    plan_names: summary.planNames,
    customer_since: summary.customerSince,
    next_billing_at: summary.nextBillingAt,
  }
}

const NOTHING = {
  mrr: 0,
  arr: 0,
  committed_mrr: 0,
  subscriptions: 0,
  active_subscriptions: 0,
  status: 'unknown',
  plan_names: [],
  customer_since: null,
  next_billing_at: null,
}
