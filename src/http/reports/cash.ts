import { MAX_BUCKETS } from '../../domain/buckets.ts'
import { momentIn } from '../../domain/time-zone.ts'
import { Type } from '../../domain/typebox.ts'
import { type CashFactReport, type CashReport, cashFactReport, cashReport } from '../../reports/cash.ts'
import { BUCKET_INTERVALS, type BucketInterval } from '../../store/reports/totals.ts'
import type { App } from '../app.ts'
import { type ReportDeps, reportRoute, type ShownReport, shown } from './routes.ts'
import { CashFactRow, CashFigures, CashRow, jsonRow, Time } from './rows.ts'
import { POLICY, page, pageSchema, ReportPolicy, reportSchema } from './schemas.ts'
import { requireSeries, SeriesQuery, seriesWindow } from './series.ts'

const cash = { invoiced: 105.91, collected: 105.91, refunded: 0, disputed: 0, outstanding: 0, one_off: 0 }

const CashBody = reportSchema(
  { interval: Type.String(), results: Type.Array(CashRow) },
  {},
  {
    interval: 'month',
    results: [{ date: '2026-03-01', ...cash, invoices: 2, payments: 2 }],
  },
)

const CashTotals = Type.Object(CashFigures, { title: 'CashTotals', description: 'The sums of the rows' })

const CashFactsBody = Type.Object(
  {
    currency: Type.String(),
    as_of: Time,
    date: Type.String(),
    interval: Type.String(),
    totals: CashTotals,
    policy: ReportPolicy,
    ...pageSchema(CashFactRow).properties,
  },
  {
    examples: [
      {
        currency: 'EUR',
        as_of: '2026-03-31T09:30:00.000Z',
        date: '2026-03-02',
        interval: 'day',
        totals: { ...cash, invoiced: 0, collected: 70.21 },
        policy: POLICY,
        ...page({
          occurred_at: '2026-03-02T10:00:04.000Z',
          kind: 'payment',
          id: 'pi_42',
          invoice_id: 'in_42',
          subscription_id: 'sub_42',
          customer: 'cus_42',
          amount: 70.21,
          ...cash,
          invoiced: 0,
          collected: 70.21,
        }),
      },
    ],
  },
)

/** Invoiced and collected amounts. */
export function cashRoutes(app: App, deps: ReportDeps): void {
  reportRoute(app, deps, {
    path: '/v1/subscriptions/cash',
    summary: 'Invoiced and collected amounts by day, week or month',
    description: `Each amount is the sum of the facts of its bucket (\`/v1/subscriptions/cash/facts\`) as of \`as_of\`. At most ${MAX_BUCKETS} buckets. With \`Accept: text/csv\`, the response is CSV.`,
    pages: {},
    whole: 'cash',
    own: SeriesQuery,
    body: CashBody,
    build: async (db, question, query) =>
      shownCash(requireSeries(await cashReport(db, question, seriesWindow(question, query)))),
  })
  reportRoute(app, deps, {
    path: '/v1/subscriptions/cash/facts',
    summary: 'Invoices and payments of a day, week or month',
    description:
      'Each row contains its share of every amount, the oldest first. The columns add up to the row of the bucket. With `Accept: text/csv`, all rows are exported.',
    pages: { facts: 'page' },
    flat: 'facts',
    own: {
      date: Type.String({ format: 'timestamp', description: 'Selects the bucket that contains this time' }),
      interval: Type.Enum([...BUCKET_INTERVALS], { default: 'day', description: 'Length of the bucket' }),
    },
    body: CashFactsBody,
    async build(db, question, query) {
      const at = momentIn(question.policy.timeZone, query.date)!
      const report = await cashFactReport(db, question, { interval: query.interval as BucketInterval, at })
      return shownCashFacts(report, question.currency)
    },
  })
}

function shownCash({ interval, cash }: CashReport): ShownReport {
  return { facts: { interval }, lists: { cash: shown(CashRow, cash) } }
}

function shownCashFacts(report: CashFactReport, currency: string): ShownReport {
  const { date, interval, totals, facts } = report
  return {
    facts: { date, interval, totals: jsonRow(CashTotals, totals, currency) },
    lists: { facts: shown(CashFactRow, facts) },
  }
}
