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
      ${newest.length > 0 ? 'Events are arriving.' : 'Waiting for the first event. It appears here when it arrives.'}
    </p>
    ${
      newest.length > 0 &&
      h(Table<Event | Conversion>, {
        caption: 'Incoming events',
        columns: [
          { label: 'Type', cell: row => h(What, { row }), kind: 'long' },
          { label: 'Time', cell: ({ occurred_at }) => h(Ago, { at: occurred_at }) },
          { label: 'Source', cell: ({ source }) => source },
          { label: 'Visitor', cell: ({ visitor }) => text(visitor), kind: 'long', isMinor: true },
        ],
        rows: newest,
        keyOf: row => `${'conversion_type' in row} ${row.id}`,
      })
    }
    <p class="faint">
      Is an event missing? <a href=${link('issues')}>Issues</a> lists rejected requests with their reasons. Use the${' '}
      <a href=${link('eventLookup')}>event lookup</a> to find an event by the id that its sender gave it.
    </p>
  `
}

/** A sale leads to the list of sales: several events may tell of one. */
function What({ row }: { row: Event | Conversion }): VNode {
  if (!('conversion_type' in row))
    return html`<a href=${link('event', { id: row.id })}>${h(Breakable, { text: row.event_type })}</a>`
  const price = row.amount === null ? 'without an amount' : money(row.amount, row.currency)
  return html`<a href=${link('conversions')}>${h(Breakable, { text: row.conversion_type })}</a>, sale ${price}`
}
