import { accountTimeline, planName, type TimelineEntry } from '../domain/billing/account.ts'
import { candidateIds } from '../domain/billing/namespace.ts'
import type { Segment } from '../domain/billing/timeline.ts'
import type { Instant, ReasonCode } from '../domain/billing/types.ts'
import type { Db } from '../postgres/database.ts'
import { namespacesOf } from '../store/billing/feed.ts'
import {
  accountNamed,
  accountOfSubscription,
  invoicesOfAccount,
  refundsOfAccount,
  statementsAbout,
  subscriptionsOfAccount,
} from '../store/reports/account.ts'
import { type AccountEntry, accountEntries } from './accounts.ts'
import { openLedger } from './open-ledger.ts'
import { listOf, type ReportList, type ReportQuestion } from './question.ts'

/** Of customer and subscription at least one; given both, they must belong together. */
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
  /** Decimal text in major units of the subscription's currency. */
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

/** null: there is no such account. */
export async function accountReport(
  db: Db,
  question: ReportQuestion,
  named: AccountNamed,
): Promise<AccountReport | null> {
  const { tenantId, currency, asOf } = question
  const namespaces = await namespacesOf(db, tenantId)
  const customers = named.customer === null ? null : candidateIds(named.customer, namespaces)
  const account =
    named.subscriptionId === null
      ? await accountNamed(db, tenantId, customers!)
      : await accountOfSubscription(db, tenantId, candidateIds(named.subscriptionId, namespaces), asOf)
  if (account === null || (customers !== null && !customers.includes(account))) return null
  const subscriptions = await subscriptionsOfAccount(db, tenantId, account, asOf)
  const invoices = await invoicesOfAccount(db, tenantId, account, subscriptions, asOf)
  if (subscriptions.length === 0 && invoices.length === 0) return null
  const ledger = await openLedger(db, question)
  const [summary] = await accountEntries(db, question, ledger, [account])
  const segments = await ledger.segments([account])
  const movements = await ledger.movementsOf(account)
  const timeline = accountTimeline({
    currency,
    subscriptions: await statementsAbout(db, tenantId, 'subscription', subscriptions, asOf),
    invoices: await statementsAbout(db, tenantId, 'invoice', invoices, asOf),
    refunds: await refundsOfAccount(db, tenantId, account, invoices, asOf),
    movements: movements.map(({ occurredAt, ...movement }) => ({ ...movement, at: occurredAt.getTime() })),
  })
  return {
    summary: summary!,
    items: listOf(itemsOf(segments, currency)),
    timeline: listOf(
      timeline.map(entry => ({
        ...entry,
        mrrDelta:
          entry.mrrBefore === null || entry.mrrAfter === null ? null : entry.mrrAfter - entry.mrrBefore,
      })),
    ),
  }
}

/** Oldest subscription first; also what does not count, and why. */
function itemsOf(segments: Segment[], currency: string): AccountItem[] {
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
