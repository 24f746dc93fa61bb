import type { VNode } from 'preact'
import { reports } from '../../api/data.ts'
import type { Exclusion } from '../../api/types.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { type Column, PagedTable } from '../../components/table.ts'
import { Prose } from '../../components/text.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import {
  AccountLink,
  hasSubscriptions,
  NoSubscriptions,
  pageLink,
  ReportPage,
  readReport,
  readScope,
  reportCsv,
  type Scope,
} from './report-page.ts'
/** Items excluded from MRR, with the reason and the fix. */
export const excludedPage = definePage(
  'excluded',
  async ({ route: { query }, signal }) => {
    const scope = await readScope(query, signal)
    const asked = { ...scope, exclusion_page: query.get('exclusion_page') }
    return { scope, report: await readReport(scope, reports.overview(asked, signal)) }
  },
  ({ data: { scope, report }, route }) =>
    h(
      ReportPage,
      { name: 'excluded', scope },
      hasSubscriptions(report)
        ? h(PagedTable<Exclusion>, {
            caption: 'Excluded items',
            columns: exclusionColumns(scope),
            list: report.exclusions,
            csv: reportCsv('overview', 'exclusions', scope),
            linkTo: pageLink(route, 'exclusion_page'),
            empty: h(EmptyState, { title: 'No excluded items.' }),
          })
        : h(NoSubscriptions, { name: 'excluded', scope }),
    ),
)

function exclusionColumns(scope: Scope): Column<Exclusion>[] {
  return [
    {
      label: 'Subscription',
      cell: ({ subscription_id, item_id }) => html`
        <code>${subscription_id}</code>
        ${item_id && html`<span class="reason faint"><code>${item_id}</code></span>`}
      `,
      kind: 'long',
    },
    { label: 'Reason and fix', cell: row => h(Reason, { row }), kind: 'text' },
    {
      label: 'Excluded MRR',
      cell: ({ excluded_mrr }) => money(excluded_mrr, scope.currency),
      kind: 'number',
      isMinor: true,
    },
    {
      label: 'Account',
      cell: ({ customer }) => h(AccountLink, { customer, scope }),
      kind: 'long',
      isMinor: true,
    },
    { label: 'Since', cell: ({ since }) => h(Day, { at: since }), isMinor: true },
  ]
}

function Reason({ row: { reason_code, reason, fix_hint } }: { row: Exclusion }): VNode {
  return html`
    ${h(Badge, { text: lowerWords(reason_code) })}
    <span class="reason">${reason}</span>
    <span class="reason faint">${h(Prose, { text: fix_hint })}</span>
  `
}
