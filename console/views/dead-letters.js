import { admin } from '../api.js'
import { h, say } from '../dom.js'
import { number, plural, text, time } from '../format.js'
import { curlLine } from '../parts/copyable.js'
import { confirmed } from '../parts/dialog.js'
import { action, choice, field } from '../parts/forms.js'
import { badge, emptyState } from '../parts/notices.js'
import { page } from '../parts/page.js'
import { growingTable } from '../parts/table.js'
import { link } from '../routes.js'
import { session } from '../session.js'

const REASONS = [
  ['', 'All reasons'],
  ['rejected', 'Rejected: never valid'],
  ['failed', 'Failed: could not be applied'],
]

export async function view({ query, signal, refresh }) {
  const reason = query.get('reason')
  const filters = { tenant: session.tenant, reason, limit: 50 }
  const first = await admin('/dead-letters', { query: filters, signal })
  const trouble = h('div', { class: 'aside' })
  const replayed = async body => {
    const { replayed: count, remaining } = await admin('/dead-letters/replay', { method: 'POST', body })
    say(`${plural(count, 'dead letter')} replayed, ${number(remaining)} left`)
    await refresh()
  }
  const replayAll = async () => {
    const what = reason ? { reason } : { all: true }
    const text = 'Each one is processed again, with the settings of today. What fails again comes back here.'
    if (await confirmed({ title: 'Replay all of them?', text, yes: 'Replay all' }))
      await replayed({ tenant: session.tenant, ...what })
  }
  const filter = choice('reason', REASONS, reason ?? '')
  filter.addEventListener('change', () => {
    location.hash = link(['dead-letters'], { reason: filter.value })
  })
  return page(
    'Dead letters',
    {
      actions: [
        first.results.length > 0 && action('Replay all', replayAll, { trouble }),
        action('Refresh', refresh, { id: 'refresh' }),
      ],
      lead: 'What was accepted but could not be processed. Nothing is lost: mend the cause, then replay.',
    },
    h('div', { class: 'filter' }, field('Reason', filter)),
    trouble,
    growingTable({
      caption: 'Dead letters',
      columns: columnsOf(id => replayed({ id, tenant: session.tenant }), trouble),
      first,
      load: cursor => admin('/dead-letters', { query: { ...filters, cursor } }),
      empty: emptyState({
        title: 'No dead letters.',
        text: 'That is good. To see one: of this batch the first item is taken, and the second, which lacks its event name, is kept here.',
        curl: curlLine('/v1/batch', { key: '$TRACKING_KEY', body: SAMPLE }),
      }),
    }),
  )
}

const SAMPLE = {
  batch: [
    { type: 'track', event: 'Signed Up', messageId: 'm-1', anonymousId: 'v-1' },
    { type: 'track', messageId: 'm-2', anonymousId: 'v-1' },
  ],
}

function columnsOf(replay, trouble) {
  return [
    {
      label: 'Error',
      cell: ({ id, error }) => h('a', { href: link(['dead-letters', id]) }, error),
      long: true,
    },
    { label: 'Reason', cell: ({ reason }) => badge(reason, 'bad') },
    { label: 'Given up', cell: ({ failed_at }) => time(failed_at) },
    { label: 'Kind', cell: ({ kind }) => kind, minor: true },
    { label: "Sender's id", cell: ({ inbound_event_id }) => text(inbound_event_id), minor: true, long: true },
    { label: 'Attempts', cell: ({ attempts }) => number(attempts), number: true, minor: true },
    { label: 'Replay', cell: ({ id }) => action('Replay', () => replay(id), { trouble, class: 'link' }) },
  ]
}
