import { arpaOf, arrOf } from '../../domain/billing/mrr.ts'
import { toMajor } from '../../domain/money.ts'
import type { Db } from '../../postgres/database.ts'
import { issueCounts } from '../../store/reports/attention.ts'
import { cashBetween, type MovementSums, movedBetween, sourceFigures } from '../../store/reports/totals.ts'
import { accountList } from './accounts.ts'
import { openAgenda } from './attention.ts'
import { readCoverage, sum } from './coverage.ts'
import { exclusionList } from './exclusions.ts'
import { type Ask, daysFrom } from './query.ts'
import type { Report } from './report.ts'
import { sourceList } from './sources.ts'

/** The window of movements, cash, attention and cohorts in the overview. */
const WINDOW_DAYS = 30

export async function overviewReport(db: Db, ask: Ask): Promise<Report> {
  const { tenantId, currency, asOf, now } = ask
  const since = daysFrom(asOf, -WINDOW_DAYS)
  const money = (minor: number) => toMajor(minor, currency)
  const figures = await sourceFigures(db, tenantId, asOf, since)
  const own = figures.filter(one => one.currency === currency)
  const mrr = sum(own, one => one.mrr)
  const activeAccounts = sum(own, one => one.activeAccounts)
  const coverage = await readCoverage(db, ask, figures, since)
  const agenda = await openAgenda(db, ask, WINDOW_DAYS)
  const issues = await issueCounts(db, tenantId, currency, asOf)
  const cash = await cashBetween(db, tenantId, currency, { since, until: asOf, fromSums: asOf >= now })
  const moved = await movedBetween(db, tenantId, currency, since, asOf)
  return {
    facts: {
      mrr: money(mrr),
      arr: money(arrOf(mrr)),
      arpa: money(arpaOf(mrr, activeAccounts)),
      committed_mrr: money(sum(own, one => one.committedMrr)),
      active_subscriptions: sum(own, one => one.activeSubscriptions),
      active_accounts: activeAccounts,
      coverage: coverage.shown,
      attention: {
        payment_issues: issues.invoices + issues.subscriptions,
        renewals: agenda.counts.renewal,
        cancellations: agenda.counts.cancellation,
        upcoming_billing: agenda.counts.charge,
      },
      invoiced: { amount: money(cash.invoiced), count: cash.invoices },
      collected: { amount: money(cash.collected), count: cash.payments },
      movements: {
        window_days: WINDOW_DAYS,
        ...movementFacts(
          moved.sums,
          sum(own, one => one.cohortMrr),
          mrr,
          money,
        ),
      },
    },
    lists: {
      accounts: accountList(
        db,
        ask,
        sum(own, one => one.accounts),
      ),
      acquisition_sources: await sourceList(db, ask, figures, moved.kept, coverage.isThenCovered),
      exclusions: exclusionList(db, ask, {
        excluded: sum(figures, one =>
          one.currency === currency || one.currency === '' ? one.itemsExcluded : 0,
        ),
        foreign: sum(figures, one => (one.currency === currency || one.currency === '' ? 0 : one.itemRows)),
        pending: coverage.unlinked.pending,
      }),
    },
  }
}

export function movementFacts(
  moved: MovementSums,
  opening: number,
  closing: number,
  money: (minor: number) => number,
) {
  const of = (type: MovementSums[number]['type']) => moved.find(one => one.type === type)?.amount ?? 0
  return {
    opening_mrr: money(opening),
    new: money(of('new')),
    expansion: money(of('expansion')),
    contraction: money(of('contraction')),
    churn: money(of('churn')),
    reactivation: money(of('reactivation')),
    net: money(closing - opening),
    closing_mrr: money(closing),
  }
}
