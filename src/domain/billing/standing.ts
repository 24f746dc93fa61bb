/** What the policy makes of a status, which depends on what the subscription was before. */

import { DAY_MS } from '../time.ts'
import type { Policy } from './policy.ts'
import type { Instant, SubscriptionStatus } from './types.ts'

/** What is remembered of a subscription's past. */
export type Standing = {
  /** Whether it counted when it was last neither paused nor on trial. */
  counted: boolean
  /** From when on it has been past due without a break. */
  pastDueSince: Instant | null
}

/** `counts`: although its status alone would not; `past_due`: it would count, and has been past due for too long. */
export type Ruling = 'counts' | 'past_due'

/** `isPausedAfterPaying`: the first that is known says that it is paused, and nothing says that it never paid. */
export function firstStanding(isPausedAfterPaying: boolean): Standing {
  return { counted: isPausedAfterPaying, pastDueSince: null }
}

/** From `at` on it has this status. Returns how it stands then, and how that is ruled by the policy. */
export function standingAt(
  before: Standing,
  status: SubscriptionStatus,
  at: Instant,
  policy: Policy,
): { standing: Standing; ruling: Ruling | null } {
  const { counted } = before
  switch (status) {
    case 'active':
      return { standing: { counted: true, pastDueSince: null }, ruling: null }
    case 'past_due': {
      const pastDueSince = before.pastDueSince ?? at
      const ends = graceEnd({ counted, pastDueSince }, policy)
      const isOver = ends !== null && at >= ends
      return { standing: { counted: !isOver, pastDueSince }, ruling: isOver ? 'past_due' : null }
    }
    case 'paused':
    case 'trialing': {
      const setting = status === 'paused' ? policy.pause : policy.trialOnPaying
      return {
        standing: { counted, pastDueSince: null },
        ruling: counted && setting === 'keep' ? 'counts' : null,
      }
    }
    default:
      return { standing: { counted: false, pastDueSince: null }, ruling: null }
  }
}

/** When it ceases to count because it is past due. */
export function graceEnd({ pastDueSince }: Standing, { pastDueGraceDays }: Policy): Instant | null {
  return pastDueSince === null || pastDueGraceDays === null ? null : pastDueSince + pastDueGraceDays * DAY_MS
}
