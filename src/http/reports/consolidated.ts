import { toMajor } from '../../domain/money.ts'
import { Type } from '../../domain/typebox.ts'
import { consolidatedReport } from '../../reports/consolidated.ts'
import type { App } from '../app.ts'
import { type ReportDeps, reportRoute, shown } from './routes.ts'
import { Count, CurrencyRow, ExchangedTotals, jsonRow } from './rows.ts'
import { Amount, reportSchema } from './schemas.ts'

/** All currencies converted to one. */
export function consolidatedRoute(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/consolidated',
    summary: 'MRR of all currencies, converted by your exchange rates',
    description:
      'One row per currency, with the rate used. `currency` selects the currency of the report. opening + new + expansion + reactivation − contraction − churn + fx = closing, over 30 days. Import rates with `kontor rates import`. With `Accept: text/csv`, the response is CSV.',
    pages: {},
    whole: 'currencies',
    body: ConsolidatedBody,
    async build(db, question) {
      const { currency } = question
      const report = await consolidatedReport(db, question)
      return {
        facts: {
          mrr: toMajor(report.mrr, currency),
          arr: toMajor(report.arr, currency),
          active_subscriptions: report.activeSubscriptions,
          movements: { window_days: report.windowDays, ...jsonRow(ExchangedTotals, report.movements, currency) },
          missing_rates: report.missingRates,
          older_rates: report.olderRates,
        },
        lists: { currencies: shown(CurrencyRow, report.currencies) },
      }
    },
  })
}

const moved = {
  opening_mrr: 18.1,
  new: 0,
  expansion: 0,
  contraction: 0,
  churn: 0,
  reactivation: 0,
  fx: 0.42,
  closing_mrr: 18.52,
}

const ConsolidatedBody = reportSchema(
  {
    mrr: Amount,
    arr: Amount,
    active_subscriptions: Count,
    movements: Type.Object(
      { window_days: Type.Integer(), ...ExchangedTotals.properties },
      { description: 'How MRR changed in the window' },
    ),
    missing_rates: Type.Array(Type.String(), { description: 'Currencies without a rate' }),
    older_rates: Type.Array(Type.String(), { description: 'Currencies whose rate is from an earlier day' }),
    results: Type.Array(CurrencyRow),
  },
  {},
  {
    mrr: 18.52,
    arr: 222.24,
    active_subscriptions: 1,
    movements: { window_days: 30, ...moved },
    missing_rates: [],
    older_rates: [],
    results: [
      {
        currency: 'USD',
        own_mrr: 20,
        active_subscriptions: 1,
        rate: 0.926,
        rate_date: '2026-03-31',
        mrr: 18.52,
        ...moved,
      },
    ],
  },
)
