import { Type } from 'typebox'
import { DIMENSIONS, type Dimension } from '../../domain/billing/dimensions.ts'
import { MAX_BUCKETS } from '../../domain/buckets.ts'
import { toMajor } from '../../domain/money.ts'
import { parseTimestamp } from '../../domain/time.ts'
import { momentIn } from '../../domain/time-zone.ts'
import type { ValidationError } from '../../domain/validation-error.ts'
import { type BreakdownReport, breakdownReport } from '../../reports/acquisition.ts'
import { type HistoryReport, historyReport, type SeriesWindow } from '../../reports/movements.ts'
import type { ReportList, ReportQuestion } from '../../reports/question.ts'
import { BUCKET_INTERVALS, type BucketInterval } from '../../store/reports/totals.ts'
import type { App } from '../app.ts'
import { problems } from '../problems.ts'
import { jsonRow } from './fields.ts'
import type { ReportQuery } from './query.ts'
import { type ReportDeps, reportRoute, type ShownReport, shown } from './report.ts'
import { breakdownRow, HistoryRow, PolicyChangeRow } from './rows.ts'
import { BreakdownBody, HistoryBody } from './schemas.ts'

const Bound = (description: string) => Type.Optional(Type.String({ format: 'timestamp', description }))

export const SeriesQuery = {
  from: Bound(
    'The first bucket is the one that holds this; default: twelve months, the current one included',
  ),
  to: Bound('The last bucket is the one that holds this, that of as_of at the latest; default: as_of'),
  interval: Type.Enum([...BUCKET_INTERVALS], { default: 'month', description: 'Weeks begin on Monday' }),
}

/** MRR over time and by kind. */
export function seriesRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/history',
    summary: 'MRR by day, week or month',
    description: `How each bucket ended and what moved in it, the oldest first, empty ones included and none in the future; the open one is as of now. At most ${MAX_BUCKETS} buckets. With \`Accept: text/csv\` as CSV.`,
    pages: {},
    whole: 'history',
    own: SeriesQuery,
    body: HistoryBody,
    faults: seriesFaults,
    build: async (db, question, query) =>
      shownHistory(
        bounded(await historyReport(db, question, seriesWindow(question, query))),
        question.currency,
      ),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/breakdown',
    summary: 'MRR by plan, interval, source or country',
    description: `Item by item: the rows add up to MRR, the largest first. A subscription of several plans counts under each with its part. The country is the contact's, else \`metadata.country\` of the subscription, else \`unknown\`. With \`Accept: text/csv\` as CSV.`,
    pages: {},
    whole: 'breakdown',
    own: { by: Type.Enum([...DIMENSIONS], { description: 'What makes a row' }) },
    body: BreakdownBody,
    build: async (db, question, query) =>
      shownBreakdown(await breakdownReport(db, question, query.by as Dimension), question.currency),
  })
}

export function seriesWindow({ policy }: ReportQuestion, { interval, from, to }: ReportQuery): SeriesWindow {
  const moment = (text: unknown) => momentIn(policy.timeZone, text)
  return { interval: interval as BucketInterval, from: moment(from), to: moment(to) }
}

export function seriesFaults({ from, to }: ReportQuery): ValidationError[] {
  const [first, last] = [parseTimestamp(from), parseTimestamp(to)]
  return first && last && first > last ? [{ pointer: '/from', message: 'must not be after to' }] : []
}

/** A series that is not too long. */
export function bounded<Report>(report: Report | null): Report {
  if (report !== null) return report
  const message = `must be later, or interval longer: there would be more than ${MAX_BUCKETS} buckets`
  throw problems.invalid([{ pointer: '/from', message }])
}

function shownHistory({ interval, history, policyChanges }: HistoryReport, currency: string): ShownReport {
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

function shownBreakdown({ by, mrr, parts }: BreakdownReport, currency: string): ShownReport {
  const rows: ReportList<object> = {
    count: parts.count,
    rows: async slice => (await parts.rows(slice)).map(({ name, ...part }) => ({ [by]: name, ...part })),
  }
  return {
    facts: { by, mrr: toMajor(mrr, currency) },
    lists: { breakdown: { row: breakdownRow(by), ...rows } },
  }
}
