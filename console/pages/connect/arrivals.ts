import type { VNode } from 'preact'
import type { Conversion, Event } from '../../api/types.ts'
import { Breakable } from '../../components/breakable.ts'
import { Table } from '../../components/table.ts'
import { Ago } from '../../components/time.ts'
import { money, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { useArrivals } from '../events/live-events.ts'

const MOST = 8

/** Events as they arrive, while one tries: nothing has to be loaded anew. */
export function Arrivals(): VNode {
  const { rows, isConnected } = useArrivals()
  const newest = rows.value.slice(0, MOST)
  return html`
    <p class="live-bar">
      <span class=${isConnected.value ? 'dot on' : 'dot'} aria-hidden="true"></span>
      ${newest.length > 0 ? 'It works: events arrive.' : 'Waiting. The first event appears here as it arrives.'}
    </p>
    ${
      newest.length > 0 &&
      h(Table<Event | Conversion>, {
        caption: 'What arrived',
        columns: [
          { label: 'Type', cell: row => h(What, { row }), kind: 'long' },
          { label: 'Happened', cell: ({ occurred_at }) => h(Ago, { at: occurred_at }) },
          { label: 'From', cell: ({ source }) => source },
          { label: 'Visitor', cell: ({ visitor }) => text(visitor), kind: 'long', isMinor: true },
        ],
        rows: newest,
        keyOf: row => `${'conversion_type' in row} ${row.id}`,
      })
    }
    <p class="faint">
      Sent, and not here? <a href=${link('issues')}>Issues</a> tells what was refused and why, and${' '}
      <a href=${link('eventLookup')}>what happened to an event</a> finds it by the id that its sender gave it.
    </p>
  `
}

/** A sale leads to the list of sales: several events may tell of one. */
function What({ row }: { row: Event | Conversion }): VNode {
  if (!('conversion_type' in row))
    return html`<a href=${link('event', { id: row.id })}>${h(Breakable, { text: row.event_type })}</a>`
  const price = row.amount === null ? 'without an amount' : money(row.amount, row.currency)
  return html`<a href=${link('conversions')}>${h(Breakable, { text: row.conversion_type })}</a>, a sale ${price}`
}
