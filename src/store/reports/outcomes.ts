import type { InvoiceState } from '../../domain/billing/cash.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import type { SubscriptionStatus } from '../../domain/billing/types.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import type { Scope } from './scope.ts'

export type Trial = {
  /** Its first segment. */
  segment: Segment
  startedAt: Date
  /** The next segment up to `asOf`; null: the trial is running. */
  next: { status: SubscriptionStatus; at: Date; mrr: number } | null
}

type TrialRow = {
  body: string
  startedAt: Date
  status: SubscriptionStatus | null
  endedAt: Date | null
  mrr: number | null
}

// A trial starts where the previous segment is not a trial.
const TRIALS = `
select s.body, s.valid_from as "startedAt", n.status, n.valid_from as "endedAt", n.mrr
from (
  select subscription_id, valid_from, body from billing_segments
  where tenant_id = $1 and currency = $2 and status = 'trialing' and valid_from > $4 and valid_from <= $5
    and valid_from <= $3 and body ->> 'testMode' is null offset 0) s
left join lateral (
  select status from billing_segments
  where tenant_id = $1 and subscription_id = s.subscription_id and valid_from < s.valid_from
  order by valid_from desc limit 1) p on true
left join lateral (
  select status, valid_from, mrr from billing_segments
  where tenant_id = $1 and subscription_id = s.subscription_id and valid_from > s.valid_from and valid_from <= $3
    and status <> 'trialing'
  order by valid_from limit 1) n on true
where p.status is distinct from 'trialing'
order by s.valid_from, s.subscription_id`

/** Trials that started in (since, until], the oldest first, as of `asOf`. */
export async function trialsBetween(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  { since, until }: { since: Date; until: Date },
): Promise<Trial[]> {
  const { rows } = await queryPrepared<TrialRow>(db, TRIALS, [tenantId, currency, asOf, since, until])
  return rows.map(({ body, startedAt, status, endedAt, mrr }) => ({
    segment: JSON.parse(body),
    startedAt,
    next: status === null ? null : { status, at: endedAt!, mrr: mrr! },
  }))
}

export type FailedInvoice = {
  failedAt: Date
  /** Its state when a payment first failed, and its state at `asOf`. */
  failed: InvoiceState
  current: InvoiceState
  /** The end of its subscription; null: it has not ended, or there is none. */
  subscriptionEndedAt: Date | null
}

type FailedRow = { failedAt: Date; failed: string; current: string; subscriptionEndedAt: Date | null }

const FAILED = `
select f.failed_at as "failedAt", f.body as failed, c.body as current, e.valid_from as "subscriptionEndedAt"
from (
  select distinct on (invoice_id) invoice_id, issue_from as failed_at, body from (
    select invoice_id, issue_from, body from billing_invoice_states
    where tenant_id = $1 and currency = $2 and issue_from <= $3 offset 0) issues
  where body -> 'failure' ->> 'kind' is not null
  order by invoice_id, issue_from
) f
cross join lateral (
  select body, subscription_id from billing_invoice_states
  where tenant_id = $1 and invoice_id = f.invoice_id and valid_from <= $3 and valid_to > $3 offset 0) c
left join lateral (
  select valid_from from billing_segments
  where tenant_id = $1 and subscription_id = c.subscription_id and valid_from <= $3 and valid_to > $3
    and status = 'canceled' offset 0) e on true
where f.failed_at > $4 and f.failed_at <= $5
order by f.failed_at, f.invoice_id`

/** Invoices with a first failed payment in (since, until], the oldest first. */
export async function failedInvoices(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  { since, until }: { since: Date; until: Date },
): Promise<FailedInvoice[]> {
  const { rows } = await queryPrepared<FailedRow>(db, FAILED, [tenantId, currency, asOf, since, until])
  return rows.map(({ failed, current, ...row }) => ({
    ...row,
    failed: JSON.parse(failed),
    current: JSON.parse(current),
  }))
}

/** Segments of trials that run at `asOf`. */
export async function runningTrials(db: Db, { tenantId, currency, asOf }: Scope): Promise<Segment[]> {
  const { rows } = await queryPrepared<{ body: string }>(
    db,
    `select body from billing_segments
     where tenant_id = $1 and currency = $2 and status = 'trialing' and valid_from <= $3 and valid_to > $3
       and body ->> 'testMode' is null`,
    [tenantId, currency, asOf],
  )
  return rows.map(row => JSON.parse(row.body))
}

// The reason of the subscription with the largest change; without one, the cause of the movement.
const CHURN_REASONS = `
select b.bucket::int - 1 as bucket, m.reason, count(*) as accounts, sum(m.mrr)::bigint as mrr
from unnest($3::timestamptz[], $4::timestamptz[]) with ordinality as b (starts, ends, bucket)
cross join lateral (
  select k.mrr_before as mrr, coalesce(s.reason, case c.cause
    when 'cancellation_failed_payment' then 'payment_failed' when 'cancellation_voluntary' then 'unknown'
    when 'other' then 'unknown' else c.cause end, 'unknown') as reason
  from (
    select account, occurred_at, mrr_before from billing_movements
    where tenant_id = $1 and currency = $2 and occurred_at >= b.starts and occurred_at < b.ends and type = 'churn'
    offset 0) k
  cross join lateral (
    select x ->> 'subscriptionId' as id, x ->> 'cause' as cause from billing_movements,
      json_array_elements(changes) with ordinality as t (x, n)
    where tenant_id = $1 and account = k.account and currency = $2 and occurred_at = k.occurred_at
    order by abs((x ->> 'after')::bigint - (x ->> 'before')::bigint) desc, n limit 1) c
  left join lateral (
    select body ->> 'cancellationReason' as reason from billing_segments
    where tenant_id = $1 and subscription_id = c.id and valid_from = k.occurred_at offset 0) s on true
  offset 0) m
group by 1, 2`

export type ChurnReasonRow = { bucket: number; reason: string; accounts: number; mrr: number }

/** Churn of each bucket by reason. */
export async function churnReasons(
  db: Db,
  { tenantId, currency }: Scope,
  buckets: { starts: Date; ends: Date }[],
): Promise<ChurnReasonRow[]> {
  const { rows } = await queryPrepared<ChurnReasonRow>(db, CHURN_REASONS, [
    ...[tenantId, currency],
    ...[buckets.map(({ starts }) => starts), buckets.map(({ ends }) => ends)],
  ])
  return rows
}
