/** Outcomes of trials and failed payments, and exclusions. */

import { toMajor } from '../../domain/money.ts'
import { Type } from '../../domain/typebox.ts'
import { exclusionReport } from '../../reports/exclusions.ts'
import { type DunningReport, dunningReport, trialReport } from '../../reports/outcomes.ts'
import { reportingExclusions } from '../../reports/reporting.ts'
import type { App } from '../app.ts'
import { readWindow, WindowQuery } from './query.ts'
import { type ReportDeps, reportRoute, type ShownReport, shown } from './routes.ts'
import { Count, DunningRow, ExclusionRow, jsonRow, ReasonRow, Share, Time, TrialRow } from './rows.ts'
import { Amount, ExclusionsBody, flatReportSchema, page } from './schemas.ts'

const MaybeShare = Type.Union([Share, Type.Null()])

export function outcomeRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/exclusions',
    summary: 'Excluded items, and their MRR by reason',
    description:
      'The exclusions of the overview, with totals by reason. With `Accept: text/csv`, all rows are exported.',
    pages: { exclusions: 'page' },
    flat: 'exclusions',
    body: ExclusionsBody,
    reporting: true,
    async build(db, question) {
      const report = question.isReporting ? reportingExclusions : exclusionReport
      const { byReason, exclusions } = await report(db, question)
      const reasons = byReason.map(reason => jsonRow(ReasonRow, reason, question.currency))
      return { facts: { by_reason: reasons }, lists: { exclusions: shown(ExclusionRow, exclusions) } }
    },
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/trials',
    summary: 'Trials that started in a window, and their outcomes',
    description:
      'started = converted + expired + running. A trial converts when the subscription becomes active or past due. With `Accept: text/csv`, all rows are exported.',
    pages: { trials: 'page' },
    flat: 'trials',
    own: WindowQuery('Trials that started'),
    body: TrialsBody,
    async build(db, question, query) {
      const { since, until, totals, trials } = await trialReport(db, question, readWindow(question, query))
      const { conversionRate, ...counts } = totals
      return {
        facts: { since, until, totals: { ...counts, conversion_rate: conversionRate } },
        lists: { trials: shown(TrialRow, trials) },
      }
    },
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/dunning',
    summary: 'Failed payments in a window: recovered, lost or open',
    description:
      'One row per invoice, by the time of its first failed payment: failed = recovered + lost + open. An invoice is lost if it was written off or voided, or is open when its subscription ends. With `Accept: text/csv`, all rows are exported.',
    pages: { invoices: 'page' },
    flat: 'invoices',
    own: WindowQuery('Invoices whose first failed payment was'),
    body: DunningBody,
    build: async (db, question, query) =>
      shownDunning(await dunningReport(db, question, readWindow(question, query)), question.currency),
  })
}

function shownDunning(report: DunningReport, currency: string): ShownReport {
  const { since, until, totals, invoices } = report
  const sum = ({ count, amount }: { count: number; amount: number }) => ({ count, amount: toMajor(amount, currency) })
  return {
    facts: {
      since,
      until,
      totals: {
        failed: sum(totals.failed),
        recovered: sum(totals.recovered),
        lost: sum(totals.lost),
        open: sum(totals.open),
        recovery_rate: totals.recoveryRate,
      },
    },
    lists: { invoices: shown(DunningRow, invoices) },
  }
}

const Window = { since: Time, until: Time }
const window = { since: '2026-03-01T00:00:00.000Z', until: '2026-03-31T09:30:00.000Z' }

const TrialsBody = flatReportSchema(
  {
    ...Window,
    totals: Type.Object(
      {
        started: Count,
        converted: Count,
        expired: Count,
        running: Count,
        conversion_rate: MaybeShare,
      },
      { description: 'By outcome' },
    ),
  },
  TrialRow,
  {
    ...window,
    totals: { started: 1, converted: 0, expired: 0, running: 1, conversion_rate: null },
    ...page({
      subscription_id: 'sub_7',
      customer: 'cus_43',
      plan_names: ['Team'],
      started_at: '2026-03-25T00:00:00.000Z',
      trial_end: '2026-04-08T00:00:00.000Z',
      outcome: 'running',
      ended_at: null,
      mrr: 0,
    }),
  },
)

const Sum = Type.Object(
  { count: Count, amount: Amount },
  { title: 'CountAndAmount', description: 'A number of invoices and their amount' },
)

const DunningBody = flatReportSchema(
  {
    ...Window,
    totals: Type.Object(
      { failed: Sum, recovered: Sum, lost: Sum, open: Sum, recovery_rate: MaybeShare },
      { description: 'By outcome' },
    ),
  },
  DunningRow,
  {
    ...window,
    totals: {
      failed: { count: 1, amount: 49 },
      recovered: { count: 0, amount: 0 },
      lost: { count: 0, amount: 0 },
      open: { count: 1, amount: 49 },
      recovery_rate: null,
    },
    ...page({
      invoice_id: 'in_9',
      invoice_number: 'A-0009',
      subscription_id: 'sub_9',
      customer: 'cus_9',
      failed_at: '2026-03-28T10:00:00.000Z',
      failure_code: 'card_declined',
      failure_message: 'Your card was declined.',
      amount: 49,
      outcome: 'open',
      resolved_at: null,
    }),
  },
)
