import type { InvoiceState, InvoiceSummary } from '../../domain/billing/cash.ts'
import type { Instant } from '../../domain/billing/types.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { type DerivedTable, replaceRows, replacing } from './derived.ts'
import { endText, type ObjectKey, timeText } from './keys.ts'
import { ensureRows, lockRows } from './locking.ts'
import { INVOICE_EFFECTS } from './sums.ts'

/** Makes the rows that are missing and locks all of them, in order. */
export async function lockInvoices(db: Db, invoices: ObjectKey[]): Promise<void> {
  await ensureRows(db, 'billing_invoices', invoices)
  await lockRows(db, 'billing_invoices', invoices)
}

export type InvoiceLedger = ObjectKey & { summary: InvoiceSummary; states: InvoiceStateRow[] }

type InvoiceStateRow = {
  state: InvoiceState
  hash: string
  invoicedAt: Instant | null
  /** From when on there is something wrong with it while this state holds. */
  issueFrom: Instant | null
}

const STATES: DerivedTable = {
  name: 'billing_invoice_states',
  owner: 'invoice_id',
  key: ['valid_from'],
  values: [
    'valid_to',
    'currency',
    'subscription_id',
    'customer',
    'invoiced_at',
    'total',
    'issue_from',
    'hash',
    'body',
  ],
  compared: row => `${row}.hash`,
}
const REPLACE_STATES = replacing(STATES, INVOICE_EFFECTS)

/** With the sums of days that they are part of. */
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
