import type { VNode } from 'preact'
import { toNumber } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { Cohort } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { CsvButton } from '../../components/table.ts'
import { money, NONE, number, percent, plural, shortTime } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { periodOfStep } from '../../period.ts'
import { link } from '../../router.ts'
import { currency } from '../../view.ts'
import { bucketStart } from '../figures.ts'
import { NoSubscriptions, ReportPage, readScope, reportCsv } from './report-page.ts'

const MEASURES = [
  ['net_revenue_retention', 'Net revenue retention'],
  ['gross_revenue_retention', 'Gross revenue retention'],
  ['logo_retention', 'Account retention'],
] as const
type Measure = (typeof MEASURES)[number][0]

const MONTHS = 12

/** Retention of each month's new accounts, month by month. */
export const cohortsPage = definePage(
  'cohorts',
  async ({ route: { query }, signal }) => {
    const scope = readScope()
    const measure = MEASURES.find(([name]) => name === query.get('measure'))?.[0] ?? MEASURES[0][0]
    const asked = { ...scope, months: MONTHS, page_size: 100 }
    return { scope, measure, report: await nullOn(404, reports.retention(asked, signal)) }
  },
  ({ data: { scope, measure, report } }) => {
    if (!report) return h(ReportPage, { name: 'cohorts' }, h(NoSubscriptions, {}))
    const filter = h(SelectField, {
      id: 'measure',
      label: 'Measure',
      options: MEASURES,
      value: measure,
      onChange: chosen => go(link('cohorts', { measure: chosen })),
    })
    return h(
      ReportPage,
      { name: 'cohorts', filter },
      html`<p class="faint">Each row is a group of accounts that first paid in the same month. Each column shows the share of their starting ${measure === 'logo_retention' ? 'accounts' : 'MRR'} that remains after that many months. More than 100% means that expansion exceeded losses.</p>`,
      h(Scale, {}),
      report.cohorts.count === 0
        ? h(EmptyState, { title: `No payments in ${currency.value} in the last ${MONTHS} months.` })
        : html`<div>
            ${h(HeatMap, { rows: report.cohorts.results, measure })}
            <p class="more">
              ${h(CsvButton, { csv: reportCsv('retention', 'cohorts', { ...scope, months: MONTHS }) })}
            </p>
          </div>`,
    )
  },
)

function HeatMap({ rows, measure }: { rows: Cohort[]; measure: Measure }): VNode {
  const cohorts = [...Map.groupBy(rows, ({ cohort }) => cohort)].toSorted(([a], [b]) => (a < b ? 1 : -1))
  const months = Array.from({ length: Math.max(...rows.map(({ month }) => month)) + 1 }, (_, month) => month)
  return html`
    <p class="sideways faint">Scroll the table sideways to see later months.</p>
    <div class="scroller" role="region" aria-label="Retention by cohort" tabindex="0">
      <table class="heat">
        <caption class="unseen">Retention by cohort, in months after the first payment</caption>
        <thead>
          <tr>
            <th scope="col">Cohort</th>
            <th scope="col" class="number">Starting MRR</th>
            <th scope="col" class="number">Accounts</th>
            ${months.map(month => html`<th scope="col" class="number" title=${plural(month, 'month')}>${month === 0 ? 'First month' : `+${month} mo`}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${cohorts.map(
            ([name, own]) => html`
              <tr key=${name}>
                <th scope="row" class="whole"><a href=${link('movements', { period: periodOfStep(`${name.slice(0, 7)}-01`, 'month') })}>${shortTime(bucketStart(`${name.slice(0, 7)}-01`), 'month')}</a></th>
                <td class="number">${money(own[0]!.starting_mrr, currency.value)}</td>
                <td class="number">${number(own[0]!.starting_accounts)}</td>
                ${months.map(month =>
                  retentionCell(
                    own.find(row => row.month === month),
                    measure,
                  ),
                )}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `
}

/** From red at 50 % or less over no color to green at 100 %; growth above it is blue. */
function retentionCell(row: Cohort | undefined, measure: Measure): VNode {
  const value = row?.[measure]
  if (value === undefined) return html`<td></td>`
  if (value === null) return html`<td class="number">${NONE}</td>`
  const shown = Math.round(toNumber(value) * 100)
  return html`<td class=${`number ${heatOf(shown)}`}>${percent(shown / 100)}</td>`
}

/** The color of every whole percentage below a limit. */
const STEPS = [
  [50, 'lost'],
  [70, 'low'],
  [85, 'fair'],
  [95, 'good'],
  [101, 'kept'],
  [116, 'grown'],
  [Number.POSITIVE_INFINITY, 'doubled'],
] as const
const LABELS = ['below 50%', '50–69%', '70–84%', '85–94%', '95–100%', '101–115%', 'above 115%']

function heatOf(percentage: number): string {
  return STEPS.find(([limit]) => percentage < limit)![1]
}

function Scale(): VNode {
  return html`
    <ul class="scale" aria-label="Colors">
      ${STEPS.map(([, name], index) => html`<li class=${name}>${LABELS[index]}</li>`)}
    </ul>
  `
}
