import type { VNode } from 'preact'
import { toNumber } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import type { Cohort } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { CsvButton } from '../../components/table.ts'
import { money, NONE, percent, plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { NoSubscriptions, ReportPage, readReport, readScope, reportCsv, type Scope } from './report-page.ts'

const MEASURES = [
  ['net_revenue_retention', 'Net revenue'],
  ['gross_revenue_retention', 'Gross revenue'],
  ['logo_retention', 'Accounts'],
] as const
type Measure = (typeof MEASURES)[number][0]

const MONTHS = 12

/** Retention of each month's new accounts, month by month. */
export const cohortsPage = definePage(
  'cohorts',
  async ({ route: { query }, signal }) => {
    const scope = await readScope(query, signal)
    const measure = MEASURES.find(([name]) => name === query.get('measure'))?.[0] ?? MEASURES[0][0]
    const asked = { ...scope, months: MONTHS, page_size: 100 }
    return { scope, measure, report: await readReport(scope, reports.retention(asked, signal)) }
  },
  ({ data: { scope, measure, report } }) => {
    if (!report) return h(ReportPage, { name: 'cohorts', scope }, h(NoSubscriptions, { name: 'cohorts', scope }))
    const filter = h(SelectField, {
      id: 'measure',
      label: 'Measure',
      options: MEASURES,
      value: measure,
      onChange: chosen => go(link('cohorts', { ...scope, measure: chosen })),
    })
    return h(
      ReportPage,
      { name: 'cohorts', scope, filter },
      html`<p class="faint">Each row is the group of accounts that first paid in a month. Each column shows how much was retained that many months later.</p>`,
      report.cohorts.count === 0
        ? h(EmptyState, { title: `No payments in ${scope.currency} in the last ${MONTHS} months.` })
        : html`<div>
            ${h(HeatMap, { rows: report.cohorts.results, measure, scope })}
            <p class="more">
              ${h(CsvButton, { csv: reportCsv('retention', 'cohorts', { ...scope, months: MONTHS }) })}
            </p>
          </div>`,
    )
  },
)

function HeatMap({ rows, measure, scope }: { rows: Cohort[]; measure: Measure; scope: Scope }): VNode {
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
            ${months.map(month => html`<th scope="col" class="number">${month}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${cohorts.map(
            ([name, own]) => html`
              <tr key=${name}>
                <th scope="row" class="whole">${name}</th>
                <td class="number" title=${plural(own[0]!.starting_accounts, 'account')}>
                  ${money(own[0]!.starting_mrr, scope.currency)}
                </td>
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

/** Higher retention has a stronger color. */
function retentionCell(row: Cohort | undefined, measure: Measure): VNode {
  const value = row?.[measure]
  if (value === undefined) return html`<td></td>`
  if (value === null) return html`<td class="number">${NONE}</td>`
  const depth = Math.min(10, Math.max(0, Math.round(toNumber(value) * 10)))
  return html`<td class=${`number h${depth}`}>${percent(Math.round(toNumber(value) * 100) / 100)}</td>`
}
