import { h } from '../dom.js'
import { day, money, number, percent, plural, text } from '../format.js'
import { changeBars } from '../parts/bars.js'
import { badge, emptyState } from '../parts/notices.js'
import { section, tiles } from '../parts/page.js'
import { reportTable } from '../parts/table.js'
import { link } from '../routes.js'
import { accountLink, askedFor, pageLink, report, reportPage } from './report.js'

export async function view({ parts, query, signal }) {
  const asked = await askedFor(query, signal)
  const overview = await report('overview', { ...asked, page: query.get('page') }, signal)
  return reportPage(
    'subscriptions',
    parts,
    asked,
    hasAny(overview) ? shown(overview, { parts, query, asked }) : null,
  )
}

export function hasAny(overview) {
  return overview !== null && (overview.coverage.subscriptions_seen > 0 || overview.invoiced.count > 0)
}

function shown(overview, { parts, query, asked }) {
  const { currency, coverage, exclusions } = overview
  return [
    headline(overview),
    coverage.subscriptions_included === 0 && otherCurrency(exclusions, currency),
    section('Last 30 days', movements(overview), cash(overview)),
    section('Needs attention', attention(overview, asked)),
    section('Accounts', [
      reportTable({
        caption: 'Accounts',
        columns: accountColumns(asked),
        list: overview.accounts,
        linkTo: pageLink(parts, query, 'page'),
        empty: emptyState({ title: `No account has a subscription in ${currency}.` }),
      }),
    ]),
    section('How complete is this?', coverageText(coverage, exclusions, asked)),
  ]
}

export function headline({ currency, mrr, arr, arpa, committed_mrr, active_subscriptions, active_accounts }) {
  return tiles([
    {
      label: 'MRR',
      value: money(mrr, currency),
      note: `${money(committed_mrr, currency)} committed`,
    },
    { label: 'ARR', value: money(arr, currency) },
    { label: 'ARPA', value: money(arpa, currency), note: 'per paying account' },
    {
      label: 'Active',
      value: number(active_subscriptions),
      note: `${active_subscriptions === 1 ? 'subscription' : 'subscriptions'} of ${plural(active_accounts, 'account')}`,
    },
  ])
}

export function movements({ currency, movements: moved }) {
  const { opening_mrr, closing_mrr, net, window_days } = moved
  const rows = [
    { label: 'New', amount: moved.new, note: "An account's first rise above 0" },
    { label: 'Expansion', amount: moved.expansion, note: 'A rise from above 0' },
    { label: 'Reactivation', amount: moved.reactivation, note: 'A later rise from 0' },
    { label: 'Contraction', amount: -moved.contraction, note: 'A fall to above 0' },
    { label: 'Churn', amount: -moved.churn, note: 'Any fall to 0' },
  ]
  const direction = net < 0 ? 'down' : 'up'
  return h('div', {}, [
    h('p', {}, [
      `MRR went from ${money(opening_mrr, currency)} to `,
      h('strong', {}, money(closing_mrr, currency)),
      net === 0 ? ': no change in sum.' : `: ${direction} ${money(Math.abs(net), currency)}.`,
    ]),
    changeBars({ caption: `Movements of MRR in ${window_days} days`, rows, currency }),
  ])
}

function cash({ currency, invoiced, collected }) {
  return tiles([
    { label: 'Invoiced', value: money(invoiced.amount, currency), note: plural(invoiced.count, 'invoice') },
    {
      label: 'Collected',
      value: money(collected.amount, currency),
      note: plural(collected.count, 'paid invoice'),
    },
  ])
}

function attention({ attention: counts }, asked) {
  const href = link(['subscriptions', 'attention'], asked)
  return tiles([
    { label: 'Payment issues', value: number(counts.payment_issues), href },
    { label: 'Renewals', value: number(counts.renewals), href },
    { label: 'Cancellations', value: number(counts.cancellations), href },
    { label: 'Upcoming billing', value: number(counts.upcoming_billing), href },
  ])
}

function accountColumns(asked) {
  return [
    {
      label: 'Account',
      cell: ({ customer, customer_name }) => accountLink(customer, asked, customer_name ?? customer),
      long: true,
    },
    { label: 'MRR', cell: ({ mrr }) => money(mrr, asked.currency), number: true },
    {
      label: 'State',
      cell: ({ status, has_payment_issue }) => [
        badge(text(status).replace('_', ' '), status === 'active' ? 'good' : ''),
        has_payment_issue && [' ', badge('payment issue', 'bad')],
      ],
    },
    {
      label: 'Plans',
      cell: ({ plan_names }) => text((plan_names ?? []).join(', ')),
      minor: true,
      long: true,
    },
    { label: 'Source', cell: ({ acquisition_source }) => text(acquisition_source), minor: true, long: true },
    { label: 'Since', cell: ({ customer_since }) => day(customer_since), minor: true },
    { label: 'Next billing', cell: ({ next_billing_at }) => day(next_billing_at), minor: true },
  ]
}

function otherCurrency({ count }, currency) {
  return h('p', { class: 'notice' }, [
    `Nothing counts in ${currency}`,
    count > 0 && `, but ${plural(count, 'item is', 'items are')} excluded`,
    ': try another currency above, or see Excluded.',
  ])
}

function coverageText(coverage, exclusions, asked) {
  const {
    subscriptions_seen,
    subscriptions_included,
    attribution_rate,
    first_event_at,
    last_event_at,
    warnings,
  } = coverage
  return [
    h('p', {}, [
      `${number(subscriptions_included)} of ${plural(subscriptions_seen, 'subscription')} count. `,
      h('a', { href: link(['subscriptions', 'excluded'], asked) }, plural(exclusions.count, 'exclusion')),
      `. The source of ${percent(attribution_rate)} of the accounts is known. Billing events from `,
      day(first_event_at),
      ' to ',
      day(last_event_at),
      '.',
    ]),
    (warnings ?? []).length > 0 &&
      h(
        'ul',
        { class: 'notice' },
        warnings.map(warning => h('li', {}, warningText(warning))),
      ),
  ]
}

function warningText(warning) {
  return typeof warning === 'string' ? warning : (warning.message ?? JSON.stringify(warning))
}
