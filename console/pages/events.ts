import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { events } from '../api/data.ts'
import type { Conversion, Event, List } from '../api/types.ts'
import { ActionButton, Form, RefreshButton, TextField } from '../components/form.ts'
import { EmptyState, ProblemArea } from '../components/notice.ts'
import { JsonView, Page, Section } from '../components/page.ts'
import { type Column, CsvButton, headerCells, rowCells, showFullText } from '../components/table.ts'
import { Breakable } from '../components/text.ts'
import { Time } from '../components/time.ts'
import { filterOf, NoMatches, TimeFilter } from '../components/time-filter.ts'
import { NONE, plural, text } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { keyHint, trackCommand } from '../samples.ts'
import { isAdmin } from '../session.ts'
export const eventsPage = definePage(
  'events',
  ({ route, signal }) => events.list(filterOf(route.query), signal),
  ({ data, route: { query }, refresh }) =>
    h(
      Page,
      {
        title: 'Events',
        actions: h(RefreshButton, { refresh }),
        lead: 'All events except conversions, newest first.',
      },
      h(TimeFilter, { page: 'events', query, isSearchable: true }),
      h(EventList, {
        ...{ first: data, query },
        empty: query.size > 0 ? h(NoMatches, { page: 'events' }) : h(NoEvents, {}),
      }),
      h(
        Section,
        { title: 'Event lookup' },
        html`<p>Find an event by its Kontor id, or by the id that its sender gave it (event_id, messageId, inbound_event_id).</p>`,
        h(LookupForm, {}),
      ),
    ),
)

type EventListProps = { first: List<Event>; query: URLSearchParams; empty: VNode }

/** Events, newest first. New events appear on top, and each row expands to its payload. */
function EventList({ first, query, empty }: EventListProps): VNode {
  const problem = useSignal<unknown>(null)
  const grown = useSignal<{ first: List<Event>; more: List<Event>[] }>({ first, more: [] })
  const live = useLiveEvents(query.get('event_type'), !query.get('until'))
  const pages = [first, ...(grown.value.first === first ? grown.value.more : [])]
  const cursor = pages.at(-1)!.next_cursor
  const rows = distinct([...live.rows.value, ...pages.flatMap(({ results }) => results)]).filter(
    matches(query.get('with') ?? ''),
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
    <div class="scroller" role="region" aria-label="Events" tabindex="0" onMouseOver=${showFullText}>
      <table>
        <caption class="unseen">Events</caption>
        <thead>
          <tr>
            <th scope="col"><span class="unseen">Payload</span></th>
            ${headerCells(eventColumns)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(row => eventRow(row, opened.value.has(row.id), () => toggle(row.id)))}
        </tbody>
      </table>
    </div>
  `
}

function eventRow(row: Event, isOpen: boolean, toggle: () => void): VNode[] {
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
        ${rowCells(row, eventColumns)}
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

/** Matches the type, the source and the ids of the person. */
function matches(text: string): (row: Event) => boolean {
  const wanted = text.trim().toLowerCase()
  return ({ event_type, source_type, source_config_id, visitor, contact_id, profile_id, session_id }) =>
    [event_type, source_type, source_config_id, visitor, contact_id, profile_id, session_id].some(value =>
      (value ?? '').toLowerCase().includes(wanted),
    )
}

export const eventColumns: Column<Event>[] = [
  {
    label: 'Type',
    cell: ({ id, event_type }) => html`<a href=${link('event', { id })}>${h(Breakable, { text: event_type })}</a>`,
    kind: 'long',
  },
  { label: 'Time', cell: ({ occurred_at }) => h(Time, { at: occurred_at }) },
  { label: 'Source', cell: ({ source_type }) => source_type, isMinor: true },
  { label: 'Visitor', cell: ({ visitor }) => text(visitor), kind: 'long', isMinor: true },
  {
    label: 'Contact',
    cell: contactCell,
    kind: 'long',
    isMinor: true,
  },
]

/** Links to the person with an admin key, else to the contact. */
function contactCell({ contact_id: contact, profile_id: profile }: Event): ComponentChildren {
  const name = contact ?? profile
  if (name === null) return NONE
  if (isAdmin.value && profile !== null) return html`<a href=${link('person', { id: profile })}>${name}</a>`
  return contact === null ? name : html`<a href=${link('record', { type: 'contacts', id: contact })}>${name}</a>`
}

export function NoEvents(): VNode {
  return h(EmptyState, {
    title: 'No events yet.',
    text: 'Send the first event. It appears here shortly after.',
    command: trackCommand(),
    action: keyHint('tracking'),
  })
}

/** Older events are in the list below. */
const MAX_ROWS = 200
const RECONNECT_MS = 3_000

export type Live<Row> = {
  /** Newest first. */
  rows: Signal<Row[]>
  /** Arrived while paused. */
  held: Signal<Row[]>
  isPaused: Signal<boolean>
  isConnected: Signal<boolean>
  toggle(): void
}

type LiveEvents = Live<Event>

/** Events as they arrive. `isWanted` false: the list ends in the past. */
function useLiveEvents(eventType: string | null, isWanted: boolean): LiveEvents {
  return useLive(signal => events.stream({ event_type: eventType }, signal), isWanted, [eventType])
}

/** Events and sales. */
export function useArrivals(): Live<Event | Conversion> {
  return useLive(events.streamAll, true, [])
}

type Connect<Row> = (signal: AbortSignal) => AsyncIterable<Row>

/** `inputs`: what `connect` depends on. */
function useLive<Row>(connect: Connect<Row>, isWanted: boolean, inputs: unknown[]): Live<Row> {
  const rows = useSignal<Row[]>([])
  const held = useSignal<Row[]>([])
  const isPaused = useSignal(false)
  const isConnected = useSignal(false)
  useEffect(() => {
    rows.value = []
    held.value = []
    if (!isWanted) return
    const left = new AbortController()
    const take = (event: Row) => {
      const list = isPaused.peek() ? held : rows
      list.value = [event, ...list.peek()].slice(0, MAX_ROWS)
    }
    follow(connect, { take, isConnected, signal: left.signal })
    return () => left.abort()
  }, [...inputs, isWanted])
  const toggle = () => {
    isPaused.value = !isPaused.peek()
    if (isPaused.peek()) return
    rows.value = [...held.peek(), ...rows.peek()].slice(0, MAX_ROWS)
    held.value = []
  }
  return { rows, held, isPaused, isConnected, toggle }
}

type Follow<Row> = { take(row: Row): void; isConnected: Signal<boolean>; signal: AbortSignal }

/** Reconnects: the server ends connections now and then, and may be unavailable. */
async function follow<Row>(connect: Connect<Row>, { take, isConnected, signal }: Follow<Row>): Promise<void> {
  while (!signal.aborted) {
    try {
      isConnected.value = true
      for await (const row of connect(signal)) take(row)
    } catch {
      if (signal.aborted) return
      isConnected.value = false
    }
    await new Promise(resolve => setTimeout(resolve, RECONNECT_MS))
  }
}

export function LookupForm({ id = '', source = '' }: { id?: string; source?: string }): VNode {
  return h(
    Form<'event' | 'source'>,
    {
      key: `${id} ${source}`,
      submit: 'Look up',
      layout: 'filter',
      run: values => go(link('eventLookup', { id: values.event.trim(), source: values.source.trim() })),
    },
    h(TextField, { id: 'event', label: 'Event id', value: id }),
    h(TextField, { id: 'source', label: 'Source (optional)', value: source, placeholder: 'src_…' }),
  )
}
