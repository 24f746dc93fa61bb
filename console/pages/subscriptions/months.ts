import type { ComponentChildren, VNode } from 'preact'
import { type Amount, isZero, negate, toNumber } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { BooksReport, HistoryRow, Restatement } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Section } from '../../components/page.ts'
import { type Column, PagedTable, Table } from '../../components/table.ts'
import { Actor } from '../../components/text.ts'
import { Day } from '../../components/time.ts'
import { money, NONE, percentChange, plural, shortTime, signedMoney } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { addMonths, periodOfStep } from '../../period.ts'
import { link, linkWith } from '../../router.ts'
import { currency } from '../../view.ts'
import { bucketStart, hasMrr, today } from '../figures.ts'
import { MovementPlot, MrrPlot } from './figures.ts'
import { AccountLink, NoSubscriptions, pageLink, ReportPage, readScope, reportCsv } from './report-page.ts'

const SPANS = [
  ['12', '12 months'],
  ['24', '24 months'],
  ['36', '36 months'],
] as const

type Closed = BooksReport['months'][number]

/** Every month against the one before it, with the state of its books. */
export const monthsPage = definePage(
  'months',
  async ({ route: { query }, signal }) => {
    const span = SPANS.find(([name]) => name === query.get('span'))?.[0] ?? '12'
    const asked = {
      ...{ currency: readScope().currency, interval: 'month' },
      from: addMonths(`${today().slice(0, 7)}-01`, 1 - Number(span)),
    }
    const [report, books] = await Promise.all([
      nullOn(404, reports.history(asked, signal)),
      nullOn(404, reports.books({ month: query.get('month'), page: query.get('page') }, signal)),
    ])
    return { span, asked, report, books }
  },
  ({ data: { span, asked, report, books }, route }) => {
    const filter = h(SelectField, {
      ...{ id: 'span', label: 'Months', options: SPANS, value: span },
      onChange: chosen => go(linkWith(route, { span: chosen })),
    })
    if (!report || !hasMrr(report)) return h(ReportPage, { name: 'months', filter }, h(NoSubscriptions, {}))
    const history = { now: report, before: null, mrrBefore: null }
    const closed = new Map(books?.months.map(month => [month.month, month]))
    const rows = report.results.map((row, index) => ({ ...row, before: report.results[index - 1] ?? null }))
    return h(
      ReportPage,
      { name: 'months', filter },
      html`<div class="plots">
        ${h(Section, { title: 'MRR' }, h(MrrPlot, { history, comparison: null, height: 180 }))}
        ${h(Section, { title: 'Movements' }, h(MovementPlot, { history, comparison: null, height: 180 }))}
      </div>`,
      h(Table<Row>, {
        caption: 'Month by month',
        columns: columns(closed, rows),
        rows: rows.toReversed(),
        rowKey: ({ date }) => date,
        csv: reportCsv('history', null, asked),
      }),
      books && h(Books, { books, month: route.query.get('month'), linkTo: pageLink(route, 'page') }),
    )
  },
)

type Row = HistoryRow & { before: HistoryRow | null }

const MOVES = [
  ['New', 'new', 1],
  ['Expansion', 'expansion', 1],
  ['Reactivation', 'reactivation', 1],
  ['Contraction', 'contraction', -1],
  ['Churn', 'churn', -1],
] as const

function columns(closed: Map<string, Closed>, rows: Row[]): Column<Row>[] {
  const moved = (label: string, read: (row: Row) => Amount): Column<Row> => ({
    label,
    cell: row => (isZero(read(row)) ? NONE : signedMoney(read(row), currency.value)),
    kind: 'number',
  })
  return [
    { label: 'Month', cell: row => h(MonthLink, { row, books: closed.get(row.date.slice(0, 7)) }) },
    { label: 'MRR', cell: row => h(MrrCell, { row }), kind: 'number' },
    { label: 'Net new', cell: ({ net }) => signedMoney(net, currency.value), kind: 'number' },
    ...MOVES.map(([label, kind, sign]) => moved(label, row => (sign < 0 ? negate(row[kind]) : row[kind]))),
    ...(rows.some(({ fx }) => fx !== undefined) ? [moved('Exchange rates', ({ fx }) => fx ?? 0)] : []),
  ]
}

function MonthLink({ row: { date }, books }: { row: Row; books: Closed | undefined }): VNode {
  const isCurrent = date.slice(0, 7) === today().slice(0, 7)
  const href = link('movements', { period: periodOfStep(date, 'month') })
  return html`<span class="whole"><a href=${href}>${shortTime(bucketStart(date), 'month')}</a>${isCurrent && html` <span class="faint">so far</span>`}${books && html` ${bookState(books)}`}</span>`
}

/** MRR at the end of the month, and its change in percent. */
function MrrCell({ row: { mrr, before } }: { row: Row }): VNode {
  const last = before === null ? 0 : toNumber(before.mrr)
  const share = last === 0 ? null : (toNumber(mrr) - last) / last
  const tone = share === null || share === 0 ? 'same' : share > 0 ? 'up' : 'down'
  const sign = share === null || share === 0 ? '' : share > 0 ? '+' : '−'
  return html`
    <span class="whole">${money(mrr, currency.value)}${share !== null && html` <span class="change"><span class=${tone}>${sign}${percentChange(Math.abs(share))}</span></span>`}</span>
  `
}

/** Closed months keep their figures. */
function bookState(month: Closed): ComponentChildren {
  if (month.restatements === 0) return h(Badge, { text: 'closed', tone: 'good' })
  return html`<a href=${link('months', { month: month.month })}>${h(Badge, { text: 'closed', tone: 'good' })} ${plural(month.restatements, 'restatement')}</a>`
}

/** 2026-09 → Sep 2026 */
const monthName = (month: string) => shortTime(bucketStart(`${month}-01`), 'month')

type BooksProps = { books: BooksReport; month: string | null; linkTo(page: number): string }

/** What changed in closed months since they were closed. */
function Books({ books, month, linkTo }: BooksProps): VNode {
  if (books.months.length === 0)
    return h(
      Section,
      { title: 'Closed months' },
      html`<p class="faint">No closed months. Closing a month freezes its figures; later changes are listed separately. To close a month, run <code>kontor books close</code>.</p>`,
    )
  const latest = books.months[0]!
  return h(
    Section,
    { title: month === null ? 'Restatements of closed months' : `Restatements of ${monthName(month)}` },
    html`<p>
      ${plural(books.months.length, 'month is', 'months are')} closed. The latest is ${monthName(latest.month)}, closed on ${h(Day, { at: latest.closed_at })} by ${h(Actor, { actor: latest.closed_by, hints: new Map() })}.
      ${month !== null && html` <a href=${link('months')}>Show all restatements</a>`}
    </p>`,
    h(PagedTable<Restatement>, {
      caption: 'Restatements',
      columns: RESTATEMENTS,
      list: books,
      linkTo,
      empty: h(EmptyState, { title: 'No restatements.', text: 'No later data changed a closed month.' }),
    }),
  )
}

const RESTATEMENTS: Column<Restatement>[] = [
  { label: 'Account', cell: ({ customer }) => h(AccountLink, { customer }), kind: 'long' },
  { label: 'Month', cell: ({ month }) => monthName(month) },
  {
    label: 'Change of MRR at month end',
    cell: ({ amount, currency: code }) => (isZero(amount) ? 'none, only movements changed' : signedMoney(amount, code)),
    kind: 'number',
  },
  { label: 'Received', cell: ({ received_at }) => h(Day, { at: received_at }) },
  {
    label: 'Event',
    cell: ({ event_id: id }) => (id === null ? NONE : html`<a href=${link('event', { id })}>Show</a>`),
  },
]
