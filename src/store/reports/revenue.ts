import type { Slice } from '../../domain/list-slices.ts'
import type { Day } from '../../domain/time.ts'
import { type Db, queryRow, queryRows } from '../../postgres/database.ts'
import { recognizedBefore } from '../billing/revenue.ts'
import type { Scope } from './scope.ts'

export type Revenue = { invoiced: number; recognized: number }

/** By month, the sums of the current lines up to the month of `last`. `isStale`: some lines have days in another time zone. */
export async function revenueMonths(
  db: Db,
  { tenantId, currency }: Scope,
  zone: string,
  last: Day,
): Promise<{ months: (Revenue & { month: Day })[]; isStale: boolean }> {
  const months = await queryRows<Revenue & { month: Day }>(
    db,
    `select month::text, sum(invoiced)::bigint as invoiced, sum(recognized)::bigint as recognized
     from billing_revenue_months where tenant_id = $1 and zone = $2 and currency = $3 and month <= $4::date
     group by month order by month`,
    [tenantId, zone, currency, last],
  )
  const other = await queryRow<{ lines: number }>(
    db,
    `select coalesce(sum(lines), 0)::bigint as lines from billing_revenue_months
     where tenant_id = $1 and zone <> $2 and currency = $3`,
    [tenantId, zone, currency],
  )
  return { months, isStale: other!.lines > 0 }
}

/** Days from `first` up to and without `end`. */
export type DayRange = { first: Day; end: Day }

/** Selects the current lines. */
export const CURRENT = new Date('9999-12-31T23:59:59.999Z')

/** The revenue of ranges of days, from the lines that are valid at a time. */
export async function revenueWithin(
  db: Db,
  { tenantId, currency }: Scope,
  ranges: DayRange[],
  at: Date,
): Promise<Revenue[]> {
  return queryRows<Revenue>(
    db,
    `select i.invoiced, r.recognized
     from unnest($3::date[], $4::date[]) with ordinality as d (first, until, n)
     cross join lateral (
       select coalesce(sum(amount), 0)::bigint as invoiced from billing_revenue
       where tenant_id = $1 and currency = $2 and invoiced_on >= d.first and invoiced_on < d.until
         and valid_from <= $5 and valid_to > $5 offset 0) i
     cross join lateral (
       select coalesce(sum(${recognizedBefore('d.until')} - ${recognizedBefore('d.first')}), 0)::bigint as recognized
       from billing_revenue
       where tenant_id = $1 and currency = $2 and ends_on > d.first and starts_on < d.until
         and valid_from <= $5 and valid_to > $5 offset 0) r
     order by d.n`,
    [tenantId, currency, ranges.map(({ first }) => first), ranges.map(({ end }) => end), at],
  )
}

/** A line with its shares of a range of days. */
export type RevenueFact = Revenue & {
  invoiceId: string
  invoiceNumber: string | null
  creditNoteId: string | null
  subscriptionId: string | null
  customer: string | null
  invoicedOn: Day
  serviceStart: Day
  serviceEnd: Day
  amount: number
  /** Invoiced and not yet recognized at the end of the range. */
  deferred: number
}

// $4 and $5: the range. Lines that end after its first day, else those that are invoiced in it or later.
const FACTS = `
with facts as (
  select invoice_id, place, credit_note_id, invoiced_on, starts_on, ends_on, amount,
    case when invoiced_on >= $4::date and invoiced_on < $5::date then amount else 0 end as invoiced,
    ${recognizedBefore('$5::date')} - ${recognizedBefore('$4::date')} as recognized,
    case when invoiced_on < $5::date then amount else 0 end - ${recognizedBefore('$5::date')} as deferred
  from (
    select * from billing_revenue
    where tenant_id = $1 and currency = $2 and ends_on > $4::date and (starts_on < $5::date or invoiced_on < $5::date)
      and valid_from <= $3 and valid_to > $3
    union all
    select * from billing_revenue
    where tenant_id = $1 and currency = $2 and ends_on <= $4::date and invoiced_on >= $4::date
      and valid_from <= $3 and valid_to > $3
  ) lines
)`

/** The number of lines behind the figures of a range of days, and their sums. */
export async function revenueTotals(
  db: Db,
  { tenantId, currency }: Scope,
  { first, end }: DayRange,
  at: Date,
): Promise<Revenue & { deferred: number; count: number }> {
  return (await queryRow<Revenue & { deferred: number; count: number }>(
    db,
    `${FACTS} select count(*) as count, coalesce(sum(invoiced), 0)::bigint as invoiced,
       coalesce(sum(recognized), 0)::bigint as recognized, coalesce(sum(deferred), 0)::bigint as deferred from facts`,
    [tenantId, currency, at, first, end],
  ))!
}

/** These lines, by the day of the invoice. */
export async function revenueFacts(
  db: Db,
  { tenantId, currency }: Scope,
  { first, end }: DayRange,
  at: Date,
  { offset, limit }: Slice,
): Promise<RevenueFact[]> {
  return queryRows<RevenueFact>(
    db,
    `${FACTS}
     select f.invoice_id as "invoiceId", s.number as "invoiceNumber", f.credit_note_id as "creditNoteId",
       s.subscription_id as "subscriptionId", s.customer, f.invoiced_on::text as "invoicedOn",
       f.starts_on::text as "serviceStart", f.ends_on::text as "serviceEnd", f.amount, f.invoiced, f.recognized, f.deferred
     from (select * from facts order by invoiced_on, invoice_id, place offset $6 limit $7) f
     cross join lateral (
       select body ->> 'number' as number, subscription_id, customer from billing_invoice_states
       where tenant_id = $1 and invoice_id = f.invoice_id and valid_from <= $3 order by valid_from desc limit 1) s
     order by f.invoiced_on, f.invoice_id, f.place`,
    [tenantId, currency, at, first, end, offset, limit],
  )
}
