import type { VNode } from 'preact'
import { isZero, sumAmounts, toNumber } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { ChurnReason, ChurnReasonsReport, MovementRow } from '../../api/types.ts'
import { ShareBar } from '../../components/bars.ts'
import { SelectField } from '../../components/form.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Section } from '../../components/page.ts'
import { type Column, PagedTable, Table } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money, NONE, number, shortTime, signedMoney, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go, hrefWithView } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import type { Period } from '../../period.ts'
import { link, linkWith } from '../../router.ts'
import { plotStart } from '../../series.ts'
import { currency, timeZone } from '../../view.ts'
import { bucketStart, readFrame } from '../figures.ts'
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
    const window = windowOf(frame.period)
    const asked = { ...scope, ...window, order: readOrder(query), page: query.get('page') }
    const [report, before, reasons] = await Promise.all([
      nullOn(404, reports.movements(asked, signal)),
      frame.comparison &&
        nullOn(
          404,
          reports.movements({ currency: scope.currency, ...windowOf(frame.comparison), page_size: 1 }, signal),
        ),
      nullOn(404, reports.churnReasons({ ...scope, ...reasonWindow(frame.period) }, signal)),
    ])
    return { scope, frame, window, report, before, reasons }
  },
  ({ data: { scope, frame, window, report, before, reasons }, route }) => {
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
        { title: 'Movements by account' },
        html`
          <div class="filter">
            ${h(SelectField, {
              ...{ id: 'order', label: 'Sort by', options: ORDERS, value: order },
              onChange: chosen => go(linkWith(route, { order: chosen === 'time' ? chosen : null, page: null })),
            })}
          </div>
        `,
        h(PagedTable<MovementRow>, {
          caption: 'Movements',
          columns: COLUMNS,
          list: report,
          linkTo: pageLink(route, 'page'),
          csv: reportCsv('movements', 'movements', { ...scope, ...window, order }),
          empty: h(EmptyState, {
            title: `No MRR movements in ${currency.value} in this period.`,
            action: html`<a href=${hrefWithView({ period: '12m' })}>Show the last 12 months</a>`,
          }),
        }),
      ),
      reasons !== null && reasons.totals.length > 0 && h(Reasons, { report: reasons, scope, period: frame.period }),
    )
  },
)

/** Churn reasons are by month: those of all months that the period touches. */
function reasonWindow({ from, to }: Period): { from: string; to: string } {
  return { from: from ?? plotStart(timeZone.peek()), to }
}

type ReasonsProps = { report: ChurnReasonsReport; scope: Scope; period: Period }

/** Why accounts left, the most money first. */
function Reasons({ report, scope, period }: ReasonsProps): VNode {
  const lost = sumAmounts(report.totals.map(({ mrr }) => mrr))
  const months = [...new Set(report.results.map(({ date }) => date))].toSorted()
  const span = months.length === 0 ? '' : monthSpan(months[0]!, months.at(-1)!)
  return h(
    Section,
    { title: `Cancellation reasons, ${span}` },
    h(Table<ChurnReason>, {
      caption: 'Cancellation reasons',
      columns: [
        { label: 'Reason', cell: ({ reason }) => words(reason), kind: 'long' },
        { label: 'Accounts', cell: ({ accounts }) => number(accounts), kind: 'number' },
        { label: 'Lost MRR', cell: ({ mrr }) => money(mrr, currency.value), kind: 'number' },
        {
          label: 'Share',
          cell: ({ mrr }) => h(ShareBar, { share: isZero(lost) ? 0 : toNumber(mrr) / toNumber(lost) }),
          kind: 'number',
        },
      ],
      rows: report.totals,
      rowKey: ({ reason }) => reason,
      csv: reportCsv('churn-reasons', null, { ...scope, ...reasonWindow(period) }),
    }),
    html`<p class="faint">The reasons come from the billing system. This list covers whole months, so its total may differ from the churn above.</p>`,
  )
}

function monthSpan(first: string, last: string): string {
  const month = (date: string) => shortTime(bucketStart(date), 'month')
  return first === last ? month(first) : `${month(first)} to ${month(last)}`
}

const COLUMNS: Column<MovementRow>[] = [
  {
    label: 'Account',
    cell: ({ customer, customer_name }) => h(AccountLink, { customer, label: customer_name }),
    kind: 'long',
  },
  {
    label: 'Change',
    cell: ({ mrr_delta }) => signedMoney(mrr_delta, currency.value),
    kind: 'number',
  },
  {
    label: 'Kind',
    cell: ({ movement_type: type }) =>
      h(Badge, { text: type, tone: type === 'churn' || type === 'contraction' ? 'bad' : 'good' }),
  },
  { label: 'Date', cell: ({ occurred_at }) => h(Day, { at: occurred_at }) },
  { label: 'MRR after', cell: ({ mrr_after }) => money(mrr_after, currency.value), kind: 'number' },
  { label: 'Cause', cell: describeCause },
  {
    label: 'Event',
    cell: ({ event_id: id }) => (id === null ? NONE : html`<a href=${link('event', { id })}>Show</a>`),
  },
]

const CAUSES: Partial<Record<MovementRow['cause'], string>> = {
  quantity: 'quantity changed',
  price: 'price changed',
  plan: 'plan changed',
  discount_end: 'discount ended',
  pause: 'paused',
  resume: 'resumed',
  trial_end: 'end of the trial',
  cancellation_voluntary: 'canceled by the customer',
  cancellation_failed_payment: 'canceled after failed payments',
}

/** Without a change of a subscription, the movement type describes the cause. */
function describeCause({ cause, movement_type: type }: MovementRow): string {
  if (cause !== 'other') return CAUSES[cause] ?? lowerWords(cause)
  return type === 'new' ? 'new customer' : type === 'reactivation' ? 'returning customer' : 'other'
}
