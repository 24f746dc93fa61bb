import { data } from '../api.js'
import { h } from '../dom.js'
import { text, time } from '../format.js'
import { action, field, form } from '../parts/forms.js'
import { emptyState } from '../parts/notices.js'
import { page, section } from '../parts/page.js'
import { growingTable } from '../parts/table.js'
import { link } from '../routes.js'
import { trackLine, whereKeysAre } from './samples.js'
import { filtersOf, timeFilter } from './time-filter.js'

export async function view({ query, signal, refresh }) {
  const filters = filtersOf(query)
  const first = await data('/events', { query: filters, signal })
  return page(
    'Events',
    {
      actions: [action('Refresh', refresh, { id: 'refresh' })],
      lead: 'Everything that happened and is not a conversion, newest first.',
    },
    timeFilter('events', query),
    growingTable({
      caption: 'Events',
      columns: eventColumns,
      first,
      load: cursor => data('/events', { query: { ...filters, cursor } }),
      empty: query.size > 0 ? nothingFits('events') : noEvents(),
    }),
    section(
      'What happened to an event?',
      h(
        'p',
        {},
        'By its id here, or by the id that its sender gave it (event_id, messageId, inbound_event_id).',
      ),
      lookupForm(),
    ),
  )
}

export const eventColumns = [
  {
    label: 'Type',
    cell: ({ id, event_type }) => h('a', { href: link(['events', id]) }, event_type),
    long: true,
  },
  { label: 'When', cell: ({ occurred_at }) => time(occurred_at) },
  { label: 'From', cell: ({ source_type }) => source_type, minor: true },
  { label: 'Visitor', cell: ({ visitor }) => text(visitor), minor: true, long: true },
  {
    label: 'Contact',
    cell: ({ contact_id, profile_id }) => text(contact_id ?? profile_id),
    minor: true,
    long: true,
  },
]

export function noEvents() {
  return emptyState({
    title: 'No events yet.',
    text: 'Send the first one; it is here a moment later.',
    curl: trackLine(),
    action: whereKeysAre('tracking'),
  })
}

export function nothingFits(section) {
  return emptyState({
    title: 'Nothing fits these filters.',
    action: h('a', { href: link([section]) }, 'Clear them'),
  })
}

export function lookupForm(id = '', source = '') {
  return form(
    {
      submit: 'Look up',
      class: 'filter',
      run: values => {
        location.hash = link(['events', 'lookup'], { id: values.event.trim(), source: values.source.trim() })
      },
    },
    field('Event id', h('input', { id: 'event', value: id, autocomplete: 'off', spellcheck: 'false' })),
    field(
      'Source (optional)',
      h('input', {
        id: 'source',
        value: source,
        placeholder: 'src_…',
        autocomplete: 'off',
        spellcheck: 'false',
      }),
    ),
  )
}
