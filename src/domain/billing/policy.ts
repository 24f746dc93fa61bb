import { isTimeZone } from '../time-zone.ts'
import type { ValidationError } from '../validation-error.ts'
import { RATE_FORMULAS } from './rates.ts'

/** What a tenant decides about how MRR is counted. The defaults are the rules below. */
export type Policy = {
  /** Whether a subscription that counted and is paused leaves MRR, or keeps what it had. */
  pause: 'churn' | 'keep'
  /** The same of one that is put on trial after it counted. */
  trialOnPaying: 'churn' | 'keep'
  /** So many days after it became past due, a subscription no longer counts; null: it counts as long as it is. */
  pastDueGraceDays: number | null
  /** IANA; of days, weeks and months in reports. */
  timeZone: string
  /** Whether the movements of one account on one day are one movement. */
  netWithinDay: boolean
  /** What a cohort's retention is measured by: what its accounts first paid, or paid at the end of their first month. */
  retentionBase: 'first_instant' | 'end_of_month'
}

/** Every change makes another version; 1 is what holds before any. */
export type PolicyVersion = Policy & { version: number }

export const DEFAULT_POLICY: PolicyVersion = {
  version: 1,
  pause: 'churn',
  trialOnPaying: 'churn',
  pastDueGraceDays: null,
  timeZone: 'UTC',
  netWithinDay: false,
  retentionBase: 'first_instant',
}

/** How MRR is counted: stated once, returned in every report, held to by mrr.ts, timeline.ts and movements.ts. */
const RULES = {
  summary:
    'MRR is what active and past-due subscriptions cost per month, without tax, after discounts that last. ' +
    'Trials, unpaid, incomplete, canceled, paused, free, metered and one-time items do not count; each is listed ' +
    'under exclusions with its reason.',
  monthly_factor: { year: '1/12', month: '1', week: '52/12', day: '365/12' },
  monthly_factor_rule: 'The factor of the interval, divided by interval_count.',
  rounding: 'half_up',
  rounding_rule:
    "Each item is rounded once, half-up, to the currency's minor unit after discounts; totals are sums of rounded items.",
  counted_statuses: ['active', 'past_due'],
  excluded_statuses: ['trialing', 'unpaid', 'incomplete', 'incomplete_expired', 'canceled', 'paused'],
  excluded_prices: ['free', 'metered', 'one_time'],
  tax: 'excluded',
  discounts: {
    forever: 'subtracted',
    repeating: 'subtracted_while_running',
    once: 'not_subtracted',
    amount_off: 'per_billing_period',
    amount_off_across_items: 'spread_in_proportion_to_monthly_price',
    order: 'as_listed',
    floor: 0,
  },
  scheduled_cancellation: 'counts_until_it_takes_effect',
  committed_mrr: 'MRR without subscriptions that are scheduled to cancel.',
  arr: '12 × MRR',
  arpa: 'MRR ÷ accounts with MRR > 0',
  movements: {
    unit: 'account_and_currency',
    new: "An account's first rise above 0.",
    expansion: 'A rise from above 0; a second subscription is expansion.',
    contraction: 'A fall to above 0.',
    churn: 'Any fall to 0.',
    reactivation: 'A later rise from 0.',
    identity: 'opening + new + expansion + reactivation − contraction − churn = closing',
  },
  rates: RATE_FORMULAS,
}

type Setting<Name extends keyof Policy> = {
  name: string
  /** What it may be, in words. */
  values: string
  /** undefined: not one of these. Text is as good as what it says, for the command line. */
  parse(value: unknown): Policy[Name] | undefined
}

const oneOf = <Value extends string>(name: string, ...values: Value[]) => ({
  name,
  values: values.join(' or '),
  parse: (value: unknown) => values.find(known => known === value),
})

const MAX_GRACE_DAYS = 3650

/** By the field of the policy, how it is called and read. */
export const SETTINGS: { [Name in keyof Policy]: Setting<Name> } = {
  pause: oneOf('pause', 'churn', 'keep'),
  trialOnPaying: oneOf('trial_on_paying', 'churn', 'keep'),
  pastDueGraceDays: {
    name: 'past_due_grace_days',
    values: `none or a whole number from 0 to ${MAX_GRACE_DAYS}`,
    parse(value) {
      if (value === 'none' || value === null) return null
      const days = typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : value
      return Number.isInteger(days) && (days as number) >= 0 && (days as number) <= MAX_GRACE_DAYS
        ? (days as number)
        : undefined
    },
  },
  timeZone: {
    name: 'time_zone',
    values: 'UTC or another name of the IANA database, for example Europe/Berlin',
    parse: value => (typeof value === 'string' && isTimeZone(value) ? value : undefined),
  },
  netWithinDay: {
    name: 'net_within_day',
    values: 'false or true',
    parse: value =>
      value === true || value === 'true' ? true : value === false || value === 'false' ? false : undefined,
  },
  retentionBase: oneOf('retention_base', 'first_instant', 'end_of_month'),
}

const FIELDS = Object.keys(SETTINGS) as (keyof Policy)[]

/** Settings by their public names. Names that are none and values that no setting has are faults, each in words. */
export function readPolicy(settings: Record<string, unknown>): {
  policy: Partial<Policy>
  faults: ValidationError[]
} {
  const policy: Partial<Policy> = {}
  const faults: ValidationError[] = []
  for (const [name, value] of Object.entries(settings)) {
    const field = FIELDS.find(known => SETTINGS[known].name === name)
    const pointer = `/${name}`
    if (field === undefined) {
      const names = FIELDS.map(known => SETTINGS[known].name).join(', ')
      faults.push({ pointer, message: `is no setting of the policy; there are ${names}` })
      continue
    }
    const parsed = SETTINGS[field].parse(value)
    if (parsed === undefined) faults.push({ pointer, message: `must be ${SETTINGS[field].values}` })
    else Object.assign(policy, { [field]: parsed })
  }
  return { policy, faults }
}

/** By public names. */
export function shownSettings(policy: Policy) {
  return {
    pause: policy.pause,
    trial_on_paying: policy.trialOnPaying,
    past_due_grace_days: policy.pastDueGraceDays ?? ('none' as const),
    time_zone: policy.timeZone,
    net_within_day: policy.netWithinDay,
    retention_base: policy.retentionBase,
  }
}

/** Settings that differ, by public names. */
export function changedSettings(
  before: Policy,
  after: Policy,
): Record<string, { before: unknown; after: unknown }> {
  const [old, now] = [shownSettings(before), shownSettings(after)]
  const names = Object.keys(now) as (keyof typeof now)[]
  return Object.fromEntries(
    names
      .filter(name => old[name] !== now[name])
      .map(name => [name, { before: old[name], after: now[name] }]),
  )
}

/** Whether the ledger reads otherwise by one than by the other; the rest is decided when a report is read. */
export function countsAlike(a: Policy, b: Policy): boolean {
  return (
    a.pause === b.pause && a.trialOnPaying === b.trialOnPaying && a.pastDueGraceDays === b.pastDueGraceDays
  )
}

/** The policy as reports carry it: its settings and all the rules. */
export function statedPolicy(policy: PolicyVersion) {
  const isKept = (status: string) =>
    (status === 'paused' && policy.pause === 'keep') ||
    (status === 'trialing' && policy.trialOnPaying === 'keep')
  const kept = RULES.excluded_statuses.filter(isKept)
  return {
    version: policy.version,
    ...shownSettings(policy),
    ...RULES,
    summary: [RULES.summary, ...exceptions(policy)].join(' '),
    /** They count where the subscription counted before. */
    ...(kept.length > 0 && { kept_statuses: kept }),
    excluded_statuses: RULES.excluded_statuses.filter(status => !isKept(status)),
  }
}

function exceptions({ pause, trialOnPaying, pastDueGraceDays }: Policy): string[] {
  return [
    ...(pause === 'keep' ? ['A subscription that counted keeps its MRR while it is paused.'] : []),
    ...(trialOnPaying === 'keep'
      ? ['A subscription that counted keeps its MRR while it is on trial again.']
      : []),
    ...(pastDueGraceDays === null
      ? []
      : [`A past-due subscription counts for ${pastDueGraceDays} days after it became past due.`]),
  ]
}
