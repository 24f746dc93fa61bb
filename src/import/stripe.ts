import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../domain/json/json.ts'
import { FileError, type Read, type Reading, type Row, readEachRow } from './rows.ts'

/** The event that describes an object. `at` is null if the time of the file applies. */
type Event = { type: string; at: number | null }

/**
 * Converts Stripe's objects to the events that the ledger reads. An object shows the state when the file was written. A payment or
 * a cancellation has its own time. The same object always becomes the same event.
 */
export function stripeReading({ time }: { time: Date }): Reading {
  return readEachRow(row => eventItem(row, Math.floor(time.getTime() / 1000)))
}

function eventItem({ line, cells: object, text }: Row, fileTime: number): Read {
  if (typeof object.id !== 'string' || object.id === '') return { line, column: 'id', reason: 'is missing' }
  if (object.object === 'event') return { line, id: object.id, text: text! }
  const buildEvent = typeof object.object === 'string' ? EVENTS[object.object] : undefined
  if (!buildEvent) {
    const name = JSON.stringify(object.object) ?? 'nothing'
    return { line, column: 'object', reason: `objects of type ${name} are not supported` }
  }
  const { type, at } = buildEvent(object)
  const id = `import-${hash('sha256', JSON.stringify(object), 'hex').slice(0, 40)}`
  const created = Math.min(at ?? fileTime, fileTime)
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
  invoice_payment: object => ({ type: 'invoice_payment.paid', at: paidAt(object) ?? seconds(object.created) }),
  refund: object => ({ type: 'refund.created', at: seconds(object.created) }),
  credit_note: object => ({ type: 'credit_note.created', at: seconds(object.created) }),
  // a lost dispute takes effect when it is lost, and the object does not contain that time
  dispute: object => ({ type: 'charge.dispute.closed', at: object.status === 'lost' ? null : seconds(object.created) }),
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
      return { type: Number(invoice.attempt_count) > 0 ? 'invoice.payment_failed' : 'invoice.finalized', at: null }
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

const LISTS = ['subscriptions?status=all&', 'invoices?', 'refunds?']
const ATTEMPTS = 6
const FIRST_PAUSE_MS = 500

/** Reads Stripe's list endpoints page by page. */
export async function* stripeRows({ url, key }: { url: string; key: string }): AsyncGenerator<Row[]> {
  for (const list of LISTS) {
    for (let after = ''; ; ) {
      const { data, has_more } = await fetchPage(`${url}/v1/${list}limit=100${after}`, key)
      yield data.map(cells => ({ line: 0, cells, text: JSON.stringify(cells) }))
      if (!has_more || data.length === 0) break
      after = `&starting_after=${encodeURIComponent(String(data.at(-1)!.id))}`
    }
  }
}

type Page = { data: Record<string, unknown>[]; has_more: boolean }

async function fetchPage(url: string, key: string): Promise<Page> {
  for (let attempt = 1; ; attempt++) {
    const answer = await fetch(url, {
      headers: { authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(60_000),
    }).catch((error: Error) => error)
    if (!(answer instanceof Error) && answer.ok) return (await answer.json()) as Page
    const mayPass = answer instanceof Error || answer.status === 429 || answer.status >= 500
    if (!mayPass || attempt === ATTEMPTS) throw new FileError(await describeFailure(url, answer))
    await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1))
  }
}

async function describeFailure(url: string, answer: Response | Error): Promise<string> {
  const where = url.split('?')[0]
  if (answer instanceof Error) return `${where} did not respond: ${answer.message}`
  const body = (await answer.json().catch(() => null)) as { error?: { message?: string } } | null
  return `${where} answered ${answer.status}${body?.error?.message ? `: ${body.error.message}` : ''}.`
}
