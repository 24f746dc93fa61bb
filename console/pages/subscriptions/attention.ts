import { dayIn } from 'kontor-time-zone'
import type { VNode } from 'preact'
import { type Amount, sumAmounts, toNumber } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { AttentionReport, Cancellation, Paged, PaymentIssue, Renewal, UpcomingBilling } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { Badge } from '../../components/notice.ts'
import { Section, type Tile, Tiles } from '../../components/page.ts'
import { type Column, PagedTable, Table } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money, NONE, number, plural, text, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { countDays } from '../../period.ts'
import { link, type Route } from '../../router.ts'
import { currency, timeZone } from '../../view.ts'
import { isWrittenOff } from './figures.ts'
import { AccountLink, NoSubscriptions, pageLink, ReportPage, readScope, reportCsv, type Scope } from './report-page.ts'

const PAGES = ['issue_page', 'renewal_page', 'cancel_page', 'billing_page'] as const
const WINDOWS = ['30', '60', '90'].map(days => [days, `${days} days`] as const)

export const attentionPage = definePage(
  'attention',
  async ({ route: { query }, signal }) => {
    // What needs attention now does not depend on the period.
    const scope = { ...readScope(), as_of: '' }
    const days = query.get('days') ?? '30'
    const pages = Object.fromEntries(PAGES.map(name => [name, query.get(name)]))
    return {
      scope,
      days,
      report: await nullOn(404, reports.attention({ ...scope, days, page_size: 50, ...pages }, signal)),
    }
  },
  ({ data: { scope, days, report }, route }) =>
    h(
      ReportPage,
      {
        name: 'attention',
        filter: h(SelectField, {
          id: 'days',
          label: 'Next',
          options: WINDOWS,
          value: days,
          onChange: chosen => go(link('attention', { days: chosen })),
        }),
      },
      report ? h(Lists, { report, route, scope }) : h(NoSubscriptions, {}),
    ),
)

type ListsProps = { report: AttentionReport; route: Route; scope: Scope }

function Lists({ report, route, scope }: ListsProps): VNode {
  const columns = attentionColumns()
  const within = `within ${report.days} days`
  // The most money first.
  const open = report.payment_issues.results
    .filter(row => !isWrittenOff(row))
    .toSorted((a, b) => toNumber(b.mrr_at_risk) - toNumber(a.mrr_at_risk))
  const dead = report.payment_issues.results.filter(isWrittenOff)
  const list = <Row>(
    title: string,
    rows: Paged<Row>,
    rowColumns: Column<Row>[],
    parameter: (typeof PAGES)[number],
    empty: string,
    name: string,
  ) =>
    h(
      Section,
      { title: `${title} (${number(rows.count)})` },
      h(PagedTable<Row>, {
        caption: title,
        columns: rowColumns,
        list: rows,
        csv: reportCsv('attention', name, { ...scope, days: report.days }),
        linkTo: pageLink(route, parameter),
        empty: html`<p class="faint">${empty}</p>`,
      }),
    )
  return html`
    ${h(AtRisk, { report })}
    ${list('Payment issues', { ...report.payment_issues, results: open, count: report.payment_issues.count - dead.length }, columns.paymentIssues, 'issue_page', 'No failed or overdue payments.', 'payment_issues')}
    ${
      dead.length > 0 &&
      html`<details>
        <summary>${plural(dead.length, 'written-off invoice')} of accounts that no longer pay: ${money(sumAmounts(dead.map(amountDue)), currency.value)}</summary>
        ${h(Table<PaymentIssue>, { caption: 'Written-off invoices', columns: columns.paymentIssues, rows: dead })}
      </details>`
    }
    ${list('Cancellations', report.cancellations, columns.cancellations, 'cancel_page', `No cancellations ${within}.`, 'cancellations')}
    ${list('Renewals', report.renewals, columns.renewals, 'renewal_page', `No renewals of billing periods longer than a month ${within}.`, 'renewals')}
    <details open=${route.query.has('billing_page')}>
      <summary>Upcoming billing: ${plural(report.upcoming_billing.count, 'charge')} ${within}</summary>
      ${list('Upcoming billing', report.upcoming_billing, columns.upcomingBilling, 'billing_page', `No charges expected ${within}.`, 'upcoming_billing')}
    </details>
  `
}

const amountDue = (row: PaymentIssue): Amount => row.amount_remaining ?? row.amount_due ?? 0

/** The money at risk, before the lists behind it. Of a list with several pages, only the amount of this page is known. */
function AtRisk({ report }: { report: AttentionReport }): VNode {
  const amount = (value: Amount) => money(value, currency.value)
  const { payment_issues: issues, cancellations, renewals, upcoming_billing: billing } = report
  // Of several invoices of one subscription, its MRR counts once.
  const open = issues.results.filter(row => !isWrittenOff(row))
  const failing = new Map(open.map(row => [row.subscription_id ?? row.invoice_id, row.mrr_at_risk]))
  const tile = (label: string, rows: Paged<unknown>, amounts: Amount[], note: string, count = note): Tile => {
    const total = amount(sumAmounts(amounts))
    if (rows.pages <= 1) return { label, value: total, note }
    const shown = number(rows.results.length)
    return {
      label,
      value: count,
      note: `${total} for the ${shown} on this page`,
    }
  }
  const due = issues.pages > 1 ? plural(issues.count, 'payment issue') : plural(open.length, 'payment issue')
  return h(Tiles, {
    tiles: [
      tile('MRR at risk', issues, [...failing.values()], due),
      tile('Amount due', issues, open.map(amountDue), 'failed and overdue invoices', due),
      tile(
        'MRR of scheduled cancellations',
        cancellations,
        cancellations.results.map(row => row.mrr_at_risk),
        plural(cancellations.count, 'cancellation'),
      ),
      tile(
        'Renewals',
        renewals,
        renewals.results.map(row => row.renewal_amount ?? 0),
        plural(renewals.count, 'renewal'),
      ),
      tile(
        'Upcoming billing',
        billing,
        billing.results.map(row => row.estimated_amount ?? 0),
        plural(billing.count, 'charge'),
      ),
    ],
  })
}

type AttentionColumns = {
  paymentIssues: Column<PaymentIssue>[]
  cancellations: Column<Cancellation>[]
  renewals: Column<Renewal>[]
  upcomingBilling: Column<UpcomingBilling>[]
}

function attentionColumns(): AttentionColumns {
  const amount = (value: Amount | null) => money(value, currency.value)
  const account = {
    label: 'Account',
    cell: ({ customer, customer_name: label }: { customer: string | null; customer_name: string | null }) =>
      h(AccountLink, { customer, label }),
    kind: 'long' as const,
  }
  const subscription = {
    label: 'Subscription',
    cell: ({ subscription_id }: { subscription_id: string }) => html`<code>${subscription_id}</code>`,
    kind: 'long' as const,
  }
  return {
    paymentIssues: [
      account,
      { label: 'Issue', cell: row => h(Issue, { row }), kind: 'text' },
      { label: 'Amount due', cell: row => amount(row.amount_remaining ?? row.amount_due), kind: 'number' },
      { label: 'MRR at risk', cell: row => amount(row.mrr_at_risk), kind: 'number' },
      {
        label: 'Invoice',
        cell: row => text(row.invoice_number ?? row.invoice_id),
        kind: 'long',
      },
      { label: 'Due date', cell: row => h(Day, { at: row.due_at }) },
      { label: 'Next attempt', cell: row => h(Day, { at: row.next_payment_attempt_at }) },
    ],
    cancellations: [
      account,
      { label: 'End date', cell: row => dueCell(row.cancels_at) },
      { label: 'MRR', cell: row => amount(row.mrr_at_risk), kind: 'number' },
      { label: 'Reason', cell: row => (row.reason ? words(row.reason) : NONE), kind: 'long' },
      subscription,
    ],
    renewals: [
      account,
      { label: 'Renewal date', cell: row => dueCell(row.renews_at) },
      { label: 'Amount', cell: row => amount(row.renewal_amount), kind: 'number' },
      { label: 'Term', cell: row => plural(row.interval_count, row.interval) },
      { label: 'MRR', cell: row => amount(row.mrr), kind: 'number' },
      subscription,
    ],
    upcomingBilling: [
      account,
      { label: 'Billing date', cell: row => dueCell(row.bills_at) },
      {
        label: 'Estimate',
        cell: row => `${amount(row.estimated_amount)}${row.includes_metered ? ' + usage' : ''}`,
        kind: 'number',
      },
      { label: 'Note', cell: row => (row.is_trial_conversion ? 'end of trial' : '') },
      { label: 'Collection method', cell: row => lowerWords(text(row.collection_method)) },
      subscription,
    ],
  }
}

/** In days of the calendar, as the date beside it. `days_until` of the API counts hours as a whole day. */
function dueCell(at: string): VNode {
  const days = countDays(dayIn(timeZone.value, new Date()), dayIn(timeZone.value, new Date(at))) - 1
  const distance = days === 0 ? 'today' : `in ${plural(days, 'day')}`
  return html`<span>${h(Day, { at })} <span class="faint">${distance}</span></span>`
}

function Issue({ row }: { row: PaymentIssue }): VNode {
  const { issue_type, failure_message, days_overdue, attempt_count } = row
  const more = [
    failure_message?.replace(/\.$/, ''),
    days_overdue && `${plural(days_overdue, 'day')} overdue`,
    attempt_count && plural(attempt_count, 'attempt'),
  ].filter(Boolean)
  return html`
    ${h(Badge, { text: words(issue_type), tone: 'bad' })}
    ${more.length > 0 && html`<span class="reason faint">${more.join(' · ')}</span>`}
  `
}
