import type { VNode } from 'preact'
import type { Amount } from '../../amount.ts'
import { reports } from '../../api/data.ts'
import type { AttentionReport, Cancellation, Paged, PaymentIssue, Renewal, UpcomingBilling } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { Badge } from '../../components/notice.ts'
import { Section } from '../../components/page.ts'
import { type Column, PagedTable } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money, NONE, number, plural, text, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link, type Route } from '../../router.ts'
import {
  AccountLink,
  NoSubscriptions,
  pageLink,
  ReportPage,
  readReport,
  readScope,
  reportCsv,
  type Scope,
} from './report-page.ts'

const PAGES = ['issue_page', 'renewal_page', 'cancel_page', 'billing_page'] as const
const WINDOWS = ['30', '60', '90'].map(days => [days, `${days} days`] as const)

export const attentionPage = definePage(
  'attention',
  async ({ route: { query }, signal }) => {
    const scope = await readScope(query, signal)
    const days = query.get('days') ?? '30'
    const pages = Object.fromEntries(PAGES.map(name => [name, query.get(name)]))
    return {
      scope,
      days,
      report: await readReport(scope, reports.attention({ ...scope, days, ...pages }, signal)),
    }
  },
  ({ data: { scope, days, report }, route }) =>
    h(
      ReportPage,
      {
        name: 'attention',
        scope,
        filter: h(SelectField, {
          id: 'days',
          label: 'Period',
          options: WINDOWS,
          value: days,
          onChange: chosen => go(link('attention', { ...scope, days: chosen })),
        }),
      },
      report ? h(Lists, { report, route, scope }) : h(NoSubscriptions, { name: 'attention', scope }),
    ),
)

type ListsProps = { report: AttentionReport; route: Route; scope: Scope }

function Lists({ report, route, scope }: ListsProps): VNode {
  const columns = attentionColumns(scope)
  const within = `within ${report.days} days`
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
    ${list('Payment issues', report.payment_issues, columns.paymentIssues, 'issue_page', 'No failed or overdue payments.', 'payment_issues')}
    ${list('Cancellations', report.cancellations, columns.cancellations, 'cancel_page', `No cancellations ${within}.`, 'cancellations')}
    ${list('Renewals', report.renewals, columns.renewals, 'renewal_page', `No renewals of terms longer than a month ${within}.`, 'renewals')}
    ${list('Upcoming billing', report.upcoming_billing, columns.upcomingBilling, 'billing_page', `No charges expected ${within}.`, 'upcoming_billing')}
  `
}

type AttentionColumns = {
  paymentIssues: Column<PaymentIssue>[]
  cancellations: Column<Cancellation>[]
  renewals: Column<Renewal>[]
  upcomingBilling: Column<UpcomingBilling>[]
}

function attentionColumns(scope: Scope): AttentionColumns {
  const amount = (value: Amount | null) => money(value, scope.currency)
  const account = {
    label: 'Account',
    cell: ({ customer }: { customer: string | null }) => h(AccountLink, { customer, scope }),
    kind: 'long' as const,
  }
  const subscription = {
    label: 'Subscription',
    cell: ({ subscription_id }: { subscription_id: string }) => html`<code>${subscription_id}</code>`,
    kind: 'long' as const,
    isMinor: true,
  }
  return {
    paymentIssues: [
      account,
      { label: 'Issue', cell: row => h(Issue, { row }), kind: 'text' },
      { label: 'Amount due', cell: row => amount(row.amount_remaining ?? row.amount_due), kind: 'number' },
      { label: 'MRR at risk', cell: row => amount(row.mrr_at_risk), kind: 'number', isMinor: true },
      {
        label: 'Invoice',
        cell: row => text(row.invoice_number ?? row.invoice_id),
        kind: 'long',
        isMinor: true,
      },
      { label: 'Due date', cell: row => h(Day, { at: row.due_at }), isMinor: true },
      { label: 'Next attempt', cell: row => h(Day, { at: row.next_payment_attempt_at }), isMinor: true },
    ],
    cancellations: [
      account,
      { label: 'End date', cell: row => dueCell(row.cancels_at, row.days_until) },
      { label: 'MRR at risk', cell: row => amount(row.mrr_at_risk), kind: 'number' },
      { label: 'Reason', cell: row => (row.reason ? words(row.reason) : NONE), kind: 'long', isMinor: true },
      subscription,
    ],
    renewals: [
      account,
      { label: 'Renewal date', cell: row => dueCell(row.renews_at, row.days_until) },
      { label: 'Amount', cell: row => amount(row.renewal_amount), kind: 'number' },
      { label: 'Term', cell: row => plural(row.interval_count, row.interval), isMinor: true },
      { label: 'MRR', cell: row => amount(row.mrr), kind: 'number', isMinor: true },
      subscription,
    ],
    upcomingBilling: [
      account,
      { label: 'Billing date', cell: row => dueCell(row.bills_at, row.days_until) },
      {
        label: 'Estimate',
        cell: row => `${amount(row.estimated_amount)}${row.includes_metered ? ' + usage' : ''}`,
        kind: 'number',
      },
      { label: 'Note', cell: row => (row.is_trial_conversion ? 'end of trial' : ''), isMinor: true },
      { label: 'Collection method', cell: row => lowerWords(text(row.collection_method)), isMinor: true },
      subscription,
    ],
  }
}

function dueCell(at: string, daysUntil: number): VNode {
  const distance = daysUntil === 0 ? 'today' : `in ${plural(daysUntil, 'day')}`
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
