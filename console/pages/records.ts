import type { VNode } from 'preact'
import { parseAmount } from '../amount.ts'
import { records } from '../api/data.ts'
import { nullOn } from '../api/request.ts'
import type { JsonObject, RecordType, StoredRecord } from '../api/types.ts'
import { Form, RefreshButton, TextField } from '../components/form.ts'
import { Badge, EmptyState } from '../components/notice.ts'
import { Facts, JsonView, Page, Section, Tabs, type Tile, Tiles } from '../components/page.ts'
import { type Column, GrowingTable, Table } from '../components/table.ts'
import { Ago, Time } from '../components/time.ts'
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
const filterOf = (route: Route) => ({ include_deleted: wantsDeleted(route) ? 'true' : null, order: 'newest' })

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
        lead: 'Records are products, contacts and orders. The list shows the latest version of each, most recently changed first.',
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
          text: 'Create one with this request. Kontor keeps the version with the newest sourceUpdatedAt.',
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
    h(TextField, { id: 'record', label: type === 'products' ? 'SKU or id' : 'Id', placeholder: 'Complete id' }),
  )
}

type Fields = (data: JsonObject) => string

const OWN_COLUMNS: Record<RecordType, Column<StoredRecord>[]> = {
  products: [
    { label: 'Name', cell: fieldCell(data => text(data.name)), kind: 'long' },
    { label: 'SKU', cell: fieldCell(data => text(data.sku)), kind: 'long' },
    { label: 'Price', cell: fieldCell(productPrice), kind: 'number' },
  ],
  contacts: [
    { label: 'Name', cell: fieldCell(fullName), kind: 'long' },
    { label: 'E-mail', cell: fieldCell(data => text(data.email)), kind: 'long' },
  ],
  orders: [
    { label: 'Customer', cell: fieldCell(orderCustomer), kind: 'long' },
    { label: 'Amount', cell: fieldCell(orderTotal), kind: 'number' },
    { label: 'Status', cell: ({ data }) => (data?.status ? h(Badge, { text: text(data.status) }) : NONE) },
    { label: 'Items', cell: fieldCell(data => describeLines(data)), kind: 'long' },
  ],
}

/** Shorter ids do not wrap. */
const SHORT_ID = 24

function recordColumns(type: RecordType): Column<StoredRecord>[] {
  return [
    {
      label: 'Id',
      cell: record => html`
        <a class=${record.id.length <= SHORT_ID ? 'whole' : null} href=${link('record', { type, id: lookupId(record) })}>${record.id}</a>
        ${record.deleted && html` ${h(Badge, { text: 'deleted' })}`}
      `,
      kind: 'long',
    },
    ...OWN_COLUMNS[type],
    { label: 'Updated at source', cell: ({ sourceUpdatedAt }) => h(Time, { at: sourceUpdatedAt }) },
    { label: 'Updated in Kontor', cell: ({ updatedAt }) => h(Ago, { at: updatedAt }) },
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
function recordTitle({ entityType, data, id }: StoredRecord): string {
  if (entityType === 'order') return `Order ${text(data?.number ?? data?.name ?? id)}`
  const name = fullName(data ?? {})
  return name === NONE ? text(data?.email ?? id) : name
}

function orderTotal(data: JsonObject): string {
  const total = firstValue(data, 'amount', 'total', 'total_price', 'value', 'revenue')
  const amount = parseAmount(total)
  return amount === null ? text(total) : money(amount, text(data.currency ?? ''))
}

function orderCustomer(data: JsonObject): string {
  return text(
    firstValue(data, 'customer_name', 'customerName', 'email', 'contactId', 'contact_id', 'customerId', 'customer_id'),
  )
}

function productPrice(data: JsonObject): string {
  const amount = parseAmount(data.price)
  return amount === null ? text(data.price) : money(amount, text(data.currency ?? ''))
}

type Line = {
  name?: unknown
  sku?: unknown
  quantity?: unknown
  unit_price?: unknown
  price?: unknown
  total?: unknown
}

function linesOf(data: JsonObject): Line[] {
  const lines = firstValue(data, 'lines', 'line_items', 'lineItems', 'items')
  return Array.isArray(lines) ? lines.filter(line => typeof line === 'object' && line !== null) : []
}

function describeLines(data: JsonObject): string {
  const names = linesOf(data).map(({ name, sku }) => text(name ?? sku))
  return names.length > 3 ? `${names.slice(0, 2).join(', ')} and ${names.length - 2} more` : text(names.join(', '))
}

/** The fields that people look for, before the JSON. */
function Readable({ record: { entityType, data } }: { record: StoredRecord }): VNode | null {
  if (!data) return null
  const lines = linesOf(data)
  const amount = (value: unknown) => {
    const parsed = parseAmount(value)
    return parsed === null ? text(value) : money(parsed, text(data.currency ?? ''))
  }
  const contact = firstValue(data, 'contactId', 'contact_id')
  const tiles: (Tile | false)[] =
    entityType === 'order'
      ? [
          { label: 'Total', value: orderTotal(data) },
          { label: 'Status', value: words(text(data.status)) },
          {
            ...{ label: 'Customer', value: orderCustomer(data) },
            href: typeof contact === 'string' ? link('record', { type: 'contacts', id: contact }) : undefined,
          },
        ]
      : entityType === 'product'
        ? [
            { label: 'Price', value: productPrice(data) },
            { label: 'SKU', value: text(data.sku) },
          ]
        : [
            { label: 'E-mail', value: text(data.email) },
            { label: 'Country', value: text(firstValue(data, 'country', 'countryCode')) },
          ]
  return html`
    ${h(Tiles, { tiles, isSmall: true })}
    ${
      lines.length > 0 &&
      h(
        Section,
        { title: 'Lines' },
        h(Table<Line>, {
          caption: 'Lines',
          columns: [
            { label: 'Item', cell: ({ name, sku }) => text(name ?? sku), kind: 'long' },
            { label: 'Quantity', cell: ({ quantity }) => text(quantity), kind: 'number' },
            { label: 'Price', cell: line => amount(line.unit_price ?? line.price), kind: 'number' },
            { label: 'Total', cell: ({ total }) => amount(total), kind: 'number' },
          ],
          rows: lines,
        }),
      )
    }
  `
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
      h(Readable, { record }),
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
