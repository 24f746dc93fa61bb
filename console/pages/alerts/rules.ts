import type { RuleName } from '../../api/types.ts'
import { number, percent, plural } from '../../format.ts'
import { link } from '../../router.ts'

type RuleText = {
  label: string
  means: string
  unit: 'seconds' | 'share' | 'count' | 'times'
  /** Where its cause is seen. */
  href: string
}

export const RULES: Record<RuleName, RuleText> = {
  lag: {
    label: 'Lag in seconds',
    means: 'How long the oldest accepted request has been waiting to be processed.',
    unit: 'seconds',
    href: link('overview'),
  },
  refused_share: {
    label: 'Rejected webhooks in %',
    means:
      'Share of the webhook requests with valid credentials in the last hour. Applies from ten rejected requests.',
    unit: 'share',
    href: link('issues'),
  },
  dead_letters: {
    label: 'Dead letters',
    means: 'Number of dead letters that are neither replayed nor resolved.',
    unit: 'count',
    href: link('deadLetters'),
  },
  source_silent: {
    label: 'Silent source, multiple of its longest gap',
    means:
      'Time since the last event, relative to the longest gap of the previous week. Applies from ten minutes.',
    unit: 'times',
    href: link('sources'),
  },
  mrr_drop: {
    label: 'Lost MRR in %',
    means: 'Compared with the MRR of seven days ago, per currency.',
    unit: 'share',
    href: link('movements'),
  },
}

export const RULE_NAMES = Object.keys(RULES) as RuleName[]

export function shownValue(rule: RuleName, value: number): string {
  const { unit } = RULES[rule]
  if (unit === 'share') return percent(value)
  if (unit === 'seconds') return plural(Math.round(value), 'second')
  return unit === 'times' ? `${number(Math.round(value * 10) / 10)} ×` : number(value)
}

/** Shares are typed in %: what stands in the field, and back. */
export function typedValue(rule: RuleName, value: number | null): string {
  if (value === null) return ''
  return String(RULES[rule].unit === 'share' ? Number((value * 100).toPrecision(12)) : value)
}

export function valueIn(rule: RuleName, typed: string): number | null {
  const text = typed.trim().replace(/\s*%$/, '')
  if (text === '') return null
  const value = Number(text)
  if (!(value > 0 && Number.isFinite(value)))
    throw new Error(`${RULES[rule].label}: enter a number above 0, or leave it empty to turn the rule off.`)
  if (RULES[rule].unit === 'share' && value > 100)
    throw new Error(`${RULES[rule].label}: enter at most 100 %.`)
  return RULES[rule].unit === 'share' ? Number((value / 100).toPrecision(12)) : value
}
