import { MAX_BUCKETS } from '../../domain/buckets.ts'
import { momentIn } from '../../domain/time-zone.ts'
import { Type } from '../../domain/typebox.ts'
import { revenueFactReport, revenueReport } from '../../reports/revenue.ts'
import type { App } from '../app.ts'
import { type ReportDeps, reportRoute, shown } from './routes.ts'
import { jsonRow, RevenueFactRow, RevenueRow } from './rows.ts'
import { RevenueBody, RevenueFactsBody, RevenueTotals } from './schemas.ts'
import { requireSeries, SeriesQuery, seriesWindow } from './series.ts'

const NO_FILTER = 'Filters are not available.'

/** Recognized and deferred revenue. */
export function revenueRoutes(app: App, deps: ReportDeps): void {
  const { from, to } = SeriesQuery
  reportRoute(app, deps, {
    path: '/v1/subscriptions/revenue',
    summary: 'Recognized and deferred revenue by month',
    description: `Amounts of invoices without tax, spread evenly over the days of their service periods. deferred = the previous deferred + invoiced − recognized. The current month includes today. At most ${MAX_BUCKETS} months. ${NO_FILTER} With \`Accept: text/csv\`, the response is CSV.`,
    pages: {},
    whole: 'revenue',
    own: { from, to },
    unfiltered: true,
    body: RevenueBody,
    async build(db, question, query) {
      const { warnings, revenue } = requireSeries(await revenueReport(db, question, seriesWindow(question, query)))
      return { facts: { warnings }, lists: { revenue: shown(RevenueRow, revenue) } }
    },
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/revenue/invoices',
    summary: 'Invoices and credit notes behind the revenue of a month',
    description: `One row per invoice or credit note and service period, by the day of the invoice. The columns add up to the row of the month. ${NO_FILTER} With \`Accept: text/csv\`, all rows are exported.`,
    pages: { invoices: 'page' },
    flat: 'invoices',
    own: { date: Type.String({ format: 'timestamp', description: 'Selects the month that contains this time' }) },
    unfiltered: true,
    body: RevenueFactsBody,
    async build(db, question, query) {
      const at = momentIn(question.policy.timeZone, query.date)!
      const { date, totals, facts } = await revenueFactReport(db, question, at)
      return {
        facts: { date, totals: jsonRow(RevenueTotals, totals, question.currency) },
        lists: { invoices: shown(RevenueFactRow, facts) },
      }
    },
  })
}
