import type { VNode } from 'preact'
import type { TimeFilter as Filter } from '../api/data.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { link, type PlainRouteName } from '../router.ts'
import { Form, TextField } from './form.ts'
import { EmptyState } from './notice.ts'

type FilterProps = {
  page: PlainRouteName
  query: URLSearchParams
  /** Adds a field that filters the loaded rows by a string. */
  isSearchable?: boolean
}

/** The filters that events and conversions share. They are part of the address. */
export function TimeFilter({ page, query, isSearchable = false }: FilterProps): VNode {
  return h(
    Form<'event_type' | 'since' | 'until' | 'with'>,
    {
      // The fields follow the address, also after going back.
      key: query.toString(),
      submit: 'Filter',
      layout: 'filter',
      aside: query.size > 0 && html`<a href=${link(page)}>Clear</a>`,
      run: ({ event_type, since, until, with: text }) =>
        go(link(page, { event_type, since: toInstant(since), until: toInstant(until), with: text })),
    },
    h(TextField, { id: 'event_type', label: 'Type', value: query.get('event_type') ?? '', size: 14 }),
    h(TextField, {
      id: 'since',
      label: 'Since',
      type: 'datetime-local',
      value: toLocal(query.get('since')),
    }),
    h(TextField, {
      id: 'until',
      label: 'Until',
      type: 'datetime-local',
      value: toLocal(query.get('until')),
    }),
    isSearchable &&
      h(TextField, {
        ...{ id: 'with', label: 'Visitor, contact, source …', value: query.get('with') ?? '', size: 16 },
      }),
  )
}

export function filterOf(query: URLSearchParams): Filter {
  return { event_type: query.get('event_type'), since: query.get('since'), until: query.get('until') }
}

export function NoMatches({ page }: { page: PlainRouteName }): VNode {
  return h(EmptyState, {
    title: 'No results match these filters.',
    action: html`<a href=${link(page)}>Clear filters</a>`,
  })
}

/** Converts the local time of an input to an instant. `toLocal` is the inverse. */
function toInstant(local: string): string {
  return local ? new Date(local).toISOString() : ''
}

function toLocal(iso: string | null): string {
  const at = new Date(iso ?? '')
  if (Number.isNaN(at.getTime())) return ''
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
