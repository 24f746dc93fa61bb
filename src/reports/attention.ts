import {
  type AgendaEntry,
  buildAgenda,
  daysOverdue,
  daysUntil,
  type IssueType,
  invoiceIssue,
} from '../domain/billing/attention.ts'
import type { InvoiceState } from '../domain/billing/cash.ts'
import type { Segment } from '../domain/billing/timeline.ts'
import type { Instant } from '../domain/billing/types.ts'
import { type Slice, splitSlice } from '../domain/list-slices.ts'
import type { Db } from '../postgres/database.ts'
import { withAccounts } from '../store/billing/merges.ts'
import { accountNames, runningSegments, segmentsOfSubscriptions, withPaymentIssues } from '../store/reports/accounts.ts'
import {
  type AgendaKind,
  type AgendaRow,
  agendaCounts,
  agendaReaches,
  agendaSlice,
  invoicesWithIssues,
  issueCounts,
  unpaidSubscriptions,
} from '../store/reports/attention.ts'
import { type MatchedItems, openLedger } from './ledger.ts'
import { daysFrom, type ReportList, type ReportQuestion } from './question.ts'

export type AttentionReport = {
  days: number
  paymentIssues: ReportList<Named<PaymentIssue>>
  renewals: ReportList<Named<RenewalDue>>
  cancellations: ReportList<Named<CancellationDue>>
  upcomingBilling: ReportList<Named<ChargeDue>>
}

/** A row with the name of its account. */
export type Named<Row> = Row & { customerName: string | null }

type PaymentIssue = {
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

export async function attentionReport(db: Db, question: ReportQuestion, days: number): Promise<AttentionReport> {
  const { matched } = await openLedger(db, question)
  const agenda = await openAgenda(db, question, days, matched)
  const named = <Row extends { customer: string | null }>(list: ReportList<Row>) =>
    withNames(db, question.tenantId, list)
  return {
    days,
    paymentIssues: named(issueList(db, question, await openIssues(db, question, matched))),
    renewals: named(dueList(db, question, agenda, 'renewal', renewalDue)),
    cancellations: named(dueList(db, question, agenda, 'cancellation', cancellationDue)),
    upcomingBilling: named(dueList(db, question, agenda, 'charge', chargeDue)),
  }
}

/** Adds the names of the accounts to the rows. A customer of an invoice may be merged into another account. */
export function withNames<Row extends { customer: string | null }>(
  db: Db,
  tenantId: number,
  list: ReportList<Row>,
): ReportList<Named<Row>> {
  return {
    ...list,
    async rows(slice) {
      const rows = await withAccounts(db, tenantId, await list.rows(slice))
      const names = await accountNames(db, tenantId, [...new Set(rows.flatMap(({ customer }) => customer ?? []))])
      return rows.map(row => ({ ...row, customerName: names.get(row.customer ?? '') ?? null }))
    },
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

function renewalDue(body: AgendaRow['body'], { dueAt, segment, hasPaymentIssue, ...due }: DueFacts): RenewalDue {
  const { interval, intervalCount, amount } = body as BodyOf<'renewal'>
  return { ...due, renewsAt: dueAt, interval, intervalCount, renewalAmount: amount, mrr: segment.mrr, hasPaymentIssue }
}

function cancellationDue(
  body: AgendaRow['body'],
  { dueAt, segment, hasPaymentIssue: _, ...due }: DueFacts,
): CancellationDue {
  const { requestedAt, reason } = body as BodyOf<'cancellation'>
  return { ...due, cancelsAt: dueAt, requestedAt, reason, mrrAtRisk: segment.mrr }
}

function chargeDue(body: AgendaRow['body'], { dueAt, segment: _, hasPaymentIssue: __, ...due }: DueFacts): ChargeDue {
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

/** Invoices with an issue, then unpaid subscriptions without such an invoice. */
function issueList(db: Db, question: ReportQuestion, issues: Issues): ReportList<PaymentIssue> {
  const { tenantId, asOf } = question
  const { counts } = issues
  return {
    count: counts.invoices + counts.subscriptions,
    async rows(slice) {
      const [ofInvoices, ofSubscriptions] = splitSlice(slice, [counts.invoices, counts.subscriptions])
      const invoices = await issues.invoices(ofInvoices!)
      const unpaid = await issues.subscriptions(ofSubscriptions!)
      const named = invoices.flatMap(invoice => invoice.subscriptionId ?? [])
      const segments = await segmentsOfSubscriptions(db, tenantId, [...named, ...unpaid], asOf)
      return [
        ...invoices.map(invoice => issueOfInvoice(invoice, segments.get(invoice.subscriptionId ?? ''), question)),
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

/** What is due within a number of days, by kind. */
type Agenda = { counts: Record<AgendaKind, number>; slice(kind: AgendaKind, slice: Slice): Promise<AgendaRow[]> }

/**
 * The stored agenda covers the time from now on. For an earlier time, or with a filter, the agenda is built from the
 * segments.
 */
export async function openAgenda(
  db: Db,
  question: ReportQuestion,
  days: number,
  matched: MatchedItems | null,
): Promise<Agenda> {
  const { tenantId, asOf, now } = question
  const until = daysFrom(asOf, days)
  if (matched === null && asOf >= now && (await agendaReaches(db, tenantId, until))) {
    const counts = await agendaCounts(db, question, until)
    return { counts, slice: (kind, slice) => agendaSlice(db, question, { kind, until, count: counts[kind] }, slice) }
  }
  return agendaOfSegments(db, question, until, matched)
}

async function agendaOfSegments(
  db: Db,
  question: ReportQuestion,
  until: Date,
  matched: MatchedItems | null,
): Promise<Agenda> {
  const rows: Record<AgendaKind, AgendaRow[]> = { charge: [], renewal: [], cancellation: [] }
  const asOf = question.asOf.getTime()
  for await (const segments of runningSegments(db, question)) {
    for (const segment of segments) {
      if (matched && !matched.includes(segment.subscriptionId, question.asOf)) continue
      for (const entry of buildAgenda([segment], asOf, until.getTime())) {
        // not known yet at `asOf`
        if (entry.knownFrom !== null) continue
        const { kind, dueAt, body } = entry
        rows[kind].push({ subscriptionId: segment.subscriptionId, dueAt, body })
      }
    }
  }
  const order = (a: AgendaRow, b: AgendaRow) => a.dueAt - b.dueAt || (a.subscriptionId < b.subscriptionId ? -1 : 1)
  for (const list of Object.values(rows)) list.sort(order)
  return {
    counts: { charge: rows.charge.length, renewal: rows.renewal.length, cancellation: rows.cancellation.length },
    slice: async (kind, { offset, limit }) => rows[kind].slice(offset, offset + limit),
  }
}

/** Invoices with an issue, and unpaid subscriptions without such an invoice. */
type Issues = {
  counts: { invoices: number; subscriptions: number }
  invoices(slice: Slice): Promise<InvoiceState[]>
  /** Their ids. */
  subscriptions(slice: Slice): Promise<string[]>
}

export async function openIssues(db: Db, question: ReportQuestion, matched: MatchedItems | null): Promise<Issues> {
  const counts = await issueCounts(db, question)
  if (matched === null) {
    return {
      counts,
      invoices: slice => invoicesWithIssues(db, question, slice),
      subscriptions: slice => unpaidSubscriptions(db, question, slice),
    }
  }
  const isLeft = (id: string | null) => id !== null && matched.includes(id, question.asOf)
  const all = (limit: number) => ({ offset: 0, limit })
  const invoices = (await invoicesWithIssues(db, question, all(counts.invoices))).filter(invoice =>
    isLeft(invoice.subscriptionId),
  )
  const subscriptions = (await unpaidSubscriptions(db, question, all(counts.subscriptions))).filter(isLeft)
  return {
    counts: { invoices: invoices.length, subscriptions: subscriptions.length },
    invoices: async ({ offset, limit }) => invoices.slice(offset, offset + limit),
    subscriptions: async ({ offset, limit }) => subscriptions.slice(offset, offset + limit),
  }
}
