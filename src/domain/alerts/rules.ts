const DAY_S = 86_400

/** The alert rules, with the default threshold and the range of valid thresholds. */
export const RULES = {
  lag: {
    ...{ threshold: 300, least: 1, most: 30 * DAY_S },
    means: 'age in seconds of the oldest accepted entry that is not processed yet',
  },
  refused_share: {
    ...{ threshold: 0.1, least: 0.001, most: 1 },
    means:
      'share of webhook requests that were rejected in the last hour. Requests with invalid credentials and 429 responses do not count. Applies only with ten or more rejections',
  },
  dead_letters: {
    ...{ threshold: 1, least: 1, most: 1_000_000_000 },
    means: 'number of open dead letters: neither replayed nor resolved',
  },
  source_silent: {
    ...{ threshold: 3, least: 1, most: 1_000 },
    means:
      'time since the last event of a source, divided by the longest gap between its events in the previous week; a gap shorter than ten minutes counts as ten minutes',
  },
  mrr_drop: {
    ...{ threshold: 0.1, least: 0.001, most: 1 },
    means: 'decrease of the MRR compared with seven days ago, as a share, per currency',
  },
} as const
export type Rule = keyof typeof RULES
export const RULE_NAMES = Object.keys(RULES) as Rule[]

/** The threshold of each rule. Null: the rule is off. */
export type Thresholds = Record<Rule, number | null>

export function withDefaultThresholds(own: Partial<Thresholds>): Thresholds {
  const entries = RULE_NAMES.map(rule => [rule, own[rule] === undefined ? RULES[rule].threshold : own[rule]])
  return Object.fromEntries(entries) as Thresholds
}

/** A measured value. */
export type Reading = { tenantId: number; rule: Rule; subject: string; value: number; summary: string }

export type AlertState = 'pending' | 'raised' | 'resolved'
export type OpenState = { state: 'pending' | 'raised'; streak: number }

/** Consecutive evaluations, one minute apart. A single one may be caused by a clock change. */
const RAISED_AFTER = 2
const RESOLVED_AFTER = 3
/** An alert resolves below this share of the threshold. A value near the threshold then raises one alert, not twenty. */
const CLEAR_BELOW = 0.8

/** The state of an alert after one more evaluation. Null: no alert. `threshold` is null if the rule is off. */
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

/** The usual activity of a source. `longest`: the longest silence of each day, in seconds. */
export type Rhythm = { quietS: number; longest: Record<string, number> }

const DAYS_KEPT = 8
/** With fewer days, there is no usual silence to compare with. */
const DAYS_NEEDED = 2
const SHORTEST_SILENCE_S = 600

/** Adds one evaluation, `elapsedS` after the previous one. */
export function updateRhythm(before: Rhythm | null, isNews: boolean, day: string, elapsedS: number): Rhythm {
  if (before === null) return { quietS: 0, longest: { [day]: 0 } }
  const quietS = before.quietS + elapsedS
  if (!isNews) return { ...before, quietS }
  const longest = { ...before.longest, [day]: Math.max(before.longest[day] ?? 0, quietS) }
  const kept = Object.entries(longest).sort(([a], [b]) => (a < b ? 1 : -1))
  return { quietS: 0, longest: Object.fromEntries(kept.slice(0, DAYS_KEPT)) }
}

/** The current silence as a multiple of the usual one. 0 if not enough days are known. */
export function measureSilence({ quietS, longest }: Rhythm): { times: number; usualS: number } {
  const stretches = Object.values(longest)
  if (stretches.length < DAYS_NEEDED) return { times: 0, usualS: 0 }
  const usualS = Math.max(...stretches, SHORTEST_SILENCE_S)
  return { times: quietS / usualS, usualS }
}
