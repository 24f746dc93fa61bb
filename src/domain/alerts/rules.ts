const DAY_S = 86_400

/** What can be warned of, from which value on by default, and the least and the most that make sense. */
export const RULES = {
  lag: {
    ...{ threshold: 300, least: 1, most: 30 * DAY_S },
    means: 'age in seconds of the oldest accepted entry that is not processed',
  },
  refused_share: {
    ...{ threshold: 0.1, least: 0.001, most: 1 },
    means:
      'share of webhook requests with a valid credential that were rejected in the last hour, if at least ten were; 429 does not count',
  },
  dead_letters: {
    ...{ threshold: 1, least: 1, most: 1_000_000_000 },
    means: 'number of dead letters that were not replayed',
  },
  source_silent: {
    ...{ threshold: 3, least: 1, most: 1_000 },
    means:
      'time since the last event of a source, as a multiple of its longest pause in the week before; at least ten minutes',
  },
  mrr_drop: {
    ...{ threshold: 0.1, least: 0.001, most: 1 },
    means: 'decrease of the MRR since seven days ago, as a share, per currency',
  },
} as const
export type Rule = keyof typeof RULES
export const RULE_NAMES = Object.keys(RULES) as Rule[]

/** A threshold for each rule; null: the rule is off. */
export type Thresholds = Record<Rule, number | null>

export function withDefaultThresholds(own: Partial<Thresholds>): Thresholds {
  const entries = RULE_NAMES.map(rule => [rule, own[rule] === undefined ? RULES[rule].threshold : own[rule]])
  return Object.fromEntries(entries) as Thresholds
}

/** What was measured. */
export type Reading = { tenantId: number; rule: Rule; subject: string; value: number; summary: string }

export type AlertState = 'pending' | 'raised' | 'resolved'
export type OpenState = { state: 'pending' | 'raised'; streak: number }

/** Evaluations in a row, a minute apart: one alone may be a blink, or a clock that was set. */
const RAISED_AFTER = 2
const RESOLVED_AFTER = 3
/** Below this part of the threshold it is over: a value that hovers around it raises one alert, not twenty. */
const CLEAR_BELOW = 0.8

/** What becomes of an alert by one more evaluation; null: there is none. `threshold` null: the rule is off. */
export function nextAlertState(
  before: OpenState | null,
  value: number,
  threshold: number | null,
): { state: AlertState; streak: number } | null {
  if (threshold === null) return before?.state === 'raised' ? { state: 'resolved', streak: 0 } : null
  const isMet = value >= threshold
  if (before === null || before.state === 'pending') {
    if (!isMet) return null
    const streak = (before?.streak ?? 0) + 1
    return streak >= RAISED_AFTER ? { state: 'raised', streak: 0 } : { state: 'pending', streak }
  }
  if (value >= threshold * CLEAR_BELOW) return { state: 'raised', streak: 0 }
  const streak = before.streak + 1
  return streak >= RESOLVED_AFTER ? { state: 'resolved', streak: 0 } : { state: 'raised', streak }
}

/** How a source usually sounds; `longest`: by day, how many seconds it was quiet at a stretch. */
export type Rhythm = { quietS: number; longest: Record<string, number> }

const DAYS_KEPT = 8
/** Before so many days are known, nothing is usual. */
const DAYS_NEEDED = 2
const SHORTEST_SILENCE_S = 600

/** One more evaluation, `elapsedS` after the one before. */
export function updateRhythm(before: Rhythm | null, isNews: boolean, day: string, elapsedS: number): Rhythm {
  if (before === null) return { quietS: 0, longest: { [day]: 0 } }
  const quietS = before.quietS + elapsedS
  if (!isNews) return { ...before, quietS }
  const longest = { ...before.longest, [day]: Math.max(before.longest[day] ?? 0, quietS) }
  const kept = Object.entries(longest).sort(([a], [b]) => (a < b ? 1 : -1))
  return { quietS: 0, longest: Object.fromEntries(kept.slice(0, DAYS_KEPT)) }
}

/** How many times as long as usual it has been quiet; 0 where nothing is usual yet. */
export function measureSilence({ quietS, longest }: Rhythm): { times: number; usualS: number } {
  const stretches = Object.values(longest)
  if (stretches.length < DAYS_NEEDED) return { times: 0, usualS: 0 }
  const usualS = Math.max(...stretches, SHORTEST_SILENCE_S)
  return { times: quietS / usualS, usualS }
}
