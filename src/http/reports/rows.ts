import { MOVEMENT_TYPES } from '../../domain/billing/account.ts'
import { CAUSES } from '../../domain/billing/cause.ts'
import type { Dimension } from '../../domain/billing/dimensions.ts'
import { stripNamespaces } from '../../domain/billing/namespace.ts'
import { majorText, toMajor } from '../../domain/money.ts'
import { OpenObject } from '../../domain/shapes.ts'
import { type Static, type TObject, Type } from '../../domain/typebox.ts'

// Reports return amounts in minor units. Responses contain the marked fields in major units.
const MONEY = 'x-money'

export const money = (description?: string) =>
  Type.Number({ [MONEY]: true, ...(description !== undefined && { description }) })
const maybe = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()])
const Text = Type.String()
const MaybeText = maybe(Text)
// Reports return instants as milliseconds or dates. Responses contain ISO 8601.
const time = (description?: string) =>
  Type.Unsafe<number | Date>(Type.String({ format: 'timestamp', ...(description !== undefined && { description }) }))
export const Time = time()
export const MaybeTime = maybe(Time)
export const Count = Type.Integer({ minimum: 0 })
export const Share = Type.Number({ minimum: 0, description: 'A fraction of 1' })

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name

/** A row of a report: camel-case names, amounts in minor units. */
export type Row<Schema extends TObject> = CamelFields<Static<Schema>>

type CamelFields<Fields> = { [Name in keyof Fields as Camel<Name & string>]: CamelValue<Fields[Name]> }

/** Only nested rows, which are plain objects; not arrays, dates or objects with free names. */
type CamelValue<Value> = Value extends unknown[] | Date
  ? Value
  : Value extends object
    ? string extends keyof Value
      ? Value
      : CamelFields<Value>
    : Value

/** Formats a row as JSON: amounts as numbers in major units, instants as ISO 8601. */
export function jsonRow(schema: TObject, row: object, currency: string): Record<string, unknown> {
  return mapFields(schema, row, (value, { isMoney, nested }) => {
    if (nested) return value === undefined ? undefined : jsonRow(nested, value as object, currency)
    if (!isMoney || value === null) return timeOr(value)
    return typeof value === 'string' ? Number(value) : toMajor(value as number, currency)
  })
}

/** Formats a row for CSV: amounts with all digits, nested values as JSON. */
export function textRow(schema: TObject, row: object, currency: string): Record<string, string> {
  return mapFields(schema, row, (value, { isMoney, nested }) => {
    if (value === null || value === undefined) return ''
    if (nested) return JSON.stringify(jsonRow(nested, value as object, currency))
    if (Array.isArray(value)) return value.join('; ')
    if (!isMoney || typeof value === 'string') return String(timeOr(value))
    return majorText(value as number, currency)
  })
}

function mapFields<T>(schema: TObject, row: object, present: (value: unknown, field: Field) => T): Record<string, T> {
  const values = row as Record<string, unknown>
  const result: Record<string, T> = {}
  for (const field of fieldsOf(schema)) {
    const value = shownIds(values[field.source])
    result[field.name] = present(field.isTime && typeof value === 'number' ? new Date(value) : value, field)
  }
  return result
}

/** Removes namespaces from ids. */
function shownIds(value: unknown): unknown {
  if (typeof value === 'string') return stripNamespaces(value)
  return Array.isArray(value) ? value.map(shownIds) : value
}

type Field = { name: string; source: string; isTime: boolean; isMoney: boolean; nested: TObject | null }
const fieldsBySchema = new WeakMap<TObject, Field[]>()

function fieldsOf(schema: TObject): Field[] {
  const known = fieldsBySchema.get(schema)
  if (known) return known
  const fields = Object.entries(schema.properties).map(([name, field]) => ({
    name,
    source: camelName(name),
    isTime: isMarked(field, ['format', 'timestamp']),
    isMoney: isMarked(field, [MONEY, true]),
    nested: Object.keys((field as TObject).properties ?? {}).length > 0 ? (field as TObject) : null,
  }))
  fieldsBySchema.set(schema, fields)
  return fields
}

export function camelName(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
}

function timeOr(value: unknown): unknown {
  return value instanceof Date ? value.toISOString() : value
}

type Marked = Record<string, unknown> & { anyOf?: Record<string, unknown>[] }

function isMarked(field: unknown, [key, value]: [string, unknown]): boolean {
  const schema = field as Marked
  return (schema.anyOf?.[0] ?? schema)[key] === value
}

export const AccountRow = Type.Object(
  {
    customer: Text,
    customer_name: MaybeText,
    customer_email: MaybeText,
    mrr: money(),
    arr: money(),
    committed_mrr: money('MRR without subscriptions that are scheduled to cancel'),
    subscriptions: Count,
    active_subscriptions: Count,
    status: Type.String({
      description:
        'The first of active, past_due, trialing, paused, unpaid, incomplete, incomplete_expired, unknown and canceled that one of its subscriptions has',
    }),
    plan_names: Type.Array(Text),
    acquisition_source: Type.String({ description: '`unattributed` if unknown' }),
    customer_since: MaybeTime,
    next_billing_at: MaybeTime,
    has_payment_issue: Type.Boolean(),
  },
  { title: 'Account', description: 'A paying customer and the MRR of its subscriptions' },
)

export const ExclusionRow = Type.Object(
  {
    subscription_id: Text,
    item_id: MaybeText,
    customer: MaybeText,
    customer_name: MaybeText,
    status: MaybeText,
    reason_code: Text,
    reason: Text,
    excluded_mrr: maybe(
      money(
        'The gross MRR that it would have, in major units of the currency of the report (49.9 is 49.90 EUR); null if it cannot be priced',
      ),
    ),
    since: Time,
    fix_hint: Text,
  },
  { title: 'Exclusion', description: 'A subscription item that is excluded from MRR' },
)

export const PaymentIssueRow = Type.Object(
  {
    invoice_id: MaybeText,
    invoice_number: MaybeText,
    subscription_id: MaybeText,
    customer: MaybeText,
    customer_name: MaybeText,
    issue_type: Type.Enum(['payment_failed', 'action_required', 'overdue', 'uncollectible', 'subscription_unpaid']),
    amount_due: maybe(money()),
    amount_remaining: maybe(money()),
    attempt_count: maybe(Count),
    next_payment_attempt_at: MaybeTime,
    failure_code: MaybeText,
    failure_message: MaybeText,
    due_at: MaybeTime,
    days_overdue: maybe(Count),
    mrr_at_risk: money(),
  },
  { title: 'PaymentIssue', description: 'An invoice or subscription that is not paid' },
)

export const RenewalRow = Type.Object(
  {
    subscription_id: Text,
    customer: Text,
    customer_name: MaybeText,
    renews_at: Time,
    days_until: Count,
    interval: Text,
    interval_count: Count,
    renewal_amount: maybe(money()),
    mrr: money(),
    has_payment_issue: Type.Boolean(),
  },
  { title: 'Renewal', description: 'A subscription that renews soon' },
)

export const CancellationRow = Type.Object(
  {
    subscription_id: Text,
    customer: Text,
    customer_name: MaybeText,
    cancels_at: Time,
    requested_at: MaybeTime,
    days_until: Count,
    reason: MaybeText,
    mrr_at_risk: money(),
  },
  { title: 'Cancellation', description: 'A subscription that is scheduled to cancel' },
)

export const UpcomingBillingRow = Type.Object(
  {
    subscription_id: Text,
    customer: Text,
    customer_name: MaybeText,
    bills_at: Time,
    days_until: Count,
    estimated_amount: maybe(money('Without tax and usage; null if unknown')),
    collection_method: MaybeText,
    is_trial_conversion: Type.Boolean(),
    includes_metered: Type.Boolean(),
  },
  { title: 'UpcomingBilling', description: 'A subscription that will be charged soon' },
)

export const SourceRow = Type.Object(
  {
    source: Type.String({ description: '`unattributed` if unknown' }),
    medium: MaybeText,
    campaign: MaybeText,
    accounts: Type.Integer({ description: 'Accounts with MRR' }),
    subscriptions: Type.Integer({ description: 'Subscriptions with MRR' }),
    mrr: money(),
    mrr_share: Share,
    arpa: money(),
    cohort_accounts: maybe(Type.Integer({ description: 'Accounts with MRR at as_of − horizon' })),
    cohort_starting_mrr: maybe(money('Their MRR at as_of − horizon')),
    retained_mrr: maybe(money('Their MRR at as_of; null if no snapshot covers the date')),
    retention_rate: maybe(Share),
    retention_status: Type.Enum(['available', 'insufficient_history', 'horizon_not_reached']),
  },
  { title: 'AcquisitionSource', description: 'The accounts of one acquisition source' },
)

export const ItemRow = Type.Object(
  {
    subscription_id: Text,
    item_id: MaybeText,
    price_id: MaybeText,
    plan_name: MaybeText,
    quantity: maybe(Type.Number()),
    // can be finer than minor units, so it is decimal text in major units
    unit_amount: Type.Unsafe<string | null>(maybe(money('In the currency of the subscription'))),
    currency: MaybeText,
    interval: MaybeText,
    interval_count: maybe(Type.Integer()),
    usage_type: MaybeText,
    gross_mrr: money(),
    discount_mrr: money(),
    mrr: money(),
    included: Type.Boolean(),
    exclusion_reason: MaybeText,
    current_period_start: MaybeTime,
    current_period_end: MaybeTime,
  },
  { title: 'SubscriptionItem', description: 'An item of a subscription and its MRR' },
)

export const TimelineRow = Type.Object(
  {
    occurred_at: Time,
    event_type: Text,
    category: Type.Enum(['subscription', 'invoice', 'payment', 'refund', 'movement']),
    subscription_id: MaybeText,
    movement_type: MaybeText,
    mrr_before: maybe(money()),
    mrr_after: maybe(money()),
    mrr_delta: maybe(money()),
    amount: maybe(money()),
    invoice_id: MaybeText,
    cause: maybe(Type.Enum([...CAUSES], { description: 'Of a movement' })),
    event_id: maybe(Type.String({ description: 'The source event: GET /v1/events/:id' })),
    description: Text,
  },
  { title: 'TimelineEntry', description: 'Something that happened to an account' },
)

export const MovementListRow = Type.Object(
  {
    occurred_at: Time,
    customer: Text,
    customer_name: MaybeText,
    movement_type: Type.Enum([...MOVEMENT_TYPES]),
    mrr_before: money(),
    mrr_after: money(),
    mrr_delta: money(),
    subscription_ids: Type.Array(Text),
    cause: Type.Enum([...CAUSES], {
      description:
        'The cause of the largest change, if there are several. other: for example, a subscription that becomes active again',
    }),
    event_id: Type.Union([Text, Type.Null()], { description: 'The source event' }),
  },
  { title: 'Movement', description: 'A change of the MRR of an account' },
)

const Rate = (description?: string) => maybe(Type.Number({ ...(description && { description }) }))

const RATES = {
  customer_churn_rate: Rate(),
  gross_mrr_churn_rate: Rate(),
  net_mrr_churn_rate: Rate('Negative if more MRR was gained than lost'),
  gross_revenue_retention: Rate('Of the accounts with MRR at the start; new accounts do not count'),
  net_revenue_retention: Rate('Of the accounts with MRR at the start; may exceed 1'),
  quick_ratio: Rate(),
  ltv: maybe(money('The lifetime value of an account')),
}

export const Rates = Type.Object(RATES, {
  title: 'Rates',
  description: 'Over the 30 days of the movements; null if the base is 0. The formulas are in policy.rates',
})

export const HistoryRow = Type.Object({
  date: Type.String({ description: 'The first day of the bucket', examples: ['2026-03-01'] }),
  mrr: money('At the end of the bucket; in the current bucket, now'),
  arr: money(),
  active_accounts: Type.Integer({ description: 'Accounts with MRR' }),
  active_subscriptions: Type.Integer({ description: 'Subscriptions with MRR' }),
  new: money(),
  expansion: money(),
  contraction: money(),
  churn: money(),
  reactivation: money(),
  net: money('new + expansion + reactivation − contraction − churn: the change of MRR since the previous bucket'),
  new_accounts: Type.Integer({ description: 'Accounts with their first MRR in the bucket' }),
  churned_accounts: Type.Integer({ description: 'Accounts with MRR at the start of the bucket and none at its end' }),
  rates: Type.Object(RATES, {
    description: 'Over the bucket; null if the base is 0. The formulas are in policy.rates',
  }),
  retention: Type.Optional(
    Type.Object(
      { months: Count, gross_revenue_retention: Rate(), net_revenue_retention: Rate('May exceed 1') },
      { description: 'With retention_months: of the accounts with MRR that many months before the end of the bucket' },
    ),
  ),
})

const { date, mrr, arr, active_accounts, active_subscriptions, ...inBucket } = HistoryRow.properties

/** `fx` is part of `net`. */
export const ReportingHistoryRow = Type.Object(
  {
    ...{ date, mrr, arr, active_accounts, active_subscriptions },
    fx: Type.Optional(money('The effect of exchange rates, with `currency=reporting`')),
    ...inBucket,
  },
  { title: 'HistoryBucket', description: 'MRR and its movements in one day, week or month' },
)

/** Metadata of any key is in the field `metadata`. */
export function columnName(by: Dimension): string {
  return by.startsWith('metadata.') ? 'metadata' : by
}

/** The first field has the name of the dimension. */
export function breakdownRow(by: Dimension) {
  return Type.Object({
    [columnName(by)]: Text,
    mrr: money(),
    accounts: Type.Integer({ description: 'Accounts with a part of this MRR' }),
    subscriptions: Type.Integer({ description: 'Subscriptions with a part of this MRR' }),
  })
}

export const PolicyChangeRow = Type.Object(
  {
    kind: Type.Literal('policy'),
    at: time('The time from which reports use it'),
    version: Type.Integer(),
    settings: OpenObject({ description: 'Changed settings: by name, `{before, after}`' }),
    mrr_before: maybe(money('MRR at that time by the previous policy; null if MRR was not recomputed')),
    mrr_after: maybe(money('MRR at that time by this policy')),
    mrr_delta: maybe(money('Not a movement: counts neither as new nor as churn')),
  },
  { title: 'PolicyChange', description: 'A change of the policy and its effect on MRR' },
)

export const CashFigures = {
  invoiced: money('By finalized_at, including tax, without draft and void invoices'),
  collected: money('Payments of subscription invoices − refunded − disputed'),
  refunded: money('Refunds of these payments, and paid-out credit notes'),
  disputed: money('Lost disputes of these payments'),
  outstanding: money('The unpaid part of the invoiced amount'),
  one_off: money('Payments without a subscription, minus their refunds and lost disputes'),
}

export const CashRow = Type.Object(
  {
    date: Type.String({ description: 'The first day of the bucket', examples: ['2026-03-01'] }),
    ...CashFigures,
    invoices: Count,
    payments: Count,
  },
  { title: 'CashBucket', description: 'Invoiced and collected amounts of one day, week or month' },
)

export const CashFactRow = Type.Object(
  {
    occurred_at: Time,
    kind: Type.Enum(['invoice', 'payment', 'refund', 'dispute']),
    id: Text,
    invoice_id: MaybeText,
    subscription_id: MaybeText,
    customer: MaybeText,
    amount: money(),
    ...CashFigures,
  },
  { title: 'CashFact', description: 'An invoice, payment, refund or dispute' },
)

export const RevenueFigures = {
  invoiced: money('Finalized invoices less credit notes, without tax, draft, void and uncollectible invoices'),
  recognized: money('The share of the days of the month'),
  deferred: money('Invoiced and not yet recognized at the end of the month; negative: recognized and not yet invoiced'),
}

export const RevenueRow = Type.Object(
  {
    date: Type.String({ description: 'The first day of the month', examples: ['2026-03-01'] }),
    ...RevenueFigures,
  },
  { title: 'RevenueMonth', description: 'Invoiced, recognized and deferred revenue of one month' },
)

export const RevenueFactRow = Type.Object(
  {
    invoice_id: Text,
    invoice_number: MaybeText,
    credit_note_id: maybe(Type.String({ description: 'Null in rows of the invoice itself' })),
    subscription_id: MaybeText,
    customer: MaybeText,
    customer_name: MaybeText,
    invoiced_on: Type.String({ description: 'The day on which the amount counts as invoiced' }),
    service_start: Type.String({ description: 'The first day of the service period' }),
    service_end: Type.String({ description: 'The first day after it' }),
    amount: money('Without tax; negative in rows of a credit note'),
    ...RevenueFigures,
  },
  { title: 'RevenueFact', description: 'The share of an invoice or credit note in one month' },
)

export const ReasonRow = Type.Object(
  {
    reason_code: Text,
    reason: Text,
    items: Count,
    excluded_mrr: money('The gross MRR that the items with a known price would have'),
    unpriced: Type.Integer({ minimum: 0, description: 'Items that cannot be priced' }),
  },
  { title: 'ExclusionReason', description: 'The items that are excluded for one reason' },
)

const ReasonTotals = {
  reason: Type.String({ description: 'As the billing system reports it; `unknown` if it reports none' }),
  accounts: Count,
  mrr: money('The MRR that was lost'),
}

export const ReasonTotalRow = Type.Object(ReasonTotals, {
  title: 'ChurnReasonTotal',
  description: 'The churn with one reason',
})

export const ChurnReasonRow = Type.Object(
  {
    date: Type.String({ description: 'The first day of the month', examples: ['2026-03-01'] }),
    ...ReasonTotals,
  },
  { title: 'ChurnReason', description: 'The churn of one month with one reason' },
)

export const ForecastMonthRow = Type.Object(
  {
    date: Type.String({ description: 'The first day of the month', examples: ['2026-03-01'] }),
    mrr: money('At the end of the month'),
    new: money(),
    expansion: money(),
    contraction: money(),
    churn: money(),
    reactivation: money(),
    trial_ends: money('The MRR of trials that end in the month, before discounts'),
    net: money('The change of MRR since the previous month'),
  },
  { title: 'ForecastMonth', description: 'The MRR of a future month, if only the scheduled changes happen' },
)

export const ForecastChangeRow = Type.Object(
  {
    at: Time,
    kind: Type.Enum(['renewal', 'trial_end', 'discount_end', 'cancellation', 'start', 'resume', 'other']),
    customer: Text,
    customer_name: MaybeText,
    subscription_id: Text,
    amount: maybe(money('Of a renewal, the amount charged, null if unknown; otherwise the change of MRR')),
    mrr_delta: money(),
  },
  { title: 'ForecastChange', description: 'A scheduled change, or the end of a trial' },
)

export const TrialRow = Type.Object(
  {
    subscription_id: Text,
    customer: Text,
    plan_names: Type.Array(Text),
    started_at: Time,
    trial_end: MaybeTime,
    outcome: Type.Enum(['converted', 'expired', 'running']),
    ended_at: MaybeTime,
    mrr: money('MRR at the conversion'),
  },
  { title: 'Trial', description: 'A trial and its outcome' },
)

export const DunningRow = Type.Object(
  {
    invoice_id: Text,
    invoice_number: MaybeText,
    subscription_id: MaybeText,
    customer: MaybeText,
    failed_at: time('The time of the first failed payment'),
    failure_code: MaybeText,
    failure_message: MaybeText,
    amount: money('The amount owed at that time'),
    outcome: Type.Enum(['recovered', 'lost', 'open']),
    resolved_at: MaybeTime,
  },
  { title: 'DunningInvoice', description: 'An invoice with a failed payment, and its outcome' },
)

const ExchangedMovements = {
  opening_mrr: money(),
  new: money(),
  expansion: money(),
  contraction: money(),
  churn: money(),
  reactivation: money(),
  fx: money('The effect of exchange rates: closing − opening − all movements'),
  closing_mrr: money(),
}

export const ExchangedTotals = Type.Object(ExchangedMovements, {
  title: 'ExchangedMovements',
  description: 'Movements in the currency of the report',
})

export const CurrencyRow = Type.Object(
  {
    currency: Type.String({ description: 'The currency of the subscriptions' }),
    own_mrr: Type.Number({ description: 'In that currency' }),
    active_subscriptions: Count,
    rate: maybe(Type.Number({ description: 'Units of the report’s currency for one unit; null if there is none' })),
    rate_date: maybe(Type.String({ description: 'The day of the rate' })),
    mrr: maybe(money('In the currency of the report')),
    opening_mrr: maybe(money('By the rate of the first day')),
    new: maybe(money('By the rate of each movement’s day')),
    expansion: maybe(money()),
    contraction: maybe(money()),
    churn: maybe(money()),
    reactivation: maybe(money()),
    fx: maybe(money('The effect of exchange rates')),
    closing_mrr: maybe(money()),
  },
  { title: 'CurrencyMrr', description: 'The MRR of one currency, converted to the currency of the report' },
)

export const CohortRow = Type.Object(
  {
    cohort: Type.String({ description: 'The month in which its accounts first paid', examples: ['2026-01'] }),
    month: Type.Integer({ description: 'Months after the first one: 0 is the end of the first month' }),
    at: time('The end of that month, at the latest as_of'),
    accounts: Type.Integer({ description: 'Accounts of the cohort with MRR at that time' }),
    starting_accounts: Count,
    starting_mrr: money('Their first MRR, or their MRR at the end of the first month (retention_base)'),
    mrr: money(),
    gross_mrr: money('The same, but no account counts for more than its starting MRR'),
    logo_retention: maybe(Share),
    gross_revenue_retention: maybe(Share),
    net_revenue_retention: maybe(Type.Number({ minimum: 0, description: 'May exceed 1' })),
  },
  { title: 'Cohort', description: 'The accounts that first paid in one month, some months later' },
)
