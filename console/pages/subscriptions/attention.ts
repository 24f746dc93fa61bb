import type { VNode } from 'preact'
import { reports } from '../../api/data.ts'
import type { AttentionReport, Paged } from '../../api/types.ts'
import { SelectField } from '../../components/form.ts'
import { Section } from '../../components/page.ts'
import { type Column, PagedTable } from '../../components/table.ts'
import { number } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link, type Route } from '../../router.ts'
import { attentionColumns } from './attention-columns.ts'
import { reportIn, type Scope, scopeOf } from './report.ts'
import { csvOf, NoSubscriptions, pageLink, ReportPage } from './report-page.ts'

const PAGES = ['issue_page', 'renewal_page', 'cancel_page', 'billing_page'] as const
const WINDOWS = ['30', '60', '90'].map(days => [days, `${days} days`] as const)

export const page = definePage(
  'attention',
  async ({ route: { query }, signal }) => {
    const scope = await scopeOf(query, signal)
    const days = query.get('days') ?? '30'
    const pages = Object.fromEntries(PAGES.map(name => [name, query.get(name)]))
    return {
      scope,
      days,
      report: await reportIn(scope, reports.attention({ ...scope, days, ...pages }, signal)),
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
        csv: csvOf('attention', name, { ...scope, days: report.days }),
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
