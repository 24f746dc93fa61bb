import type { VNode } from 'preact'
import type { Event } from '../../api/types.ts'
import { Breakable } from '../../components/breakable.ts'
import { Table } from '../../components/table.ts'
import { Ago } from '../../components/time.ts'
import { text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'
import { useLiveEvents } from '../events/live-events.ts'

const MOST = 8

/** Events as they arrive, while one tries: nothing has to be loaded anew. */
export function Arrivals(): VNode {
  const { rows, isConnected } = useLiveEvents(null, true)
  const newest = rows.value.slice(0, MOST)
  return html`
    <p class="live-bar">
      <span class=${isConnected.value ? 'dot on' : 'dot'} aria-hidden="true"></span>
      ${newest.length > 0 ? 'It works: events arrive.' : 'Waiting. The first event appears here as it arrives.'}
    </p>
    ${
      newest.length > 0 &&
      h(Table<Event>, {
        caption: 'Events that arrived',
        columns: [
          {
            label: 'Type',
            cell: ({ id, event_type }) =>
              html`<a href=${link('event', { id })}>${h(Breakable, { text: event_type })}</a>`,
            kind: 'long',
          },
          { label: 'Received', cell: ({ received_at }) => h(Ago, { at: received_at }) },
          { label: 'From', cell: ({ source_type }) => source_type },
          { label: 'Visitor', cell: ({ visitor }) => text(visitor), kind: 'long', isMinor: true },
        ],
        rows: newest,
        keyOf: ({ id }) => id,
      })
    }
    <p class="faint">
      Sent, and not here? <a href=${link('issues')}>Issues</a> tells what was refused and why, and${' '}
      <a href=${link('eventLookup')}>what happened to an event</a> finds it by the id that its sender gave it.
    </p>
  `
}
