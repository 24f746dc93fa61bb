import { toMajor } from '../../domain/money.ts'
import { Type } from '../../domain/typebox.ts'
import { churnReasonReport, forecastReport } from '../../reports/forecast.ts'
import { reportingChurnReasons, reportingForecast } from '../../reports/reporting.ts'
import type { App } from '../app.ts'
import { type ReportDeps, reportRoute, shown } from './routes.ts'
import { ChurnReasonRow, ForecastChangeRow, ForecastMonthRow, jsonRow, ReasonTotalRow } from './rows.ts'
import { ChurnReasonsBody, ForecastBody } from './schemas.ts'
import { requireSeries, SeriesQuery, seriesWindow } from './series.ts'

const MAX_MONTHS = 12

/** Scheduled changes of MRR, and reasons of churn. */
export function forecastRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/forecast',
    summary: 'Scheduled changes and the resulting MRR by month',
    description:
      'Not a prediction: it contains what is already scheduled (cancellations, starts, resumptions, ends of discounts), the ends of trials as if all convert, and renewals, which do not change MRR. The earliest change first. `as_of` is not available. With `Accept: text/csv`, all changes are exported.',
    pages: { changes: 'page' },
    flat: 'changes',
    own: {
      months: Type.Integer({
        minimum: 1,
        maximum: MAX_MONTHS,
        default: 3,
        description: 'The number of months, including the current one',
      }),
    },
    body: ForecastBody,
    reporting: true,
    errors: ({ as_of }) =>
      as_of === undefined ? [] : [{ pointer: '/as_of', message: 'is not available in this report' }],
    async build(db, question, query) {
      const report = question.isReporting ? reportingForecast : forecastReport
      const { openingMrr, months, changes } = await report(db, question, Number(query.months))
      return {
        facts: {
          opening_mrr: toMajor(openingMrr, question.currency),
          months: months.map(month => jsonRow(ForecastMonthRow, month, question.currency)),
        },
        lists: { changes: shown(ForecastChangeRow, changes) },
      }
    },
  })
  const { from, to } = SeriesQuery
  reportRoute(app, deps, {
    path: '/v1/subscriptions/churn-reasons',
    summary: 'Churn by month and reason',
    description:
      'Accounts that churned and the MRR they had, by the reason or feedback that the billing system reports. If the billing system reports none, the reason is `payment_failed` after failed payments, otherwise the cause of the movement, or `unknown`. Each month adds up to the churn of the history. Filters are not available. With `Accept: text/csv`, the response is CSV.',
    pages: {},
    whole: 'reasons',
    own: { from, to },
    unfiltered: true,
    body: ChurnReasonsBody,
    reporting: true,
    async build(db, question, query) {
      const report = question.isReporting ? reportingChurnReasons : churnReasonReport
      const { totals, reasons } = requireSeries(await report(db, question, seriesWindow(question, query)))
      return {
        facts: { totals: totals.map(total => jsonRow(ReasonTotalRow, total, question.currency)) },
        lists: { reasons: shown(ChurnReasonRow, reasons) },
      }
    },
  })
}
