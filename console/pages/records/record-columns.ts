import { parseAmount } from '../../amount.ts'
import type { JsonObject, RecordType, StoredRecord } from '../../api/types.ts'
import { Badge } from '../../components/notice.ts'
import type { Column } from '../../components/table.ts'
import { Time } from '../../components/time.ts'
import { money, NONE, text } from '../../format.ts'
import { h, html } from '../../html.ts'
import { link } from '../../router.ts'

type Fields = (data: JsonObject) => string

const OWN_COLUMNS: Record<RecordType, Column<StoredRecord>[]> = {
  products: [
    { label: 'Name', cell: fieldOf(data => text(data.name)), kind: 'long' },
    { label: 'SKU', cell: fieldOf(data => text(data.sku)), kind: 'long', isMinor: true },
  ],
  contacts: [
    { label: 'Name', cell: fieldOf(nameOf), kind: 'long' },
    { label: 'E-mail', cell: fieldOf(data => text(data.email)), kind: 'long', isMinor: true },
  ],
  orders: [
    { label: 'Amount', cell: fieldOf(orderTotal), kind: 'number' },
    { label: 'Contact', cell: fieldOf(contactOf), kind: 'long', isMinor: true },
  ],
}

export function recordColumns(type: RecordType): Column<StoredRecord>[] {
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

/** Products are found by SKU. */
function lookupId({ entityType, id, data }: StoredRecord): string {
  return entityType === 'product' && data?.sku ? String(data.sku) : id
}

function fieldOf(read: Fields) {
  return ({ data }: StoredRecord) => read(data ?? {})
}

const firstOf = (data: JsonObject, ...names: string[]) =>
  names.map(name => data[name]).find(value => value !== undefined && value !== null)

function nameOf(data: JsonObject): string {
  const parts = [firstOf(data, 'firstName', 'first_name'), firstOf(data, 'lastName', 'last_name')]
  return text(data.name ?? parts.filter(Boolean).join(' '))
}

/** By what people know it; its id where it has no name. */
export function titleOf({ data, id }: StoredRecord): string {
  const name = nameOf(data ?? {})
  return name === NONE ? text(data?.email ?? id) : name
}

function orderTotal(data: JsonObject): string {
  const total = firstOf(data, 'amount', 'total', 'total_price', 'value', 'revenue')
  const amount = parseAmount(total)
  return amount === null ? text(total) : money(amount, text(data.currency ?? ''))
}

function contactOf(data: JsonObject): string {
  return text(firstOf(data, 'contactId', 'contact_id', 'customerId', 'customer_id', 'email'))
}
