import { DIMENSIONS } from '../../domain/billing/dimensions.ts'
import { DEFAULT_POLICY, describePolicy } from '../../domain/billing/policy.ts'
import { type TObject, type TProperties, Type } from '../../domain/typebox.ts'
import {
  AccountRow,
  CancellationRow,
  ChurnReasonRow,
  CohortRow,
  Count,
  ExclusionRow,
  ForecastChangeRow,
  ForecastMonthRow,
  ItemRow,
  MaybeTime,
  MovementListRow,
  money,
  PaymentIssueRow,
  PolicyChangeRow,
  Rates,
  ReasonRow,
  ReasonTotalRow,
  RenewalRow,
  ReportingHistoryRow,
  RevenueFactRow,
  RevenueFigures,
  RevenueRow,
  SourceRow,
  Time,
  TimelineRow,
  UpcomingBillingRow,
} from './rows.ts'
// Examples for the API reference: two accounts and a trial.

export const page = (row: object) => ({ results: [row], page: 1, page_size: 50, count: 1, pages: 1 })

const nothing = { results: [], page: 1, page_size: 50, count: 0, pages: 0 }

const coverage = {
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
  test_events: 0,
}

const movements = {
  opening_mrr: 49,
  new: 30,
  expansion: 10,
  contraction: 0,
  churn: 0,
  reactivation: 0,
  net: 40,
  closing_mrr: 89,
}

const rates = {
  customer_churn_rate: 0,
  gross_mrr_churn_rate: 0,
  net_mrr_churn_rate: -0.20408163265306123,
  gross_revenue_retention: 1,
  net_revenue_retention: 1.2040816326530612,
  quick_ratio: null,
  ltv: null,
}

const account = {
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

const source = {
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

// Response bodies.

export const Amount = Type.Number({ description: 'Major units of the currency' })

export const ReportPolicy = Type.Unsafe<ReturnType<typeof describePolicy>>(
  Type.Object(
    {},
    {
      title: 'ReportPolicy',
      description: 'How MRR is computed: the settings of the tenant, their version, and all rules',
      examples: [describePolicy(DEFAULT_POLICY)],
    },
  ),
)
// The whole policy is in the schema.
export const POLICY = { version: 1 }

export function pageSchema<Row extends TObject>(row: Row) {
  return Type.Object(
    {
      results: Type.Array(row),
      page: Type.Integer({ minimum: 1 }),
      page_size: Type.Integer({ minimum: 1, maximum: 100 }),
      count: Count,
      pages: Count,
    },
    { description: 'One page of the list' },
  )
}

type Pages<Lists extends Record<string, TObject>> = {
  [Name in keyof Lists]: ReturnType<typeof pageSchema<Lists[Name]>>
}

export function reportSchema<Facts extends TProperties, Lists extends Record<string, TObject>>(
  facts: Facts,
  lists: Lists,
  example: object,
) {
  const pages = Object.fromEntries(Object.entries(lists).map(([name, row]) => [name, pageSchema(row)]))
  return Type.Object(
    {
      currency: Type.String(),
      as_of: Time,
      ...facts,
      policy: ReportPolicy,
      ...(pages as Pages<Lists>),
    },
    { examples: [{ currency: 'EUR', as_of: '2026-03-31T09:30:00.000Z', ...example, policy: POLICY }] },
  )
}

/** A report whose only list is paged at the top level of the body. */
export function flatReportSchema<Facts extends TProperties, Row extends TObject>(
  facts: Facts,
  row: Row,
  example: object,
) {
  return reportSchema({ ...facts, ...pageSchema(row).properties }, {}, example)
}

export const Coverage = Type.Object(
  {
    subscriptions_seen: Count,
    subscriptions_included: Count,
    subscriptions_excluded: Count,
    items_seen: Count,
    items_priced: Type.Integer({ minimum: 0, description: 'Items whose price per month is known' }),
    invoices_without_subscription: Type.Integer({
      minimum: 0,
      description: 'Invoices without a subscription, or with one that has not arrived',
    }),
    accounts_attributed: Count,
    attribution_rate: Type.Number({ minimum: 0, maximum: 1 }),
    first_event_at: MaybeTime,
    last_event_at: MaybeTime,
    snapshot_first_at: MaybeTime,
    snapshot_days_available: Count,
    snapshot_gaps: Type.Integer({ minimum: 0, description: 'Days without a snapshot, since the first snapshot' }),
    movements_complete: Type.Boolean(),
    warnings: Type.Array(Type.String()),
    unrecognized: Type.Record(Type.String(), Count, {
      description: 'By type, the events that seem to be about billing but were not recognized',
    }),
    test_events: Type.Integer({
      minimum: 0,
      description: "Events of a provider's test mode, which are not counted in any total",
    }),
  },
  { title: 'Coverage', description: 'How much of the received data the report contains' },
)

const Movements = {
  opening_mrr: Amount,
  new: Amount,
  expansion: Amount,
  contraction: Amount,
  churn: Amount,
  reactivation: Amount,
  fx: Type.Optional(Type.Number({ description: 'The effect of exchange rates, with `currency=reporting`' })),
  net: Amount,
  closing_mrr: Amount,
}

const Cash = Type.Object(
  { amount: Amount, count: Count },
  { title: 'AmountAndCount', description: 'An amount and the number of its invoices or payments' },
)

export const OverviewBody = reportSchema(
  {
    mrr: Amount,
    arr: Amount,
    arpa: Amount,
    committed_mrr: Amount,
    active_subscriptions: Count,
    active_accounts: Count,
    coverage: Coverage,
    attention: Type.Object(
      { payment_issues: Count, renewals: Count, cancellations: Count, upcoming_billing: Count },
      { description: 'The number of rows in the attention report for 30 days' },
    ),
    invoiced: Cash,
    collected: Type.Object(
      { ...Cash.properties, refunded: Amount, disputed: Amount, one_off: Amount },
      { description: 'Payments of the window, and what was returned of them' },
    ),
    movements: Type.Object(
      { window_days: Type.Integer(), ...Movements },
      { description: 'How MRR changed in the window' },
    ),
    older_rates: Type.Optional(
      Type.Array(Type.String(), {
        description: 'With `currency=reporting`: currencies whose rate is from an earlier day',
      }),
    ),
    rates: Rates,
  },
  { accounts: AccountRow, acquisition_sources: SourceRow, exclusions: ExclusionRow },
  {
    mrr: 89,
    arr: 1068,
    arpa: 44.5,
    committed_mrr: 89,
    active_subscriptions: 2,
    active_accounts: 2,
    coverage,
    attention: { payment_issues: 0, renewals: 0, cancellations: 0, upcoming_billing: 2 },
    invoiced: { amount: 105.91, count: 2 },
    collected: { amount: 105.91, count: 2, refunded: 0, disputed: 0, one_off: 0 },
    movements: { window_days: 30, ...movements },
    rates,
    accounts: page(account),
    acquisition_sources: page(source),
    exclusions: page({
      subscription_id: 'sub_7',
      item_id: 'si_7',
      customer: 'cus_43',
      customer_name: 'Grace Hopper',
      status: 'trialing',
      reason_code: 'trialing',
      reason: 'The subscription is in its trial.',
      excluded_mrr: 49,
      since: '2026-03-25T00:00:00.000Z',
      fix_hint: 'No action needed: it counts when the trial has ended and an event reports it as active.',
    }),
  },
)

export const AttentionBody = reportSchema(
  { days: Type.Integer() },
  {
    payment_issues: PaymentIssueRow,
    renewals: RenewalRow,
    cancellations: CancellationRow,
    upcoming_billing: UpcomingBillingRow,
  },
  {
    days: 30,
    payment_issues: page({
      invoice_id: 'in_9',
      invoice_number: 'A-0009',
      subscription_id: 'sub_9',
      customer: 'cus_9',
      customer_name: 'Alan Turing',
      issue_type: 'payment_failed',
      amount_due: 49,
      amount_remaining: 49,
      attempt_count: 2,
      next_payment_attempt_at: '2026-04-03T10:00:00.000Z',
      failure_code: 'card_declined',
      failure_message: 'Your card was declined.',
      due_at: null,
      days_overdue: null,
      mrr_at_risk: 49,
    }),
    renewals: nothing,
    cancellations: nothing,
    upcoming_billing: page({
      subscription_id: 'sub_42',
      customer: 'cus_42',
      customer_name: 'Ada Lovelace',
      bills_at: '2026-04-02T10:00:00.000Z',
      days_until: 3,
      estimated_amount: 59,
      collection_method: 'charge_automatically',
      is_trial_conversion: false,
      includes_metered: false,
    }),
  },
)

export const AcquisitionBody = reportSchema(
  { horizon: Type.Integer(), mrr: Amount, coverage: Coverage },
  { sources: SourceRow },
  { horizon: 30, mrr: 89, coverage, sources: page(source) },
)

export const AccountBody = reportSchema(
  { summary: AccountRow },
  { items: ItemRow, timeline: TimelineRow },
  {
    summary: account,
    items: page({
      subscription_id: 'sub_42',
      item_id: 'si_42',
      price_id: 'price_team',
      plan_name: 'Team',
      quantity: 1,
      unit_amount: 59,
      currency: 'EUR',
      interval: 'month',
      interval_count: 1,
      usage_type: 'licensed',
      gross_mrr: 59,
      discount_mrr: 0,
      mrr: 59,
      included: true,
      exclusion_reason: null,
      current_period_start: '2026-03-02T10:00:00.000Z',
      current_period_end: '2026-04-02T10:00:00.000Z',
    }),
    timeline: page({
      occurred_at: '2026-03-12T14:00:00.000Z',
      event_type: 'movement.expansion',
      category: 'movement',
      subscription_id: 'sub_42',
      movement_type: 'expansion',
      mrr_before: 49,
      mrr_after: 59,
      mrr_delta: 10,
      amount: null,
      invoice_id: null,
      cause: 'quantity',
      event_id: null,
      description: 'MRR increased (sub_42).',
    }),
  },
)

export const MovementsBody = Type.Object(
  {
    currency: Type.String(),
    as_of: Time,
    since: Time,
    until: Time,
    totals: Type.Object(Movements, { description: 'The sums of all movements in the window' }),
    policy: ReportPolicy,
    ...pageSchema(MovementListRow).properties,
  },
  {
    examples: [
      {
        currency: 'EUR',
        as_of: '2026-03-31T09:30:00.000Z',
        since: '2026-03-01T00:00:00.000Z',
        until: '2026-03-31T09:30:00.000Z',
        totals: movements,
        policy: POLICY,
        ...page({
          occurred_at: '2026-03-12T14:00:00.000Z',
          customer: 'cus_42',
          customer_name: 'Ada Lovelace',
          movement_type: 'expansion',
          mrr_before: 49,
          mrr_after: 59,
          mrr_delta: 10,
          subscription_ids: ['sub_42'],
          cause: 'quantity',
          event_id: '019c1234-5678-7000-8abc-def012300003',
        }),
      },
    ],
  },
)

export const RetentionBody = reportSchema(
  { months: Type.Integer(), retention_base: Type.Enum(['first_instant', 'end_of_month']) },
  { cohorts: CohortRow },
  {
    months: 12,
    retention_base: 'first_instant',
    cohorts: page({
      cohort: '2025-11',
      month: 4,
      at: '2026-03-31T09:30:00.000Z',
      accounts: 1,
      starting_accounts: 1,
      starting_mrr: 49,
      mrr: 59,
      gross_mrr: 49,
      logo_retention: 1,
      gross_revenue_retention: 1,
      net_revenue_retention: 1.2040816326530612,
    }),
  },
)

const { opening_mrr: _, closing_mrr: __, ...moved } = movements

export const HistoryBody = reportSchema(
  {
    interval: Type.String(),
    policy_changes: Type.Array(PolicyChangeRow, {
      description:
        'Policy changes and their effect on MRR. All rows are computed by the current policy, so a policy change is not a movement',
    }),
    results: Type.Array(ReportingHistoryRow),
  },
  {},
  {
    interval: 'month',
    policy_changes: [
      {
        kind: 'policy',
        at: '2026-03-20T09:00:00.000Z',
        version: 2,
        settings: { pause: { before: 'churn', after: 'keep' } },
        mrr_before: 79,
        mrr_after: 89,
        mrr_delta: 10,
      },
    ],
    results: [
      {
        date: '2026-03-01',
        mrr: 89,
        arr: 1068,
        active_accounts: 2,
        active_subscriptions: 2,
        ...moved,
        new_accounts: 1,
        churned_accounts: 0,
        rates,
      },
    ],
  },
)

const PartName = Type.Optional(Type.String({ description: 'Present if `by` selects it' }))

const BreakdownRow = Type.Object(
  {
    plan: PartName,
    interval: PartName,
    source: PartName,
    country: PartName,
    plan_group: PartName,
    channel: PartName,
    metadata: PartName,
    mrr: money(),
    accounts: Type.Integer({ description: 'Accounts with a part of this MRR' }),
    subscriptions: Type.Integer({ description: 'Subscriptions with a part of this MRR' }),
  },
  { title: 'BreakdownRow', description: 'The MRR of one plan, country or other segment' },
)

export const BreakdownBody = reportSchema(
  {
    by: Type.Enum([...DIMENSIONS, 'metadata']),
    mrr: Amount,
    results: Type.Array(BreakdownRow),
  },
  {},
  {
    by: 'plan',
    mrr: 89,
    results: [
      { plan: 'Team', mrr: 59, accounts: 1, subscriptions: 1 },
      { plan: 'Solo', mrr: 30, accounts: 1, subscriptions: 1 },
    ],
  },
)

export const ExclusionsBody = flatReportSchema({ by_reason: Type.Array(ReasonRow) }, ExclusionRow, {
  by_reason: [
    {
      reason_code: 'trialing',
      reason: 'The subscription is in its trial.',
      items: 1,
      excluded_mrr: 49,
      unpriced: 0,
    },
  ],
  ...nothing,
})

const unmoved = { new: 0, expansion: 0, contraction: 0, churn: 0, reactivation: 0, trial_ends: 0 }

export const ForecastBody = flatReportSchema(
  { opening_mrr: Amount, months: Type.Array(ForecastMonthRow) },
  ForecastChangeRow,
  {
    opening_mrr: 89,
    months: [{ date: '2026-04-01', mrr: 59, ...unmoved, churn: 30, net: -30 }],
    ...page({
      at: '2026-04-12T10:00:00.000Z',
      kind: 'cancellation',
      customer: 'cus_43',
      customer_name: 'Grace Hopper',
      subscription_id: 'sub_43',
      amount: -30,
      mrr_delta: -30,
    }),
  },
)

const reason = { reason: 'too_expensive', accounts: 1, mrr: 30 }

export const ChurnReasonsBody = reportSchema(
  { totals: Type.Array(ReasonTotalRow), results: Type.Array(ChurnReasonRow) },
  {},
  { totals: [reason], results: [{ date: '2026-03-01', ...reason }] },
)

const figures = { invoiced: 1200, recognized: 101.92, deferred: 1098.08 }

export const RevenueBody = reportSchema(
  {
    warnings: Type.Array(Type.String(), { description: 'Why figures are incomplete; empty if they are complete' }),
    results: Type.Array(RevenueRow),
  },
  {},
  { warnings: [], results: [{ date: '2026-03-01', ...figures }] },
)

export const RevenueTotals = Type.Object(RevenueFigures, {
  title: 'RevenueTotals',
  description: 'The sums of the rows',
})

export const RevenueFactsBody = flatReportSchema({ date: Type.String(), totals: RevenueTotals }, RevenueFactRow, {
  date: '2026-03-01',
  totals: figures,
  ...page({
    invoice_id: 'in_42',
    invoice_number: 'A-0042',
    credit_note_id: null,
    subscription_id: 'sub_42',
    customer: 'cus_42',
    customer_name: 'Ada Lovelace',
    invoiced_on: '2026-03-01',
    service_start: '2026-03-01',
    service_end: '2027-03-01',
    amount: 1200,
    ...figures,
  }),
})
