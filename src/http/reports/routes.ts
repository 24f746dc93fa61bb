import { Type } from 'typebox'
import { toMajor } from '../../domain/money.ts'
import { type AccountReport, accountReport } from '../../reports/accounts.ts'
import { type AcquisitionReport, acquisitionReport } from '../../reports/acquisition.ts'
import { type AttentionReport, attentionReport } from '../../reports/attention.ts'
import {
  type MovementReport,
  type MovementTotals,
  movementReport,
  type RetentionReport,
  retentionReport,
} from '../../reports/movements.ts'
import { type OverviewReport, overviewReport } from '../../reports/overview.ts'
import type { MovementOrder, RetentionBase } from '../../store/reports/movements.ts'
import type { App } from '../app.ts'
import { validateWindow } from '../paging.ts'
import { problems } from '../problems.ts'
import { cashRoutes } from './cash.ts'
import { consolidatedRoute } from './consolidated.ts'
import { jsonRow } from './fields.ts'
import { outcomeRoutes } from './outcomes.ts'
import { readWindow, WindowQuery } from './query.ts'
import { type ReportDeps, reportRoute, type ShownReport, shown } from './report.ts'
import {
  AccountRow,
  CancellationRow,
  CohortRow,
  ExclusionRow,
  ItemRow,
  MovementListRow,
  PaymentIssueRow,
  RenewalRow,
  SourceRow,
  TimelineRow,
  UpcomingBillingRow,
} from './rows.ts'
import {
  AccountBody,
  AcquisitionBody,
  AttentionBody,
  Coverage,
  MovementsBody,
  OverviewBody,
  Rates,
  RetentionBody,
} from './schemas.ts'
import { seriesRoutes } from './series.ts'

const CSV = 'With `Accept: text/csv`, the response is one of the lists as CSV.'
const WindowDays = (description: string) => Type.Integer({ enum: [30, 60, 90], default: 30, description })
const MAX_MONTHS = 60

/** All subscription reports. */
export function subscriptionRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/overview',
    summary: 'Subscription overview',
    description: `MRR, its coverage, movements and rates, and the accounts, sources and exclusions behind it. ${CSV}`,
    pages: { accounts: 'page', acquisition_sources: 'acquisition_page', exclusions: 'exclusion_page' },
    body: OverviewBody,
    build: async (db, question) => shownOverview(await overviewReport(db, question), question.currency),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/attention',
    summary: 'Payment issues, renewals, scheduled cancellations, upcoming billing',
    description: `Open payment issues are listed regardless of the window. ${CSV}`,
    pages: {
      payment_issues: 'issue_page',
      renewals: 'renewal_page',
      cancellations: 'cancel_page',
      upcoming_billing: 'billing_page',
    },
    own: { days: WindowDays('The number of days ahead') },
    body: AttentionBody,
    build: async (db, question, query) => shownAttention(await attentionReport(db, question, Number(query.days))),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/acquisition',
    summary: 'Current MRR and retention by acquisition source',
    description: `Every account has one source, or is \`unattributed\`, so the rows add up to MRR. ${CSV}`,
    pages: { sources: 'page' },
    own: { horizon: WindowDays('The age of the cohort in days') },
    body: AcquisitionBody,
    build: async (db, question, query) =>
      shownAcquisition(await acquisitionReport(db, question, Number(query.horizon)), question.currency),
  })
  accountRoute(app, deps)
  movementRoutes(app, deps)
  seriesRoutes(app, deps)
  cashRoutes(app, deps)
  outcomeRoutes(app, deps)
  consolidatedRoute(app, deps)
}

function accountRoute(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/account',
    summary: 'One account: summary, items, timeline',
    description: `By \`customer\` or \`subscription_id\`. If both are given, they must belong together. ${CSV}`,
    pages: { items: 'page', timeline: 'timeline_page' },
    own: {
      customer: Type.Optional(Type.String({ minLength: 1, description: 'The `customer` of an account row' })),
      subscription_id: Type.Optional(Type.String({ minLength: 1 })),
    },
    body: AccountBody,
    problems: [404],
    errors: ({ customer, subscription_id }) =>
      customer === undefined && subscription_id === undefined
        ? [{ pointer: '/customer', message: 'or subscription_id is required' }]
        : [],
    async build(db, question, query) {
      const report = await accountReport(db, question, {
        customer: (query.customer as string | undefined) ?? null,
        subscriptionId: (query.subscription_id as string | undefined) ?? null,
      })
      if (!report) throw problems.notFound('No such account.')
      return shownAccount(report, question.currency)
    },
  })
}

function movementRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/movements',
    summary: 'Movements of MRR, the oldest or the largest first',
    description:
      'After `since` and up to `until`, by effective time: opening + new + expansion + reactivation − contraction − churn = closing. With `Accept: text/csv`, all rows are exported.',
    pages: { movements: 'page' },
    own: {
      ...WindowQuery('Movements'),
      order: Type.Enum(['time', 'size'], {
        default: 'time',
        description: 'time: the oldest first; size: the largest change first, positive or negative',
      }),
    },
    body: MovementsBody,
    errors: validateWindow,
    flat: 'movements',
    build: async (db, question, query) =>
      shownMovements(
        await movementReport(db, question, readWindow(question, query), query.order as MovementOrder),
        question.currency,
      ),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/retention',
    summary: 'Monthly cohorts: gross and net revenue retention, logo retention',
    description: `A cohort contains the accounts that first paid in a month. A row is the state of a cohort at the end of one month. ${CSV}`,
    pages: { cohorts: 'page' },
    own: {
      months: Type.Integer({
        minimum: 1,
        maximum: MAX_MONTHS,
        default: 12,
        description: 'The number of monthly cohorts, including the current month',
      }),
      retention_base: Type.Optional(
        Type.Enum(['first_instant', 'end_of_month'], {
          description:
            'The starting MRR of a cohort: the first MRR of its accounts, or their MRR at the end of the first month; default: the setting of the policy',
        }),
      ),
    },
    body: RetentionBody,
    build: async (db, question, query) =>
      shownRetention(
        await retentionReport(db, question, {
          months: Number(query.months),
          base: (query.retention_base as RetentionBase | undefined) ?? question.policy.retentionBase,
        }),
      ),
  })
}

// Response bodies: amounts in major units, with the field names of the API.

function shownOverview(report: OverviewReport, currency: string): ShownReport {
  const { attention, invoiced, collected } = report
  const money = (minor: number) => toMajor(minor, currency)
  return {
    facts: {
      mrr: money(report.mrr),
      arr: money(report.arr),
      arpa: money(report.arpa),
      committed_mrr: money(report.committedMrr),
      active_subscriptions: report.activeSubscriptions,
      active_accounts: report.activeAccounts,
      coverage: jsonRow(Coverage, report.coverage, currency),
      attention: {
        payment_issues: attention.paymentIssues,
        renewals: attention.renewals,
        cancellations: attention.cancellations,
        upcoming_billing: attention.upcomingBilling,
      },
      invoiced: { amount: money(invoiced.amount), count: invoiced.count },
      collected: {
        amount: money(collected.amount),
        count: collected.count,
        refunded: money(collected.refunded),
        disputed: money(collected.disputed),
        one_off: money(collected.oneOff),
      },
      movements: { window_days: report.windowDays, ...shownTotals(report.movements, currency) },
      rates: jsonRow(Rates, report.rates, currency),
    },
    lists: {
      accounts: shown(AccountRow, report.accounts),
      acquisition_sources: shown(SourceRow, report.acquisitionSources),
      exclusions: shown(ExclusionRow, report.exclusions),
    },
  }
}

function shownAttention(report: AttentionReport): ShownReport {
  return {
    facts: { days: report.days },
    lists: {
      payment_issues: shown(PaymentIssueRow, report.paymentIssues),
      renewals: shown(RenewalRow, report.renewals),
      cancellations: shown(CancellationRow, report.cancellations),
      upcoming_billing: shown(UpcomingBillingRow, report.upcomingBilling),
    },
  }
}

function shownAcquisition(report: AcquisitionReport, currency: string): ShownReport {
  return {
    facts: {
      horizon: report.horizon,
      mrr: toMajor(report.mrr, currency),
      coverage: jsonRow(Coverage, report.coverage, currency),
    },
    lists: { sources: shown(SourceRow, report.sources) },
  }
}

function shownAccount(report: AccountReport, currency: string): ShownReport {
  return {
    facts: { summary: jsonRow(AccountRow, report.summary, currency) },
    lists: { items: shown(ItemRow, report.items), timeline: shown(TimelineRow, report.timeline) },
  }
}

function shownMovements(report: MovementReport, currency: string): ShownReport {
  const { since, until, totals } = report
  return {
    facts: { since, until, totals: shownTotals(totals, currency) },
    lists: { movements: shown(MovementListRow, report.movements) },
  }
}

function shownTotals(totals: MovementTotals, currency: string) {
  const money = (minor: number) => toMajor(minor, currency)
  return {
    opening_mrr: money(totals.openingMrr),
    new: money(totals.new),
    expansion: money(totals.expansion),
    contraction: money(totals.contraction),
    churn: money(totals.churn),
    reactivation: money(totals.reactivation),
    net: money(totals.net),
    closing_mrr: money(totals.closingMrr),
  }
}

function shownRetention(report: RetentionReport): ShownReport {
  const { months, base, cohorts } = report
  return { facts: { months, retention_base: base }, lists: { cohorts: shown(CohortRow, cohorts) } }
}
