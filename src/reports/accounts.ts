import { planName, summarizeAccount } from '../domain/billing/account.ts'
import { accountTimeline, type TimelineEntry } from '../domain/billing/account-timeline.ts'
import { markSuperseded } from '../domain/billing/cash.ts'
import { isFiltered } from '../domain/billing/dimensions.ts'
import { candidateIds } from '../domain/billing/namespace.ts'
import { computeArr } from '../domain/billing/price.ts'
import type { Segment } from '../domain/billing/timeline.ts'
import type { Instant, ReasonCode } from '../domain/billing/types.ts'
import type { Db } from '../postgres/database.ts'
import { accountsOfCustomers, customersOfAccounts } from '../store/billing/merges.ts'
import { listNamespaces } from '../store/billing/versions.ts'
import {
  type AccountFacts,
  accountFacts,
  accountNamed,
  accountOfSubscription,
  invoicesOfAccount,
  refundsOfAccount,
  statementsAbout,
  subscriptionsOfAccount,
  withPaymentIssues,
} from '../store/reports/accounts.ts'
import { type Ledger, openLedger } from './ledger.ts'
import { type ReportList, type ReportQuestion, toList } from './question.ts'

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
export function accountList(db: Db, question: ReportQuestion, ledger: Ledger, count: number): ReportList<AccountEntry> {
  return { count, rows: async slice => accountEntries(db, question, ledger, await ledger.accounts(slice, count)) }
}

/** One entry per account, in the same order. */
async function accountEntries(
  db: Db,
  question: ReportQuestion,
  ledger: Ledger,
  accounts: string[],
): Promise<AccountEntry[]> {
  if (accounts.length === 0) return []
  const { tenantId, currency, asOf } = question
  const segments = await ledger.segments(accounts)
  const facts = await accountFacts(db, tenantId, accounts)
  const customers = await customersOfAccounts(db, tenantId, accounts)
  const issues = await withPaymentIssues(db, question, {
    subscriptions: segments.map(segment => segment.subscriptionId),
    // A filter selects subscriptions, so it leaves out invoices without one.
    customers: isFiltered(question.filter) ? [] : [...customers.values()].flat(),
  })
  const byAccount = Map.groupBy(segments, segment => segment.account)
  return accounts.map(account => {
    const all = byAccount.get(account) ?? []
    const own = all.filter(segment => segment.currency === currency)
    const hasPaymentIssue =
      customers.get(account)!.some(customer => issues.customers.has(customer)) ||
      own.some(({ subscriptionId, status }) => status === 'unpaid' || issues.subscriptions.has(subscriptionId))
    const closed = ledger.sources?.get(account)
    const entry = accountEntry(account, own, all, facts.get(account), asOf)
    return {
      ...entry,
      ...(closed && { acquisitionSource: closed.acquisition?.source ?? UNATTRIBUTED }),
      hasPaymentIssue,
    }
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
  // without a subscription in this currency, the names are still known
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

/** At least one of customer and subscription. If both are given, they must belong together. */
type AccountNamed = { customer: string | null; subscriptionId: string | null }

export type AccountReport = {
  summary: AccountEntry
  items: ReportList<AccountItem>
  /** The newest first. */
  timeline: ReportList<TimelineEntry & { mrrDelta: number | null }>
}

type AccountItem = {
  subscriptionId: string
  itemId: string | null
  priceId: string | null
  planName: string | null
  quantity: number | null
  /** A decimal string in major units of the subscription's currency. */
  unitAmount: string | null
  currency: string | null
  interval: string | null
  intervalCount: number | null
  usageType: string | null
  grossMrr: number
  discountMrr: number
  mrr: number
  included: boolean
  exclusionReason: ReasonCode | null
  currentPeriodStart: Instant | null
  currentPeriodEnd: Instant | null
}

/** null: no such account. */
export async function accountReport(
  db: Db,
  question: ReportQuestion,
  named: AccountNamed,
): Promise<AccountReport | null> {
  const { tenantId, currency, asOf } = question
  const namespaces = await listNamespaces(db, tenantId)
  const ledger = await openLedger(db, question)
  const names = named.customer === null ? null : candidateIds(named.customer, namespaces)
  const target = await accountsOfCustomers(db, tenantId, names ?? [])
  // an account that was merged after the closing is still an account of the closed month
  const current = (name: string) => (ledger.sources?.has(name) ? name : target(name))
  const customer = names === null || named.subscriptionId !== null ? null : await accountNamed(db, tenantId, names)
  const account =
    named.subscriptionId === null
      ? customer && current(customer)
      : await accountOfSubscription(db, tenantId, candidateIds(named.subscriptionId, namespaces), asOf)
  if (account === null || (names !== null && !names.map(current).includes(account))) return null
  const segments = await ledger.segments([account])
  const subscriptions = [
    ...new Set([
      ...(await subscriptionsOfAccount(db, tenantId, account, asOf)),
      ...segments.map(({ subscriptionId }) => subscriptionId),
    ]),
  ]
  const customers = (await customersOfAccounts(db, tenantId, [account])).get(account)!
  const invoices = await invoicesOfAccount(db, tenantId, customers, subscriptions, asOf)
  if (subscriptions.length === 0 && invoices.length === 0) return null
  const [summary] = await accountEntries(db, question, ledger, [account])
  const movements = await ledger.movementsOf(account)
  const timeline = accountTimeline({
    currency,
    subscriptions: await statementsAbout(db, tenantId, 'subscription', subscriptions, asOf),
    invoices: await statementsAbout(db, tenantId, 'invoice', invoices, asOf),
    refunds: markSuperseded(await refundsOfAccount(db, tenantId, customers, invoices, asOf)).map(
      ({ refund }) => refund,
    ),
    movements: movements.map(({ occurredAt, ...movement }) => ({ ...movement, at: occurredAt.getTime() })),
  })
  return {
    summary: summary!,
    items: toList(listItems(segments, currency)),
    timeline: toList(
      timeline.map(entry => ({
        ...entry,
        mrrDelta: entry.mrrBefore === null || entry.mrrAfter === null ? null : entry.mrrAfter - entry.mrrBefore,
      })),
    ),
  }
}

/** The oldest subscription first, including excluded items with their reasons. */
function listItems(segments: Segment[], currency: string): AccountItem[] {
  const ordered = [...segments].sort(
    (a, b) => a.startedAt - b.startedAt || (a.subscriptionId < b.subscriptionId ? -1 : 1),
  )
  return ordered.flatMap(segment =>
    segment.items.map((item): AccountItem => {
      const isForeign = segment.currency !== null && segment.currency !== currency
      const amounts = isForeign ? { grossMrr: 0, discountMrr: 0, mrr: 0 } : item
      return {
        subscriptionId: segment.subscriptionId,
        itemId: item.id,
        priceId: item.priceId,
        planName: planName(item),
        quantity: item.quantity,
        unitAmount: item.unitAmount,
        currency: segment.currency,
        interval: item.interval,
        intervalCount: item.intervalCount,
        usageType: item.usageType,
        grossMrr: amounts.grossMrr,
        discountMrr: amounts.discountMrr,
        mrr: amounts.mrr,
        included: item.included && !isForeign,
        exclusionReason: isForeign ? 'other_currency' : item.reason,
        currentPeriodStart: item.currentPeriodStart ?? segment.currentPeriodStart,
        currentPeriodEnd: item.currentPeriodEnd ?? segment.currentPeriodEnd,
      }
    }),
  )
}
