import { h } from '../dom.js'
import { money, number, percent, words } from '../format.js'
import { shareBar } from '../parts/bars.js'
import { choice, field } from '../parts/forms.js'
import { emptyState } from '../parts/notices.js'
import { reportTable } from '../parts/table.js'
import { link } from '../routes.js'
import { askedFor, pageLink, report, reportPage } from './report.js'

const HORIZONS = ['30', '60', '90'].map(days => [days, `${days} days ago`])

/** Where today's MRR came from, and what of it has stayed. */
export async function view({ parts, query, signal }) {
  const asked = await askedFor(query, signal)
  const horizon = query.get('horizon') ?? '30'
  const found = await report('acquisition', { ...asked, horizon, page: query.get('page') }, signal)
  return reportPage('acquisition', parts, asked, found && shown(found, { parts, query, asked, horizon }))
}

function shown(found, { parts, query, asked, horizon }) {
  const since = choice('horizon', HORIZONS, horizon)
  since.addEventListener('change', () => {
    location.hash = link(parts, { ...asked, horizon: since.value })
  })
  return [
    h('div', { class: 'filter' }, field('Retained since', since)),
    h(
      'p',
      {},
      'The sources below add up to an MRR of ',
      h('strong', {}, money(found.mrr, asked.currency)),
      '.',
    ),
    reportTable({
      caption: 'Acquisition sources',
      columns: columnsOf(asked),
      list: found.sources,
      linkTo: pageLink(parts, query, 'page'),
      empty: emptyState({ title: `No MRR in ${asked.currency} yet.` }),
    }),
  ]
}

function columnsOf({ currency }) {
  return [
    {
      label: 'Source',
      cell: ({ source, medium, campaign }) => [
        source,
        (medium || campaign) &&
          h('span', { class: 'reason faint' }, [medium, campaign].filter(Boolean).join(' / ')),
      ],
      long: true,
    },
    { label: 'MRR', cell: ({ mrr }) => money(mrr, currency), number: true },
    { label: 'Share', cell: ({ mrr_share }) => [percent(mrr_share), ' ', shareBar(mrr_share)], number: true },
    { label: 'Accounts', cell: ({ accounts }) => number(accounts), number: true, minor: true },
    { label: 'ARPA', cell: ({ arpa }) => money(arpa, currency), number: true, minor: true },
    { label: 'Retained', cell: row => retained(row, currency), number: true, minor: true },
  ]
}

function retained({ retention_status, retained_mrr, retention_rate }, currency) {
  if (retention_status !== 'available') return h('span', { class: 'faint' }, words(retention_status))
  return [money(retained_mrr, currency), ' ', h('span', { class: 'faint' }, percent(retention_rate))]
}
