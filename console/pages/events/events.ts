import { events } from '../../api/data.ts'
import { RefreshButton } from '../../components/form.ts'
import { Page, Section } from '../../components/page.ts'
import { filterOf, NothingFits, TimeFilter } from '../../components/time-filter.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { EventList } from './event-list.ts'
import { NoEvents } from './event-table.ts'
import { LookupForm } from './lookup-form.ts'

export const page = definePage(
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
        empty: query.size > 0 ? h(NothingFits, { page: 'events' }) : h(NoEvents, {}),
      }),
      h(
        Section,
        { title: 'Event lookup' },
        html`<p>Find an event by its Kontor id, or by the id that its sender gave it (event_id, messageId, inbound_event_id).</p>`,
        h(LookupForm, {}),
      ),
    ),
)
