import { DIMENSIONS, type Dimension, isDimension } from '../../domain/billing/dimensions.ts'
import { MAX_BUCKETS } from '../../domain/buckets.ts'
import { toMajor } from '../../domain/money.ts'
import { endIn, momentIn, WHOLE_DAY } from '../../domain/time-zone.ts'
import { Type } from '../../domain/typebox.ts'
import { type BreakdownReport, breakdownReport } from '../../reports/acquisition.ts'
import { type HistoryReport, historyReport, MAX_RETENTION_BUCKETS, type SeriesWindow } from '../../reports/movements.ts'
import type { ReportList, ReportQuestion } from '../../reports/question.ts'
import { BUCKET_INTERVALS, type BucketInterval } from '../../store/reports/totals.ts'
import type { App } from '../app.ts'
import { requireOrder } from '../paging.ts'
import { problems } from '../problems.ts'
import { BasisQuery, type ReportQuery } from './query.ts'
import { type ReportDeps, reportRoute, type ShownReport, shown } from './routes.ts'
import {
  breakdownRow,
  camelName,
  columnName,
  HistoryRow,
  jsonRow,
  PolicyChangeRow,
  ReportingHistoryRow,
} from './rows.ts'
import { BreakdownBody, HistoryBody } from './schemas.ts'

const Bound = (description: string) => Type.Optional(Type.String({ format: 'timestamp', description }))

export const SeriesQuery = {
  from: Bound('The first bucket contains this time; default: twelve months, including the current one'),
  to: Bound(`The last bucket contains this time, at the latest as_of; default: as_of. ${WHOLE_DAY}`),
  interval: Type.Enum([...BUCKET_INTERVALS], { default: 'month', description: 'Weeks start on Monday' }),
}

/** MRR over time and by dimension. */
export function seriesRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/history',
    summary: 'MRR by day, week or month',
    description: `MRR at the end of each bucket and its movements, the oldest first, including empty buckets. The current bucket shows the state now. At most ${MAX_BUCKETS} buckets. With \`Accept: text/csv\`, the response is CSV.`,
    pages: {},
    whole: 'history',
    own: {
      ...SeriesQuery,
      ...BasisQuery,
      retention_months: Type.Optional(
        Type.Integer({
          enum: [1, 3, 12],
          description: `Adds \`retention\` to each row: gross and net revenue retention over this number of months before the end of the bucket. At most ${MAX_RETENTION_BUCKETS} buckets`,
        }),
      ),
    },
    body: HistoryBody,
    reporting: true,
    async build(db, question, query) {
      const months = query.retention_months as number | undefined
      const window = { ...seriesWindow(question, query), ...(months && { retentionMonths: months }) }
      const report = await historyReport(db, question, window)
      return shownHistory(requireSeries(report, months ? MAX_RETENTION_BUCKETS : MAX_BUCKETS), question)
    },
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/breakdown',
    summary: 'MRR by plan, plan group, interval, source, channel, country or metadata',
    description: `Computed per item, the largest row first. The rows add up to MRR. A subscription with several plans counts in each with its share. The country is that of the contact, else \`metadata.country\` of the subscription, else \`unknown\`. With \`Accept: text/csv\`, the response is CSV.`,
    pages: {},
    whole: 'breakdown',
    own: {
      by: Type.String({
        description: `${DIMENSIONS.join(', ')}, or metadata.KEY`,
        examples: ['plan', 'metadata.segment'],
      }),
      ...BasisQuery,
    },
    errors: ({ by }) =>
      by === undefined || isDimension(String(by))
        ? []
        : [{ pointer: '/by', message: `must be one of ${DIMENSIONS.join(', ')}, or metadata.KEY` }],
    body: BreakdownBody,
    reporting: true,
    build: async (db, question, query) =>
      shownBreakdown(await breakdownReport(db, question, query.by as Dimension), question.currency),
  })
}

export function seriesWindow({ policy }: ReportQuestion, { interval, from, to }: ReportQuery): SeriesWindow {
  const [first, last] = [momentIn(policy.timeZone, from), endIn(policy.timeZone, to)]
  requireOrder(first, last, ['from', 'to'])
  return { interval: interval as BucketInterval, from: first, to: last }
}

/** Rejects a series that is too long. */
export function requireSeries<Report>(report: Report | null, maxBuckets = MAX_BUCKETS): Report {
  if (report !== null) return report
  const message = `must be later, or interval must be longer: the series would have more than ${maxBuckets} buckets`
  throw problems.invalid([{ pointer: '/from', message }])
}

function shownHistory(
  { interval, history, policyChanges }: HistoryReport,
  { currency, isReporting }: ReportQuestion,
): ShownReport {
  const changes = policyChanges.map(change => ({
    ...change,
    kind: 'policy',
    mrrDelta: change.mrrBefore === null ? null : change.mrrAfter! - change.mrrBefore,
  }))
  return {
    facts: { interval, policy_changes: changes.map(change => jsonRow(PolicyChangeRow, change, currency)) },
    lists: { history: shown(isReporting ? ReportingHistoryRow : HistoryRow, history) },
  }
}

function shownBreakdown({ by, mrr, parts }: BreakdownReport, currency: string): ShownReport {
  const rows: ReportList<object> = {
    count: parts.count,
    rows: async slice =>
      (await parts.rows(slice)).map(({ name, ...part }) => ({ [camelName(columnName(by))]: name, ...part })),
  }
  return {
    facts: { by: columnName(by), mrr: toMajor(mrr, currency) },
    lists: { breakdown: { row: breakdownRow(by), ...rows } },
  }
}
