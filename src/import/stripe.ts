import { hash } from 'node:crypto'
import { arrayItems, isObject, type JsonObject, objectFields, parseJson } from '../domain/json/json.ts'
import { FileError, jsonTexts, type Read, type Reading, type Rejection, type Row, readEachRow } from './rows.ts'

/** The event that describes an object. `at`: the time of the state, in seconds; null: the object does not contain it. */
type Event = { type: string; at: number | null }

/**
 * Converts Stripe's objects to the events that the ledger reads. `asOf`: when the objects were read from Stripe, in seconds; null:
 * unknown. The same object with the same time always becomes the same event, and a state that returns becomes another one.
 */
export function stripeReading({ asOf }: { asOf: number | null }): Reading {
  return readEachRow(row => eventItem(row, row.readAt ?? asOf))
}

function eventItem({ line, cells: object, text }: Row, asOf: number | null): Read {
  if (object.object === undefined)
    return { line, column: null, reason: 'the object has no field "object"; expected a Stripe list or Stripe objects' }
  if (typeof object.id !== 'string' || object.id === '') return { line, column: 'id', reason: 'is missing' }
  if (object.object === 'event') return { line, id: object.id, text: text! }
  const buildEvent = typeof object.object === 'string' ? EVENTS[object.object] : undefined
  if (!buildEvent) return { line, column: 'object', reason: `${JSON.stringify(object.object)} is not supported` }
  const { type, at } = buildEvent(object)
  if (at === null && asOf === null)
    throw new FileError(
      `Line ${line}: a ${object.object} does not contain the time of its state. Set --as-of to the time at which the file was exported, for example --as-of 2026-01-31T09:30:00Z.`,
    )
  if (asOf !== null && (seconds(object.created) ?? 0) > asOf)
    return { line, column: 'created', reason: 'is later than --as-of' }
  const created = Math.min(at ?? asOf!, asOf ?? at!)
  const id = `import-${hash('sha256', `${created} ${JSON.stringify(object)}`, 'hex').slice(0, 40)}`
  const livemode = object.livemode === false ? ',"livemode":false' : ''
  const event = `{"id":"${id}","object":"event","type":"${type}","created":${created}${livemode},"data":{"object":${text}}}`
  return { line, id: object.id, text: event }
}

const EVENTS: Record<string, (object: JsonObject) => Event> = {
  customer: () => ({ type: 'customer.updated', at: null }),
  subscription: object =>
    object.status === 'canceled'
      ? { type: 'customer.subscription.deleted', at: seconds(object.ended_at) ?? seconds(object.canceled_at) }
      : { type: 'customer.subscription.updated', at: null },
  invoice: invoiceEvent,
  charge: object => ({
    type: object.status === 'failed' ? 'charge.failed' : 'charge.succeeded',
    at: seconds(object.created),
  }),
  payment_intent: object => ({
    type: object.status === 'succeeded' ? 'payment_intent.succeeded' : 'payment_intent.created',
    at: seconds(object.created),
  }),
  invoice_payment: object => ({
    type: 'invoice_payment.paid',
    at: paidAt(object) ?? seconds(object.created),
  }),
  // a refund can fail after it succeeded, and the object does not contain that time
  refund: object => ({
    type: 'refund.created',
    at: (object.status ?? 'succeeded') === 'succeeded' ? seconds(object.created) : null,
  }),
  credit_note: object => ({
    type: 'credit_note.created',
    at: seconds(object.voided_at) ?? seconds(object.created),
  }),
  // a lost dispute takes effect when it is lost, and the object does not contain that time
  dispute: object => ({
    type: 'charge.dispute.closed',
    at: object.status === 'lost' ? null : seconds(object.created),
  }),
  discount: () => ({ type: 'customer.discount.created', at: null }),
  coupon: object => ({ type: 'coupon.created', at: seconds(object.created) }),
  promotion_code: object => ({ type: 'promotion_code.created', at: seconds(object.created) }),
}

function invoiceEvent(invoice: JsonObject): Event {
  switch (invoice.status) {
    case 'paid':
      return { type: 'invoice.paid', at: paidAt(invoice) }
    case 'void':
      return { type: 'invoice.voided', at: transition(invoice, 'voided_at') }
    case 'uncollectible':
      return { type: 'invoice.marked_uncollectible', at: transition(invoice, 'marked_uncollectible_at') }
    case 'open':
      // an open invoice with an attempt has a failed payment
      return {
        type: Number(invoice.attempt_count) > 0 ? 'invoice.payment_failed' : 'invoice.finalized',
        at: null,
      }
    default:
      return { type: 'invoice.updated', at: null }
  }
}

function paidAt(object: JsonObject): number | null {
  return transition(object, 'paid_at')
}

function transition({ status_transitions: transitions }: JsonObject, name: string): number | null {
  return seconds((transitions as JsonObject | null | undefined)?.[name])
}

function seconds(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null
}

/** The last page of each list in a file, by the list's URL. */
type LastPages = Map<string | null, { line: number; hasMore: boolean }>

/**
 * The objects of a file: responses of Stripe's list endpoints, arrays or single objects. After the last one, fails if a list is
 * incomplete.
 */
export async function* stripeFileRows(chunks: AsyncIterable<string>): AsyncGenerator<(Row | Rejection)[]> {
  const lastPages: LastPages = new Map()
  for await (const texts of jsonTexts(chunks))
    yield texts.flatMap(each => ('reason' in each ? [each] : documentRows(each.text, each.line, lastPages)))
  for (const [url, { line, hasMore }] of lastPages)
    if (hasMore)
      throw new FileError(
        `${url === null ? 'A list in the file' : `The list ${url}`} is incomplete: its last page, at line ${line}, has "has_more": true. Export all pages, or let Kontor read them from Stripe with --key-file.`,
      )
}

function documentRows(text: string, line: number, lastPages: LastPages): (Row | Rejection)[] {
  let value: unknown
  try {
    value = parseJson(text, 'The file')
  } catch (error) {
    return [{ line, column: null, reason: (error as Error).message }]
  }
  if (Array.isArray(value)) return itemRows(text, text, line, lastPages)
  if (!isObject(value)) return [{ line, column: null, reason: 'is not a JSON object' }]
  if (value.object !== 'list' && value.object !== 'search_result') return [{ line, cells: value, text }]
  if (!Array.isArray(value.data)) return [{ line, column: 'data', reason: 'is not an array' }]
  lastPages.set(value.url ? String(value.url) : null, { line, hasMore: value.has_more === true })
  return itemRows(text, objectFields(text).findLast(([name]) => name === 'data')![1], line, lastPages)
}

function itemRows(text: string, array: string, firstLine: number, lastPages: LastPages): (Row | Rejection)[] {
  let [from, line] = [0, firstLine]
  return arrayItems(array).flatMap(item => {
    const begin = text.indexOf(item, from)
    for (let i = text.indexOf('\n', from); i >= 0 && i < begin; i = text.indexOf('\n', i + 1)) line++
    from = begin
    return documentRows(item, line, lastPages)
  })
}
