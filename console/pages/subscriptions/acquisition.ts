import type { VNode } from 'preact'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { AcquisitionSource } from '../../api/types.ts'
import { ShareBar } from '../../components/bars.ts'
import { SelectField } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { type Column, PagedTable } from '../../components/table.ts'
import { money, number, percent } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { currency } from '../../view.ts'
import { NoSubscriptions, pageLink, ReportPage, readScope, reportCsv } from './report-page.ts'

const HORIZONS = ['30', '60', '90'].map(days => [days, `${days} days ago`] as const)

/** Current MRR by acquisition source, and its retention. */
export const acquisitionPage = definePage(
  'acquisition',
  async ({ route: { query }, signal }) => {
    const scope = readScope()
    const horizon = query.get('horizon') ?? '30'
    const asked = { ...scope, horizon, page: query.get('page') }
    return { scope, horizon, report: await nullOn(404, reports.acquisition(asked, signal)) }
  },
  ({ data: { scope, horizon, report }, route }) => {
    if (!report) return h(ReportPage, { name: 'acquisition' }, h(NoSubscriptions, {}))
    return h(
      ReportPage,
      {
        name: 'acquisition',
        filter: h(SelectField, {
          id: 'horizon',
          label: 'Compare with MRR of',
          options: HORIZONS,
          value: horizon,
          onChange: chosen => go(link('acquisition', { horizon: chosen })),
        }),
      },
      html`
        <p>
          The sources below add up to an MRR of <strong>${money(report.mrr, currency.value)}</strong>. Net retention is the
          current MRR of the accounts that had MRR ${horizon} days ago, divided by their MRR then.
        </p>
        <p class="faint">
          Source, medium and campaign are listed as received. <a href=${link('channels')}>Acquisition</a> groups them into
          channels: google.com, for example, belongs to Organic search.
        </p>
      `,
      h(PagedTable<AcquisitionSource>, {
        caption: 'Acquisition sources',
        columns: columns(horizon),
        list: report.sources,
        csv: reportCsv('acquisition', 'sources', { ...scope, horizon }),
        linkTo: pageLink(route, 'page'),
        empty: h(EmptyState, { title: `No MRR in ${currency.value} yet.` }),
      }),
    )
  },
)

const columns = (horizon: string): Column<AcquisitionSource>[] => [
  { label: 'Source', cell: row => h(SourceName, { row }), kind: 'long' },
  { label: 'MRR', cell: ({ mrr }) => money(mrr, currency.value), kind: 'number' },
  { label: 'Share', cell: ({ mrr_share }) => h(ShareBar, { share: mrr_share }), kind: 'number' },
  { label: 'Accounts', cell: ({ accounts }) => number(accounts), kind: 'number', isMinor: true },
  { label: 'ARPA', cell: ({ arpa }) => money(arpa, currency.value), kind: 'number', isMinor: true },
  { label: 'Net retention', cell: row => h(Retention, { row, horizon }), kind: 'number', isMinor: true },
]

function SourceName({ row: { source, medium, campaign } }: { row: AcquisitionSource }): VNode {
  const more = [medium, campaign].filter(Boolean)
  return html`
    ${source}
    ${more.length > 0 && html`<span class="reason faint">${more.join(' / ')}</span>`}
  `
}

/** The rate, and the MRR behind it: then and now. */
function Retention({ row, horizon }: { row: AcquisitionSource; horizon: string }): VNode {
  const amount = (value: AcquisitionSource['retained_mrr']) => money(value, currency.value)
  if (row.retention_status === 'available')
    return html`<span>${percent(row.retention_rate)} <span class="faint">${amount(row.cohort_starting_mrr)} → ${amount(row.retained_mrr)}</span></span>`
  const isNew = row.retention_status === 'horizon_not_reached'
  return html`<span class="faint">${isNew ? `No accounts ${horizon} days ago` : 'No data for that day'}</span>`
}
