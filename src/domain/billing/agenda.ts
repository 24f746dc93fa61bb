/** What a subscription is expected to do: charges, renewals and its cancellation, as attention lists them. */

import { DAY_MS } from '../time.ts'
import { type Renewal, renewalsBetween, upcomingCharges } from './attention.ts'
import type { Charge } from './charges.ts'
import type { Segment } from './timeline.ts'
import type { Instant } from './types.ts'

/** Attention looks 90 days ahead; what is filled in beyond that need not be extended every day. */
const AGENDA_DAYS = 130
const LEAST_DAYS = 100

/** Up to when an agenda made at `now` goes; the same all day long. */
export function agendaHorizon(now: Instant): Instant {
  return (Math.floor(now / DAY_MS) + AGENDA_DAYS) * DAY_MS
}

/** An agenda that ends before this is due to be extended. */
export function agendaNeededUntil(now: Instant): Instant {
  return now + LEAST_DAYS * DAY_MS
}

export type Cancellation = { cancelsAt: Instant; requestedAt: Instant | null; reason: string | null }

/** Expected by whoever asks from `knownFrom` on and before `knownTo`; null: whoever asks from now on. */
export type AgendaEntry = {
  currency: string
  dueAt: Instant
  knownFrom: Instant | null
  knownTo: Instant
} & (
  | { kind: 'charge'; body: Omit<Charge, 'billsAt'> & { collectionMethod: string | null } }
  | { kind: 'renewal'; body: Omit<Renewal, 'renewsAt'> }
  | { kind: 'cancellation'; body: Omit<Cancellation, 'cancelsAt'> }
)

export function cancellationOf(segment: Segment): Cancellation | null {
  if (!segment.cancelling || segment.cancelsAt === null) return null
  return {
    cancelsAt: segment.cancelsAt,
    requestedAt: segment.cancelRequestedAt,
    reason: segment.cancellationReason,
  }
}

/** Everything due after `now` and up to `horizon`, for questions asked from `now` on. */
export function agendaOf(segments: Segment[], now: Instant, horizon: Instant): AgendaEntry[] {
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
      ({ renewsAt, ...body }, i, all): AgendaEntry => ({
        // the next one is listed, not the one after it
        ...known(renewsAt, Math.max(from, all[i - 1]?.renewsAt ?? from)),
        kind: 'renewal',
        body,
      }),
    )
    const cancellation = cancellationOf(segment)
    const entries = [...charges, ...renewals]
    if (cancellation && cancellation.cancelsAt > after && cancellation.cancelsAt <= horizon) {
      const { cancelsAt, ...body } = cancellation
      entries.push({ ...known(cancelsAt, from), kind: 'cancellation', body })
    }
    return entries.filter(entry => entry.knownTo > (entry.knownFrom ?? now))
  })
}

/** Whether charges go on beyond any horizon, or at least beyond this one. */
export function goesOn(segments: Segment[], horizon: Instant): boolean {
  return segments.some(
    ({ to, cycles, cancelsAt, from }) =>
      (to === null || to > horizon) &&
      (from > horizon ||
        (cancelsAt !== null && cancelsAt > horizon) ||
        cycles.some(({ endsAt }) => endsAt === null || endsAt > horizon)),
  )
}
