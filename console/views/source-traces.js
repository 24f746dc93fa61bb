import { admin } from '../api.js'
import { h } from '../dom.js'
import { number, text, time } from '../format.js'
import { showDialog } from '../parts/dialog.js'
import { choice, field } from '../parts/forms.js'
import { badge, emptyState, problemBox } from '../parts/notices.js'
import { json } from '../parts/page.js'
import { growingTable } from '../parts/table.js'
import { link } from '../routes.js'
import { webhookLine } from './samples.js'

const OUTCOMES = [
  ['', 'All outcomes'],
  ['processed', 'Processed'],
  ['duplicate', 'Duplicate'],
  ['dropped', 'Dropped'],
  ['dead_letter', 'Dead letter'],
]

/** What became of what a source brought. */
export function receiptTable(source, first, outcome) {
  const filter = choice('outcome', OUTCOMES, outcome ?? '')
  filter.addEventListener('change', () => {
    location.hash = link(['sources', source.id], { outcome: filter.value })
  })
  return [
    h('div', { class: 'filter' }, field('Outcome', filter)),
    growingTable({
      caption: 'Receipts',
      columns: receiptColumns,
      first,
      load: cursor => admin('/receipts', { query: { source: source.id, outcome, limit: 20, cursor } }),
      empty: outcome
        ? emptyState({ title: 'No receipt has this outcome.' })
        : emptyState({
            title: 'Nothing has come in yet.',
            text: 'Send a test event above, or post one:',
            curl: webhookLine(source.path),
          }),
    }),
  ]
}

const receiptColumns = [
  {
    label: 'Type',
    cell: ({ id, event_type }) => h('a', { href: link(['events', id]) }, event_type ?? id),
    long: true,
  },
  {
    label: 'Outcome',
    cell: ({ outcome, detail }) => [
      badge(outcome.replace('_', ' '), toneOf(outcome)),
      detail && ` ${detail}`,
    ],
  },
  { label: 'Received', cell: ({ received_at }) => time(received_at) },
  { label: "Sender's id", cell: ({ inbound_event_id }) => text(inbound_event_id), minor: true, long: true },
  {
    label: 'Archive',
    cell: ({ id, outcome }) => outcome === 'processed' && archiveButton(id),
    minor: true,
  },
]

function archiveButton(id) {
  const show = async () => {
    try {
      showDialog('Archived result', json(await admin(`/archive/${id}`), 'Archived result'))
    } catch (error) {
      showDialog('Archived result', problemBox(error))
    }
  }
  return h('button', { type: 'button', class: 'link', onclick: show }, 'Show')
}

/** Requests that were turned away: why a sender's events do not arrive. */
export function rejectionTable(source, first) {
  return growingTable({
    caption: 'Refused requests',
    columns: rejectionColumns,
    first,
    load: cursor => admin('/rejections', { query: { source: source.id, limit: 20, cursor } }),
    empty: h('p', { class: 'faint' }, 'No request has been refused.'),
  })
}

const rejectionColumns = [
  { label: 'When', cell: ({ rejected_at }) => time(rejected_at) },
  { label: 'Why', cell: ({ status, code, detail }) => [badge(`${status} ${code}`, 'bad'), ' ', detail] },
  {
    label: 'From',
    cell: ({ ip, user_agent }) => text([ip, user_agent].filter(Boolean).join(', ')),
    minor: true,
    long: true,
  },
  { label: 'Bytes', cell: ({ bytes }) => number(bytes), number: true, minor: true },
  {
    label: 'And more',
    cell: ({ suppressed }) => (suppressed > 0 ? number(suppressed) : ''),
    number: true,
    minor: true,
  },
]

function toneOf(outcome) {
  return { processed: 'good', dropped: 'bad', dead_letter: 'bad' }[outcome] ?? ''
}
