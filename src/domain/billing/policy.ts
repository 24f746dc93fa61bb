import { RATE_FORMULAS } from './rates.ts'

/** How MRR is counted: stated once, returned in every report, held to by mrr.ts, timeline.ts and movements.ts. */
export const POLICY = {
  version: 1,
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
} as const
