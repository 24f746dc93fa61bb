import { accountTimeline, type TimelineEntry } from '../../domain/billing/account-timeline.ts'
import { planName } from '../../domain/billing/accounts.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import type { Db } from '../../postgres/database.ts'
import {
  accountOfSubscription,
  invoicesOfAccount,
  refundsOfAccount,
  statementsAbout,
  subscriptionsOfAccount,
} from '../../store/reports/account.ts'
import { segmentsOfAccounts } from '../../store/reports/accounts.ts'
import { movementsOfAccount } from '../../store/reports/movements.ts'
import { problems } from '../problems.ts'
import { accountRows } from './accounts.ts'
import type { Ask } from './query.ts'
import { listOf, type Report } from './report.ts'
import { AccountRow, ItemRow, jsonRow, type Row, TimelineRow } from './rows.ts'

export type Lookup = { customer: string | null; subscriptionId: string | null }

export async function accountReport(db: Db, ask: Ask, lookup: Lookup): Promise<Report> {
  const { tenantId, currency, asOf } = ask
  const notFound = problems.notFound('There is no such account.')
  const account =
    lookup.subscriptionId === null
      ? lookup.customer!
      : await accountOfSubscription(db, tenantId, lookup.subscriptionId, asOf)
  if (account === null || (lookup.customer !== null && lookup.customer !== account)) throw notFound
  const subscriptions = await subscriptionsOfAccount(db, tenantId, account, asOf)
  const invoices = await invoicesOfAccount(db, tenantId, account, subscriptions, asOf)
  if (subscriptions.length === 0 && invoices.length === 0) throw notFound
  const [summary] = await accountRows(db, ask, [account])
  const segments = await segmentsOfAccounts(db, tenantId, [account], asOf)
  const movements = await movementsOfAccount(db, tenantId, currency, account, asOf)
  const timeline = accountTimeline({
    currency,
    subscriptions: await statementsAbout(db, tenantId, 'subscription', subscriptions, asOf),
    invoices: await statementsAbout(db, tenantId, 'invoice', invoices, asOf),
    refunds: await refundsOfAccount(db, tenantId, account, invoices, asOf),
    movements: movements.map(({ occurredAt, ...movement }) => ({ ...movement, at: occurredAt.getTime() })),
  })
  return {
    facts: { summary: jsonRow(AccountRow, summary!, currency) },
    lists: {
      items: listOf(ItemRow, itemRows(segments, currency)),
      timeline: listOf(TimelineRow, timeline.map(timelineRow)),
    },
  }
}

/** Oldest subscription first; also what does not count, and why. */
function itemRows(segments: Segment[], currency: string): Row<typeof ItemRow>[] {
  const ordered = [...segments].sort(
    (a, b) => a.startedAt - b.startedAt || (a.subscriptionId < b.subscriptionId ? -1 : 1),
  )
  return ordered.flatMap(segment =>
    segment.items.map((item): Row<typeof ItemRow> => {
      const isForeign = segment.currency !== null && segment.currency !== currency
      const amounts = isForeign ? { grossMrr: 0, discountMrr: 0, mrr: 0 } : item
      return {
        subscription_id: segment.subscriptionId,
        item_id: item.id,
        price_id: item.priceId,
        plan_name: planName(item),
        quantity: item.quantity,
        unit_amount: item.unitAmount,
        currency: segment.currency,
        interval: item.interval,
        interval_count: item.intervalCount,
        usage_type: item.usageType,
        gross_mrr: amounts.grossMrr,
        discount_mrr: amounts.discountMrr,
        mrr: amounts.mrr,
        included: item.included && !isForeign,
        exclusion_reason: isForeign ? 'other_currency' : item.reason,
        current_period_start: item.currentPeriodStart ?? segment.currentPeriodStart,
        current_period_end: item.currentPeriodEnd ?? segment.currentPeriodEnd,
      }
    }),
  )
}

function timelineRow(entry: TimelineEntry): Row<typeof TimelineRow> {
  const { mrrBefore, mrrAfter } = entry
  return {
    occurred_at: entry.occurredAt,
    event_type: entry.eventType,
    category: entry.category,
    subscription_id: entry.subscriptionId,
    movement_type: entry.movementType,
    mrr_before: mrrBefore,
    mrr_after: mrrAfter,
    mrr_delta: mrrBefore === null || mrrAfter === null ? null : mrrAfter - mrrBefore,
    amount: entry.amount,
    invoice_id: entry.invoiceId,
    event_id: entry.eventId,
    description: entry.description,
  }
}
