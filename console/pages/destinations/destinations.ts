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
        lead: 'A destination is an address to which Kontor sends data as signed webhooks.',
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
            text: 'Create a destination to receive events, conversions, records or MRR movements as they are processed.',
            action: html`<a href=${link('newDestination')}>Create a destination</a>`,
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
  { label: 'Pending', cell: ({ health }) => number(health.pending), kind: 'number' },
  { label: 'Data', cell: whatOf, kind: 'long', isMinor: true },
  { label: 'Address', cell: ({ url }) => url, kind: 'long', isMinor: true },
  { label: 'Last delivery', cell: lastSuccessOf, isMinor: true },
]

function lastSuccessOf({ health: { last_success_at: at } }: Destination) {
  return at === null ? 'never' : h(Ago, { at })
}
