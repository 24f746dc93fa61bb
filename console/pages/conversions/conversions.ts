import type { VNode } from 'preact'
import { conversions } from '../../api/data.ts'
import type { Conversion } from '../../api/types.ts'
import { RefreshButton } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { Page } from '../../components/page.ts'
import { GrowingTable } from '../../components/table.ts'
import { filterOf, NothingFits, TimeFilter } from '../../components/time-filter.ts'
import { h } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { convertCommand, whereKeysAre } from '../../samples.ts'
import { conversionColumns } from './conversion-table.ts'

export const page = definePage(
  'conversions',
  ({ route, signal }) => conversions.list(filterOf(route.query), signal),
  ({ data, route: { query }, refresh }) =>
    h(
      Page,
      {
        title: 'Conversions',
        actions: h(RefreshButton, { refresh }),
        lead: 'Each sale is listed once, even if several systems report it.',
      },
      h(TimeFilter, { page: 'conversions', query }),
      h(GrowingTable<Conversion>, {
        caption: 'Conversions',
        columns: conversionColumns,
        keyOf: ({ id }) => id,
        first: data,
        csv: { api: 'data', path: '/conversions', query: filterOf(query), name: 'conversions' },
        load: cursor => conversions.list({ ...filterOf(query), cursor }),
        empty: query.size > 0 ? h(NothingFits, { page: 'conversions' }) : h(NoConversions, {}),
      }),
    ),
)

function NoConversions(): VNode {
  return h(EmptyState, {
    title: 'No conversions yet.',
    text: 'A convert event, an order record or a paid invoice creates a conversion.',
    command: convertCommand(),
    action: whereKeysAre('tracking'),
  })
}
