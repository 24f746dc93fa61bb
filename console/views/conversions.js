import { data } from '../api.js'
import { h } from '../dom.js'
import { money, text, time, words } from '../format.js'
import { showDialog } from '../parts/dialog.js'
import { action } from '../parts/forms.js'
import { emptyState } from '../parts/notices.js'
import { facts, page } from '../parts/page.js'
import { growingTable } from '../parts/table.js'
import { nothingFits } from './events.js'
import { convertLine, whereKeysAre } from './samples.js'
import { filtersOf, timeFilter } from './time-filter.js'

export async function view({ query, signal, refresh }) {
  const filters = filtersOf(query)
  const first = await data('/conversions', { query: filters, signal })
  return page(
    'Conversions',
    {
      actions: [action('Refresh', refresh, { id: 'refresh' })],
      lead: 'One sale is one row, however many systems tell of it.',
    },
    timeFilter('conversions', query),
    growingTable({
      caption: 'Conversions',
      columns: conversionColumns,
      first,
      load: cursor => data('/conversions', { query: { ...filters, cursor } }),
      empty: query.size > 0 ? nothingFits('conversions') : noConversions(),
    }),
  )
}

export const conversionColumns = [
  {
    label: 'Type',
    cell: row =>
      h('button', { type: 'button', class: 'link', onclick: () => showConversion(row) }, row.conversion_type),
    long: true,
  },
  { label: 'Amount', cell: ({ amount, currency }) => money(amount, currency), number: true },
  { label: 'When', cell: ({ occurred_at }) => time(occurred_at) },
  { label: 'From', cell: ({ source }) => source, minor: true },
  { label: 'Object', cell: ({ source_object_id }) => text(source_object_id), minor: true, long: true },
  { label: 'Who', cell: whoOf, minor: true, long: true },
]

function whoOf({ contact_name, contact_email, contact_id, visitor }) {
  return text(contact_name ?? contact_email ?? contact_id ?? visitor)
}

function showConversion(row) {
  const { occurred_at, amount, currency, ...others } = row
  showDialog(
    `Conversion ${row.source_object_id ?? row.conversion_type}`,
    facts([
      ['Amount', money(amount, currency)],
      ['Occurred', time(occurred_at)],
      ...Object.entries(others).map(([name, value]) => [words(name), text(value)]),
    ]),
  )
}

function noConversions() {
  return emptyState({
    title: 'No conversions yet.',
    text: 'A convert event makes one, and so does an order record or a paid invoice.',
    curl: convertLine(),
    action: whereKeysAre('tracking'),
  })
}
