import type { VNode } from 'preact'
import { reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type { Account, HistoryReport, OverviewReport } from '../../api/types.ts'
import { SelectFilter } from '../../components/form.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Section, Tiles } from '../../components/page.ts'
import { Prose } from '../../components/prose.ts'
import { type Column, PagedTable } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { lowerWords, money, number, percent, plural, text, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link, linkWith, type Route } from '../../router.ts'
import { Breakdown, dimensionOf } from './breakdown.ts'
import { Headline, MovementBars } from './figures.ts'
import { firstOf, INTERVALS, intervalOf } from './history.ts'
import { MovementPlot, MrrPlot, sinceTheFirst } from './history-plots.ts'
import { RatesTable } from './rates.ts'
import { reportIn, type Scope, scopeOf } from './report.ts'
import { AccountLink, csvOf, hasSubscriptions, NoSubscriptions, pageLink, ReportPage } from './report-page.ts'

export const page = definePage(
  'subscriptions',
  async ({ route, signal }) => {
    const scope = await scopeOf(route.query, signal)
    const query = { ...scope, page: route.query.get('page') }
    const interval = intervalOf(route.query)
    const from = firstOf(interval, scope.as_of)
    const [report, history, breakdown] = await Promise.all([
      reportIn(scope, reports.overview(query, signal)),
      nullOn(404, reports.history({ ...scope, interval, from }, signal)),
      nullOn(404, reports.breakdown({ ...scope, by: dimensionOf(route.query) }, signal)),
    ])
    return { scope, report, history, breakdown }
  },
  ({ data: { scope, report, history, breakdown }, route }) => {
    if (!hasSubscriptions(report))
      return h(
        ReportPage,
        { name: 'subscriptions', scope },
        h(NoSubscriptions, { name: 'subscriptions', scope }),
      )
    return h(
      ReportPage,
      { name: 'subscriptions', scope },
      h(Headline, { report }),
      report.coverage.subscriptions_included === 0 && h(NothingCounts, { report }),
      history && h(Section, { title: 'MRR over time' }, h(OverTime, { history, route })),
      h(
        Section,
        { title: 'Last 30 days' },
        h(MovementBars, { report }),
        html`<p class="further"><a href=${link('movements', scope)}>Movements by month and account</a></p>`,
        h(Cash, { report }),
      ),
      h(Section, { title: 'Rates of the last 30 days' }, h(RatesTable, { report })),
      breakdown && h(Section, { title: 'MRR breakdown' }, h(Breakdown, { report: breakdown, route })),
      h(Section, { title: 'Needs attention' }, h(AttentionCounts, { report, scope })),
      h(
        Section,
        { title: 'Accounts' },
        h(PagedTable<Account>, {
          caption: 'Accounts',
          columns: accountColumns(scope),
          list: report.accounts,
          csv: csvOf('overview', 'accounts', scope),
          linkTo: pageLink(route, 'page'),
          empty: h(EmptyState, { title: `No account has a subscription in ${scope.currency}.` }),
        }),
      ),
      h(Section, { title: 'Data coverage' }, h(CoverageText, { report, scope })),
    )
  },
)

type ReportProps = { report: OverviewReport }

/** MRR, and what moved it. */
function OverTime({ history: whole, route }: { history: HistoryReport; route: Route }): VNode {
  const history = sinceTheFirst(whole)
  return html`
    ${h(SelectFilter, {
      id: 'interval',
      label: 'Group by',
      options: INTERVALS.map(({ name }) => [name, words(name)] as const),
      value: history.interval,
      onChange: chosen => go(linkWith(route, { interval: chosen })),
    })}
    <div class="plots">
      <div><h3>MRR</h3>${h(MrrPlot, { history })}</div>
      <div><h3>Movements</h3>${h(MovementPlot, { history, height: 200 })}</div>
    </div>
  `
}

function NothingCounts({ report: { exclusions, currency } }: ReportProps): VNode {
  const excluded =
    exclusions.count > 0 && `, and ${plural(exclusions.count, 'item is', 'items are')} excluded`
  return html`
    <p class="notice">No subscriptions are included in ${currency}${excluded}. Try another currency, or see Excluded.</p>
  `
}

function Cash({ report: { currency, invoiced, collected } }: ReportProps): VNode {
  return h(Tiles, {
    tiles: [
      { label: 'Invoiced', value: money(invoiced.amount, currency), note: plural(invoiced.count, 'invoice') },
      {
        label: 'Collected',
        value: money(collected.amount, currency),
        note: plural(collected.count, 'payment'),
      },
    ],
  })
}

function AttentionCounts({ report: { attention }, scope }: ReportProps & { scope: Scope }): VNode {
  const href = link('attention', scope)
  return h(Tiles, {
    tiles: [
      { label: 'Payment issues', value: number(attention.payment_issues), href },
      { label: 'Renewals', value: number(attention.renewals), href },
      { label: 'Cancellations', value: number(attention.cancellations), href },
      { label: 'Upcoming billing', value: number(attention.upcoming_billing), href },
    ],
  })
}

function accountColumns(scope: Scope): Column<Account>[] {
  return [
    {
      label: 'Account',
      cell: ({ customer, customer_name }) => h(AccountLink, { customer, scope, label: customer_name }),
      kind: 'long',
    },
    { label: 'MRR', cell: ({ mrr }) => money(mrr, scope.currency), kind: 'number' },
    { label: 'State', cell: stateOf },
    {
      label: 'Plans',
      cell: ({ plan_names }) => text(plan_names.join(', ')),
      kind: 'long',
      isMinor: true,
    },
    {
      label: 'Source',
      cell: ({ acquisition_source }) => text(acquisition_source),
      kind: 'long',
      isMinor: true,
    },
    { label: 'Since', cell: ({ customer_since }) => h(Day, { at: customer_since }), isMinor: true },
    { label: 'Next billing', cell: ({ next_billing_at }) => h(Day, { at: next_billing_at }), isMinor: true },
  ]
}

function stateOf({ status, has_payment_issue }: Account): VNode {
  return html`
    ${h(Badge, { text: lowerWords(status), tone: status === 'active' ? 'good' : 'neutral' })}
    ${has_payment_issue && html` ${h(Badge, { text: 'payment issue', tone: 'bad' })}`}
  `
}

function CoverageText({ report: { coverage, exclusions }, scope }: ReportProps & { scope: Scope }): VNode {
  const { subscriptions_seen, subscriptions_included, warnings } = coverage
  return html`
    <p>
      ${number(subscriptions_included)} of ${plural(subscriptions_seen, 'subscription')} are included in MRR${' '}
      (<a href=${link('excluded', scope)}>${plural(exclusions.count, 'exclusion')}</a>). The acquisition source of${' '}
      ${percent(coverage.attribution_rate)} of the accounts is known. Billing events date from${' '}
      ${h(Day, { at: coverage.first_event_at })} to ${h(Day, { at: coverage.last_event_at })}.
    </p>
    ${warnings.length > 0 && html`<ul class="notice">${warnings.map(warning => html`<li>${h(Prose, { text: warning })}</li>`)}</ul>`}
  `
}
