import { type AgendaEntry, agendaOf } from '../../domain/billing/agenda.ts'
import { daysOverdue, daysUntil, invoiceIssue } from '../../domain/billing/attention.ts'
import type { InvoiceState } from '../../domain/billing/invoices.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import type { Db } from '../../postgres/database.ts'
import { runningSegments, segmentsOfSubscriptions, troubled } from '../../store/reports/accounts.ts'
import {
  type AgendaKind,
  type AgendaRow,
  agendaCounts,
  agendaReaches,
  agendaSlice,
  issueCounts,
  troubledInvoices,
  unpaidSubscriptions,
} from '../../store/reports/attention.ts'
import { type Slice, slicesOf } from '../../store/reports/reports.ts'
import { type Ask, daysFrom } from './query.ts'
import type { Report, ReportList } from './report.ts'
import { CancellationRow, PaymentIssueRow, RenewalRow, type Row, UpcomingBillingRow } from './rows.ts'

/** What is due within so many days, by kind. */
export type Agenda = {
  counts: Record<AgendaKind, number>
  slice(kind: AgendaKind, slice: Slice): Promise<AgendaRow[]>
}

export async function attentionReport(db: Db, ask: Ask, days: number): Promise<Report> {
  const agenda = await openAgenda(db, ask, days)
  return {
    facts: { days },
    lists: {
      payment_issues: await issueList(db, ask),
      renewals: agendaList(db, ask, agenda, 'renewal', RenewalRow, renewalRow),
      cancellations: agendaList(db, ask, agenda, 'cancellation', CancellationRow, cancellationRow),
      upcoming_billing: agendaList(db, ask, agenda, 'charge', UpcomingBillingRow, billingRow),
    },
  }
}

/** The agenda that is kept speaks of the time from now on; of any other time one is made from the segments. */
export async function openAgenda(db: Db, ask: Ask, days: number): Promise<Agenda> {
  const { tenantId, currency, asOf, now } = ask
  const until = daysFrom(asOf, days)
  if (asOf >= now && (await agendaReaches(db, tenantId, until))) {
    const counts = await agendaCounts(db, tenantId, currency, asOf, until)
    return {
      counts,
      slice: (kind, slice) => agendaSlice(db, tenantId, currency, kind, asOf, until, slice, counts[kind]),
    }
  }
  return agendaOfSegments(db, ask, until)
}

async function agendaOfSegments(db: Db, ask: Ask, until: Date): Promise<Agenda> {
  const rows: Record<AgendaKind, AgendaRow[]> = { charge: [], renewal: [], cancellation: [] }
  const asOf = ask.asOf.getTime()
  for await (const segments of runningSegments(db, ask.tenantId, ask.currency, ask.asOf)) {
    for (const segment of segments) {
      for (const entry of agendaOf([segment], asOf, until.getTime())) {
        if (isExpected(entry)) {
          const { kind, dueAt, body } = entry
          rows[kind].push({ subscriptionId: segment.subscriptionId, dueAt, body })
        }
      }
    }
  }
  const order = (a: AgendaRow, b: AgendaRow) =>
    a.dueAt - b.dueAt || (a.subscriptionId < b.subscriptionId ? -1 : 1)
  for (const list of Object.values(rows)) list.sort(order)
  return {
    counts: {
      charge: rows.charge.length,
      renewal: rows.renewal.length,
      cancellation: rows.cancellation.length,
    },
    slice: async (kind, { offset, limit }) => rows[kind].slice(offset, offset + limit),
  }
}

function isExpected({ knownFrom }: AgendaEntry): boolean {
  return knownFrom === null
}

function agendaList(
  db: Db,
  ask: Ask,
  agenda: Agenda,
  kind: AgendaKind,
  row: ReportList['row'],
  rowOf: (entry: AgendaRow, segment: Segment, ask: Ask, hasIssue: boolean) => object,
): ReportList {
  const { tenantId, currency, asOf } = ask
  return {
    row,
    count: agenda.counts[kind],
    async rows(slice) {
      const entries = await agenda.slice(kind, slice)
      const subscriptions = [...new Set(entries.map(entry => entry.subscriptionId))]
      const segments = await segmentsOfSubscriptions(db, tenantId, subscriptions, asOf)
      const trouble = await troubled(db, tenantId, currency, asOf, { subscriptions, customers: [] })
      return entries.map(entry =>
        rowOf(
          entry,
          segments.get(entry.subscriptionId)!,
          ask,
          trouble.subscriptions.has(entry.subscriptionId),
        ),
      )
    },
  }
}

function renewalRow(
  { dueAt, body }: AgendaRow,
  segment: Segment,
  ask: Ask,
  hasIssue: boolean,
): Row<typeof RenewalRow> {
  const { interval, intervalCount, amount } = body as {
    interval: string
    intervalCount: number
    amount: number
  }
  return {
    subscription_id: segment.subscriptionId,
    customer: segment.account,
    renews_at: dueAt,
    days_until: daysUntil(dueAt, ask.asOf.getTime()),
    interval,
    interval_count: intervalCount,
    renewal_amount: amount,
    mrr: segment.mrr,
    has_payment_issue: hasIssue,
  }
}

function cancellationRow(
  { dueAt, body }: AgendaRow,
  segment: Segment,
  ask: Ask,
): Row<typeof CancellationRow> {
  const { requestedAt, reason } = body as { requestedAt: number | null; reason: string | null }
  return {
    subscription_id: segment.subscriptionId,
    customer: segment.account,
    cancels_at: dueAt,
    requested_at: requestedAt,
    days_until: daysUntil(dueAt, ask.asOf.getTime()),
    reason,
    mrr_at_risk: segment.mrr,
  }
}

type ChargeBody = Extract<AgendaEntry, { kind: 'charge' }>['body']

function billingRow({ dueAt, body }: AgendaRow, segment: Segment, ask: Ask): Row<typeof UpcomingBillingRow> {
  const { amount, collectionMethod, trialConversion, includesMetered } = body as ChargeBody
  return {
    subscription_id: segment.subscriptionId,
    customer: segment.account,
    bills_at: dueAt,
    days_until: daysUntil(dueAt, ask.asOf.getTime()),
    estimated_amount: amount,
    collection_method: collectionMethod,
    is_trial_conversion: trialConversion,
    includes_metered: includesMetered,
  }
}

/** Invoices with something wrong, then unpaid subscriptions without such an invoice. */
async function issueList(db: Db, ask: Ask): Promise<ReportList> {
  const { tenantId, currency, asOf } = ask
  const counts = await issueCounts(db, tenantId, currency, asOf)
  return {
    row: PaymentIssueRow,
    count: counts.invoices + counts.subscriptions,
    async rows(slice) {
      const [ofInvoices, ofSubscriptions] = slicesOf(slice, [counts.invoices, counts.subscriptions])
      const invoices = await troubledInvoices(db, tenantId, currency, asOf, ofInvoices!)
      const unpaid = await unpaidSubscriptions(db, tenantId, currency, asOf, ofSubscriptions!)
      const named = invoices.flatMap(invoice => invoice.subscriptionId ?? [])
      const segments = await segmentsOfSubscriptions(db, tenantId, [...named, ...unpaid], asOf)
      return [
        ...invoices.map(invoice => invoiceRow(invoice, segments.get(invoice.subscriptionId ?? ''), ask)),
        ...unpaid.map(id => unpaidRow(segments.get(id)!)),
      ]
    },
  }
}

function invoiceRow(
  invoice: InvoiceState,
  segment: Segment | undefined,
  { asOf, currency }: Ask,
): Row<typeof PaymentIssueRow> {
  return {
    invoice_id: invoice.invoiceId,
    invoice_number: invoice.number,
    subscription_id: invoice.subscriptionId,
    customer: segment?.account ?? invoice.customer ?? invoice.customerEmail,
    issue_type: invoiceIssue(invoice, asOf.getTime())!,
    amount_due: invoice.amountDue,
    amount_remaining: invoice.amountRemaining,
    attempt_count: invoice.attemptCount,
    next_payment_attempt_at: invoice.nextPaymentAttemptAt,
    failure_code: invoice.failure?.code ?? null,
    failure_message: invoice.failure?.message ?? null,
    due_at: invoice.dueAt,
    days_overdue: daysOverdue(invoice.dueAt, asOf.getTime()),
    mrr_at_risk: segment?.currency === currency ? segment.mrr : 0,
  }
}

function unpaidRow(segment: Segment): Row<typeof PaymentIssueRow> {
  return {
    invoice_id: null,
    invoice_number: null,
    subscription_id: segment.subscriptionId,
    customer: segment.account,
    issue_type: 'subscription_unpaid',
    amount_due: null,
    amount_remaining: null,
    attempt_count: null,
    next_payment_attempt_at: null,
    failure_code: null,
    failure_message: null,
    due_at: null,
    days_overdue: null,
    mrr_at_risk: segment.mrr,
  }
}
