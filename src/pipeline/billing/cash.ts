import type pg from 'pg'
import { findIssueStart } from '../../domain/billing/attention.ts'
import {
  cashRows,
  deriveInvoice,
  type InvoiceState,
  invoicedAt,
  markSuperseded,
  mergePayments,
  mergeRefund,
  type PaymentRecord,
  summarizeInvoice,
} from '../../domain/billing/cash.ts'
import { compareRefunds } from '../../domain/billing/order.ts'
import { DEFAULT_POLICY } from '../../domain/billing/policy.ts'
import { revenueLines } from '../../domain/billing/revenue.ts'
import type { CreditNote, InvoiceVersion, Payment, Refund } from '../../domain/billing/types.ts'
import { contentHash } from '../../domain/json/json.ts'
import { lockCustomers } from '../../postgres/locks.ts'
import {
  type CashOwner,
  type InvoiceLedger,
  invoicesLikePayments,
  loadPaymentsOfInvoices,
  loadRefundsOfInvoices,
  loadRefundsOfPayments,
  lockInvoices,
  lockPayments,
  replaceCash,
  replaceInvoices,
  type StoredRefund,
  unlinkedPayments,
  updatePayments,
  upsertRefunds,
} from '../../store/billing/cash.ts'
import { readPolicies } from '../../store/billing/policies.ts'
import { loadCreditNotes, replaceRevenue, staleInvoices, upsertCreditNotes } from '../../store/billing/revenue.ts'
import { distinctKeys, keyText, type ObjectKey } from '../../store/billing/rows.ts'
import { loadVersions } from '../../store/billing/versions.ts'

type PaymentRow = ObjectKey & { record: PaymentRecord }

/**
 * Derives invoices, payments and refunds from all of their versions. Payments are locked before their invoices: of two
 * transactions that each write half of a fact, the second sees both halves. `customers`: their invoices and payments
 * may belong together without referring to each other.
 */
export async function applyCash(
  client: pg.PoolClient,
  changed: {
    invoices: ObjectKey[]
    payments: ObjectKey[]
    refunds: ObjectKey[]
    credits: ObjectKey[]
    customers: ObjectKey[]
  },
): Promise<void> {
  if (changed.customers.length > 0) await lockCustomers(client, changed.customers)
  const unlinked = changed.customers.length > 0 ? await unlinkedPayments(client, changed.customers) : []
  const news = await mergedRefunds(client, changed.refunds)
  const paymentKeys = distinctKeys([
    ...changed.payments,
    ...unlinked,
    ...news.flatMap(({ tenantId, refund }) => (refund.paymentId ? [{ tenantId, id: refund.paymentId }] : [])),
  ])
  const payments = await derivePayments(client, paymentKeys, changed.invoices)
  const refunds = await keepRefunds(client, news, payments)
  const credits = await keepCreditNotes(client, changed.credits)
  const invoices = distinctKeys([
    ...changed.invoices,
    ...payments.flatMap(({ tenantId, record: { invoiceId: id } }) => (id === null ? [] : [{ tenantId, id }])),
    ...refunds.flatMap(({ tenantId, refund: { invoiceId: id } }) => (id === null ? [] : [{ tenantId, id }])),
    ...credits,
  ])
  const ofInvoices = invoices.length > 0 ? await deriveInvoices(client, invoices) : []
  const alone = payments.map(({ tenantId, id, record }) => ({
    tenantId,
    id: `payment ${id}`,
    rows:
      record.invoiceId === null
        ? cashRows({
            states: [],
            payments: [record],
            returns: markSuperseded(
              refunds
                .filter(entry => entry.tenantId === tenantId && entry.refund.paymentId === id)
                .map(({ refund }) => refund),
            ),
          })
        : [],
  }))
  await replaceCash(client, [...ofInvoices, ...alone])
}

async function derivePayments(client: pg.PoolClient, keys: ObjectKey[], invoices: ObjectKey[]): Promise<PaymentRow[]> {
  if (keys.length === 0) return []
  await lockPayments(client, keys)
  const known = await loadVersions<Payment>(client, 'payment', keys)
  const merged = [...Map.groupBy(known, keyText).values()].map(
    (versions): PaymentRow => ({
      tenantId: versions[0]!.tenantId,
      id: versions[0]!.id,
      record: mergePayments(versions.map(({ version }) => version)),
    }),
  )
  const rows = await withInvoices(client, merged, invoices)
  if (rows.length > 0) await updatePayments(client, rows)
  return rows
}

/** A payment without an invoice belongs to the invoice of the same customer, amount and minute, if there is exactly one. */
async function withInvoices(
  client: pg.PoolClient,
  payments: PaymentRow[],
  invoices: ObjectKey[],
): Promise<PaymentRow[]> {
  const open = payments.filter(({ record: { unlinked, customer } }) => unlinked && customer !== null)
  if (open.length === 0) return payments
  const found = new Map(
    (await invoicesLikePayments(client, open, invoices)).map(row => [keyText(row), row.invoiceId] as const),
  )
  return payments.map(row => {
    const invoiceId = found.get(keyText(row))
    return invoiceId === undefined ? row : { ...row, record: { ...row.record, invoiceId } }
  })
}

async function mergedRefunds(client: pg.PoolClient, keys: ObjectKey[]): Promise<StoredRefund[]> {
  if (keys.length === 0) return []
  const known = await loadVersions<Refund>(client, 'refund', keys)
  return [...Map.groupBy(known, keyText).values()].map(versions => ({
    tenantId: versions[0]!.tenantId,
    id: versions[0]!.id,
    refund: versions
      .map(({ version }) => version)
      .sort(compareRefunds)
      .reduce(mergeRefund),
  }))
}

/** Processes the refunds of one payment together: one may supersede another, or supply the invoice and customer of all. */
async function keepRefunds(
  client: pg.PoolClient,
  news: StoredRefund[],
  payments: PaymentRow[],
): Promise<StoredRefund[]> {
  if (payments.length === 0 && news.length === 0) return []
  const others = payments.length > 0 ? await loadRefundsOfPayments(client, payments) : []
  const records = new Map(payments.map(row => [keyText(row), row.record]))
  const groups = Map.groupBy(
    distinctKeys([...others, ...news]),
    ({ tenantId, id, refund }) => `${tenantId} ${refund.paymentId ?? `=${id}`}`,
  )
  const all = [...groups.values()].flatMap(group => {
    const { tenantId, refund } = group[0]!
    const record = refund.paymentId ? records.get(keyText({ tenantId, id: refund.paymentId })) : undefined
    const known = (field: 'invoiceId' | 'customer') =>
      record?.[field] ?? group.flatMap(entry => entry.refund[field] ?? []).sort()[0] ?? null
    const owned = group.map(entry => ({
      ...entry,
      refund: {
        ...entry.refund,
        invoiceId: entry.refund.invoiceId ?? known('invoiceId'),
        customer: entry.refund.customer ?? known('customer'),
      },
    }))
    const returns = markSuperseded(owned.map(entry => entry.refund))
    return owned.map((entry, i) => ({ ...entry, counted: entry.refund.counts && !returns[i]!.superseded }))
  })
  if (all.length > 0) await upsertRefunds(client, all)
  return all
}

/** Returns the invoices that they reduce. A credit note without an invoice reduces nothing. */
async function keepCreditNotes(client: pg.PoolClient, keys: ObjectKey[]): Promise<ObjectKey[]> {
  if (keys.length === 0) return []
  const known = await loadVersions<CreditNote>(client, 'credit_note', keys)
  const notes = [...Map.groupBy(known, keyText).values()].flatMap(versions => {
    const { tenantId, id } = versions[0]!
    const inOrder = versions.map(({ version }) => version).sort((a, b) => a.sourceAt - b.sourceAt)
    const invoiceId = inOrder.findLast(note => note.invoiceId !== null)?.invoiceId ?? null
    return invoiceId === null ? [] : [{ tenantId, id, invoiceId, note: inOrder.at(-1)! }]
  })
  await upsertCreditNotes(client, notes)
  return notes.map(({ tenantId, invoiceId }) => ({ tenantId, id: invoiceId }))
}

/** Derives the revenue of the tenant's next invoices whose days are not in this time zone. Returns the last; null: the end. */
export async function deriveStaleRevenue(
  client: pg.PoolClient,
  stale: { tenantId: number; zone: string; after: string },
  limit: number,
): Promise<string | null> {
  const keys = await staleInvoices(client, stale, limit)
  if (keys.length > 0) await deriveInvoices(client, keys)
  return keys.length === limit ? keys.at(-1)!.id : null
}

async function deriveInvoices(client: pg.PoolClient, keys: ObjectKey[]): Promise<CashOwner[]> {
  await lockInvoices(client, keys)
  const known = await loadVersions<InvoiceVersion>(client, 'invoice', keys)
  const payments = Map.groupBy(await loadPaymentsOfInvoices(client, keys), ({ tenantId, record }) =>
    keyText({ tenantId, id: record.invoiceId! }),
  )
  const refunds = Map.groupBy(await loadRefundsOfInvoices(client, keys), ({ tenantId, refund }) =>
    keyText({ tenantId, id: refund.invoiceId! }),
  )
  const credits = Map.groupBy(await loadCreditNotes(client, keys), keyText)
  const policies = await readPolicies(
    client,
    keys.map(({ tenantId }) => tenantId),
  )
  const derived = [...Map.groupBy(known, keyText).values()].map(versions => {
    const { tenantId, id } = versions[0]!
    const records = (payments.get(keyText({ tenantId, id })) ?? []).map(({ record }) => record)
    const attempts = records.flatMap(({ failures }) => failures).sort((a, b) => a.at - b.at)
    const states = deriveInvoice(
      versions.map(({ version }) => version),
      attempts,
    )
    const returns = markSuperseded((refunds.get(keyText({ tenantId, id })) ?? []).map(({ refund }) => refund))
    const zone = policies.get(tenantId)?.policy.timeZone ?? DEFAULT_POLICY.timeZone
    const notes = (credits.get(keyText({ tenantId, id })) ?? []).map(({ note }) => note)
    const revenue = revenueLines(states, notes, zone)
    return { tenantId, id, states, zone, revenue, rows: cashRows({ states, payments: records, returns }) }
  })
  if (derived.length > 0) {
    await replaceInvoices(client, derived.map(toLedger))
    await replaceRevenue(client, derived)
  }
  return derived.map(({ tenantId, id, rows }) => ({ tenantId, id: `invoice ${id}`, rows }))
}

function toLedger({ tenantId, id, states }: ObjectKey & { states: InvoiceState[] }): InvoiceLedger {
  return {
    tenantId,
    id,
    summary: summarizeInvoice(states),
    states: states.map(state => ({
      state,
      hash: contentHash(state),
      invoicedAt: invoicedAt(state),
      issueFrom: findIssueStart(state),
    })),
  }
}
