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
import { windowFaults } from '../paging.ts'
import { problems } from '../problems.ts'
import { cashRoutes } from './cash.ts'
import { consolidatedRoute } from './consolidated.ts'
import { jsonRow } from './fields.ts'
import { outcomeRoutes } from './outcomes.ts'
import { WindowQuery, windowOf } from './query.ts'
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

const CSV = 'With `Accept: text/csv` one of the lists is exported instead.'
const WindowDays = (description: string) => Type.Integer({ enum: [30, 60, 90], default: 30, description })
const MAX_MONTHS = 60

/** The four reports, and more. */
export function subscriptionRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/overview',
    summary: 'Subscription overview',
    description: `MRR and everything that explains it. ${CSV}`,
    pages: { accounts: 'page', acquisition_sources: 'acquisition_page', exclusions: 'exclusion_page' },
    body: OverviewBody,
    build: async (db, question) => shownOverview(await overviewReport(db, question), question.currency),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/attention',
    summary: 'Payment issues, renewals, scheduled cancellations, upcoming billing',
    description: `Open payment issues are listed whatever the window. ${CSV}`,
    pages: {
      payment_issues: 'issue_page',
      renewals: 'renewal_page',
      cancellations: 'cancel_page',
      upcoming_billing: 'billing_page',
    },
    own: { days: WindowDays('How far to look ahead') },
    body: AttentionBody,
    build: async (db, question, query) =>
      shownAttention(await attentionReport(db, question, Number(query.days))),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/acquisition',
    summary: 'Current MRR by acquisition source, and what was retained',
    description: `Every account has one source, or is \`unattributed\`: the rows add up to MRR. ${CSV}`,
    pages: { sources: 'page' },
    own: { horizon: WindowDays('Days back to the cohort that is looked at') },
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
    description: `By \`customer\` or by \`subscription_id\`; given both, they must belong together. ${CSV}`,
    pages: { items: 'page', timeline: 'timeline_page' },
    own: {
      customer: Type.Optional(Type.String({ minLength: 1, description: 'As account rows name it' })),
      subscription_id: Type.Optional(Type.String({ minLength: 1 })),
    },
    body: AccountBody,
    problems: [404],
    faults: ({ customer, subscription_id }) =>
      customer === undefined && subscription_id === undefined
        ? [{ pointer: '/customer', message: 'or subscription_id is required' }]
        : [],
    async build(db, question, query) {
      const report = await accountReport(db, question, {
        customer: (query.customer as string | undefined) ?? null,
        subscriptionId: (query.subscription_id as string | undefined) ?? null,
      })
      if (!report) throw problems.notFound('There is no such account.')
      return shownAccount(report, question.currency)
    },
  })
}

function movementRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/movements',
    summary: 'Every movement of MRR, the oldest or the largest first',
    description:
      'After `since` and up to `until`, at their effective instants: opening + new + expansion + reactivation − contraction − churn = closing. With `Accept: text/csv` all of them are exported.',
    pages: { movements: 'page' },
    own: {
      ...WindowQuery('Movements'),
      order: Type.Enum(['time', 'size'], {
        default: 'time',
        description: 'time: the oldest first; size: the largest first, gained or lost',
      }),
    },
    body: MovementsBody,
    faults: windowFaults,
    flat: 'movements',
    build: async (db, question, query) =>
      shownMovements(
        await movementReport(db, question, windowOf(question, query), query.order as MovementOrder),
        question.currency,
      ),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/retention',
    summary: 'Monthly cohorts: gross and net revenue retention, logo retention',
    description: `A cohort is the accounts that first paid in a month; a row is how it stood at the end of a month after. ${CSV}`,
    pages: { cohorts: 'page' },
    own: {
      months: Type.Integer({
        minimum: 1,
        maximum: MAX_MONTHS,
        default: 12,
        description: 'Cohorts of so many months, the current one included',
      }),
      retention_base: Type.Optional(
        Type.Enum(['first_instant', 'end_of_month'], {
          description:
            'What a cohort is measured by: what its accounts first paid, or what those who still do pay at the end of their first month; default: as the policy says',
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

// How they are answered: figures in major units, under the names that the API gives them.

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
