/** What the answers look like, for the API reference: two accounts and a trial. */

export const page = (row: object) => ({ results: [row], page: 1, page_size: 50, count: 1, pages: 1 })

export const nothing = { results: [], page: 1, page_size: 50, count: 0, pages: 0 }

export const coverage = {
  subscriptions_seen: 3,
  subscriptions_included: 2,
  subscriptions_excluded: 1,
  items_seen: 3,
  items_priced: 3,
  invoices_without_subscription: 0,
  accounts_attributed: 1,
  attribution_rate: 0.5,
  first_event_at: '2025-11-02T10:00:00.000Z',
  last_event_at: '2026-03-30T08:12:44.000Z',
  snapshot_first_at: '2025-11-02T00:00:00.000Z',
  snapshot_days_available: 149,
  snapshot_gaps: 0,
  movements_complete: true,
  warnings: [],
  unrecognized: {},
}

export const movements = {
  opening_mrr: 49,
  new: 30,
  expansion: 10,
  contraction: 0,
  churn: 0,
  reactivation: 0,
  net: 40,
  closing_mrr: 89,
}

export const rates = {
  customer_churn_rate: 0,
  gross_mrr_churn_rate: 0,
  net_mrr_churn_rate: -0.20408163265306123,
  gross_revenue_retention: 1,
  net_revenue_retention: 1.2040816326530612,
  quick_ratio: null,
  ltv: null,
}

export const account = {
  customer: 'cus_42',
  customer_name: 'Ada Lovelace',
  customer_email: 'ada@example.com',
  mrr: 59,
  arr: 708,
  committed_mrr: 59,
  subscriptions: 1,
  active_subscriptions: 1,
  status: 'active',
  plan_names: ['Team'],
  acquisition_source: 'newsletter',
  customer_since: '2025-11-02T10:00:00.000Z',
  next_billing_at: '2026-04-02T10:00:00.000Z',
  has_payment_issue: false,
}

export const source = {
  source: 'newsletter',
  medium: 'email',
  campaign: 'autumn',
  accounts: 1,
  subscriptions: 1,
  mrr: 59,
  mrr_share: 0.6629213483146067,
  arpa: 59,
  cohort_accounts: 1,
  cohort_starting_mrr: 49,
  retained_mrr: 59,
  retention_rate: 1.2040816326530612,
  retention_status: 'available',
}
