import { isDeepStrictEqual } from 'node:util'
import { CHANNEL_RULES_FORM, type ChannelRule, parseChannelRules } from '../customers/channels.ts'
import { isObject } from '../json/json.ts'
import { CURRENCY_FORMAT, knownCurrency } from '../money.ts'
import { isTimeZone } from '../time-zone.ts'
import type { ValidationError } from '../validation-error.ts'

/** A tenant's settings for how MRR is counted. */
export type Policy = {
  /** Whether the MRR of a subscription that counted churns or stays while it is paused. */
  pause: 'churn' | 'keep'
  /** The same for a subscription in a trial after it counted. */
  trialOnPaying: 'churn' | 'keep'
  /** Days after which a past-due subscription stops counting; null: never. */
  pastDueGraceDays: number | null
  /** IANA name, for days, weeks and months in reports. */
  timeZone: string
  /** Whether the movements of one account on one day are combined. */
  netWithinDay: boolean
  /** The base of a cohort's retention: the first MRR of its accounts, or their MRR at the end of the first month. */
  retentionBase: 'first_instant' | 'end_of_month'
  /** The currency of reports with `currency=reporting`; null: not set. */
  reportingCurrency: string | null
  /** Rules for marketing channels, before the default ones. */
  channels: ChannelRule[]
  /** By group, the names or ids of its plans. */
  planGroups: Record<string, string[]>
}

/** Every change creates a version; version 1 is the default. */
export type PolicyVersion = Policy & { version: number }

export const DEFAULT_POLICY: PolicyVersion = {
  version: 1,
  pause: 'churn',
  trialOnPaying: 'churn',
  pastDueGraceDays: null,
  timeZone: 'UTC',
  netWithinDay: false,
  retentionBase: 'first_instant',
  reportingCurrency: null,
  channels: [],
  planGroups: {},
}

/** Returned in every report as part of the policy. */
const RATE_FORMULAS = {
  customer_churn_rate: 'accounts with MRR > 0 at opening and 0 at closing ÷ accounts with MRR > 0 at opening',
  gross_mrr_churn_rate: '(contraction + churn) ÷ opening MRR',
  net_mrr_churn_rate: '(contraction + churn − expansion − reactivation) ÷ opening MRR',
  gross_revenue_retention: 'Of the accounts with MRR at opening: Σ min(MRR at closing, MRR at opening) ÷ opening MRR',
  net_revenue_retention: 'Of the accounts with MRR at opening: Σ MRR at closing ÷ opening MRR',
  quick_ratio: '(new + expansion + reactivation) ÷ (contraction + churn)',
  ltv: 'ARPA ÷ customer_churn_rate',
  base_of_zero: null,
} as const

/** How MRR is counted, as returned in every report. price.ts, timeline.ts and account.ts implement it. */
const RULES = {
  summary:
    'MRR is the monthly price of active and past-due subscriptions, without tax, after recurring discounts. ' +
    'Trials, unpaid, incomplete, canceled, paused, free, metered and one-time items do not count. Each is listed ' +
    'under exclusions with its reason.',
  monthly_factor: { year: '1/12', month: '1', week: '52/12', day: '365/12' },
  monthly_factor_rule: 'The factor of the interval, divided by interval_count.',
  rounding: 'half_up',
  rounding_rule:
    "Each item is rounded once, half up, to the currency's minor unit after discounts. Totals are sums of rounded items.",
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
    new: "An account's first increase above 0.",
    expansion: 'An increase from an amount above 0; a second subscription is expansion.',
    contraction: 'A decrease to an amount above 0.',
    churn: 'Any decrease to 0.',
    reactivation: 'A later increase from 0.',
    fx: 'Only in the reporting currency: the effect of exchange rates alone.',
    identity: 'opening + new + expansion + reactivation − contraction − churn + fx = closing',
  },
  rates: RATE_FORMULAS,
}

type Setting<Name extends keyof Policy> = {
  name: string
  /** The allowed values, for messages. */
  values: string
  /** For the help. */
  meaning: string
  /** undefined: not an allowed value. Strings are parsed, for the command line. */
  parse(value: unknown): Policy[Name] | undefined
}

const oneOf = <Value extends string>(name: string, meaning: string, ...values: Value[]) => ({
  name,
  meaning,
  values: values.join(' or '),
  parse: (value: unknown) => values.find(known => known === value),
})

const MAX_GRACE_DAYS = 3650

/** The public name and the parser of each field. */
export const SETTINGS: { [Name in keyof Policy]: Setting<Name> } = {
  pause: oneOf('pause', 'whether a paused subscription churns or keeps its MRR', 'churn', 'keep'),
  trialOnPaying: oneOf(
    'trial_on_paying',
    'whether a paying subscription that returns to a trial churns or keeps its MRR',
    'churn',
    'keep',
  ),
  pastDueGraceDays: {
    name: 'past_due_grace_days',
    meaning:
      'days after which a past-due subscription stops counting; none: a past-due subscription counts until it is unpaid or canceled',
    values: `none or an integer from 0 to ${MAX_GRACE_DAYS}`,
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
    meaning: 'time zone of days, weeks and months in reports',
    values: 'UTC or another IANA time zone, for example Europe/Berlin',
    parse: value => (typeof value === 'string' && isTimeZone(value) ? value : undefined),
  },
  netWithinDay: {
    name: 'net_within_day',
    meaning: 'whether the changes of one account on one day count as one movement',
    values: 'false or true',
    parse: value =>
      value === true || value === 'true' ? true : value === false || value === 'false' ? false : undefined,
  },
  retentionBase: oneOf(
    'retention_base',
    'base of customer retention: the first MRR of an account, or its MRR at the end of its first month',
    'first_instant',
    'end_of_month',
  ),
  reportingCurrency: {
    name: 'reporting_currency',
    meaning: 'currency to which reports with the query parameter currency=reporting convert all amounts',
    values: `none or ${CURRENCY_FORMAT}`,
    parse: value => (value === 'none' || value === null ? null : (knownCurrency(value) ?? undefined)),
  },
  channels: {
    name: 'channels',
    meaning: 'rules that assign customers to marketing channels; Kontor checks them before its default rules',
    values: CHANNEL_RULES_FORM,
    parse: parseChannelRules,
  },
  planGroups: {
    name: 'plan_groups',
    meaning: 'groups of plans for breakdowns and filters',
    values:
      'a JSON object of at most 100 groups with the names of their plans, for example {"Business":["Team","Scale"]}',
    parse: parsePlanGroups,
  },
}

const MAX_GROUPS = 100
const MAX_PLANS = 1_000
const MAX_NAME_LENGTH = 200

/** Undefined: not groups of plans. A string is parsed as JSON, for the command line. */
function parsePlanGroups(value: unknown): Record<string, string[]> | undefined {
  const given = typeof value === 'string' ? parseJson(value) : value
  if (!isObject(given)) return undefined
  const isName = (name: unknown) => typeof name === 'string' && name !== '' && name.length <= MAX_NAME_LENGTH
  const groups = Object.entries(given)
  const isValid =
    groups.length <= MAX_GROUPS &&
    groups.every(([name, plans]) => isName(name) && Array.isArray(plans) && plans.every(isName)) &&
    groups.flatMap(([, plans]) => plans).length <= MAX_PLANS
  return isValid ? (given as Record<string, string[]>) : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const FIELDS = Object.keys(SETTINGS) as (keyof Policy)[]

/** Parses settings by their public names. Unknown names and invalid values are validation errors. */
export function parsePolicy(settings: Record<string, unknown>): { policy: Partial<Policy>; errors: ValidationError[] } {
  const policy: Partial<Policy> = {}
  const errors: ValidationError[] = []
  for (const [name, value] of Object.entries(settings)) {
    const field = FIELDS.find(known => SETTINGS[known].name === name)
    const pointer = `/${name}`
    if (field === undefined) {
      const names = FIELDS.map(known => SETTINGS[known].name).join(', ')
      errors.push({ pointer, message: `is not a policy setting. Settings: ${names}` })
      continue
    }
    const parsed = SETTINGS[field].parse(value)
    if (parsed === undefined) errors.push({ pointer, message: `must be ${SETTINGS[field].values}` })
    else Object.assign(policy, { [field]: parsed })
  }
  return { policy, errors }
}

/** Settings by their public names. */
export function formatSettings(policy: Policy) {
  return {
    pause: policy.pause,
    trial_on_paying: policy.trialOnPaying,
    past_due_grace_days: policy.pastDueGraceDays ?? ('none' as const),
    time_zone: policy.timeZone,
    net_within_day: policy.netWithinDay,
    retention_base: policy.retentionBase,
    reporting_currency: policy.reportingCurrency ?? ('none' as const),
    channels: policy.channels,
    plan_groups: policy.planGroups,
  }
}

/** Settings that differ, by their public names. */
export function changedSettings(before: Policy, after: Policy): Record<string, { before: unknown; after: unknown }> {
  const [old, now] = [formatSettings(before), formatSettings(after)]
  const names = Object.keys(now) as (keyof typeof now)[]
  return Object.fromEntries(
    names
      .filter(name => !isDeepStrictEqual(old[name], now[name]))
      .map(name => [name, { before: old[name], after: now[name] }]),
  )
}

/** Whether both policies derive the same ledger. The other settings take effect when a report is read. */
export function countsEqually(a: Policy, b: Policy): boolean {
  return a.pause === b.pause && a.trialOnPaying === b.trialOnPaying && a.pastDueGraceDays === b.pastDueGraceDays
}

/** The policy in reports: its settings and all rules. */
export function describePolicy(policy: PolicyVersion) {
  const isKept = (status: string) =>
    (status === 'paused' && policy.pause === 'keep') || (status === 'trialing' && policy.trialOnPaying === 'keep')
  const kept = RULES.excluded_statuses.filter(isKept)
  const { channels, plan_groups, ...settings } = formatSettings(policy)
  return {
    version: policy.version,
    ...settings,
    ...RULES,
    summary: [RULES.summary, ...describeExceptions(policy)].join(' '),
    /** They count if the subscription counted before. */
    ...(kept.length > 0 && { kept_statuses: kept }),
    excluded_statuses: RULES.excluded_statuses.filter(status => !isKept(status)),
  }
}

function describeExceptions({ pause, trialOnPaying, pastDueGraceDays }: Policy): string[] {
  return [
    ...(pause === 'keep' ? ['A subscription that counted keeps its MRR while it is paused.'] : []),
    ...(trialOnPaying === 'keep' ? ['A subscription that counted keeps its MRR while it is in a new trial.'] : []),
    ...(pastDueGraceDays === null
      ? []
      : [`A past-due subscription counts for ${pastDueGraceDays} days after it became past due.`]),
  ]
}

// Churn and retention rates over a window.

/** Null if the divisor is 0. */
export type Rates = {
  customerChurnRate: number | null
  grossMrrChurnRate: number | null
  netMrrChurnRate: number | null
  grossRevenueRetention: number | null
  netRevenueRetention: number | null
  quickRatio: number | null
  /** Minor units. */
  ltv: number | null
}

/** What became of the accounts with MRR at opening: the change of their MRR, what they lost one by one, and how many are gone. */
export type Retained = { change: number; lostMrr: number; lostAccounts: number }

export function computeRetention(openingMrr: number, { change, lostMrr }: Pick<Retained, 'change' | 'lostMrr'>) {
  return {
    grossRevenueRetention: over(openingMrr - lostMrr, openingMrr),
    netRevenueRetention: over(openingMrr + change, openingMrr),
  }
}

const over = (part: number, whole: number) => (whole > 0 ? part / whole : null)

export function computeRates(window: {
  moved: Record<'new' | 'expansion' | 'contraction' | 'churn' | 'reactivation', number>
  openingMrr: number
  /** The opening MRR by the rates of the closing day; by default the opening MRR. */
  retentionBaseMrr?: number
  openingAccounts: number
  retained: Retained
  arpa: number
}): Rates {
  const { moved, openingMrr, retentionBaseMrr = openingMrr, openingAccounts, retained, arpa } = window
  const { lostAccounts } = retained
  const lost = moved.contraction + moved.churn
  const won = moved.expansion + moved.reactivation
  return {
    customerChurnRate: over(lostAccounts, openingAccounts),
    grossMrrChurnRate: over(lost, openingMrr),
    netMrrChurnRate: over(lost - won, openingMrr),
    ...computeRetention(retentionBaseMrr, retained),
    quickRatio: over(moved.new + won, lost),
    ltv: lostAccounts > 0 ? Math.round((arpa * openingAccounts) / lostAccounts) : null,
  }
}
