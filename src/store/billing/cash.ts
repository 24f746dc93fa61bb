import type { CashRow, InvoiceState, InvoiceSummary, PaymentRecord } from '../../domain/billing/cash.ts'
import type { Instant, Refund } from '../../domain/billing/types.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import {
  type DerivedTable,
  endText,
  ensureRows,
  keyColumns,
  lockRows,
  type ObjectKey,
  replaceRows,
  replacing,
  sortedKeys,
  timeText,
  utcDay,
} from './rows.ts'

/** Creates missing rows and locks all of them, in order. */
export async function lockPayments(db: Db, payments: ObjectKey[]): Promise<void> {
  await ensureRows(db, 'billing_payments', payments)
  await lockRows(db, 'billing_payments', payments)
}

export async function updatePayments(db: Db, payments: (ObjectKey & { record: PaymentRecord })[]): Promise<void> {
  await queryPrepared(
    db,
    `update billing_payments p set invoice_id = k.invoice_id, unlinked_customer = k.customer, body = k.body
     from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::json[])
       as k (tenant_id, id, invoice_id, customer, body)
     where p.tenant_id = k.tenant_id and p.id = k.id and p.body::text is distinct from k.body::text`,
    [
      ...keyColumns(payments),
      payments.map(({ record }) => record.invoiceId),
      payments.map(({ record }) => (record.unlinked && record.invoiceId === null ? record.customer : null)),
      payments.map(({ record }) => JSON.stringify(record)),
    ],
  )
}

export async function loadPaymentsOfInvoices(
  db: Db,
  invoices: ObjectKey[],
): Promise<(ObjectKey & { record: PaymentRecord })[]> {
  const { rows } = await queryPrepared<ObjectKey & { body: string }>(
    db,
    `select k.tenant_id as "tenantId", p.id, p.body from unnest($1::int[], $2::text[]) as k (tenant_id, invoice_id)
     cross join lateral (
       select id, body from billing_payments
       where tenant_id = k.tenant_id and invoice_id = k.invoice_id order by id offset 0) p`,
    keyColumns(invoices),
  )
  return rows.map(({ body, ...key }) => ({ ...key, record: JSON.parse(body) }))
}

/** Payments of these customers that may belong to an invoice, but name none. */
export async function unlinkedPayments(db: Db, customers: ObjectKey[]): Promise<ObjectKey[]> {
  return queryRows<ObjectKey>(
    db,
    `select k.tenant_id as "tenantId", p.id from unnest($1::int[], $2::text[]) as k (tenant_id, customer)
     cross join lateral (
       select id from billing_payments where tenant_id = k.tenant_id and unlinked_customer = k.customer
       order by id desc limit ${UNLINKED_AT_MOST}) p`,
    keyColumns(customers),
  )
}

// Per customer: some customers pay every minute and never have an invoice.
const UNLINKED_AT_MOST = 20

/**
 * The only invoice of the same customer, amount and time that has no other payment. `invoices`: invoices that are not
 * derived yet.
 */
export async function invoicesLikePayments(
  db: Db,
  payments: (ObjectKey & { record: PaymentRecord })[],
  invoices: ObjectKey[],
): Promise<(ObjectKey & { invoiceId: string })[]> {
  return queryRows<ObjectKey & { invoiceId: string }>(
    db,
    `select k.tenant_id as "tenantId", k.id, min(i.id) as "invoiceId"
     from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
       as k (tenant_id, id, customer, currency, amount, at, reported_at)
     cross join lateral (
       select i.id from (
         select id from billing_invoices where tenant_id = k.tenant_id and customer = k.customer
         union
         select id from unnest($9::int[], $10::text[]) as t (tenant_id, id) where t.tenant_id = k.tenant_id
       ) i
       where exists (
         select from billing_versions v
         where v.tenant_id = k.tenant_id and v.kind = 'invoice' and v.object_id = i.id
           and v.body->>'customer' = k.customer and (v.body->>'amountDue')::bigint = k.amount and v.body->>'currency' = k.currency
           and least(
             abs(coalesce((v.body->>'paidAt')::bigint, (v.body->>'sourceAt')::bigint) - k.at),
             abs((v.body->>'finalizedAt')::bigint - k.at),
             abs((v.body->>'paidAt')::bigint - k.reported_at)) <= $8)
         and not exists (
           select from billing_payments p
           where p.tenant_id = k.tenant_id and p.invoice_id = i.id and p.id <> k.id and p.body->>'paidAt' is not null)
       limit 2) i
     group by 1, 2 having count(*) = 1`,
    [
      ...keyColumns(payments),
      payments.map(({ record }) => record.customer),
      payments.map(({ record }) => record.currency),
      payments.map(({ record }) => record.unlinked!.amount),
      payments.map(({ record }) => record.unlinked!.at),
      payments.map(({ record }) => record.unlinked!.reportedAt),
      SAME_PAYMENT_MS,
      ...keyColumns(invoices),
    ],
  )
}

// Stripe sends a charge and the invoice that it paid within seconds. A bank debit is created when the invoice is finalized
// and succeeds days later, when the invoice is paid.
const SAME_PAYMENT_MS = 300_000

/** Refunds, lost disputes and credit notes that were paid out. */
export type StoredRefund = ObjectKey & { refund: Refund }

export async function loadRefundsOfPayments(db: Db, payments: ObjectKey[]): Promise<StoredRefund[]> {
  return loadRefunds(db, 'payment_id', payments)
}

export async function loadRefundsOfInvoices(db: Db, invoices: ObjectKey[]): Promise<StoredRefund[]> {
  return loadRefunds(db, 'invoice_id', invoices)
}

async function loadRefunds(db: Db, by: 'payment_id' | 'invoice_id', owners: ObjectKey[]): Promise<StoredRefund[]> {
  const { rows } = await queryPrepared<ObjectKey & { body: string }>(
    db,
    `select k.tenant_id as "tenantId", r.id, r.body from unnest($1::int[], $2::text[]) as k (tenant_id, owner)
     cross join lateral (
       select id, body from billing_refunds where tenant_id = k.tenant_id and ${by} = k.owner order by id offset 0) r`,
    keyColumns(owners),
  )
  return rows.map(({ body, ...key }) => ({ ...key, refund: JSON.parse(body) }))
}

export async function upsertRefunds(db: Db, refunds: (StoredRefund & { counted: boolean })[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_refunds as r
       (tenant_id, id, payment_id, invoice_id, charge_id, customer, currency, amount, created_at, counted, body)
     select tenant_id, id, payment_id, invoice_id, charge_id, customer, currency, amount, created_at, counted, body
     from json_populate_recordset(null::billing_refunds, $1) order by tenant_id, id
     on conflict (tenant_id, id) do update set
       payment_id = excluded.payment_id, invoice_id = excluded.invoice_id, charge_id = excluded.charge_id,
       customer = excluded.customer, currency = excluded.currency, amount = excluded.amount,
       created_at = excluded.created_at, counted = excluded.counted, body = excluded.body
     where (r.counted, r.body::text) is distinct from (excluded.counted, excluded.body::text)`,
    [
      JSON.stringify(
        sortedKeys(refunds).map(({ tenantId, id, refund, counted }) => ({
          tenant_id: tenantId,
          id,
          payment_id: refund.paymentId ?? null,
          invoice_id: refund.invoiceId,
          charge_id: refund.chargeId,
          customer: refund.customer,
          currency: refund.currency ?? '',
          amount: refund.amount ?? 0,
          created_at: timeText(refund.createdAt),
          counted,
          body: refund,
        })),
      ),
    ],
  )
}

/** An invoice, or a payment without one, and the money of it. */
export type CashOwner = ObjectKey & { rows: CashRow[] }

/** Daily payments of subscription invoices, what was returned, and one-off payments. */
export const CASH_FIGURES = ['collected', 'payments', 'refunded', 'disputed', 'one_off'] as const

/** Cash sums contain the current state: rows with an open end. */
export const INVOICE_EFFECTS = `
insert into billing_cash_days (tenant_id, day, currency, invoiced, invoices)
select tenant_id, ${utcDay('invoiced_at')}, currency, sum(sign * total), sum(sign)
from (
  select 1 as sign, * from new where valid_to = 'infinity'
  union all
  select -1, * from old where valid_to = 'infinity'
) states
where invoiced_at is not null
group by 1, 2, 3`

/** The sums of rows of billing_cash. */
export const CASH_SUMS = `
  coalesce(sum(amount) filter (where recurring and kind = 'payment'), 0)::bigint as collected,
  count(*) filter (where recurring and kind = 'payment') as payments,
  coalesce(sum(amount) filter (where recurring and kind = 'refund'), 0)::bigint as refunded,
  coalesce(sum(amount) filter (where recurring and kind = 'dispute'), 0)::bigint as disputed,
  coalesce(sum(case kind when 'payment' then amount else -amount end) filter (where not recurring), 0)::bigint
    as one_off`

export const CASH_EFFECTS = `
insert into billing_cash_days (tenant_id, day, currency, ${CASH_FIGURES.join(', ')})
select tenant_id, day, currency, ${CASH_FIGURES.map(figure => `sum(sign * ${figure})`).join(', ')}
from (
  select 1 as sign, tenant_id, ${utcDay('occurred_at')} as day, currency, ${CASH_SUMS} from new
  where valid_to = 'infinity' group by 2, 3, 4
  union all
  select -1, tenant_id, ${utcDay('occurred_at')}, currency, ${CASH_SUMS} from old
  where valid_to = 'infinity' group by 2, 3, 4
) sums
group by 1, 2, 3`

const CASH: DerivedTable = {
  name: 'billing_cash',
  owner: 'owner',
  key: ['kind', 'id'],
  values: ['occurred_at', 'valid_to', 'currency', 'amount', 'recurring'],
}
const REPLACE_CASH = replacing(CASH, CASH_EFFECTS)

/** Also updates the daily sums. */
export async function replaceCash(db: Db, owners: CashOwner[]): Promise<void> {
  if (owners.length === 0) return
  const rows = owners.flatMap(({ tenantId, id, rows }) =>
    rows.map(row => ({
      tenant_id: tenantId,
      owner: id,
      kind: row.kind,
      id: row.id,
      occurred_at: timeText(row.at),
      valid_to: endText(row.to),
      currency: row.currency,
      amount: row.amount,
      recurring: row.recurring,
    })),
  )
  await replaceRows(db, REPLACE_CASH, owners, rows)
}

/** Creates missing rows and locks all of them, in order. */
export async function lockInvoices(db: Db, invoices: ObjectKey[]): Promise<void> {
  await ensureRows(db, 'billing_invoices', invoices)
  await lockRows(db, 'billing_invoices', invoices)
}

export type InvoiceLedger = ObjectKey & { summary: InvoiceSummary; states: InvoiceStateRow[] }

type InvoiceStateRow = {
  state: InvoiceState
  hash: string
  invoicedAt: Instant | null
  /** When the issue of this state starts. */
  issueFrom: Instant | null
}

const STATES: DerivedTable = {
  name: 'billing_invoice_states',
  owner: 'invoice_id',
  key: ['valid_from'],
  values: ['valid_to', 'currency', 'subscription_id', 'customer', 'invoiced_at', 'total', 'issue_from', 'hash', 'body'],
  compared: row => `${row}.hash`,
}
const REPLACE_STATES = replacing(STATES, INVOICE_EFFECTS)

/** Also updates the daily sums. */
export async function replaceInvoices(db: Db, invoices: InvoiceLedger[]): Promise<void> {
  await queryPrepared(
    db,
    `update billing_invoices i set subscription_id = n.subscription_id, customer = n.customer,
       customer_name = n.customer_name, customer_email = n.customer_email, currency = n.currency,
       first_at = n.first_at, last_at = n.last_at
     from json_populate_recordset(null::billing_invoices, $1) n
     where i.tenant_id = n.tenant_id and i.id = n.id`,
    [JSON.stringify(invoices.map(invoiceColumns))],
  )
  const rows = invoices.flatMap(({ tenantId, states }) => states.map(state => stateColumns(tenantId, state)))
  await replaceRows(db, REPLACE_STATES, invoices, rows)
}

function invoiceColumns({ tenantId, id, summary }: InvoiceLedger) {
  return {
    tenant_id: tenantId,
    id,
    subscription_id: summary.subscriptionId,
    customer: summary.customer,
    customer_name: summary.customerName,
    customer_email: summary.customerEmail,
    currency: summary.currency ?? '',
    first_at: timeText(summary.firstAt),
    last_at: timeText(summary.lastAt),
  }
}

function stateColumns(tenantId: number, { state, hash, ...row }: InvoiceStateRow) {
  const maybe = (at: Instant | null) => (at === null ? null : timeText(at))
  return {
    tenant_id: tenantId,
    invoice_id: state.invoiceId,
    valid_from: timeText(state.from),
    valid_to: endText(state.to),
    currency: state.currency ?? '',
    subscription_id: state.subscriptionId,
    customer: state.customer,
    invoiced_at: maybe(row.invoicedAt),
    total: state.total,
    issue_from: maybe(row.issueFrom),
    hash,
    body: state,
  }
}
