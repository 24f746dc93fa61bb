import type { InvoiceState } from '../../domain/billing/cash.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import { CASH_SUMS } from '../billing/cash.ts'
import type { Scope } from './scope.ts'
import type { Cash } from './totals.ts'

/** An invoice, payment, refund or dispute. */
export type CashFact = {
  occurredAt: Date
  kind: 'invoice' | 'payment' | 'refund' | 'dispute'
  id: string
  invoiceId: string | null
  subscriptionId: string | null
  customer: string | null
  amount: number
  /** The unpaid amount of an invoice. */
  outstanding: number
  /** Belongs to a subscription invoice; everything else is one-off. */
  recurring: boolean
}

// Joins each row with its invoice and payment by key.
const FACTS = `
select i.invoiced_at as "occurredAt", 'invoice' as kind, i.invoice_id as id, i.invoice_id as "invoiceId",
  i.subscription_id as "subscriptionId", i.customer, i.total as amount, i.body, i.subscription_id is not null as recurring
from billing_invoice_states i
where i.tenant_id = $1 and i.currency = $2 and i.invoiced_at >= $4 and i.invoiced_at < $5 and i.invoiced_at <= $3
  and i.valid_from <= $3 and i.valid_to > $3
union all
select c.occurred_at, c.kind, c.id, v.id, v.subscription_id, coalesce(v.customer, p.body ->> 'customer'), c.amount, null,
  c.recurring
from (
  select * from billing_cash
  where tenant_id = $1 and currency = $2 and occurred_at >= $4 and occurred_at < $5 and occurred_at <= $3 and valid_to > $3
  offset 0) c
left join lateral (
  select id, subscription_id, customer from billing_invoices
  where tenant_id = $1 and id = substr(c.owner, length('invoice ') + 1) and starts_with(c.owner, 'invoice ') offset 0) v on true
left join lateral (
  select body from billing_payments where tenant_id = $1 and id = c.id and v.id is null offset 0) p on true
order by "occurredAt", kind, id`

/** Invoices and payments in [since, until), as of `asOf`. */
export async function cashFacts(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  window: { since: Date; until: Date },
): Promise<CashFact[]> {
  const { rows } = await queryPrepared<Omit<CashFact, 'outstanding'> & { body: string | null }>(db, FACTS, [
    tenantId,
    currency,
    asOf,
    window.since,
    window.until,
  ])
  return rows.map(({ body, ...fact }) => ({
    ...fact,
    outstanding: body === null ? 0 : outstandingAmount(JSON.parse(body)),
  }))
}

/** The unpaid amount of an open invoice. */
function outstandingAmount({ status, amountRemaining }: InvoiceState): number {
  return status === 'open' ? amountRemaining : 0
}

/** A part of a bucket; the end is exclusive. */
export type Stretch = { bucket: number; since: Date; until: Date }

type BucketCash = Cash & { bucket: number }

const CASH = `sum(invoiced)::bigint as invoiced, sum(invoices)::bigint as invoices, sum(collected)::bigint as collected,
  sum(payments)::bigint as payments, sum(refunded)::bigint as refunded, sum(disputed)::bigint as disputed,
  sum(one_off)::bigint as "oneOff"`

const STRETCHES = 'unnest($4::int[], $5::timestamptz[], $6::timestamptz[]) as s (bucket, since, until)'

/** Sums by bucket of the invoices and payments in these periods, as of `asOf`. */
export function cashOfStretches(db: Db, scope: Scope, stretches: Stretch[]): Promise<BucketCash[]> {
  return cashBy(
    db,
    scope,
    stretches,
    `select bucket, ${CASH} from (
       select s.bucket, i.*, 0 as collected, 0 as payments, 0 as refunded, 0 as disputed, 0 as one_off
       from ${STRETCHES} cross join lateral (
         select coalesce(sum(total), 0)::bigint as invoiced, count(*) as invoices from billing_invoice_states
         where tenant_id = $1 and currency = $2 and invoiced_at >= s.since and invoiced_at < s.until
           and invoiced_at <= $3 and valid_from <= $3 and valid_to > $3 offset 0) i
       union all
       select s.bucket, 0, 0, c.* from ${STRETCHES} cross join lateral (
         select ${CASH_SUMS} from billing_cash
         where tenant_id = $1 and currency = $2 and occurred_at >= s.since and occurred_at < s.until
           and occurred_at <= $3 and valid_to > $3 offset 0) c
     ) parts group by bucket`,
  )
}

/** The same for periods of whole UTC days, from the daily sums, which contain the current state. */
export function cashOfDays(db: Db, scope: Scope, stretches: Stretch[]): Promise<BucketCash[]> {
  return cashBy(
    db,
    scope,
    stretches,
    `select s.bucket, ${CASH} from ${STRETCHES} cross join lateral (
       select * from billing_cash_days
       where tenant_id = $1 and currency = $2 and day <= ($3::timestamptz at time zone 'UTC')::date
         and day >= (s.since at time zone 'UTC')::date and day < (s.until at time zone 'UTC')::date offset 0) d
     group by s.bucket`,
  )
}

async function cashBy(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  stretches: Stretch[],
  text: string,
): Promise<BucketCash[]> {
  if (stretches.length === 0) return []
  return queryRows<BucketCash>(db, text, [
    tenantId,
    currency,
    asOf,
    stretches.map(stretch => stretch.bucket),
    stretches.map(stretch => stretch.since),
    stretches.map(stretch => stretch.until),
  ])
}

/** The unpaid amount of the invoices in each bucket; bucket i is [bounds[i], bounds[i + 1]). */
export async function outstandingWithin(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  bounds: Date[],
): Promise<Map<number, number>> {
  const { rows } = await queryPrepared<{ bucket: number; amount: number }>(
    db,
    `select width_bucket(invoiced_at, $4::timestamptz[]) - 1 as bucket, sum((body ->> 'amountRemaining')::bigint)::bigint as amount
     from billing_invoice_states
     where tenant_id = $1 and currency = $2 and valid_to > $3 and body ->> 'status' = 'open' and invoiced_at <= $3
       and valid_from <= $3 and invoiced_at >= $5 and invoiced_at < $6
     group by 1`,
    [tenantId, currency, asOf, bounds, bounds[0], bounds.at(-1)],
  )
  return new Map(rows.map(({ bucket, amount }) => [bucket, amount]))
}
