import type { VNode } from 'preact'
import { type Amount, isZero, sumAmounts, toNumber } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { Exclusion, ExclusionReason } from '../../api/types.ts'
import { ShareBar } from '../../components/bars.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Section } from '../../components/page.ts'
import { type Column, PagedTable, Table } from '../../components/table.ts'
import { Prose } from '../../components/text.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money, number, plural, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { currency } from '../../view.ts'
import { AccountLink, pageLink, ReportPage, readScope, reportCsv } from './report-page.ts'

/** Items excluded from MRR: how much by reason, then each item with its fix. */
export const excludedPage = definePage(
  'excluded',
  async ({ route: { query }, signal }) => {
    const scope = readScope()
    return { scope, report: await nullOn(404, reports.exclusions({ ...scope, page: query.get('page') }, signal)) }
  },
  ({ data: { scope, report }, route }) => {
    if (!report || report.count === 0)
      return h(
        ReportPage,
        { name: 'excluded' },
        h(EmptyState, {
          title: 'No excluded items.',
          text: `Everything with a price in ${currency.value} is included in MRR.`,
          action: html`<a href=${link('subscriptions')}>Subscriptions</a>`,
        }),
      )
    const total = sumAmounts(report.by_reason.map(({ excluded_mrr }) => excluded_mrr))
    return h(
      ReportPage,
      { name: 'excluded' },
      html`<p>${plural(report.count, 'item')} worth <strong>${money(total, currency.value)}</strong> a month ${report.count === 1 ? 'is' : 'are'} not part of MRR.</p>`,
      h(
        Section,
        { title: 'By reason' },
        h(Table<ExclusionReason>, {
          caption: 'Excluded MRR by reason',
          columns: reasonColumns(total),
          rows: report.by_reason,
          rowKey: ({ reason_code }) => reason_code,
          csv: { rows: report.by_reason, name: 'exclusions-by-reason' },
        }),
      ),
      h(
        Section,
        { title: 'Items' },
        h(PagedTable<Exclusion>, {
          caption: 'Excluded items',
          columns: COLUMNS,
          list: report,
          csv: reportCsv('exclusions', 'exclusions', scope),
          linkTo: pageLink(route, 'page'),
          empty: h(EmptyState, { title: 'No excluded items.' }),
        }),
      ),
    )
  },
)

function reasonColumns(total: Amount): Column<ExclusionReason>[] {
  return [
    {
      label: 'Reason',
      cell: ({ reason_code, reason }) => html`
        ${words(reason_code)}
        <span class="reason faint">${reason}</span>
      `,
      kind: 'text',
    },
    { label: 'Items', cell: ({ items }) => number(items), kind: 'number' },
    { label: 'Excluded MRR', cell: ({ excluded_mrr }) => money(excluded_mrr, currency.value), kind: 'number' },
    {
      label: 'Share',
      cell: ({ excluded_mrr }) => h(ShareBar, { share: isZero(total) ? 0 : toNumber(excluded_mrr) / toNumber(total) }),
      kind: 'number',
    },
    { label: `Without an amount in ${currency.value}`, cell: ({ unpriced }) => number(unpriced), kind: 'number' },
  ]
}

const COLUMNS: Column<Exclusion>[] = [
  {
    label: 'Account',
    cell: ({ customer, customer_name: label }) => h(AccountLink, { customer, label }),
    kind: 'long',
  },
  { label: 'Excluded MRR', cell: ({ excluded_mrr }) => money(excluded_mrr, currency.value), kind: 'number' },
  { label: 'Reason, and what to do', cell: row => h(Reason, { row }), kind: 'text' },
  { label: 'Since', cell: ({ since }) => h(Day, { at: since }) },
  {
    label: 'Subscription',
    cell: ({ subscription_id, item_id }) => html`
        <code>${subscription_id}</code>
        ${item_id && html`<span class="reason faint"><code class=${item_id.length <= 24 ? 'whole' : null}>${item_id}</code></span>`}
      `,
    kind: 'long',
  },
]

/** In place of the hint of the API, which names a query parameter. */
const HINTS: Partial<Record<string, string>> = {
  other_currency: "Select the subscription's currency, or all currencies, at the top of the page.",
}

function Reason({ row: { reason_code, reason, fix_hint } }: { row: Exclusion }): VNode {
  return html`
    <span title=${reason}>${h(Badge, { text: lowerWords(reason_code) })}</span>
    <span class="reason faint">${h(Prose, { text: HINTS[reason_code] ?? fix_hint })}</span>
  `
}
