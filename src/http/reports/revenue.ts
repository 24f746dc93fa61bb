import { Type } from 'typebox'
import { MAX_BUCKETS } from '../../domain/buckets.ts'
import { momentIn } from '../../domain/time-zone.ts'
import { revenueFactReport, revenueReport } from '../../reports/revenue.ts'
import type { App } from '../app.ts'
import { type ReportDeps, reportRoute, shown } from './routes.ts'
import { jsonRow, RevenueFactRow, RevenueFigures, RevenueRow } from './rows.ts'
import { flatReportSchema, page, reportSchema } from './schemas.ts'
import { requireSeries, SeriesQuery, seriesErrors, seriesWindow } from './series.ts'

const figures = { invoiced: 1200, recognized: 101.92, deferred: 1098.08 }

const RevenueBody = reportSchema(
  {
    warnings: Type.Array(Type.String(), { description: 'Why figures are incomplete; empty if they are complete' }),
    results: Type.Array(RevenueRow),
  },
  {},
  { warnings: [], results: [{ date: '2026-03-01', ...figures }] },
)

const RevenueTotals = Type.Object(RevenueFigures, { title: 'RevenueTotals', description: 'The sums of the rows' })

const RevenueFactsBody = flatReportSchema({ date: Type.String(), totals: RevenueTotals }, RevenueFactRow, {
  date: '2026-03-01',
  totals: figures,
  ...page({
    invoice_id: 'in_42',
    invoice_number: 'A-0042',
    credit_note_id: null,
    subscription_id: 'sub_42',
    customer: 'cus_42',
    invoiced_on: '2026-03-01',
    service_start: '2026-03-01',
    service_end: '2027-03-01',
    amount: 1200,
    ...figures,
  }),
})

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
    errors: seriesErrors,
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
