import type { VNode } from 'preact'
import { parseAmount } from '../amount.ts'
import { records } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type { JsonObject, RecordType, StoredRecord } from '../api/types.ts'
import { Form, RefreshButton, TextField } from '../components/form.ts'
import { Badge, EmptyState } from '../components/notice.ts'
import { Facts, JsonView, Page, Section, Tabs } from '../components/page.ts'
import { type Column, GrowingTable } from '../components/table.ts'
import { Time } from '../components/time.ts'
import { money, NONE, text, words } from '../format.ts'
import { h, html } from '../html.ts'
import { go } from '../navigation.ts'
import { definePage } from '../page-definition.ts'
import { link, type Route } from '../router.ts'
import { keyHint, recordCommand } from '../samples.ts'
import { isAdmin } from '../session.ts'

/** The record types by their name in addresses, with the singular. */
const RECORD_TYPES: Record<RecordType, string> = {
  products: 'product',
  contacts: 'contact',
  orders: 'order',
}

function parseRecordType(name: string): RecordType {
  return Object.hasOwn(RECORD_TYPES, name) ? (name as RecordType) : 'products'
}

const wantsDeleted = ({ query }: Route) => query.get('deleted') === 'yes'
const filterOf = (route: Route) => ({ include_deleted: wantsDeleted(route) ? 'true' : null })

export const recordsPage = definePage(
  'records',
  ({ route, signal }) => records.list(parseRecordType(route.params.type), filterOf(route), signal),
  ({ data, route, refresh }) => {
    const type = parseRecordType(route.params.type)
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
        rowKey: ({ id }) => id,
        first: data,
        csv: { api: 'data', path: `/${type}`, query: filterOf(route), name: type },
        load: cursor => records.list(type, { ...filterOf(route), cursor }),
        empty: h(EmptyState, {
          title: `No ${type} yet.`,
          text: 'Create one. The version with the newest sourceUpdatedAt wins.',
          command: recordCommand(type),
          action: keyHint('private'),
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

type Fields = (data: JsonObject) => string

const OWN_COLUMNS: Record<RecordType, Column<StoredRecord>[]> = {
  products: [
    { label: 'Name', cell: fieldCell(data => text(data.name)), kind: 'long' },
    { label: 'SKU', cell: fieldCell(data => text(data.sku)), kind: 'long', isMinor: true },
  ],
  contacts: [
    { label: 'Name', cell: fieldCell(fullName), kind: 'long' },
    { label: 'E-mail', cell: fieldCell(data => text(data.email)), kind: 'long', isMinor: true },
  ],
  orders: [
    { label: 'Amount', cell: fieldCell(orderTotal), kind: 'number' },
    { label: 'Contact', cell: fieldCell(orderContact), kind: 'long', isMinor: true },
  ],
}

function recordColumns(type: RecordType): Column<StoredRecord>[] {
  return [
    {
      label: 'Id',
      cell: record => html`
        <a href=${link('record', { type, id: lookupId(record) })}>${record.id}</a>
        ${record.deleted && html` ${h(Badge, { text: 'deleted' })}`}
      `,
      kind: 'long',
    },
    ...OWN_COLUMNS[type],
    { label: 'Updated at source', cell: ({ sourceUpdatedAt }) => h(Time, { at: sourceUpdatedAt }) },
    { label: 'Updated in Kontor', cell: ({ updatedAt }) => h(Time, { at: updatedAt }), isMinor: true },
  ]
}

/** Products are looked up by SKU. */
function lookupId({ entityType, id, data }: StoredRecord): string {
  return entityType === 'product' && data?.sku ? String(data.sku) : id
}

function fieldCell(read: Fields) {
  return ({ data }: StoredRecord) => read(data ?? {})
}

const firstValue = (data: JsonObject, ...names: string[]) =>
  names.map(name => data[name]).find(value => value !== undefined && value !== null)

function fullName(data: JsonObject): string {
  const parts = [firstValue(data, 'firstName', 'first_name'), firstValue(data, 'lastName', 'last_name')]
  return text(data.name ?? parts.filter(Boolean).join(' '))
}

/** The name, e-mail address or id of a record. */
function recordTitle({ data, id }: StoredRecord): string {
  const name = fullName(data ?? {})
  return name === NONE ? text(data?.email ?? id) : name
}

function orderTotal(data: JsonObject): string {
  const total = firstValue(data, 'amount', 'total', 'total_price', 'value', 'revenue')
  const amount = parseAmount(total)
  return amount === null ? text(total) : money(amount, text(data.currency ?? ''))
}

function orderContact(data: JsonObject): string {
  return text(firstValue(data, 'contactId', 'contact_id', 'customerId', 'customer_id', 'email'))
}

export const recordPage = definePage(
  'record',
  ({ route, signal }) => nullOn(404, records.find(parseRecordType(route.params.type), route.params.id, signal)),
  ({ data: record, route }) => {
    const type = parseRecordType(route.params.type)
    const back = html`<a href=${link('records', { type })}>All ${type}</a>`
    if (!record) {
      const title = `No ${RECORD_TYPES[type]} has this id.`
      return h(Page, { title: route.params.id }, h(EmptyState, { title, action: back }))
    }
    return h(
      Page,
      {
        title: recordTitle(record),
        lead: type === 'contacts' && isAdmin.value && h(PersonLink, { contact: record.id }),
      },
      h(Facts, {
        facts: [
          ['Type', record.entityType],
          ['Id', html`<code>${record.id}</code>`],
          ['External id', text(record.externalId)],
          ['Updated at source', h(Time, { at: record.sourceUpdatedAt })],
          ['First received', h(Time, { at: record.createdAt })],
          ['Updated in Kontor', h(Time, { at: record.updatedAt })],
        ],
      }),
      h(Section, { title: 'Data' }, h(JsonView, { value: record.data, label: 'Data' })),
      html`<p>${back}</p>`,
    )
  },
)

function PersonLink({ contact }: { contact: string }): VNode {
  const person = link('person', { id: `contact:${contact}` })
  return html`This is the contact record. The <a href=${person}>person page</a> shows sales, events and identifiers, and offers export and erasure.`
}
