import type { VNode } from 'preact'
import { type Amount, isZero, toNumber } from '../../amount.ts'
import { customers, reports } from '../../api/data.ts'
import { nullOn } from '../../api/request.ts'
import type {
  Account,
  BreakdownReport,
  BreakdownRow,
  Customer,
  List,
  OverviewReport,
  RateName,
} from '../../api/types.ts'
import { ShareBar } from '../../components/bars.ts'
import { Form, SelectField, SelectFilter, TextField } from '../../components/form.ts'
import { Badge, EmptyState } from '../../components/notice.ts'
import { Section, Tiles } from '../../components/page.ts'
import { type Column, GrowingTable, PagedTable, Table } from '../../components/table.ts'
import { Breakable, Prose } from '../../components/text.ts'
import { Day } from '../../components/time.ts'
import { day, lowerWords, money, NONE, number, percent, plural, text, words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { levelTime } from '../../period.ts'
import { link, linkWith, type Query, type Route } from '../../router.ts'
import { currency, isReporting } from '../../view.ts'
import { amountsText, channelName, customerLink, StatusBadge } from '../customers.ts'
import { readFrame, readMrr } from '../figures.ts'
import {
  countPaymentIssues,
  Headline,
  MovementPlot,
  MovementSummary,
  MrrPlot,
  type PaymentIssueCounts,
} from './figures.ts'
import {
  AccountLink,
  hasSubscriptions,
  NoSubscriptions,
  pageLink,
  ReportPage,
  readScope,
  reportCsv,
  windowOf,
} from './report-page.ts'
export const subscriptionsPage = definePage(
  'subscriptions',
  async ({ route, signal }) => {
    const scope = readScope()
    const frame = readFrame()
    const { currency: asked } = scope
    const { period, comparison } = frame
    const [report, before, moved, movedBefore, history, breakdown, issues, found] = await Promise.all([
      nullOn(404, reports.overview({ ...scope, page: route.query.get('page') }, signal)),
      comparison &&
        nullOn(
          404,
          reports.overview(
            { currency: asked, as_of: levelTime(period, comparison).toISOString(), page_size: 1 },
            signal,
          ),
        ),
      nullOn(404, reports.movements({ ...scope, ...windowOf(period), page_size: 1 }, signal)),
      comparison && nullOn(404, reports.movements({ currency: asked, ...windowOf(comparison), page_size: 1 }, signal)),
      nullOn(404, readMrr(frame, signal)),
      nullOn(404, reports.breakdown({ ...scope, by: readDimension(route.query) }, signal)),
      nullOn(404, countPaymentIssues(scope, signal)),
      isSearched(route) ? customers.list(accountQuery(route), signal) : null,
    ])
    return { scope, frame, report, before, moved, movedBefore, history, breakdown, issues, found }
  },
  ({ data: { scope, frame, report, before, moved, movedBefore, history, breakdown, issues, found }, route }) => {
    if (!hasSubscriptions(report)) return h(ReportPage, { name: 'subscriptions' }, h(NoSubscriptions, {}))
    const { period, comparison } = frame
    return h(
      ReportPage,
      { name: 'subscriptions' },
      h(Headline, { report, before }),
      (report.older_rates?.length ?? 0) > 0 &&
        html`<p class="faint">The newest exchange rate of ${report.older_rates!.join(', ')} is older than today. <a href=${link('settings')}>Import rates</a></p>`,
      report.coverage.subscriptions_included === 0 && h(NoneIncluded, { report }),
      history &&
        html`<div class="plots">
          ${h(Section, { title: 'MRR' }, h(MrrPlot, { history, comparison }))}
          ${h(Section, { title: 'Movements' }, h(MovementPlot, { history, comparison }))}
        </div>`,
      moved &&
        h(
          Section,
          { title: 'Net new MRR' },
          h(MovementSummary, {
            ...{ totals: moved.totals, before: movedBefore?.totals ?? null, currency: moved.currency },
            ...{ period, comparison },
          }),
          html`<p class="further"><a href=${link('movements')}>Movements by account</a></p>`,
        ),
      h(Section, { title: 'Needs attention' }, h(AttentionCounts, { report, issues })),
      html`<div class="plots">
        ${breakdown && h(Section, { title: 'MRR breakdown' }, h(Breakdown, { report: breakdown, route }))}
        ${h(Section, { title: `Cash and rates, 30 days to ${day(frame.period.to)}` }, WINDOW_NOTE, h(Cash, { report }), h(RatesTable, { report }))}
      </div>`,
      h(
        Section,
        { title: 'Accounts' },
        h(AccountFilter, { route }),
        found
          ? h(FoundAccounts, { found, query: accountQuery(route) })
          : h(PagedTable<Account>, {
              caption: 'Accounts',
              columns: ACCOUNT_COLUMNS,
              list: report.accounts,
              counted: `${plural(report.accounts.count, 'account')}, ${number(report.active_accounts)} paying`,
              csv: reportCsv('overview', 'accounts', scope),
              linkTo: pageLink(route, 'page'),
              empty: h(EmptyState, { title: `No account has a subscription in ${currency.value}.` }),
            }),
      ),
      h(Section, { title: 'Data coverage' }, h(CoverageText, { report })),
    )
  },
)

const ORDERS = [
  ['', 'MRR'],
  ['name', 'Name'],
  ['first_seen_at', 'Newest'],
  ['last_seen_at', 'Last seen'],
] as const

const isSearched = ({ query }: Route) => query.has('q') || query.has('sort')

/** Paying accounts by name, or in another order than by MRR. */
function accountQuery({ query }: Route): Query {
  // An order by MRR lists only people with an amount in one currency.
  const sort = query.get('sort') ?? (isReporting.peek() ? 'name' : 'mrr')
  return {
    q: query.get('q'),
    sort,
    segment: query.has('q') ? null : 'active',
    currency: sort === 'mrr' ? currency.peek() : null,
  }
}

function AccountFilter({ route }: { route: Route }): VNode {
  const { query } = route
  return h(
    Form<'account' | 'account_sort'>,
    {
      ...{ key: query.toString(), submit: 'Find', layout: 'filter' },
      aside: isSearched(route) && html`<a href=${linkWith(route, { q: null, sort: null })}>Clear</a>`,
      run: ({ account, account_sort: sort }) =>
        go(linkWith(route, { q: account.trim() || null, sort: sort || null, page: null })),
    },
    h(TextField, {
      ...{ id: 'account', label: 'Account', value: query.get('q') ?? '', size: 26 },
      placeholder: 'Name, company or e-mail address',
    }),
    h(SelectField, {
      ...{ id: 'account_sort', label: 'Sort by', options: ORDERS, value: query.get('sort') ?? '' },
      onChange: sort => go(linkWith(route, { sort: sort || null, page: null })),
    }),
  )
}

function FoundAccounts({ found, query }: { found: List<Customer>; query: Query }): VNode {
  const columns: Column<Customer>[] = [
    {
      label: 'Account',
      cell: row => {
        const label = row.name ?? row.company ?? row.email ?? row.customer ?? row.profile_id
        return row.customer === null ? customerLink(row, label) : h(AccountLink, { customer: row.customer, label })
      },
      kind: 'long',
    },
    { label: 'MRR', cell: ({ mrr }) => amountsText(mrr, currency.value), kind: 'number' },
    { label: 'Status', cell: ({ status }) => h(StatusBadge, { status }) },
    { label: 'Plans', cell: ({ plans }) => text(plans?.join(' · ')), kind: 'long' },
    { label: 'Channel', cell: ({ channel }) => channelName(channel) },
    { label: 'Since', cell: ({ customer_since }) => h(Day, { at: customer_since }) },
  ]
  return h(GrowingTable<Customer>, {
    ...{ caption: 'Accounts', columns, first: found, rowKey: ({ profile_id }) => profile_id },
    csv: { export: 'customers', query, name: 'accounts' },
    load: cursor => customers.list({ ...query, cursor }),
    empty: h(EmptyState, {
      title: 'No accounts match.',
      text: 'Enter the beginning of a name, company or e-mail address.',
    }),
  })
}

type ReportProps = { report: OverviewReport }

function NoneIncluded({ report: { exclusions, currency } }: ReportProps): VNode {
  const excluded = exclusions.count > 0 && `, and ${plural(exclusions.count, 'item is', 'items are')} excluded`
  return html`
    <p class="notice">No subscriptions are included in ${currency}${excluded}. Try another currency, or see <a href=${link('excluded')}>Excluded from MRR</a>.</p>
  `
}

function Cash({ report: { currency, invoiced, collected } }: ReportProps): VNode {
  return h(Tiles, {
    tiles: [
      {
        label: 'Invoiced, including tax',
        value: money(invoiced.amount, currency),
        note: plural(invoiced.count, 'invoice'),
      },
      {
        label: 'Collected, including tax',
        value: money(collected.amount, currency),
        note: plural(collected.count, 'payment'),
      },
    ],
  })
}

function AttentionCounts({
  report: { attention },
  issues,
}: ReportProps & { issues: PaymentIssueCounts | null }): VNode {
  const href = link('attention')
  const isCounted = issues !== null && !issues.isMore
  const writtenOff = isCounted && issues.writtenOff > 0 && `plus ${plural(issues.writtenOff, 'written-off invoice')}`
  return h(Tiles, {
    tiles: [
      {
        label: 'Payment issues',
        value: number(isCounted ? issues.open : attention.payment_issues),
        note: isCounted ? writtenOff || 'failed or overdue payments' : 'including written-off invoices',
        href,
      },
      { label: 'Renewals', value: number(attention.renewals), note: 'billing periods longer than a month', href },
      { label: 'Cancellations', value: number(attention.cancellations), note: 'in the next 30 days', href },
      {
        label: 'Upcoming billing',
        value: number(attention.upcoming_billing),
        note: 'charges in the next 30 days',
        href,
      },
    ],
  })
}

const ACCOUNT_COLUMNS: Column<Account>[] = [
  {
    label: 'Account',
    cell: ({ customer, customer_name }) => h(AccountLink, { customer, label: customer_name }),
    kind: 'long',
  },
  { label: 'MRR', cell: ({ mrr }) => money(mrr, currency.value), kind: 'number' },
  { label: 'Status', cell: stateCell },
  { label: 'Plans', cell: ({ plan_names }) => text(plan_names.join(' · ')), kind: 'long' },
  { label: 'Source', cell: ({ acquisition_source: source }) => h(Breakable, { text: text(source) }), kind: 'long' },
  { label: 'Since', cell: ({ customer_since }) => h(Day, { at: customer_since }) },
  { label: 'Next billing', cell: ({ next_billing_at }) => h(Day, { at: next_billing_at }) },
]

function stateCell({ status, has_payment_issue }: Account): VNode {
  return html`
    ${h(Badge, { text: lowerWords(status), tone: status === 'active' ? 'good' : 'neutral' })}
    ${has_payment_issue && html` ${h(Badge, { text: 'payment issue', tone: 'bad' })}`}
  `
}

function CoverageText({ report: { coverage, exclusions } }: ReportProps): VNode {
  const { subscriptions_seen, subscriptions_included, warnings } = coverage
  return html`
    <p>
      ${number(subscriptions_included)} of ${plural(subscriptions_seen, 'subscription')} are included in MRR.${' '}
      ${exclusions.count > 0 && html`${plural(exclusions.count, 'subscription item is', 'subscription items are')} excluded: <a href=${link('excluded')}>see why</a>. `}The acquisition source of${' '}
      ${percent(coverage.attribution_rate)} of the accounts is known. Billing events date from${' '}
      ${h(Day, { at: coverage.first_event_at })} to ${h(Day, { at: coverage.last_event_at })}.
    </p>
    ${warnings.length > 0 && html`<ul class="notice">${warnings.map(warning => html`<li>${h(Prose, { text: warning })}</li>`)}</ul>`}
  `
}

const DIMENSIONS = ['plan', 'interval', 'source', 'country'] as const
type Dimension = (typeof DIMENSIONS)[number]

function readDimension(query: URLSearchParams): Dimension {
  return DIMENSIONS.find(name => name === query.get('by')) ?? 'plan'
}

/** MRR by a dimension. The rows add up to MRR. */
function Breakdown({ report, route }: { report: BreakdownReport; route: Route }): VNode {
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
              { label: 'Accounts', cell: row => number(row.accounts), kind: 'number' },
            ],
            rows: results,
            csv: reportCsv('breakdown', null, { by, ...readScope() }),
            rowKey: row => String(row[by]),
          })
    }
  `
}

type Rate = { name: RateName; label: string; value: string; formula: string }

const RATES: Record<RateName, { label: string; formula: string }> = {
  customer_churn_rate: {
    label: 'Customer churn',
    formula: 'Accounts with MRR at the start of the period and none at the end ÷ accounts with MRR at the start',
  },
  gross_mrr_churn_rate: { label: 'Gross MRR churn', formula: '(Contraction + churn) ÷ starting MRR' },
  net_mrr_churn_rate: {
    label: 'Net MRR churn',
    formula: '(Contraction + churn − expansion − reactivation) ÷ starting MRR',
  },
  gross_revenue_retention: {
    label: 'Gross revenue retention',
    formula: 'For accounts with MRR at the start: sum of the smaller of current and starting MRR ÷ sum of starting MRR',
  },
  net_revenue_retention: {
    label: 'Net revenue retention',
    formula: 'Current MRR of accounts that had MRR at the start ÷ starting MRR',
  },
  quick_ratio: { label: 'Quick ratio', formula: '(New + expansion + reactivation) ÷ (contraction + churn)' },
  ltv: { label: 'Lifetime value', formula: 'ARPA ÷ customer churn' },
}

const COLUMNS: Column<Rate>[] = [
  { label: 'Rate', cell: ({ label }) => html`<span class="whole">${label}</span>` },
  { label: 'Value', cell: ({ value }) => value, kind: 'number' },
  {
    label: 'Formula',
    cell: ({ formula }) => html`<span class="faint">${formula}</span>`,
    kind: 'long',
  },
]

/** Churn and retention rates with their formulas. */
function RatesTable({ report: { rates, currency } }: { report: OverviewReport }): VNode {
  const names = Object.keys(RATES) as RateName[]
  return h(Table<Rate>, {
    caption: 'Rates',
    columns: COLUMNS,
    csv: {
      rows: names.map(name => ({ name, value: rates[name], formula: RATES[name].formula })),
      name: 'rates',
    },
    rows: names.map(name => ({
      name,
      ...RATES[name],
      value: formatRate(name, rates[name], currency),
    })),
    rowKey: ({ name }) => name,
  })
}

function formatRate(name: RateName, value: Amount | null, currency: string): string {
  if (value === null) return NONE
  if (name === 'ltv') return money(value, currency)
  return name === 'quick_ratio' ? number(Math.round(Number(value) * 100) / 100) : percent(value)
}

const WINDOW_NOTE = html`<p class="faint">These figures always cover 30 × 24 hours. The movements above cover the selected period in whole days, so they may differ.</p>`
