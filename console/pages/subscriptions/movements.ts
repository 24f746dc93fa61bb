import type { VNode } from 'preact'
import { absolute, isNegative, isZero } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import type { MovementRow, MovementsReport } from '../../api/types.ts'
import { SelectField, SelectFilter } from '../../components/form.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Section } from '../../components/page.ts'
import { type Column, PagedTable } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money, NONE, shortTime, signedMoney } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link, linkWith } from '../../router.ts'
import { MovementChanges } from './figures.ts'
import {
  AccountLink,
  listMonths,
  monthStart,
  NoSubscriptions,
  nextMonthStart,
  pageLink,
  ReportPage,
  readReport,
  readScope,
  reportCsv,
  type Scope,
} from './report-page.ts'

const ORDERS = [
  ['size', 'Largest first'],
  ['time', 'Oldest first'],
] as const

const readOrder = (query: URLSearchParams) => (query.get('order') === 'time' ? 'time' : 'size')

/** MRR changes of a month, and the accounts behind them. */
export const movementsPage = definePage(
  'movements',
  async ({ route: { query }, signal }) => {
    const scope = await readScope(query, signal)
    const months = listMonths(scope.as_of)
    const month = months.find(name => name === query.get('month')) ?? months[0]!
    const window = { since: `${month}-01`, until: nextMonthStart(month) }
    const asked = { ...scope, ...window, order: readOrder(query), page: query.get('page') }
    return { scope, month, months, window, report: await readReport(scope, reports.movements(asked, signal)) }
  },
  ({ data: { scope, month, months, window, report }, route }) => {
    const filter = h(SelectField, {
      id: 'month',
      label: 'Month',
      options: months.map(name => [name, shortTime(monthStart(name), 'month')] as const),
      value: month,
      onChange: chosen => go(link('movements', { ...scope, month: chosen })),
    })
    if (!report)
      return h(ReportPage, { name: 'movements', scope, filter }, h(NoSubscriptions, { name: 'movements', scope }))
    return h(
      ReportPage,
      { name: 'movements', scope, filter },
      h(NetChange, { report, month }),
      h(
        Section,
        { title: 'Accounts behind the change' },
        h(SelectFilter, {
          ...{ id: 'order', label: 'Order', options: ORDERS, value: readOrder(route.query) },
          onChange: order => go(linkWith(route, { order: order === 'time' ? order : null, page: null })),
        }),
        h(PagedTable<MovementRow>, {
          caption: 'Movements',
          columns: movementColumns(scope),
          list: report,
          linkTo: pageLink(route, 'page'),
          csv: reportCsv('movements', 'movements', { ...scope, ...window, order: readOrder(route.query) }),
          empty: h(EmptyState, { title: `No MRR movements in ${scope.currency} this month.` }),
        }),
      ),
    )
  },
)

function NetChange({ report: { totals, currency }, month }: { report: MovementsReport; month: string }): VNode {
  const { net, opening_mrr, closing_mrr } = totals
  const how = isZero(net) ? 'unchanged' : `${isNegative(net) ? 'down' : 'up'} ${money(absolute(net), currency)}`
  return html`
    <p>
      In ${shortTime(monthStart(month), 'month')} MRR is <strong>${how}</strong>: from${' '}
      ${money(opening_mrr, currency)} to ${money(closing_mrr, currency)}.
    </p>
    ${h(MovementChanges, { movements: totals, currency, caption: 'MRR movements in the month' })}
  `
}

function movementColumns(scope: Scope): Column<MovementRow>[] {
  return [
    {
      label: 'Account',
      cell: ({ customer, customer_name }) => h(AccountLink, { customer, scope, label: customer_name }),
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
    {
      label: 'MRR after',
      cell: ({ mrr_after }) => money(mrr_after, scope.currency),
      kind: 'number',
      isMinor: true,
    },
    { label: 'Cause', cell: describeCause, isMinor: true },
    {
      label: 'Event',
      cell: ({ event_id: id }) => (id === null ? NONE : html`<a href=${link('event', { id })}>Show</a>`),
      isMinor: true,
    },
  ]
}

/** Without a change of a subscription, the movement type describes the cause. */
function describeCause({ cause, movement_type: type }: MovementRow): string {
  if (cause !== 'other') return lowerWords(cause)
  return type === 'new' ? 'new customer' : type === 'reactivation' ? 'returning customer' : 'other'
}
