import { type Amount, isZero, negate, toNumber } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { ForecastChange, ForecastMonth } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { Badge, EmptyState, type Tone } from '../../components/notice.ts'
import { Section, Tiles } from '../../components/page.ts'
import { Plot } from '../../components/plot.ts'
import { type Column, PagedTable, Table } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { compactMoney, lowerWords, money, NONE, plural, shortTime, signedMoney } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { linkWith } from '../../router.ts'
import { currency } from '../../view.ts'
import { bucketStart } from '../figures.ts'
import { AccountLink, NoSubscriptions, pageLink, ReportPage, readScope, reportCsv } from './report-page.ts'

const SPANS = [
  ['3', '3 months'],
  ['6', '6 months'],
  ['12', '12 months'],
] as const

/** What is scheduled, and the MRR that results if nothing else happens. */
export const forecastPage = definePage(
  'forecast',
  async ({ route: { query }, signal }) => {
    const months = SPANS.find(([name]) => name === query.get('months'))?.[0] ?? '3'
    const asked = { currency: readScope().currency, months }
    const report = await nullOn(404, reports.forecast({ ...asked, page: query.get('page') }, signal))
    return { months, asked, report }
  },
  ({ data: { months, asked, report }, route }) => {
    const filter = h(SelectField, {
      ...{ id: 'months', label: 'Horizon', options: SPANS, value: months },
      onChange: chosen => go(linkWith(route, { months: chosen, page: null })),
    })
    const last = report?.months.at(-1)
    if (!report || !last || (isZero(report.opening_mrr) && report.count === 0))
      return h(ReportPage, { name: 'forecast', filter }, h(NoSubscriptions, {}))
    const code = report.currency
    const shown = (value: Parameters<typeof money>[0]) => money(value, code)
    return h(
      ReportPage,
      { name: 'forecast', filter },
      h(Tiles, {
        tiles: [
          { label: 'MRR now', value: shown(report.opening_mrr) },
          {
            ...{ label: `MRR at the end of ${shortTime(bucketStart(last.date), 'month')}`, value: shown(last.mrr) },
            change: { now: last.mrr, before: report.opening_mrr, shown },
          },
          { label: 'Scheduled changes', value: String(report.count), note: 'including renewals' },
        ],
      }),
      html`<p class="faint">This is what is already scheduled, not a prediction. It assumes that every trial becomes a paid subscription. Renewals do not change MRR.</p>`,
      h(Plot, {
        title: `Expected MRR in ${code} by month`,
        moments: report.months.map(({ date }) => bucketStart(date)),
        series: [{ label: 'MRR at the end of the month', values: report.months.map(({ mrr }) => toNumber(mrr)) }],
        ...{ shown, axisShown: compactMoney(code), unit: 'month', height: 180 },
      }),
      h(Table<ForecastMonth>, {
        ...{ caption: 'Months', columns: MONTHS, rows: report.months, rowKey: ({ date }) => date },
        csv: { rows: report.months, name: 'forecast-months' },
      }),
      h(
        Section,
        { title: plural(report.count, 'scheduled change') },
        h(PagedTable<ForecastChange>, {
          ...{ caption: 'Scheduled changes', columns: CHANGES, list: report },
          csv: reportCsv('forecast', 'changes', asked),
          linkTo: pageLink(route, 'page'),
          empty: h(EmptyState, { title: 'Nothing is scheduled.' }),
        }),
      ),
    )
  },
)

const amount = (value: Amount) => (isZero(value) ? NONE : signedMoney(value, currency.value))

const MONTHS: Column<ForecastMonth>[] = [
  { label: 'Month', cell: ({ date }) => shortTime(bucketStart(date), 'month') },
  { label: 'MRR at month end', cell: ({ mrr }) => money(mrr, currency.value), kind: 'number' },
  { label: 'Net new', cell: ({ net }) => signedMoney(net, currency.value), kind: 'number' },
  { label: 'Trials ending', cell: ({ trial_ends }) => amount(trial_ends), kind: 'number' },
  { label: 'New', cell: row => amount(row.new), kind: 'number' },
  { label: 'Expansion', cell: row => amount(row.expansion), kind: 'number' },
  { label: 'Contraction', cell: row => amount(negate(row.contraction)), kind: 'number' },
  { label: 'Churn', cell: row => amount(negate(row.churn)), kind: 'number' },
]

const TONES: Partial<Record<ForecastChange['kind'], Tone>> = { cancellation: 'bad', trial_end: 'good', start: 'good' }

const describeKind = (kind: ForecastChange['kind']) => (kind === 'trial_end' ? 'trial ending' : lowerWords(kind))

const CHANGES: Column<ForecastChange>[] = [
  {
    label: 'Account',
    cell: ({ customer, customer_name: label }) => h(AccountLink, { customer, label }),
    kind: 'long',
  },
  { label: 'Date', cell: ({ at }) => h(Day, { at }) },
  { label: 'Change', cell: ({ kind }) => h(Badge, { text: describeKind(kind), tone: TONES[kind] ?? 'neutral' }) },
  { label: 'MRR', cell: ({ mrr_delta }) => amount(mrr_delta), kind: 'number' },
  {
    label: 'Charge',
    cell: ({ kind, amount: charged }) => (kind === 'renewal' ? money(charged, currency.value) : NONE),
    kind: 'number',
  },
  { label: 'Subscription', cell: ({ subscription_id }) => html`<code>${subscription_id}</code>`, kind: 'long' },
]
