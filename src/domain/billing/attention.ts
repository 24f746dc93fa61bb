/** What needs attention: payment issues, renewals, cancellations and charges. Amounts are in minor units. */

import { DAY_MS } from '../time.ts'
import { isLongerThanAMonth } from './calendar.ts'
import type { InvoiceState } from './cash.ts'
import { type Charge, type ChargeCycle, chargesBetween } from './price.ts'
import type { Segment } from './timeline.ts'
import type { Instant } from './types.ts'

export type IssueType = 'payment_failed' | 'action_required' | 'overdue' | 'uncollectible' | 'subscription_unpaid'

type Renewal = { renewsAt: Instant; interval: ChargeCycle['interval']; intervalCount: number; amount: number | null }

/**
 * The issue of an invoice at `asOf`; null: there is none, or nothing is owed. An attempt without a known result is no issue.
 */
export function invoiceIssue(state: InvoiceState, asOf: Instant): IssueType | null {
  if (state.amountRemaining <= 0) return null
  if (state.status === 'uncollectible') return 'uncollectible'
  if (state.status !== 'open') return null
  if (state.failure) return state.failure.kind
  return state.dueAt !== null && state.dueAt < asOf ? 'overdue' : null
}

/** When the issue of this state starts; null: it has none. */
export function findIssueStart(state: InvoiceState): Instant | null {
  const { from, to, dueAt } = state
  if (invoiceIssue(state, from)) return from
  // overdue one millisecond after the due time
  const overdueFrom = dueAt === null ? null : Math.max(from, dueAt + 1)
  if (overdueFrom === null || (to !== null && overdueFrom >= to)) return null
  return invoiceIssue(state, overdueFrom) ? overdueFrom : null
}

/** Whole days since the due date; null: there is none. */
export function daysOverdue(dueAt: Instant | null, asOf: Instant): number | null {
  return dueAt === null ? null : Math.max(0, Math.floor((asOf - dueAt) / DAY_MS))
}

/** Remaining days, rounded up: something due within the hour is one day away. */
export function daysUntil(at: Instant, asOf: Instant): number {
  return Math.max(0, Math.ceil((at - asOf) / DAY_MS))
}

/**
 * Renewals of intervals longer than a month in (after, until], in order, one per instant. A subscription with a scheduled
 * cancellation has none.
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

/** Every expected charge in (asOf, until]: a monthly plan has three in 90 days. */
export function upcomingCharges(segment: Segment, asOf: Instant, until: Instant): Charge[] {
  return chargesBetween(segment.cycles, asOf, until)
}

// The agenda: expected charges, renewals and cancellations of a subscription.

/** Reports look 90 days ahead. A longer agenda need not be extended every day. */
const AGENDA_DAYS = 130
const LEAST_DAYS = 100

/** The end of an agenda built at `now`; it is the same all day. */
export function agendaHorizon(now: Instant): Instant {
  return (Math.floor(now / DAY_MS) + AGENDA_DAYS) * DAY_MS
}

/** An agenda that ends before this must be extended. */
export function agendaNeededUntil(now: Instant): Instant {
  return now + LEAST_DAYS * DAY_MS
}

type Cancellation = { cancelsAt: Instant; requestedAt: Instant | null; reason: string | null }

/** Valid for reports as of [knownFrom, knownTo); `knownFrom` null: from now on. */
export type AgendaEntry = { currency: string; dueAt: Instant; knownFrom: Instant | null; knownTo: Instant } & (
  | { kind: 'charge'; body: Omit<Charge, 'billsAt'> & { collectionMethod: string | null } }
  | { kind: 'renewal'; body: Omit<Renewal, 'renewsAt'> }
  | { kind: 'cancellation'; body: Omit<Cancellation, 'cancelsAt'> }
)

export function findCancellation(segment: Segment): Cancellation | null {
  if (!segment.cancelling || segment.cancelsAt === null) return null
  return { cancelsAt: segment.cancelsAt, requestedAt: segment.cancelRequestedAt, reason: segment.cancellationReason }
}

/** Everything due in (now, horizon], for reports as of `now` or later. */
export function buildAgenda(segments: Segment[], now: Instant, horizon: Instant): AgendaEntry[] {
  return segments.flatMap(segment => {
    const { currency, from, to } = segment
    if (currency === null || (to !== null && to <= now) || from > horizon) return []
    const after = Math.max(from, now)
    const known = (dueAt: Instant, since: Instant) => ({
      currency,
      dueAt,
      knownFrom: since <= now ? null : since,
      knownTo: Math.min(dueAt, to ?? dueAt),
    })
    const charges = upcomingCharges(segment, after, horizon).map(
      ({ billsAt, ...body }): AgendaEntry => ({
        ...known(billsAt, from),
        kind: 'charge',
        body: { ...body, collectionMethod: segment.collectionMethod },
      }),
    )
    const renewals = renewalsBetween(segment, after, horizon).map(
      ({ renewsAt, ...body }): AgendaEntry => ({ ...known(renewsAt, from), kind: 'renewal', body }),
    )
    const cancellation = findCancellation(segment)
    const entries = [...charges, ...renewals]
    if (cancellation && cancellation.cancelsAt > after && cancellation.cancelsAt <= horizon) {
      const { cancelsAt, ...body } = cancellation
      entries.push({ ...known(cancelsAt, from), kind: 'cancellation', body })
    }
    return entries.filter(entry => entry.knownTo > (entry.knownFrom ?? now))
  })
}

/** Whether anything can be due after `horizon`. */
export function continuesAfter(segments: Segment[], horizon: Instant): boolean {
  return segments.some(
    ({ to, cycles, cancelsAt, from }) =>
      (to === null || to > horizon) &&
      (from > horizon ||
        (cancelsAt !== null && cancelsAt > horizon) ||
        cycles.some(({ endsAt }) => endsAt === null || endsAt > horizon)),
  )
}
