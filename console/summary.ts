import { parseAmount } from './amount.ts'
import type { Event } from './api/types.ts'
import { lowerWords, money, plural } from './format.ts'

/** The places where senders put the content of an event, the most specific first. */
const PLACES = ['properties', 'data', 'traits', 'object'] as const
const AMOUNTS = ['amount', 'total', 'value', 'revenue', 'amount_due', 'total_price', 'price', 'unit_amount']
const NAMES = ['path', 'page', 'title', 'product', 'product_name', 'name', 'plan', 'sku', 'order_id', 'number', 'query']
const LONGEST = 120

type Fields = Record<string, unknown>
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What an event is about, in a few words: the page, the product, the amount. Empty if nothing is recognized. */
export function summarize({ payload, event_type: type }: Pick<Event, 'payload' | 'event_type'>): string {
  const fields = contentOf(payload)
  const parts = [describeObject(fields), describeAmount(fields), describeItems(fields), describeStatus(fields, type)]
  const text = [...new Set(parts.filter(part => part !== ''))].join(' · ')
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text
}

/** Merges the nested content over the envelope: a Stripe event has data.object, a CDP event has properties. */
export function contentOf(payload: unknown): Fields {
  if (!isFields(payload)) return {}
  const inner = PLACES.map(place => payload[place]).find(isFields)
  return inner ? { ...payload, ...contentOf(inner) } : payload
}

function textIn(fields: Fields, names: string[]): string {
  const found = names.map(name => fields[name]).find(value => typeof value === 'string' && value.trim() !== '')
  return found === undefined ? '' : pathOf(String(found))
}

/** https://shop.example/products/1 → /products/1 */
function pathOf(text: string): string {
  const url = /^https?:\/\/[^/]+(\/[^?#]*)?/.exec(text)
  return url ? (url[1] ?? '/') : text
}

function describeObject(fields: Fields): string {
  return textIn(fields, [...NAMES, 'url', 'customer_email', 'email'])
}

function describeAmount(fields: Fields): string {
  const currency = fields.currency
  const amount = AMOUNTS.map(name => parseAmount(fields[name])).find(value => value !== null)
  return amount === undefined || amount === null || typeof currency !== 'string'
    ? ''
    : money(amount, currency.toUpperCase())
}

function describeItems(fields: Fields): string {
  const items = [fields.items, fields.lines, fields.products].find(Array.isArray)
  if (!items || items.length === 0) return ''
  const first = isFields(items[0]) ? textIn(items[0], ['name', 'title', 'product', 'sku']) : ''
  return items.length === 1 && first !== '' ? first : plural(items.length, 'item')
}

function describeStatus({ status }: Fields, type: string): string {
  return typeof status === 'string' && !type.includes(status) ? lowerWords(status) : ''
}
