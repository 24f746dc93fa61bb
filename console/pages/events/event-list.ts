import { useSignal } from '@preact/signals'
import type { VNode } from 'preact'
import { events } from '../../api/data.ts'
import type { Event, List } from '../../api/types.ts'
import { CsvButton } from '../../components/csv-button.ts'
import { ActionButton } from '../../components/form.ts'
import { ProblemArea } from '../../components/notice.ts'
import { JsonView } from '../../components/page.ts'
import { cellsOf, headingsOf, tellWhole } from '../../components/table.ts'
import { filterOf } from '../../components/time-filter.ts'
import { plural } from '../../format.ts'
import { h, html } from '../../html.ts'
import { eventColumns } from './event-table.ts'
import { type LiveEvents, useLiveEvents } from './live-events.ts'

type EventListProps = { first: List<Event>; query: URLSearchParams; empty: VNode }

/** Events, newest first. Those that come in appear on top; each opens in place. */
export function EventList({ first, query, empty }: EventListProps): VNode {
  const problem = useSignal<unknown>(null)
  const grown = useSignal<{ first: List<Event>; more: List<Event>[] }>({ first, more: [] })
  const live = useLiveEvents(query.get('event_type'), !query.get('until'))
  const pages = [first, ...(grown.value.first === first ? grown.value.more : [])]
  const cursor = pages.at(-1)!.next_cursor
  const rows = distinct([...live.rows.value, ...pages.flatMap(({ results }) => results)]).filter(
    matching(query.get('with') ?? ''),
  )
  const grow = async () => {
    const next = await events.list({ ...filterOf(query), cursor })
    grown.value = { first, more: [...pages.slice(1), next] }
  }
  return html`
    <div class="live-list">
      ${!query.get('until') && h(LiveBar, { live })}
      ${rows.length === 0 ? empty : h(EventRows, { rows })}
      ${h(ProblemArea, { problem })}
      ${
        rows.length > 0 &&
        html`<p class="more">
          ${cursor !== null && h(ActionButton, { label: 'Show more', run: grow, problem })}
          ${h(CsvButton, {
            csv: { api: 'data', path: '/events', query: filterOf(query), name: 'events' },
            isPaged: true,
          })}
        </p>`
      }
    </div>
  `
}

function LiveBar({ live }: { live: LiveEvents }): VNode {
  const { isPaused, held, isConnected, toggle } = live
  const state = isPaused.value ? 'Paused' : isConnected.value ? 'Live' : 'Reconnecting'
  return html`
    <p class="live-bar">
      <span class=${isPaused.value || !isConnected.value ? 'dot' : 'dot on'} aria-hidden="true"></span>
      <span>${state}</span>
      <button type="button" class="quiet" onClick=${toggle}>
        ${isPaused.value ? (held.value.length > 0 ? `Resume (${plural(held.value.length, 'new event')})` : 'Resume') : 'Pause'}
      </button>
    </p>
  `
}

function EventRows({ rows }: { rows: Event[] }): VNode {
  const opened = useSignal<ReadonlySet<string>>(new Set())
  const toggle = (id: string) => {
    const next = new Set(opened.peek())
    if (!next.delete(id)) next.add(id)
    opened.value = next
  }
  return html`
    <div class="scroller" role="region" aria-label="Events" tabindex="0" onMouseOver=${tellWhole}>
      <table>
        <caption class="unseen">Events</caption>
        <thead>
          <tr>
            <th scope="col"><span class="unseen">Payload</span></th>
            ${headingsOf(eventColumns)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(row => rowOf(row, opened.value.has(row.id), () => toggle(row.id)))}
        </tbody>
      </table>
    </div>
  `
}

function rowOf(row: Event, isOpen: boolean, toggle: () => void): VNode[] {
  const button = html`
    <button
      type="button" class="quiet opener" aria-expanded=${String(isOpen)}
      aria-label=${`Payload of ${row.event_type}`} onClick=${toggle}
    >${isOpen ? '▾' : '▸'}</button>
  `
  return [
    html`
      <tr key=${row.id}>
        <td class="opening">${button}</td>
        ${cellsOf(row, eventColumns)}
      </tr>
    `,
    ...(isOpen
      ? [
          html`
            <tr key=${`${row.id} payload`} class="opened">
              <td colspan=${eventColumns.length + 1}>
                ${h(JsonView, { value: row.payload, label: `Payload of ${row.event_type}` })}
              </td>
            </tr>
          `,
        ]
      : []),
  ]
}

function distinct(rows: Event[]): Event[] {
  return [...new Map(rows.map(row => [row.id, row])).values()]
}

/** Has this text in its type, its source, or who it is of. */
function matching(text: string): (row: Event) => boolean {
  const wanted = text.trim().toLowerCase()
  return ({ event_type, source_type, source_config_id, visitor, contact_id, profile_id, session_id }) =>
    [event_type, source_type, source_config_id, visitor, contact_id, profile_id, session_id].some(value =>
      (value ?? '').toLowerCase().includes(wanted),
    )
}
