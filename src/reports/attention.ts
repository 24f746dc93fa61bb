import {
  type AgendaEntry,
  daysOverdue,
  daysUntil,
  type IssueType,
  invoiceIssue,
} from '../domain/billing/attention.ts'
import type { InvoiceState } from '../domain/billing/cash.ts'
import type { Segment } from '../domain/billing/timeline.ts'
import type { Instant } from '../domain/billing/types.ts'
import { slicesOf } from '../domain/list-slices.ts'
import type { Db } from '../postgres/database.ts'
import { segmentsOfSubscriptions, withPaymentIssues } from '../store/reports/accounts.ts'
import type { AgendaKind, AgendaRow } from '../store/reports/attention.ts'
import { type Agenda, openAgenda } from './agenda.ts'
import { type Issues, openIssues } from './issues.ts'
import { openLedger } from './open-ledger.ts'
import type { ReportList, ReportQuestion } from './question.ts'

export type AttentionReport = {
  days: number
  paymentIssues: ReportList<PaymentIssue>
  renewals: ReportList<RenewalDue>
  cancellations: ReportList<CancellationDue>
  upcomingBilling: ReportList<ChargeDue>
}

export type PaymentIssue = {
  invoiceId: string | null
  invoiceNumber: string | null
  subscriptionId: string | null
  customer: string | null
  issueType: IssueType
  amountDue: number | null
  amountRemaining: number | null
  attemptCount: number | null
  nextPaymentAttemptAt: Instant | null
  failureCode: string | null
  failureMessage: string | null
  dueAt: Instant | null
  daysOverdue: number | null
  mrrAtRisk: number
}

type Due = { subscriptionId: string; customer: string; daysUntil: number }

type RenewalDue = Due & {
  renewsAt: Instant
  interval: string
  intervalCount: number
  renewalAmount: number | null
  mrr: number
  hasPaymentIssue: boolean
}

type CancellationDue = Due & {
  cancelsAt: Instant
  requestedAt: Instant | null
  reason: string | null
  mrrAtRisk: number
}

type ChargeDue = Due & {
  billsAt: Instant
  estimatedAmount: number | null
  collectionMethod: string | null
  isTrialConversion: boolean
  includesMetered: boolean
}

export async function attentionReport(
  db: Db,
  question: ReportQuestion,
  days: number,
): Promise<AttentionReport> {
  const { narrowed } = await openLedger(db, question)
  const agenda = await openAgenda(db, question, days, narrowed)
  return {
    days,
    paymentIssues: issueList(db, question, await openIssues(db, question, narrowed)),
    renewals: dueList(db, question, agenda, 'renewal', renewalDue),
    cancellations: dueList(db, question, agenda, 'cancellation', cancellationDue),
    upcomingBilling: dueList(db, question, agenda, 'charge', chargeDue),
  }
}

type DueFacts = Due & { dueAt: Instant; segment: Segment; hasPaymentIssue: boolean }

function dueList<Row>(
  db: Db,
  question: ReportQuestion,
  agenda: Agenda,
  kind: AgendaKind,
  rowOf: (body: AgendaRow['body'], facts: DueFacts) => Row,
): ReportList<Row> {
  const { tenantId, asOf } = question
  return {
    count: agenda.counts[kind],
    async rows(slice) {
      const entries = await agenda.slice(kind, slice)
      const subscriptions = [...new Set(entries.map(entry => entry.subscriptionId))]
      const segments = await segmentsOfSubscriptions(db, tenantId, subscriptions, asOf)
      const issues = await withPaymentIssues(db, question, { subscriptions, customers: [] })
      return entries.map(({ subscriptionId, dueAt, body }) => {
        const segment = segments.get(subscriptionId)!
        return rowOf(body, {
          subscriptionId,
          customer: segment.account,
          daysUntil: daysUntil(dueAt, asOf.getTime()),
          dueAt,
          segment,
          hasPaymentIssue: issues.subscriptions.has(subscriptionId),
        })
      })
    },
  }
}

type BodyOf<Kind extends AgendaKind> = Extract<AgendaEntry, { kind: Kind }>['body']

function renewalDue(
  body: AgendaRow['body'],
  { dueAt, segment, hasPaymentIssue, ...due }: DueFacts,
): RenewalDue {
  const { interval, intervalCount, amount } = body as BodyOf<'renewal'>
  return {
    ...due,
    renewsAt: dueAt,
    interval,
    intervalCount,
    renewalAmount: amount,
    mrr: segment.mrr,
    hasPaymentIssue,
  }
}

function cancellationDue(
  body: AgendaRow['body'],
  { dueAt, segment, hasPaymentIssue: _, ...due }: DueFacts,
): CancellationDue {
  const { requestedAt, reason } = body as BodyOf<'cancellation'>
  return { ...due, cancelsAt: dueAt, requestedAt, reason, mrrAtRisk: segment.mrr }
}

function chargeDue(
  body: AgendaRow['body'],
  { dueAt, segment: _, hasPaymentIssue: __, ...due }: DueFacts,
): ChargeDue {
  const { amount, collectionMethod, trialConversion, includesMetered } = body as BodyOf<'charge'>
  return {
    ...due,
    billsAt: dueAt,
    estimatedAmount: amount,
    collectionMethod,
    isTrialConversion: trialConversion,
    includesMetered,
  }
}

/** Invoices with something wrong, then unpaid subscriptions without such an invoice. */
function issueList(db: Db, question: ReportQuestion, issues: Issues): ReportList<PaymentIssue> {
  const { tenantId, asOf } = question
  const { counts } = issues
  return {
    count: counts.invoices + counts.subscriptions,
    async rows(slice) {
      const [ofInvoices, ofSubscriptions] = slicesOf(slice, [counts.invoices, counts.subscriptions])
      const invoices = await issues.invoices(ofInvoices!)
      const unpaid = await issues.subscriptions(ofSubscriptions!)
      const named = invoices.flatMap(invoice => invoice.subscriptionId ?? [])
      const segments = await segmentsOfSubscriptions(db, tenantId, [...named, ...unpaid], asOf)
      return [
        ...invoices.map(invoice =>
          issueOfInvoice(invoice, segments.get(invoice.subscriptionId ?? ''), question),
        ),
        ...unpaid.map(id => issueOfUnpaid(segments.get(id)!)),
      ]
    },
  }
}

function issueOfInvoice(
  invoice: InvoiceState,
  segment: Segment | undefined,
  { asOf, currency }: ReportQuestion,
): PaymentIssue {
  return {
    invoiceId: invoice.invoiceId,
    invoiceNumber: invoice.number,
    subscriptionId: invoice.subscriptionId,
    customer: segment?.account ?? invoice.customer ?? invoice.customerEmail,
    issueType: invoiceIssue(invoice, asOf.getTime())!,
    amountDue: invoice.amountDue,
    amountRemaining: invoice.amountRemaining,
    attemptCount: invoice.attemptCount,
    nextPaymentAttemptAt: invoice.nextPaymentAttemptAt,
    failureCode: invoice.failure?.code ?? null,
    failureMessage: invoice.failure?.message ?? null,
    dueAt: invoice.dueAt,
    daysOverdue: daysOverdue(invoice.dueAt, asOf.getTime()),
    mrrAtRisk: segment?.currency === currency ? segment.mrr : 0,
  }
}

function issueOfUnpaid(segment: Segment): PaymentIssue {
  return {
    invoiceId: null,
    invoiceNumber: null,
    subscriptionId: segment.subscriptionId,
    customer: segment.account,
    issueType: 'subscription_unpaid',
    amountDue: null,
    amountRemaining: null,
    attemptCount: null,
    nextPaymentAttemptAt: null,
    failureCode: null,
    failureMessage: null,
    dueAt: null,
    daysOverdue: null,
    mrrAtRisk: segment.mrr,
  }
}
