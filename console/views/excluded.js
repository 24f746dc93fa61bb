import { h } from '../dom.js'
import { day, money, text } from '../format.js'
import { badge, emptyState } from '../parts/notices.js'
import { reportTable } from '../parts/table.js'
import { accountLink, askedFor, pageLink, report, reportPage } from './report.js'
import { hasAny } from './subscriptions.js'

/** What does not count, why, and what can be done about it. */
export async function view({ parts, query, signal }) {
  const asked = await askedFor(query, signal)
  const overview = await report('overview', { ...asked, exclusion_page: query.get('exclusion_page') }, signal)
  const content =
    hasAny(overview) &&
    reportTable({
      caption: 'Excluded items',
      columns: columnsOf(asked),
      list: overview.exclusions,
      linkTo: pageLink(parts, query, 'exclusion_page'),
      empty: emptyState({ title: 'Nothing is excluded: every item counts.' }),
    })
  return reportPage('excluded', parts, asked, content || null)
}

function columnsOf(asked) {
  return [
    {
      label: 'Subscription',
      cell: ({ subscription_id, item_id }) => [
        h('code', {}, text(subscription_id)),
        item_id && [' ', h('code', {}, item_id)],
      ],
      long: true,
    },
    {
      label: 'Why, and what to do',
      cell: ({ reason_code, reason, fix_hint }) => [
        badge(reason_code.replaceAll('_', ' ')),
        h('span', { class: 'reason' }, reason),
        h('span', { class: 'reason faint' }, fix_hint),
      ],
    },
    {
      label: 'MRR left out',
      cell: ({ excluded_mrr }) => money(excluded_mrr, asked.currency),
      number: true,
      minor: true,
    },
    { label: 'Account', cell: ({ customer }) => accountLink(customer, asked), minor: true, long: true },
    { label: 'Since', cell: ({ since }) => day(since), minor: true },
  ]
}
