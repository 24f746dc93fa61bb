/** How reports are answered: their figures in major units, under the names that the API gives them. */

import { toMajor } from '../../domain/money.ts'
import type { AccountReport } from '../../reports/account.ts'
import type { AcquisitionReport } from '../../reports/acquisition.ts'
import type { AttentionReport } from '../../reports/attention.ts'
import type { BreakdownReport } from '../../reports/breakdown.ts'
import type { CashFactReport, CashReport } from '../../reports/cash.ts'
import type { HistoryReport } from '../../reports/history.ts'
import type { MovementReport, MovementTotals } from '../../reports/movements.ts'
import type { OverviewReport } from '../../reports/overview.ts'
import type { ReportList } from '../../reports/question.ts'
import type { RetentionReport } from '../../reports/retention.ts'
import { type ShownReport, shown } from './report.ts'
import {
  AccountRow,
  breakdownRow,
  CancellationRow,
  CashFactRow,
  CashRow,
  CohortRow,
  ExclusionRow,
  HistoryRow,
  ItemRow,
  jsonRow,
  MovementListRow,
  PaymentIssueRow,
  PolicyChangeRow,
  RenewalRow,
  SourceRow,
  TimelineRow,
  UpcomingBillingRow,
} from './rows.ts'
import { CashTotals, Coverage, Rates } from './schemas.ts'

export function shownOverview(report: OverviewReport, currency: string): ShownReport {
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

export function shownAttention(report: AttentionReport): ShownReport {
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

export function shownAcquisition(report: AcquisitionReport, currency: string): ShownReport {
  return {
    facts: {
      horizon: report.horizon,
      mrr: toMajor(report.mrr, currency),
      coverage: jsonRow(Coverage, report.coverage, currency),
    },
    lists: { sources: shown(SourceRow, report.sources) },
  }
}

export function shownAccount(report: AccountReport, currency: string): ShownReport {
  return {
    facts: { summary: jsonRow(AccountRow, report.summary, currency) },
    lists: { items: shown(ItemRow, report.items), timeline: shown(TimelineRow, report.timeline) },
  }
}

export function shownMovements(report: MovementReport, currency: string): ShownReport {
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

export function shownHistory(
  { interval, history, policyChanges }: HistoryReport,
  currency: string,
): ShownReport {
  const changes = policyChanges.map(change => ({
    ...change,
    kind: 'policy',
    mrrDelta: change.mrrBefore === null ? null : change.mrrAfter! - change.mrrBefore,
  }))
  return {
    facts: { interval, policy_changes: changes.map(change => jsonRow(PolicyChangeRow, change, currency)) },
    lists: { history: shown(HistoryRow, history) },
  }
}

export function shownCash({ interval, cash }: CashReport): ShownReport {
  return { facts: { interval }, lists: { cash: shown(CashRow, cash) } }
}

export function shownCashFacts(report: CashFactReport, currency: string): ShownReport {
  const { date, interval, totals, facts } = report
  return {
    facts: { date, interval, totals: jsonRow(CashTotals, totals, currency) },
    lists: { facts: shown(CashFactRow, facts) },
  }
}

export function shownBreakdown({ by, mrr, parts }: BreakdownReport, currency: string): ShownReport {
  const rows: ReportList<object> = {
    count: parts.count,
    rows: async slice => (await parts.rows(slice)).map(({ name, ...part }) => ({ [by]: name, ...part })),
  }
  return {
    facts: { by, mrr: toMajor(mrr, currency) },
    lists: { breakdown: { row: breakdownRow(by), ...rows } },
  }
}

export function shownRetention(report: RetentionReport): ShownReport {
  const { months, base, cohorts } = report
  return { facts: { months, retention_base: base }, lists: { cohorts: shown(CohortRow, cohorts) } }
}
