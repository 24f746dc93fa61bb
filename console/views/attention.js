import { h } from '../dom.js'
import { day, money, number, plural, text, words } from '../format.js'
import { choice, field } from '../parts/forms.js'
import { badge } from '../parts/notices.js'
import { section } from '../parts/page.js'
import { reportTable } from '../parts/table.js'
import { link } from '../routes.js'
import { accountLink, askedFor, pageLink, report, reportPage } from './report.js'

const PAGES = ['issue_page', 'renewal_page', 'cancel_page', 'billing_page']
const WINDOWS = ['30', '60', '90'].map(days => [days, `${days} days`])

export async function view({ parts, query, signal }) {
  const asked = await askedFor(query, signal)
  const days = query.get('days') ?? '30'
  const pages = Object.fromEntries(PAGES.map(name => [name, query.get(name)]))
  const found = await report('attention', { ...asked, days, ...pages }, signal)
  return reportPage('attention', parts, asked, found && shown(found, { parts, query, asked, days }))
}

function shown(found, { parts, query, asked, days }) {
  const window = choice('days', WINDOWS, days)
  window.addEventListener('change', () => {
    location.hash = link(parts, { ...asked, days: window.value })
  })
  const amount = value => money(value, asked.currency)
  const columns = columnsOf(asked, amount)
  const list = (title, name, pageName, empty) =>
    section(
      `${title} (${number(found[name].count)})`,
      reportTable({
        caption: title,
        columns: columns[name],
        list: found[name],
        linkTo: pageLink(parts, query, pageName),
        empty: h('p', { class: 'faint' }, empty),
      }),
    )
  return [
    h('div', { class: 'filter' }, field('Look ahead', window)),
    list('Payment issues', 'payment_issues', 'issue_page', 'No payment is overdue or failing.'),
    list('Cancellations', 'cancellations', 'cancel_page', `Nobody leaves within ${days} days.`),
    list('Renewals', 'renewals', 'renewal_page', `No term longer than a month ends within ${days} days.`),
    list(
      'Upcoming billing',
      'upcoming_billing',
      'billing_page',
      `No charge is expected within ${days} days.`,
    ),
  ]
}

function columnsOf(asked, amount) {
  const account = { label: 'Account', cell: ({ customer }) => accountLink(customer, asked), long: true }
  const subscription = {
    label: 'Subscription',
    cell: ({ subscription_id }) => h('code', {}, text(subscription_id)),
    minor: true,
    long: true,
  }
  const inDays = ({ days_until }) => (days_until === 0 ? 'today' : `in ${plural(days_until, 'day')}`)
  return {
    payment_issues: [
      account,
      { label: 'Issue', cell: issueOf },
      { label: 'Open', cell: row => amount(row.amount_remaining ?? row.amount_due), number: true },
      { label: 'MRR at risk', cell: row => amount(row.mrr_at_risk), number: true, minor: true },
      { label: 'Invoice', cell: row => text(row.invoice_number ?? row.invoice_id), minor: true, long: true },
      { label: 'Due', cell: row => day(row.due_at), minor: true },
      { label: 'Next attempt', cell: row => day(row.next_payment_attempt_at), minor: true },
    ],
    cancellations: [
      account,
      { label: 'Ends', cell: row => [day(row.cancels_at), ' ', h('span', { class: 'faint' }, inDays(row))] },
      { label: 'MRR at risk', cell: row => amount(row.mrr_at_risk), number: true },
      { label: 'Reason', cell: row => text(row.reason), minor: true, long: true },
      subscription,
    ],
    renewals: [
      account,
      { label: 'Renews', cell: row => [day(row.renews_at), ' ', h('span', { class: 'faint' }, inDays(row))] },
      { label: 'Amount', cell: row => amount(row.renewal_amount), number: true },
      { label: 'Term', cell: row => plural(row.interval_count, row.interval), minor: true },
      { label: 'MRR', cell: row => amount(row.mrr), number: true, minor: true },
      subscription,
    ],
    upcoming_billing: [
      account,
      { label: 'Bills', cell: row => [day(row.bills_at), ' ', h('span', { class: 'faint' }, inDays(row))] },
      {
        label: 'Estimate',
        cell: row => [amount(row.estimated_amount), row.includes_metered && ' + usage'],
        number: true,
      },
      { label: 'Note', cell: row => (row.is_trial_conversion ? 'end of trial' : ''), minor: true },
      { label: 'Collected by', cell: row => text(row.collection_method).replaceAll('_', ' '), minor: true },
      subscription,
    ],
  }
}

function issueOf({ issue_type, failure_message, days_overdue, attempt_count }) {
  const more = [
    failure_message?.replace(/\.$/, ''),
    days_overdue > 0 && `${plural(days_overdue, 'day')} overdue`,
    attempt_count > 0 && plural(attempt_count, 'attempt'),
  ].filter(Boolean)
  return [
    badge(words(issue_type), 'bad'),
    more.length > 0 && h('span', { class: 'reason faint' }, more.join(' · ')),
  ]
}
