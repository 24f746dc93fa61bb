import type { VNode } from 'preact'
import { isZero, sumAmounts, toNumber } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { RevenueInvoice, RevenueInvoices, RevenueMonth, RevenueReport } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { Section, Tiles } from '../../components/page.ts'
import { Plot } from '../../components/plot.ts'
import { type Column, PagedTable, Table } from '../../components/table.ts'
import { Prose } from '../../components/text.ts'
import { compactMoney, day, money, shortTime, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { addMonths } from '../../period.ts'
import { link, linkWith } from '../../router.ts'
import { currency, isReporting, tenantFacts } from '../../view.ts'
import { bucketStart, today } from '../figures.ts'
import { AccountLink, NoSubscriptions, pageLink, ReportPage, reportCsv } from './report-page.ts'

const SPANS = [
  ['12', '12 months'],
  ['24', '24 months'],
  ['36', '36 months'],
] as const

const MOST_CURRENCIES = 5

/** Recognized and deferred revenue by month. Books are kept per currency, so they are not converted. */
export const revenuePage = definePage(
  'revenue',
  async ({ route: { query }, signal }) => {
    const span = SPANS.find(([name]) => name === query.get('span'))?.[0] ?? '12'
    const from = addMonths(`${today().slice(0, 7)}-01`, 1 - Number(span))
    const codes = isReporting.peek()
      ? (tenantFacts.peek()?.currencies.slice(0, MOST_CURRENCIES) ?? [])
      : [currency.peek()]
    const month = query.get('month')
    const chosen = query.get('in') ?? codes[0] ?? currency.peek()
    const [found, invoices] = await Promise.all([
      Promise.all(codes.map(code => nullOn(404, reports.revenue({ currency: code, from }, signal)))),
      month && nullOn(404, reports.revenueInvoices({ currency: chosen, date: month, page: query.get('page') }, signal)),
    ])
    return { span, from, found: found.filter(report => report !== null), invoices: invoices || null }
  },
  ({ data: { span, from, found, invoices }, route }) => {
    const filter = h(SelectField, {
      ...{ id: 'span', label: 'Months', options: SPANS, value: span },
      onChange: chosen => go(linkWith(route, { span: chosen })),
    })
    const known = found.filter(({ results }) => results.some(row => !isZero(row.invoiced) || !isZero(row.recognized)))
    return h(
      ReportPage,
      { name: 'revenue', filter },
      known.length === 0
        ? h(NoSubscriptions, {})
        : known.map(report => h(Revenue, { key: report.currency, report, from, isAlone: known.length === 1 })),
      invoices && h(Invoices, { report: invoices, linkTo: pageLink(route, 'page') }),
    )
  },
)

type RevenueProps = { report: RevenueReport; from: string; isAlone: boolean }

function Revenue({ report, from, isAlone }: RevenueProps): VNode {
  const { currency: code, results, warnings } = report
  const last = results.at(-1)!
  const shown = (value: Parameters<typeof money>[0]) => money(value, code)
  const total = (name: 'invoiced' | 'recognized') => shown(sumAmounts(results.map(row => row[name])))
  return h(
    Section,
    { title: isAlone ? 'Recognized revenue' : `Recognized revenue in ${code}` },
    warnings.map(warning => html`<p class="notice">${h(Prose, { text: warning })}</p>`),
    h(Tiles, {
      tiles: [
        { label: 'Recognized', value: total('recognized'), note: 'in these months' },
        { label: 'Invoiced, excluding tax', value: total('invoiced'), note: 'in these months' },
        { label: 'Deferred', value: shown(last.deferred), note: 'invoiced, not yet recognized' },
      ],
    }),
    h(Plot, {
      title: `Recognized and invoiced revenue in ${code} by month`,
      moments: results.map(({ date }) => bucketStart(date)),
      series: [
        { label: 'Recognized', values: results.map(({ recognized }) => toNumber(recognized)) },
        { label: 'Invoiced', values: results.map(({ invoiced }) => toNumber(invoiced)), isAside: true },
      ],
      ...{ shown, axisShown: compactMoney(code), unit: 'month', height: 180 },
    }),
    h(Table<RevenueMonth>, {
      caption: `Revenue by month in ${code}`,
      columns: [
        {
          label: 'Month',
          cell: ({ date }) =>
            html`<span class="whole"><a href=${link('revenue', { month: date, in: code })}>${shortTime(bucketStart(date), 'month')}</a>${date.slice(0, 7) === today().slice(0, 7) && html` <span class="faint">so far</span>`}</span>`,
        },
        { label: 'Invoiced', cell: ({ invoiced }) => shown(invoiced), kind: 'number' },
        { label: 'Recognized', cell: ({ recognized }) => shown(recognized), kind: 'number' },
        { label: 'Deferred at month end', cell: ({ deferred }) => shown(deferred), kind: 'number' },
      ],
      rows: results.toReversed(),
      rowKey: ({ date }) => date,
      csv: reportCsv('revenue', null, { currency: code, from }),
    }),
  )
}

type InvoicesProps = { report: RevenueInvoices; linkTo(page: number): string }

/** The invoices behind one month. */
function Invoices({ report, linkTo }: InvoicesProps): VNode {
  const { currency: code, date } = report
  const shown = (value: RevenueInvoice['amount']) => money(value, code)
  const columns: Column<RevenueInvoice>[] = [
    {
      label: 'Account',
      cell: ({ customer, customer_name: label }) => h(AccountLink, { customer, label }),
      kind: 'long',
    },
    { label: 'Recognized', cell: ({ recognized }) => shown(recognized), kind: 'number' },
    { label: 'Invoiced', cell: ({ invoiced }) => shown(invoiced), kind: 'number' },
    { label: 'Deferred', cell: ({ deferred }) => shown(deferred), kind: 'number' },
    {
      label: 'Service period',
      cell: ({ service_start: start, service_end: end }) =>
        html`<span class="whole">${day(start)} – ${day(end)}</span>`,
    },
    {
      label: 'Invoice',
      cell: ({ invoice_number, invoice_id, credit_note_id: note }) =>
        note === null ? text(invoice_number ?? invoice_id) : `Credit note ${note}`,
      kind: 'long',
    },
  ]
  return h(
    Section,
    { title: `Invoices behind the figures of ${shortTime(bucketStart(date), 'month')} in ${code}` },
    h(PagedTable<RevenueInvoice>, {
      ...{ caption: 'Invoices', columns, list: report, linkTo },
      csv: reportCsv('revenue/invoices', 'invoices', { currency: code, date }),
      empty: h(EmptyState, { title: 'No invoices in this month.' }),
    }),
  )
}
