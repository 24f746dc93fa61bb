import type { VNode } from 'preact'
import { records } from '../../api/data.ts'
import type { RecordType, StoredRecord } from '../../api/types.ts'
import { Form, RefreshButton, TextField } from '../../components/form.ts'
import { EmptyState } from '../../components/notice.ts'
import { Page, Tabs } from '../../components/page.ts'
import { GrowingTable } from '../../components/table.ts'
import { words } from '../../format.ts'
import { h, html } from '../../html.ts'
import { go } from '../../navigation.ts'
import { definePage } from '../../page-definition.ts'
import { link, type Route } from '../../router.ts'
import { recordCommand, whereKeysAre } from '../../samples.ts'
import { recordColumns } from './record-columns.ts'
import { RECORD_TYPES, recordTypeOf } from './record-types.ts'

const wantsDeleted = ({ query }: Route) => query.get('deleted') === 'yes'
const filterOf = (route: Route) => ({ include_deleted: wantsDeleted(route) ? 'true' : null })

export const page = definePage(
  'records',
  ({ route, signal }) => records.list(recordTypeOf(route.params.type), filterOf(route), signal),
  ({ data, route, refresh }) => {
    const type = recordTypeOf(route.params.type)
    return h(
      Page,
      {
        title: 'Records',
        actions: h(RefreshButton, { refresh }),
        lead: 'Sorted by their last update in Kontor.',
      },
      h(Tabs, { label: 'Record types', tabs: TABS, current: type }),
      h(OpenForm, { type }),
      h(GrowingTable<StoredRecord>, {
        caption: words(type),
        columns: recordColumns(type),
        keyOf: ({ id }) => id,
        first: data,
        csv: { api: 'data', path: `/${type}`, query: filterOf(route), name: type },
        load: cursor => records.list(type, { ...filterOf(route), cursor }),
        empty: h(EmptyState, {
          title: `No ${type} yet.`,
          text: 'Create one. The version with the newest sourceUpdatedAt wins.',
          command: recordCommand(type),
          action: whereKeysAre('private'),
        }),
      }),
      html`
        <p class="faint">
          ${
            wantsDeleted(route)
              ? html`<a href=${link('records', { type })}>Hide deleted records</a>`
              : html`<a href=${link('records', { type }, { deleted: 'yes' })}>Show deleted records</a>`
          }
        </p>
      `,
    )
  },
)

const TABS = Object.keys(RECORD_TYPES).map(type => ({
  name: type,
  title: words(type),
  href: link('records', { type }),
}))

function OpenForm({ type }: { type: RecordType }): VNode {
  const open = ({ record }: { record: string }) => {
    if (record.trim()) go(link('record', { type, id: record.trim() }))
  }
  return h(
    Form<'record'>,
    { submit: 'Open', layout: 'filter', run: open },
    h(TextField, { id: 'record', label: type === 'products' ? 'SKU or id' : 'Id' }),
  )
}
