import type { RevenueLine } from '../../domain/billing/revenue.ts'
import type { CreditNote } from '../../domain/billing/types.ts'
import { DAY_MS, toDay } from '../../domain/time.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import {
  type DerivedTable,
  endText,
  keyColumns,
  type ObjectKey,
  replaceRows,
  replacing,
  sortedKeys,
  timeText,
} from './rows.ts'

export async function upsertCreditNotes(
  db: Db,
  notes: (ObjectKey & { invoiceId: string; note: CreditNote })[],
): Promise<void> {
  const sorted = sortedKeys(notes)
  await queryPrepared(
    db,
    `insert into billing_credit_notes (tenant_id, id, invoice_id, body)
     select * from unnest($1::int[], $2::text[], $3::text[], $4::json[])
     on conflict (tenant_id, id) do update set invoice_id = excluded.invoice_id, body = excluded.body`,
    [...keyColumns(sorted), sorted.map(({ invoiceId }) => invoiceId), sorted.map(({ note }) => JSON.stringify(note))],
  )
}

/** By the key of their invoice. */
export async function loadCreditNotes(db: Db, invoices: ObjectKey[]): Promise<(ObjectKey & { note: CreditNote })[]> {
  const { rows } = await queryPrepared<ObjectKey & { body: string }>(
    db,
    `select k.tenant_id as "tenantId", k.id, n.body from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     cross join lateral (
       select body from billing_credit_notes where tenant_id = k.tenant_id and invoice_id = k.id offset 0) n`,
    keyColumns(invoices),
  )
  return rows.map(({ body, ...key }) => ({ ...key, note: JSON.parse(body) }))
}

const DAYS = '(ends_on - starts_on)::bigint'
const dayCount = (before: string) => `least(greatest(${before} - starts_on, 0), ends_on - starts_on)`

/**
 * The amount recognized before a day, as `recognizedBefore` computes it: amount × days ÷ all days, rounded half up. The
 * whole quotient is multiplied first, so that no product exceeds a bigint.
 */
export const recognizedBefore = (day: string) => `(sign(amount)::bigint * (abs(amount) / ${DAYS} * ${dayCount(day)}
  + (2 * (abs(amount) % ${DAYS}) * ${dayCount(day)} + ${DAYS}) / (2 * ${DAYS})))`

/** The sums contain the current lines: rows with an open end. */
export const REVENUE_EFFECTS = `
insert into billing_revenue_months (tenant_id, zone, month, currency, invoiced, recognized, lines)
select tenant_id, zone, month, currency, sum(sign * invoiced), sum(sign * recognized), sum(sign * lines)
from (
  select sign, tenant_id, zone, date_trunc('month', invoiced_on)::date as month, currency, amount as invoiced,
    0 as recognized, 1 as lines
  from (select 1 as sign, * from new union all select -1, * from old) changed where valid_to = 'infinity'
  union all
  select sign, tenant_id, zone, m::date, currency, 0,
    ${recognizedBefore(`(m + interval '1 month')::date`)} - ${recognizedBefore('m::date')}, 0
  from (select 1 as sign, * from new union all select -1, * from old) changed
  cross join lateral generate_series(
    date_trunc('month', starts_on::timestamp), (ends_on - 1)::timestamp, interval '1 month') m
  where valid_to = 'infinity'
) parts
group by 1, 2, 3, 4`

const REVENUE: DerivedTable = {
  name: 'billing_revenue',
  owner: 'invoice_id',
  key: ['place', 'valid_from'],
  values: ['valid_to', 'currency', 'credit_note_id', 'zone', 'invoiced_on', 'starts_on', 'ends_on', 'amount'],
}
const REPLACE_REVENUE = replacing(REVENUE, REVENUE_EFFECTS)

/** Also updates the monthly sums. */
export async function replaceRevenue(
  db: Db,
  invoices: (ObjectKey & { zone: string; revenue: RevenueLine[] })[],
): Promise<void> {
  const day = (number: number) => toDay(number * DAY_MS)
  const rows = invoices.flatMap(({ tenantId, id, zone, revenue }) =>
    revenue.map(line => ({
      ...{ tenant_id: tenantId, invoice_id: id, place: line.place, zone, currency: line.currency },
      ...{ valid_from: timeText(line.from), valid_to: endText(line.to), credit_note_id: line.creditNoteId },
      ...{ invoiced_on: day(line.invoicedOn), starts_on: day(line.startsOn), ends_on: day(line.endsOn) },
      amount: line.amount,
    })),
  )
  await replaceRows(db, REPLACE_REVENUE, invoices, rows)
}

/** Tenants with revenue whose days are in another time zone than the policy's. */
export async function tenantsWithStaleRevenue(db: Db): Promise<{ tenantId: number; zone: string }[]> {
  return queryRows<{ tenantId: number; zone: string }>(
    db,
    `select m.tenant_id as "tenantId", p.zone from (
       select tenant_id, zone from billing_revenue_months group by 1, 2 having sum(lines) <> 0
     ) m
     cross join lateral (
       select coalesce((
         select policy ->> 'timeZone' from tenant_policies
         where tenant_id = m.tenant_id and applied_at is not null order by version desc limit 1), 'UTC') as zone) p
     where m.zone <> p.zone`,
    [],
  )
}

/** The next invoices after `after` whose days are not in this time zone. */
export async function staleInvoices(
  db: Db,
  { tenantId, zone, after }: { tenantId: number; zone: string; after: string },
  limit: number,
): Promise<ObjectKey[]> {
  return queryRows<ObjectKey>(
    db,
    `select distinct tenant_id as "tenantId", invoice_id as id from billing_revenue
     where tenant_id = $1 and invoice_id > $2 and zone <> $3 order by 2 limit $4`,
    [tenantId, after, zone, limit],
  )
}
