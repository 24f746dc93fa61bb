import { h } from '../dom.js'
import { day, money, number, signedMoney, text, time, words } from '../format.js'
import { badge, emptyState } from '../parts/notices.js'
import { facts, page, section, tiles } from '../parts/page.js'
import { reportTable } from '../parts/table.js'
import { link } from '../routes.js'
import { askedFor, pageLink, report } from './report.js'

/** One account: what it pays for, and how that came about. */
export async function view({ parts, query, signal }) {
  const asked = await askedFor(query, signal)
  const names = ['customer', 'subscription_id', 'page', 'timeline_page']
  const wanted = Object.fromEntries(names.map(name => [name, query.get(name)]))
  const account = await report('account', { ...asked, ...wanted }, signal)
  const back = h('p', {}, h('a', { href: link(['subscriptions'], asked) }, 'All accounts'))
  if (!account) {
    const name = wanted.customer ?? wanted.subscription_id ?? ''
    return page(
      name,
      {},
      emptyState({ title: `There is no account ${name} in ${asked.currency}.`, action: back }),
    )
  }
  const { summary, currency } = account
  const list = (name, columns, pageName, caption) =>
    reportTable({
      caption,
      columns,
      list: account[name],
      linkTo: pageLink(parts, query, pageName),
      empty: h('p', { class: 'faint' }, 'Nothing here.'),
    })
  return page(
    summary.customer_name ?? summary.customer,
    {},
    tiles([
      {
        label: 'MRR',
        value: money(summary.mrr, currency),
        note: `${money(summary.committed_mrr, currency)} committed`,
      },
      { label: 'ARR', value: money(summary.arr, currency) },
      {
        label: 'Subscriptions',
        value: number(summary.active_subscriptions),
        note: `of ${number(summary.subscriptions)} ever`,
      },
    ]),
    facts([
      ['Customer', h('code', {}, summary.customer)],
      ['E-mail', text(summary.customer_email)],
      [
        'State',
        [
          badge(text(summary.status).replace('_', ' ')),
          summary.has_payment_issue && [' ', badge('payment issue', 'bad')],
        ],
      ],
      ['Customer since', day(summary.customer_since)],
      ['Next billing', day(summary.next_billing_at)],
      ['Acquired through', text(summary.acquisition_source)],
    ]),
    section('Items', list('items', itemColumns(currency), 'page', 'Items')),
    section('Timeline', list('timeline', timelineColumns(currency), 'timeline_page', 'Timeline')),
    back,
  )
}

function itemColumns(currency) {
  return [
    {
      label: 'Plan',
      cell: ({ plan_name, price_id, item_id }) => text(plan_name ?? price_id ?? item_id),
      long: true,
    },
    { label: 'MRR', cell: ({ mrr }) => money(mrr, currency), number: true },
    {
      label: 'Counts',
      cell: ({ included, exclusion_reason }) =>
        included ? badge('yes', 'good') : [badge('no'), ` ${text(exclusion_reason).replaceAll('_', ' ')}`],
    },
    { label: 'Price', cell: priceOf(currency), number: true, minor: true },
    {
      label: 'Discount',
      cell: ({ discount_mrr }) => money(discount_mrr, currency),
      number: true,
      minor: true,
    },
    {
      label: 'Subscription',
      cell: ({ subscription_id }) => h('code', {}, subscription_id),
      minor: true,
      long: true,
    },
    { label: 'Paid until', cell: ({ current_period_end }) => day(current_period_end), minor: true },
  ]
}

function priceOf(reported) {
  return ({ quantity, unit_amount, currency = reported, interval, interval_count }) => {
    const term = interval_count > 1 ? `${interval_count} ${interval}s` : interval
    const times = quantity === null || quantity === undefined ? '' : `${number(quantity)} × `
    return `${times}${money(unit_amount, currency)}${interval ? ` / ${term}` : ''}`
  }
}

function timelineColumns(currency) {
  return [
    { label: 'When', cell: ({ occurred_at }) => time(occurred_at) },
    {
      label: 'What',
      cell: ({ description, event_type, movement_type, event_id: id }) => [
        id ? h('a', { href: link(['events', id]) }, description) : text(description ?? event_type),
        movement_type && [
          ' ',
          badge(words(movement_type), ['churn', 'contraction'].includes(movement_type) ? 'bad' : 'good'),
        ],
      ],
      long: true,
    },
    {
      label: 'Amount',
      cell: ({ mrr_delta, amount }) =>
        mrr_delta !== null && mrr_delta !== undefined
          ? `${signedMoney(mrr_delta, currency)} MRR`
          : money(amount, currency),
      number: true,
    },
    { label: 'Kind', cell: ({ category }) => text(category), minor: true },
    { label: 'Subscription', cell: ({ subscription_id }) => text(subscription_id), minor: true, long: true },
  ]
}
