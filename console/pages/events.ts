import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren, VNode } from 'preact'
import { useEffect } from 'preact/hooks'
import { toNumber } from '../amount.ts'
import { events, readNames } from '../api/data.ts'
import { errorStatus } from '../api/request.ts'
import type { Conversion, Event, List } from '../api/types.ts'
import { ActionButton, Form, RefreshButton, TextField } from '../components/form.ts'
import { EmptyState, ProblemArea } from '../components/notice.ts'
import { JsonView, Page, Section } from '../components/page.ts'
import { Plot } from '../components/plot.ts'
import { type Column, CsvButton, headerCells, rowCells, showFullText, watchWidth } from '../components/table.ts'
import { Breakable } from '../components/text.ts'
import { Time } from '../components/time.ts'
import { countTypes, filterOf, NoMatches, TimeFilter, TypeButtons } from '../components/time-filter.ts'
import { compact, NONE, number, plural, receivedVia } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link } from '../router.ts'
import { keyHint, trackCommand } from '../samples.ts'
import { endSession, isAdmin } from '../session.ts'
import { summarize } from '../summary.ts'
import { readPeriod } from '../view.ts'
import { courseSeries, courseZoom, readEventCourse, readFrame, readFrameSeries } from './figures.ts'

export const eventsPage = definePage(
  'events',
  async ({ route, signal }) => {
    const frame = readFrame()
    const [list, grouped, course, any] = await Promise.all([
      events.list(filterOf(route.query), signal),
      readFrameSeries(frame, query => events.series({ ...query, group_by: 'event_type' }, signal)),
      readEventCourse(frame, route.query.get('event_type'), signal),
      events.list({ limit: 1 }, signal),
    ])
    const names = await readNames(
      list.results.map(({ contact_id }) => contact_id),
      signal,
    )
    return { list, names, types: countTypes(grouped.results), course, frame, isEmpty: any.results.length === 0 }
  },
  ({ data: { list, names, types, course, frame, isEmpty }, route: { query }, refresh }) =>
    h(
      Page,
      {
        title: 'Events',
        actions: [
          html`<a class="button" href=${link('eventLookup')}>Look up an event</a>`,
          h(RefreshButton, { refresh }),
        ],
        lead: 'Events, newest first. Conversions (sales and other goals) have their own page.',
      },
      h(TimeFilter, { page: 'events', query, types, isSearchable: true }),
      h(TypeButtons, { page: 'events', query, types }),
      course &&
        toNumber(course.now.total) > 0 &&
        h(Plot, {
          title: 'Events over time',
          moments: course.now.moments,
          series: courseSeries('Events', course, { ...frame, comparison: null }),
          zoom: courseZoom(course, frame.step),
          ...{ unit: frame.step, shown: number, axisShown: compact, height: 120, isStacked: true },
        }),
      h(EventList, {
        ...{ first: list, names, query },
        empty: isEmpty ? h(NoEvents, {}) : h(NoMatches, { page: 'events', query }),
      }),
      h(Section, { title: 'Event lookup' }, h(LookupForm, {})),
    ),
)

type EventListProps = { first: List<Event>; names: Names; query: URLSearchParams; empty: VNode }

/** Events, newest first. New events appear on top, and each row expands to its payload. */
function EventList({ first, names: firstNames, query, empty }: EventListProps): VNode {
  const names = useSignal(firstNames)
  const problem = useSignal<unknown>(null)
  const grown = useSignal<{ first: List<Event>; more: List<Event>[] }>({ first, more: [] })
  const isOpen = readPeriod().isOpen
  const live = useLiveEvents(query.get('event_type'), isOpen)
  const pages = [first, ...(grown.value.first === first ? grown.value.more : [])]
  const cursor = pages.at(-1)!.next_cursor
  const rows = distinct([...live.rows.value, ...pages.flatMap(({ results }) => results)]).filter(
    matches(query.get('with') ?? ''),
  )
  const grow = async () => {
    const next = await events.list({ ...filterOf(query), cursor })
    names.value = new Map([...names.peek(), ...(await readNames(next.results.map(({ contact_id }) => contact_id)))])
    grown.value = { first, more: [...pages.slice(1), next] }
  }
  return html`
    <div class="live-list">
      ${isOpen && h(LiveBar, { live })}
      ${rows.length === 0 ? empty : h(EventRows, { rows, names: names.value })}
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

function EventRows({ rows, names }: { rows: Event[]; names: Names }): VNode {
  const columns = eventColumns(names)
  const opened = useSignal<ReadonlySet<string>>(new Set())
  const toggle = (id: string) => {
    const next = new Set(opened.peek())
    if (!next.delete(id)) next.add(id)
    opened.value = next
  }
  return html`
    <div class="scroller" ref=${watchWidth} role="region" aria-label="Events" tabindex="0" onMouseOver=${showFullText}>
      <table class="stacking">
        <caption class="unseen">Events</caption>
        <thead>
          <tr>
            <th scope="col"><span class="unseen">Payload</span></th>
            ${headerCells(columns)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(row => eventRow(row, columns, opened.value.has(row.id), () => toggle(row.id)))}
        </tbody>
      </table>
    </div>
  `
}

function eventRow(row: Event, columns: Column<Event>[], isOpen: boolean, toggle: () => void): VNode[] {
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
        ${rowCells(row, columns)}
      </tr>
    `,
    ...(isOpen
      ? [
          html`
            <tr key=${`${row.id} payload`} class="opened">
              <td colspan=${columns.length + 1}>
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
    [
      ...[event_type, source_type, receivedVia(source_type), source_config_id],
      ...[visitor, contact_id, profile_id, session_id],
    ].some(value => (value ?? '').toLowerCase().includes(wanted))
}

/** `names`: by contact id. */
export function eventColumns(names: Names): Column<Event>[] {
  return [
    {
      label: 'Type',
      cell: ({ id, event_type }) => html`<a href=${link('event', { id })}>${h(Breakable, { text: event_type })}</a>`,
      kind: 'long',
    },
    { label: 'Summary', cell: event => summarize(event) || NONE, kind: 'long' },
    { label: 'Person', cell: event => personCell(event, names), kind: 'long' },
    { label: 'Time', cell: ({ occurred_at }) => h(Time, { at: occurred_at }) },
    { label: 'Received via', cell: ({ source_type }) => receivedVia(source_type) },
  ]
}

export type Names = ReadonlyMap<string, string>

/** Links to the person with an admin key, else to the contact. */
function personCell({ contact_id: contact, profile_id: profile, visitor }: Event, names: Names): ComponentChildren {
  const name = (contact !== null && names.get(contact)) || contact || visitor || profile
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
    } catch (error) {
      if (signal.aborted) return
      if (errorStatus(error) === 401) return endSession(error)
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
    h(TextField, {
      ...{ id: 'event', label: 'Event id', value: id },
      hint: "The sender's id (event_id, messageId or inbound_event_id) or the Kontor id.",
    }),
    h(TextField, { id: 'source', label: 'Source (optional)', value: source, placeholder: 'src_…' }),
  )
}
