import { data } from '../api.js'
import { h } from '../dom.js'
import { money, text, time } from '../format.js'
import { action, field, form } from '../parts/forms.js'
import { badge, emptyState } from '../parts/notices.js'
import { page, tabs } from '../parts/page.js'
import { growingTable } from '../parts/table.js'
import { link } from '../routes.js'
import { recordLine, whereKeysAre } from './samples.js'

export const RECORD_TYPES = { products: 'product', contacts: 'contact', orders: 'order' }

export async function view({ parts, query, signal, refresh }) {
  const type = Object.hasOwn(RECORD_TYPES, parts[1]) ? parts[1] : 'products'
  const entityType = RECORD_TYPES[type]
  const filters = { include_deleted: query.get('deleted') === 'yes' ? 'true' : undefined }
  const first = await data(`/${type}`, { query: filters, signal })
  return page(
    'Records',
    {
      actions: [action('Refresh', refresh, { id: 'refresh' })],
      lead: 'In the order of their last change here.',
    },
    tabs(
      'Kinds of records',
      Object.keys(RECORD_TYPES).map(name => ({ name, title: name, href: link(['records', name]) })),
      type,
    ),
    openForm(type, entityType),
    growingTable({
      caption: type,
      columns: columnsOf(type),
      first,
      load: cursor => data(`/${type}`, { query: { ...filters, cursor } }),
      empty: emptyState({
        title: `No ${type} yet.`,
        text: 'Write one; the newest sourceUpdatedAt wins.',
        curl: recordLine(entityType),
        action: whereKeysAre('private'),
      }),
    }),
    h(
      'p',
      { class: 'faint' },
      filters.include_deleted
        ? h('a', { href: link(['records', type]) }, 'Without deleted ones')
        : h('a', { href: link(['records', type], { deleted: 'yes' }) }, 'With deleted ones'),
    ),
  )
}

function openForm(type, entityType) {
  const label = entityType === 'product' ? 'SKU or id' : 'Id'
  return form(
    {
      submit: 'Open',
      class: 'filter',
      run: ({ record }) => {
        if (record.trim()) location.hash = link(['records', type, record.trim()])
      },
    },
    field(label, h('input', { id: 'record', autocomplete: 'off', spellcheck: 'false' })),
  )
}

function columnsOf(type) {
  const about = {
    products: [
      { label: 'Name', cell: ({ data }) => text(data?.name), long: true },
      { label: 'SKU', cell: ({ data }) => text(data?.sku), minor: true, long: true },
    ],
    contacts: [
      { label: 'Name', cell: ({ data }) => text(nameOf(data ?? {})), long: true },
      { label: 'E-mail', cell: ({ data }) => text(data?.email), minor: true, long: true },
    ],
    orders: [
      { label: 'Amount', cell: ({ data }) => amountOf(data ?? {}), number: true },
      { label: 'Contact', cell: ({ data }) => text(contactOf(data ?? {})), minor: true, long: true },
    ],
  }
  return [
    {
      label: 'Id',
      cell: ({ id, deleted, data: fields }) => [
        h('a', { href: link(['records', type, type === 'products' ? (fields?.sku ?? id) : id]) }, id),
        deleted && [' ', badge('deleted')],
      ],
      long: true,
    },
    ...about[type],
    { label: 'Changed', cell: ({ sourceUpdatedAt }) => time(sourceUpdatedAt) },
    { label: 'Changed here', cell: ({ updatedAt }) => time(updatedAt), minor: true },
  ]
}

const firstOf = (data, ...names) =>
  names.map(name => data[name]).find(value => value !== undefined && value !== null)

function nameOf(data) {
  const parts = [firstOf(data, 'firstName', 'first_name'), firstOf(data, 'lastName', 'last_name')]
  return data.name ?? (parts.filter(Boolean).join(' ') || null)
}

function amountOf(data) {
  const amount = firstOf(data, 'amount', 'total', 'total_price', 'value', 'revenue')
  return typeof amount === 'number' ? money(amount, data.currency) : text(amount)
}

function contactOf(data) {
  return firstOf(data, 'contactId', 'contact_id', 'customerId', 'customer_id', 'email')
}
