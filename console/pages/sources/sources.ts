import { sources } from '../../api/admin.ts'
import type { Source } from '../../api/types.ts'
import { EmptyState } from '../../components/notice.ts'
import { Page } from '../../components/page.ts'
import { type Column, Table } from '../../components/table.ts'
import { Day } from '../../components/time.ts'
import { h, html } from '../../html.ts'
import { definePage } from '../../page-definition.ts'
import { link } from '../../router.ts'
import { webhookCommand } from '../../samples.ts'
import { tenant } from '../../session.ts'
import { SourceState, typeOf } from './source-state.ts'

export const page = definePage(
  'sources',
  ({ signal }) => sources.list(tenant.peek(), signal),
  ({ data: { results } }) =>
    h(
      Page,
      {
        title: 'Sources',
        actions: html`<a class="button main" href=${link('newSource')}>New source</a>`,
        lead: 'A source is an address to which an external system posts its events.',
      },
      results.length > 0
        ? h(Table<Source>, {
            ...{ caption: 'Sources', columns, rows: results, keyOf: ({ id }) => id },
            csv: { api: 'admin', path: '/sources', query: { tenant: tenant.peek() }, name: 'sources' },
          })
        : h(EmptyState, {
            title: 'No sources yet.',
            text: 'Create a source, then send events to it with its token:',
            command: webhookCommand(),
            action: html`<a href=${link('newSource')}>Create a source</a>`,
          }),
    ),
)

const columns: Column<Source>[] = [
  {
    label: 'Name',
    cell: ({ id, name }) => html`<a href=${link('source', { id })}>${name}</a>`,
    kind: 'long',
  },
  { label: 'State', cell: source => h(SourceState, { source }) },
  { label: 'Type', cell: typeOf },
  {
    label: 'Signed',
    cell: ({ signing_secrets }) => (signing_secrets.length > 0 ? 'yes' : 'no'),
    isMinor: true,
  },
  { label: 'Id', cell: ({ id }) => html`<code>${id}</code>`, isMinor: true },
  { label: 'Created', cell: ({ created_at }) => h(Day, { at: created_at }), isMinor: true },
]
