import { planName } from '../domain/billing/account.ts'
import type { Instant } from '../domain/billing/types.ts'
import type { Db } from '../postgres/database.ts'
import { type Trial, trialsBetween } from '../store/reports/trials.ts'
import type { Window } from './movements.ts'
import { openLedger } from './open-ledger.ts'
import { listOf, type ReportList, type ReportQuestion } from './question.ts'

type TrialOutcome = 'converted' | 'expired' | 'running'

type TrialReport = Window & {
  /** started = converted + expired + running */
  totals: {
    started: number
    converted: number
    expired: number
    running: number
    conversionRate: number | null
  }
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
  /** What it came to when it converted. */
  mrr: number
}

/** What became of the trials that began in a window. */
export async function trialReport(db: Db, question: ReportQuestion, window: Window): Promise<TrialReport> {
  const { narrowed } = await openLedger(db, question)
  const entries = (await trialsBetween(db, question, window))
    .filter(({ segment, startedAt }) => narrowed?.holds(segment.subscriptionId, startedAt) ?? true)
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
      // those that are still running have not decided
      conversionRate: converted + expired > 0 ? converted / (converted + expired) : null,
    },
    trials: listOf(entries),
  }
}

function trialEntry({ segment, startedAt, next }: Trial): TrialEntry {
  const outcome = outcomeOf(next)
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

function outcomeOf(next: Trial['next']): TrialOutcome {
  if (next === null) return 'running'
  return next.status === 'active' || next.status === 'past_due' ? 'converted' : 'expired'
}
