import type { AgendaEntry } from '../../domain/billing/attention.ts'
import type { InvoiceState } from '../../domain/billing/cash.ts'
import { nearerEnd, type Slice } from '../../domain/list-slices.ts'
import { type Db, queryPrepared, queryRow } from '../../postgres/database.ts'
import type { Scope } from './scope.ts'

export type AgendaKind = AgendaEntry['kind']

export type AgendaRow = { subscriptionId: string; dueAt: number; body: Record<string, unknown> }

/** Whether the stored agenda reaches `until`. It covers only the time from now on. */
export async function agendaReaches(db: Db, tenantId: number, until: Date): Promise<boolean> {
  const { rows } = await queryPrepared<{ reaches: boolean }>(
    db,
    `select coalesce(min(agenda_until) >= $2, true) as reaches from billing_subscriptions
     where tenant_id = $1 and agenda_until is not null`,
    [tenantId, until],
  )
  return rows[0]!.reaches
}

/** The number of entries of each kind due in (asOf, until]. */
export async function agendaCounts(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  until: Date,
): Promise<Record<AgendaKind, number>> {
  const { rows } = await queryPrepared<{ kind: AgendaKind; entries: number }>(db, AGENDA_COUNTS, [
    tenantId,
    currency,
    asOf,
    until,
  ])
  const counts: Record<AgendaKind, number> = { charge: 0, renewal: 0, cancellation: 0 }
  for (const { kind, entries } of rows) counts[kind] = entries
  return counts
}

// Whole days from the daily sums; the first and the last day, and conditional entries, from their rows.
const AGENDA_COUNTS = `
with days as materialized (
  select ($3::timestamptz at time zone 'UTC')::date as first, ($4::timestamptz at time zone 'UTC')::date as last
), cut_days as materialized (
  select day::timestamp at time zone 'UTC' as starts, (day + 1)::timestamp at time zone 'UTC' as ends
  from (select first as day from days union select last from days) d
), parts as (
  select kind, entries from billing_agenda_days, days
  where tenant_id = $1 and currency = $2 and day > first and day < last
  union all
  select k.kind, 1 from cut_days cross join (values ('charge'), ('renewal'), ('cancellation')) as k (kind)
  cross join lateral (
    select from billing_agenda a
    where tenant_id = $1 and currency = $2 and a.kind = k.kind and due_at >= starts and due_at < ends
      and due_at > $3 and due_at <= $4 and not conditional offset 0) a
  union all
  select kind, 1 from billing_agenda
  where tenant_id = $1 and conditional and due_at > $3 and due_at <= $4 and currency = $2
    and known_from <= $3 and known_to > $3
)
select kind, sum(entries)::bigint as entries from parts group by kind`

/** Entries due in (asOf, until], the earliest first. `count`: the total number. */
export async function agendaSlice(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  { kind, until, count }: { kind: AgendaKind; until: Date; count: number },
  slice: Slice,
): Promise<AgendaRow[]> {
  const { offset, limit, backwards } = nearerEnd(slice, count)
  if (limit === 0) return []
  const order = backwards ? 'due_at desc, subscription_id desc' : 'due_at, subscription_id'
  const { rows } = await queryPrepared<{ subscriptionId: string; dueAt: Date; body: string }>(
    db,
    // bodies are read only for the returned rows
    `select k.subscription_id as "subscriptionId", k.due_at as "dueAt", a.body from (
       select subscription_id, due_at, known_from from billing_agenda
       where tenant_id = $1 and currency = $2 and kind = $3 and due_at > $4 and due_at <= $5
         and known_from <= $4 and known_to > $4
       order by ${order} offset $6 limit $7
     ) k
     cross join lateral (
       select body from billing_agenda
       where tenant_id = $1 and subscription_id = k.subscription_id and kind = $3 and due_at = k.due_at
         and known_from = k.known_from offset 0) a
     order by ${order}`,
    [tenantId, currency, kind, asOf, until, offset, limit],
  )
  const found = rows.map(row => ({ ...row, dueAt: row.dueAt.getTime(), body: JSON.parse(row.body) }))
  return backwards ? found.reverse() : found
}

type IssueCounts = { invoices: number; subscriptions: number }

const WITH_ISSUE = `tenant_id = $1 and currency = $2 and issue_from <= $3 and valid_to > $3`
const UNPAID = `select s.subscription_id as id, s.valid_from from billing_segments s
  where s.tenant_id = $1 and s.currency = $2 and s.status = 'unpaid' and s.valid_from <= $3 and s.valid_to > $3
    and not exists (select from billing_invoice_states i where i.tenant_id = s.tenant_id and i.currency = s.currency
      and i.subscription_id = s.subscription_id and i.issue_from <= $3 and i.valid_to > $3)`

/** Invoices with an issue at `asOf`, and unpaid subscriptions without such an invoice. */
export async function issueCounts(db: Db, { tenantId, currency, asOf }: Scope): Promise<IssueCounts> {
  return (await queryRow<IssueCounts>(
    db,
    `select (select count(*) from billing_invoice_states where ${WITH_ISSUE}) as invoices,
       (select count(*) from (${UNPAID}) u) as subscriptions`,
    [tenantId, currency, asOf],
  ))!
}

/** The oldest issue first. */
export async function invoicesWithIssues(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  slice: Slice,
): Promise<InvoiceState[]> {
  if (slice.limit === 0) return []
  const { rows } = await queryPrepared<{ body: string }>(
    db,
    `select body from billing_invoice_states where ${WITH_ISSUE}
     order by issue_from, invoice_id offset $4 limit $5`,
    [tenantId, currency, asOf, slice.offset, slice.limit],
  )
  return rows.map(row => JSON.parse(row.body))
}

/** Ids of unpaid subscriptions without an invoice in the list. */
export async function unpaidSubscriptions(
  db: Db,
  { tenantId, currency, asOf }: Scope,
  slice: Slice,
): Promise<string[]> {
  if (slice.limit === 0) return []
  const { rows } = await queryPrepared<{ id: string }>(
    db,
    `${UNPAID} order by s.valid_from, s.subscription_id offset $4 limit $5`,
    [tenantId, currency, asOf, slice.offset, slice.limit],
  )
  return rows.map(row => row.id)
}
