import { arpaOf } from '../../domain/billing/mrr.ts'
import type { Db } from '../../postgres/database.ts'
import { acquisitionNames, type SourceFigures } from '../../store/reports/totals.ts'
import { UNATTRIBUTED } from './accounts.ts'
import type { Ask } from './query.ts'
import { listOf, type ReportList } from './report.ts'
import { type Row, SourceRow } from './rows.ts'

/**
 * Current MRR by acquisition source, and what became of those who paid at the beginning of the horizon; the largest
 * first. `kept`: by how much their MRR changed since. `isCovered`: whether there is a snapshot of that day.
 */
export async function sourceList(
  db: Db,
  ask: Ask,
  figures: SourceFigures[],
  kept: Map<number, number>,
  isCovered: boolean,
): Promise<ReportList> {
  const { tenantId, currency } = ask
  const own = figures.filter(
    one => one.currency === currency && (one.activeAccounts > 0 || one.cohortAccounts > 0),
  )
  const names = await acquisitionNames(
    db,
    tenantId,
    own.map(one => one.acquisitionId),
  )
  const total = own.reduce((sum, one) => sum + one.mrr, 0)
  const rows = own.map((one): Row<typeof SourceRow> => {
    const name = names.get(one.acquisitionId)
    return {
      source: name?.source ?? UNATTRIBUTED,
      medium: name?.medium ?? null,
      campaign: name?.campaign ?? null,
      accounts: one.activeAccounts,
      subscriptions: one.activeSubscriptions,
      mrr: one.mrr,
      mrr_share: total > 0 ? one.mrr / total : 0,
      arpa: arpaOf(one.mrr, one.activeAccounts),
      ...retention(one, one.cohortMrr + (kept.get(one.acquisitionId) ?? 0), isCovered),
    }
  })
  return listOf(SourceRow, rows.sort(bySize))
}

type Retention = Pick<
  Row<typeof SourceRow>,
  'cohort_accounts' | 'cohort_starting_mrr' | 'retained_mrr' | 'retention_rate' | 'retention_status'
>

function retention(
  { cohortAccounts, cohortMrr }: SourceFigures,
  retainedMrr: number,
  isCovered: boolean,
): Retention {
  const nothing = { retained_mrr: null, retention_rate: null }
  if (cohortAccounts === 0) {
    return {
      cohort_accounts: 0,
      cohort_starting_mrr: 0,
      ...nothing,
      retention_status: 'horizon_not_reached',
    }
  }
  if (!isCovered) {
    return {
      cohort_accounts: null,
      cohort_starting_mrr: null,
      ...nothing,
      retention_status: 'insufficient_history',
    }
  }
  return {
    cohort_accounts: cohortAccounts,
    cohort_starting_mrr: cohortMrr,
    retained_mrr: retainedMrr,
    retention_rate: retainedMrr / cohortMrr,
    retention_status: 'available',
  }
}

function bySize(a: Row<typeof SourceRow>, b: Row<typeof SourceRow>): number {
  return b.mrr - a.mrr || compare(nameText(a), nameText(b))
}

function nameText({ source, medium, campaign }: Row<typeof SourceRow>): string {
  return JSON.stringify([source, medium, campaign])
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
