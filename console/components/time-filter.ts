import type { VNode } from 'preact'
import type { TimeFilter as Filter } from '../api/data.ts'
import type { SeriesRow } from '../api/types.ts'
import { dayRange, number, visible } from '../format.ts'
import { h, html } from '../html.ts'
import { go, hrefWithView } from '../navigation.ts'
import { link, type PlainRouteName } from '../router.ts'
import { readPeriod } from '../view.ts'
import { Form, TextField } from './form.ts'
import { EmptyState } from './notice.ts'

/** How many events of each type the period has, the most frequent first. */
export type TypeCounts = [type: string, count: number][]

export function countTypes(rows: SeriesRow[]): TypeCounts {
  const counts = new Map<string, number>()
  for (const { groups = {} } of rows)
    for (const [type, { count }] of Object.entries(groups)) counts.set(type, (counts.get(type) ?? 0) + count)
  return [...counts].toSorted(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
}

type FilterProps = {
  page: PlainRouteName
  query: URLSearchParams
  types: TypeCounts
  /** Adds a field that filters the loaded rows by a string. */
  isSearchable?: boolean
}

/** The filters that events and conversions share, besides the period of the bar. They are part of the address. */
export function TimeFilter({ page, query, types, isSearchable = false }: FilterProps): VNode {
  return h(
    Form<'event_type' | 'with'>,
    {
      // The fields follow the address, also after going back.
      key: query.toString(),
      submit: 'Filter',
      layout: 'filter',
      aside: query.size > 0 && html`<a href=${link(page)}>Clear</a>`,
      run: ({ event_type, with: text }) => go(link(page, { event_type, with: text })),
    },
    h(TextField, {
      ...{ id: 'event_type', label: 'Type', value: query.get('event_type') ?? '', size: 24 },
      ...{ list: 'event-types', placeholder: 'All types' },
    }),
    // An invisible character cannot be chosen from a list in which it does not show.
    html`
      <datalist id="event-types">
        ${types.filter(([type]) => visible(type) === type).map(([type, count]) => html`<option value=${type} label=${number(count)} />`)}
      </datalist>
    `,
    isSearchable &&
      h(TextField, {
        ...{ id: 'with', label: 'Visitor, contact or source', value: query.get('with') ?? '', size: 24 },
        placeholder: 'In the loaded events',
      }),
  )
}

/** The most frequent types, to filter with one click. */
export function TypeButtons({ page, query, types }: Omit<FilterProps, 'isSearchable'>): VNode | null {
  if (types.length < 2) return null
  const chosen = query.get('event_type')
  const toggle = (type: string) => go(link(page, { event_type: type === chosen ? null : type }))
  return html`
    <div class="chips" role="group" aria-label="Types">
      ${types.slice(0, 8).map(
        ([type, count]) => html`
          <button key=${type} type="button" aria-pressed=${String(type === chosen)} onClick=${() => toggle(type)}>
            ${type} <span class="faint">${number(count)}</span>
          </button>
        `,
      )}
    </div>
  `
}

/** The type of the address and the period of the bar. An open period has no end, so that later rows are included. */
export function filterOf(query: URLSearchParams): Filter {
  const { since, until, isOpen } = readPeriod()
  return {
    event_type: query.get('event_type'),
    since: since?.toISOString() ?? null,
    until: isOpen ? null : until.toISOString(),
  }
}

/** Says what is filtered, and removes it with one click. */
export function NoMatches({ page, query }: { page: PlainRouteName; query: URLSearchParams }): VNode {
  const { from, to } = readPeriod()
  return h(EmptyState, {
    title: query.size > 0 ? 'No results match these filters.' : `No ${page} in ${dayRange(from, to)}.`,
    text:
      query.has('with') &&
      'The filter “Visitor, contact or source” searches only the events that are loaded. To search more events, clear it, then load them with “Show more”.',
    action: html`
      <span class="choices">
        ${query.size > 0 && html`<a href=${link(page)}>Clear filters</a>`}
        ${from !== null && html`<a href=${hrefWithView({ period: 'all' })}>Show all time</a>`}
      </span>
    `,
  })
}
