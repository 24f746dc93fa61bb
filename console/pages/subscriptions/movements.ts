import type { VNode } from 'preact'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { BooksReport, MovementRow } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Section } from '../../components/page.ts'
import { type Column, PagedTable, Table } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money, NONE, number, signedMoney } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go, hrefWithView } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link, linkWith } from '../../router.ts'
import { readFrame } from '../figures.ts'
import { MovementSummary } from './figures.ts'
import {
  AccountLink,
  NoSubscriptions,
  pageLink,
  ReportPage,
  readScope,
  reportCsv,
  type Scope,
  windowOf,
} from './report-page.ts'

const ORDERS = [
  ['size', 'Largest first'],
  ['time', 'Oldest first'],
] as const

const readOrder = (query: URLSearchParams) => (query.get('order') === 'time' ? 'time' : 'size')

/** MRR changes in the period, compared with another one, and the accounts behind them. */
export const movementsPage = definePage(
  'movements',
  async ({ route: { query }, signal }) => {
    const scope = readScope()
    const frame = readFrame()
    const { currency } = scope
    const window = windowOf(frame.period)
    const asked = { ...scope, ...window, order: readOrder(query), page: query.get('page') }
    const [report, before, books] = await Promise.all([
      nullOn(404, reports.movements(asked, signal)),
      frame.comparison &&
        nullOn(404, reports.movements({ currency, ...windowOf(frame.comparison), page_size: 1 }, signal)),
      nullOn(404, reports.books(signal)),
    ])
    return { scope, frame, window, report, before, books }
  },
  ({ data: { scope, frame, window, report, before, books }, route }) => {
    if (!report) return h(ReportPage, { name: 'movements' }, h(NoSubscriptions, {}))
    const order = readOrder(route.query)
    return h(
      ReportPage,
      { name: 'movements' },
      h(MovementSummary, {
        ...{ totals: report.totals, before: before?.totals ?? null, currency: report.currency },
        ...{ period: frame.period, comparison: frame.comparison },
      }),
      h(
        Section,
        { title: 'Accounts behind the change' },
        html`
          <div class="filter">
            ${h(SelectField, {
              ...{ id: 'order', label: 'Order', options: ORDERS, value: order },
              onChange: chosen => go(linkWith(route, { order: chosen === 'time' ? chosen : null, page: null })),
            })}
          </div>
        `,
        h(PagedTable<MovementRow>, {
          caption: 'Movements',
          columns: movementColumns(scope),
          list: report,
          linkTo: pageLink(route, 'page'),
          csv: reportCsv('movements', 'movements', { ...scope, ...window, order }),
          empty: h(EmptyState, {
            title: `No MRR movements in ${scope.currency} in this period.`,
            action: html`<a href=${hrefWithView({ period: '12m' })}>Show the last 12 months</a>`,
          }),
        }),
      ),
      books !== null && books.months.length > 0 && h(ClosedMonths, { books }),
    )
  },
)

/** Months whose figures are kept, and how much changed in them since. */
function ClosedMonths({ books }: { books: BooksReport }): VNode {
  const columns: Column<BooksReport['months'][number]>[] = [
    { label: 'Month', cell: ({ month }) => month },
    { label: 'Closed', cell: ({ closed_at }) => h(Day, { at: closed_at }) },
    { label: 'Closed by', cell: ({ closed_by }) => closed_by },
    { label: 'Restatements', cell: ({ restatements }) => number(restatements), kind: 'number' },
  ]
  return h(
    Section,
    { title: 'Closed months' },
    h(Table<BooksReport['months'][number]>, { caption: 'Closed months', columns, rows: books.months }),
  )
}

function movementColumns(scope: Scope): Column<MovementRow>[] {
  return [
    {
      label: 'Account',
      cell: ({ customer, customer_name }) => h(AccountLink, { customer, label: customer_name }),
      kind: 'long',
    },
    {
      label: 'Change',
      cell: ({ mrr_delta }) => signedMoney(mrr_delta, scope.currency),
      kind: 'number',
    },
    {
      label: 'Kind',
      cell: ({ movement_type: type }) =>
        h(Badge, { text: type, tone: type === 'churn' || type === 'contraction' ? 'bad' : 'good' }),
    },
    { label: 'Date', cell: ({ occurred_at }) => h(Day, { at: occurred_at }) },
    { label: 'MRR after', cell: ({ mrr_after }) => money(mrr_after, scope.currency), kind: 'number' },
    { label: 'Cause', cell: describeCause },
    {
      label: 'Event',
      cell: ({ event_id: id }) => (id === null ? NONE : html`<a href=${link('event', { id })}>Show</a>`),
    },
  ]
}

/** Without a change of a subscription, the movement type describes the cause. */
function describeCause({ cause, movement_type: type }: MovementRow): string {
  if (cause !== 'other') return lowerWords(cause)
  return type === 'new' ? 'new customer' : type === 'reactivation' ? 'returning customer' : 'other'
}
