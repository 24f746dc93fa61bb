import { destinations } from '../../api/admin.ts'
import type { Destination } from '../../api/types.ts'
import { EmptyState } from '../../components/notice.ts'
import { Page } from '../../components/page.ts'
import { type Column, Table } from '../../components/table.ts'
import { Ago } from '../../components/time.ts'
import { number } from '../../format.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { tenant } from '../../session.ts'
import { DestinationState, whatOf } from './destination-state.ts'

export const page = definePage(
  'destinations',
  ({ signal }) => destinations.list(tenant.peek() ?? '', signal),
  ({ data: { results } }) =>
    h(
      Page,
      {
        title: 'Destinations',
        actions: html`<a class="button main" href=${link('newDestination')}>New destination</a>`,
        lead: 'Each one is an address that is sent what took effect here, as signed webhooks.',
      },
      results.length > 0
        ? h(Table<Destination>, {
            ...{ caption: 'Destinations', columns, rows: results, keyOf: ({ id }) => id },
            csv: {
              api: 'admin',
              path: '/destinations',
              query: { tenant: tenant.peek() },
              name: 'destinations',
            },
          })
        : h(EmptyState, {
            title: 'No destinations yet.',
            text: 'Make one, and events, conversions, records or movements of MRR are sent to it as they take effect.',
            action: html`<a href=${link('newDestination')}>Make the first destination</a>`,
          }),
    ),
)

const columns: Column<Destination>[] = [
  {
    label: 'Name',
    cell: ({ id, name }) => html`<a href=${link('destination', { id })}>${name}</a>`,
    kind: 'long',
  },
  { label: 'State', cell: destination => h(DestinationState, { destination }) },
  { label: 'To be sent', cell: ({ health }) => number(health.pending), kind: 'number' },
  { label: 'Is sent', cell: whatOf, kind: 'long', isMinor: true },
  { label: 'Address', cell: ({ url }) => url, kind: 'long', isMinor: true },
  { label: 'Last delivered', cell: lastSuccessOf, isMinor: true },
]

function lastSuccessOf({ health: { last_success_at: at } }: Destination) {
  return at === null ? 'never' : h(Ago, { at })
}
