import type { VNode } from 'preact'
import { isZero, toNumber } from '../../amount.ts'
import type { BreakdownReport, BreakdownRow } from '../../api/types.ts'
import { ShareBar } from '../../components/bars.ts'
import { SelectFilter } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { Table } from '../../components/table.ts'
import { money, number, text, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { linkWith, type Route } from '../../router.ts'
import { csvOf } from './report-page.ts'

export const DIMENSIONS = ['plan', 'interval', 'source', 'country'] as const
export type Dimension = (typeof DIMENSIONS)[number]

export function dimensionOf(query: URLSearchParams): Dimension {
  return DIMENSIONS.find(name => name === query.get('by')) ?? 'plan'
}

/** What MRR is made of: the rows add up to it. */
export function Breakdown({ report, route }: { report: BreakdownReport; route: Route }): VNode {
  const { by, mrr, currency, results } = report
  const share = (row: BreakdownRow) => (isZero(mrr) ? 0 : toNumber(row.mrr) / toNumber(mrr))
  return html`
    ${h(SelectFilter, {
      id: 'by',
      label: 'Break down by',
      options: DIMENSIONS.map(name => [name, words(name)] as const),
      value: by,
      onChange: chosen => go(linkWith(route, { by: chosen, page: null })),
    })}
    ${
      results.length === 0
        ? h(EmptyState, { title: `No MRR in ${currency} yet.` })
        : h(Table<BreakdownRow>, {
            caption: `MRR by ${by}`,
            columns: [
              { label: words(by), cell: row => text(row[by]), kind: 'long' },
              { label: 'MRR', cell: row => money(row.mrr, currency), kind: 'number' },
              { label: 'Share', cell: row => h(ShareBar, { share: share(row) }), kind: 'number' },
              { label: 'Accounts', cell: row => number(row.accounts), kind: 'number', isMinor: true },
              {
                label: 'Subscriptions',
                cell: row => number(row.subscriptions),
                kind: 'number',
                isMinor: true,
              },
            ],
            rows: results,
            csv: csvOf('breakdown', null, { by, currency, as_of: route.query.get('as_of') }),
            keyOf: row => String(row[by]),
          })
    }
  `
}
