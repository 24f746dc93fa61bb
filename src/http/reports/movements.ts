import type { CohortMonth } from '../../domain/billing/cohorts.ts'
import { cohortMonths } from '../../domain/billing/cohorts.ts'
import { toMajor } from '../../domain/money.ts'
import type { Db } from '../../postgres/database.ts'
import { accountNames } from '../../store/reports/accounts.ts'
import { cohortChanges, type MovementEntry, movementSlice } from '../../store/reports/movements.ts'
import { movedBetween, mrrAt } from '../../store/reports/totals.ts'
import { sum } from './coverage.ts'
import { movementFacts } from './overview.ts'
import type { Ask } from './query.ts'
import { listOf, type Report } from './report.ts'
import { CohortRow, MovementListRow, type Row } from './rows.ts'

export async function movementReport(
  db: Db,
  { tenantId, currency }: Ask,
  window: { since: Date; until: Date },
): Promise<Report> {
  const { sums } = await movedBetween(db, tenantId, currency, window.since, window.until)
  const count = sum(sums, one => one.count)
  const opening = await mrrAt(db, tenantId, currency, window.since)
  const closing = await mrrAt(db, tenantId, currency, window.until)
  return {
    facts: {
      since: window.since,
      until: window.until,
      totals: movementFacts(sums, opening, closing, minor => toMajor(minor, currency)),
    },
    lists: {
      movements: {
        row: MovementListRow,
        count,
        async rows(slice) {
          const entries = await movementSlice(db, tenantId, currency, window, slice, count)
          const names = await accountNames(db, tenantId, [...new Set(entries.map(entry => entry.account))])
          return entries.map(entry => movementRow(entry, names.get(entry.account) ?? null))
        },
      },
    },
  }
}

function movementRow(entry: MovementEntry, name: string | null): Row<typeof MovementListRow> {
  return {
    occurred_at: entry.occurredAt,
    customer: entry.account,
    customer_name: name,
    movement_type: entry.type,
    mrr_before: entry.before,
    mrr_after: entry.after,
    mrr_delta: entry.after - entry.before,
    subscription_ids: entry.changes.map(change => change.subscriptionId),
  }
}

export async function retentionReport(db: Db, ask: Ask, months: number): Promise<Report> {
  const { tenantId, currency, asOf } = ask
  const since = new Date(Date.UTC(asOf.getUTCFullYear(), asOf.getUTCMonth() - months + 1, 1))
  const changes = await cohortChanges(db, tenantId, currency, since, asOf)
  return {
    facts: { months },
    lists: { cohorts: listOf(CohortRow, cohortMonths(changes, asOf.getTime()).map(cohortRow)) },
  }
}

function cohortRow(one: CohortMonth): Row<typeof CohortRow> {
  const share = (part: number, whole: number) => (whole > 0 ? part / whole : null)
  return {
    cohort: one.cohort,
    month: one.month,
    at: one.at,
    accounts: one.accounts,
    starting_accounts: one.startingAccounts,
    starting_mrr: one.startingMrr,
    mrr: one.mrr,
    gross_mrr: one.cappedMrr,
    logo_retention: share(one.accounts, one.startingAccounts),
    gross_revenue_retention: share(one.cappedMrr, one.startingMrr),
    net_revenue_retention: share(one.mrr, one.startingMrr),
  }
}
