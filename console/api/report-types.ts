import type { Amount } from '../amount.ts'
import type { Paged } from './types.ts'

/** The subscription reports, as far as the console reads them; see types.ts. */

type Time = string
type Maybe<T> = T | null
type Money = Amount

export type Account = {
  customer: string
  customer_name: Maybe<string>
  customer_email: Maybe<string>
  mrr: Money
  arr: Money
  committed_mrr: Money
  subscriptions: number
  active_subscriptions: number
  status: string
  plan_names: string[]
  acquisition_source: string
  customer_since: Maybe<Time>
  next_billing_at: Maybe<Time>
  has_payment_issue: boolean
}
export type Exclusion = {
  subscription_id: string
  item_id: Maybe<string>
  customer: Maybe<string>
  reason_code: string
  reason: string
  excluded_mrr: Maybe<Money>
  since: Time
  fix_hint: string
}
export type PaymentIssue = {
  invoice_id: Maybe<string>
  invoice_number: Maybe<string>
  customer: Maybe<string>
  issue_type: string
  amount_due: Maybe<Money>
  amount_remaining: Maybe<Money>
  attempt_count: Maybe<number>
  next_payment_attempt_at: Maybe<Time>
  failure_message: Maybe<string>
  due_at: Maybe<Time>
  days_overdue: Maybe<number>
  mrr_at_risk: Money
}
export type Renewal = {
  subscription_id: string
  customer: string
  renews_at: Time
  days_until: number
  interval: string
  interval_count: number
  renewal_amount: Maybe<Money>
  mrr: Money
}
export type Cancellation = {
  subscription_id: string
  customer: string
  cancels_at: Time
  days_until: number
  reason: Maybe<string>
  mrr_at_risk: Money
}
export type UpcomingBilling = {
  subscription_id: string
  customer: string
  bills_at: Time
  days_until: number
  estimated_amount: Maybe<Money>
  collection_method: Maybe<string>
  is_trial_conversion: boolean
  includes_metered: boolean
}
export type AcquisitionSource = {
  source: string
  medium: Maybe<string>
  campaign: Maybe<string>
  accounts: number
  mrr: Money
  mrr_share: Amount
  arpa: Money
  retained_mrr: Maybe<Money>
  retention_rate: Maybe<Amount>
  retention_status: string
}
export type Item = {
  subscription_id: string
  item_id: Maybe<string>
  price_id: Maybe<string>
  plan_name: Maybe<string>
  quantity: Maybe<Amount>
  unit_amount: Maybe<Money>
  currency: Maybe<string>
  interval: Maybe<string>
  interval_count: Maybe<number>
  discount_mrr: Money
  mrr: Money
  included: boolean
  exclusion_reason: Maybe<string>
  current_period_end: Maybe<Time>
}
export type TimelineEntry = {
  occurred_at: Time
  event_type: string
  category: string
  subscription_id: Maybe<string>
  movement_type: Maybe<string>
  mrr_after: Maybe<Money>
  mrr_delta: Maybe<Money>
  amount: Maybe<Money>
  event_id: Maybe<string>
  description: string
}
export type Coverage = {
  subscriptions_seen: number
  subscriptions_included: number
  attribution_rate: Amount
  first_event_at: Maybe<Time>
  last_event_at: Maybe<Time>
  warnings: string[]
}
export type Movements = {
  window_days: number
  opening_mrr: Money
  new: Money
  expansion: Money
  contraction: Money
  churn: Money
  reactivation: Money
  net: Money
  closing_mrr: Money
}
type Cash = { amount: Money; count: number }

export type RateName =
  | 'customer_churn_rate'
  | 'gross_mrr_churn_rate'
  | 'net_mrr_churn_rate'
  | 'gross_revenue_retention'
  | 'net_revenue_retention'
  | 'quick_ratio'
  | 'ltv'

export type OverviewReport = {
  currency: string
  as_of: Time
  mrr: Money
  arr: Money
  arpa: Money
  committed_mrr: Money
  active_subscriptions: number
  active_accounts: number
  coverage: Coverage
  attention: { payment_issues: number; renewals: number; cancellations: number; upcoming_billing: number }
  invoiced: Cash
  collected: Cash
  movements: Movements
  /** Of the same window. */
  rates: Record<RateName, Maybe<Amount>>
  /** The formulas of the rates. */
  policy: { rates: Record<string, Maybe<string>> }
  accounts: Paged<Account>
  exclusions: Paged<Exclusion>
}
/** A bucket of time: how it ended, and what moved in it. */
export type HistoryRow = {
  date: string
  mrr: Money
  active_accounts: number
  active_subscriptions: number
  new: Money
  expansion: Money
  contraction: Money
  churn: Money
  reactivation: Money
  net: Money
}
export type HistoryReport = { currency: string; interval: string; results: HistoryRow[] }
export type BreakdownRow = {
  plan?: string
  interval?: string
  source?: string
  country?: string
  mrr: Money
  accounts: number
  subscriptions: number
}
export type BreakdownReport = {
  currency: string
  by: 'plan' | 'interval' | 'source' | 'country'
  mrr: Money
  results: BreakdownRow[]
}
/** How a cohort stood so many months after it began. */
export type Cohort = {
  cohort: string
  month: number
  starting_accounts: number
  starting_mrr: Money
  logo_retention: Maybe<Amount>
  gross_revenue_retention: Maybe<Amount>
  net_revenue_retention: Maybe<Amount>
}
export type MovementRow = {
  occurred_at: Time
  customer: string
  customer_name: Maybe<string>
  movement_type: string
  mrr_before: Money
  mrr_after: Money
  mrr_delta: Money
  cause: string
  event_id: Maybe<string>
}
/** Of a stretch of time: what it comes to, and each of them. */
export type MovementsReport = Paged<MovementRow> & {
  currency: string
  totals: Omit<Movements, 'window_days'>
}
export type RetentionReport = { currency: string; months: number; cohorts: Paged<Cohort> }
export type AttentionReport = {
  currency: string
  days: number
  payment_issues: Paged<PaymentIssue>
  renewals: Paged<Renewal>
  cancellations: Paged<Cancellation>
  upcoming_billing: Paged<UpcomingBilling>
}
export type AcquisitionReport = {
  currency: string
  horizon: number
  mrr: Money
  sources: Paged<AcquisitionSource>
}
export type AccountReport = {
  currency: string
  as_of: Time
  summary: Account
  items: Paged<Item>
  timeline: Paged<TimelineEntry>
}
