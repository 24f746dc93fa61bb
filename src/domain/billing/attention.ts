/** What needs attention: payment issues, renewals, cancellations. Amounts in minor units, instants in milliseconds. */

import { DAY_MS } from '../time.ts'
import { isLongerThanAMonth } from './calendar.ts'
import { type Charge, type ChargeCycle, chargesBetween } from './charges.ts'
import type { InvoiceState } from './invoices.ts'
import type { Segment } from './timeline.ts'
import type { Instant } from './types.ts'

export type IssueType =
  | 'payment_failed'
  | 'action_required'
  | 'overdue'
  | 'uncollectible'
  | 'subscription_unpaid'

export type Renewal = {
  renewsAt: Instant
  interval: ChargeCycle['interval']
  intervalCount: number
  amount: number | null
}

/**
 * What is wrong with an invoice at `asOf`; null when nothing is, or nothing is owed. It takes evidence: an attempt that
 * was made says nothing of how it went.
 */
export function invoiceIssue(state: InvoiceState, asOf: Instant): IssueType | null {
  if (state.amountRemaining <= 0) return null
  if (state.status === 'uncollectible') return 'uncollectible'
  if (state.status !== 'open') return null
  if (state.failure) return state.failure.kind
  return state.dueAt !== null && state.dueAt < asOf ? 'overdue' : null
}

/** From when on there is something wrong with an invoice while this state holds; null: nothing ever is. */
export function issueFrom(state: InvoiceState): Instant | null {
  const { from, to, dueAt } = state
  if (invoiceIssue(state, from)) return from
  // overdue the moment after it was due
  const overdueFrom = dueAt === null ? null : Math.max(from, dueAt + 1)
  if (overdueFrom === null || (to !== null && overdueFrom >= to)) return null
  return invoiceIssue(state, overdueFrom) ? overdueFrom : null
}

/** Whole days since an invoice fell due; null when it has no due date. */
export function daysOverdue(dueAt: Instant | null, asOf: Instant): number | null {
  return dueAt === null ? null : Math.max(0, Math.floor((asOf - dueAt) / DAY_MS))
}

/** Days that remain, begun ones included: something due within the hour is one day away, not none. */
export function daysUntil(at: Instant, asOf: Instant): number {
  return Math.max(0, Math.ceil((at - asOf) / DAY_MS))
}

/**
 * Renewals of terms longer than a month within (after, until], in order, one an instant; none where the subscription
 * is cancelling.
 */
export function renewalsBetween(segment: Segment, after: Instant, until: Instant): Renewal[] {
  if (segment.cancelling || !(segment.status === 'active' || segment.status === 'past_due')) return []
  const renewals = new Map<Instant, Renewal>()
  for (const cycle of segment.cycles) {
    if (!isLongerThanAMonth(cycle.interval, cycle.intervalCount)) continue
    for (const { billsAt, amount } of chargesBetween([cycle], after, until)) {
      if (billsAt === segment.startedAt || renewals.has(billsAt)) continue
      const { interval, intervalCount } = cycle
      renewals.set(billsAt, { renewsAt: billsAt, interval, intervalCount, amount })
    }
  }
  return [...renewals.values()].sort((a, b) => a.renewsAt - b.renewsAt)
}

/** Every charge expected within (asOf, until]: a monthly plan has three in 90 days. */
export function upcomingCharges(segment: Segment, asOf: Instant, until: Instant): Charge[] {
  return chargesBetween(segment.cycles, asOf, until)
}
