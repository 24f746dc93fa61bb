import {
  arrayItems,
  arrayItemsOfField,
  type Document,
  isObject,
  type JsonObject,
  objectFields,
  openJson,
  storableText,
} from '../../json/json.ts'
import { parseTimestamp } from '../../time.ts'
import type { ValidationError } from '../../validation-error.ts'
import type { EventContext } from '../events.ts'

/** A request body read once; `error` says why it could not be read. */
export type Body = Document & { error: string | null }

export function openBody(text: string, isKnownPlain = false): Body {
  try {
    return { ...openJson(text, isKnownPlain), error: null }
  } catch (error) {
    const { message } = error as Error
    return { value: undefined, text: storableText(text), original: text, plain: false, error: message }
  }
}

/** The items of a body, which is one event, an array of events, or an object with a `batch`. */
export type Items = {
  values: unknown[]
  form: 'single' | 'array' | 'batch'
  envelope: Envelope
}

/** Reads the items of a body. Returns null, and adds an error, if the body cannot contain any. */
export function readItems(body: Body, context: EventContext, errors: ValidationError[]): Items | null {
  const { value } = body
  if (body.error !== null) return reject(errors, '', body.error)
  if (!mayBeBatch(context)) return { values: [value], form: 'single', envelope: NO_ENVELOPE }
  if (Array.isArray(value)) return { values: value, form: 'array', envelope: NO_ENVELOPE }
  if (!isObject(value) || !readsBatchField(context)) {
    return { values: [value], form: 'single', envelope: NO_ENVELOPE }
  }
  if (Array.isArray(value.batch)) {
    return { values: value.batch, form: 'batch', envelope: readEnvelope(value) }
  }
  if (value.batch !== undefined || (context.route === 'cdp' && context.kind === 'batch')) {
    return reject(errors, '/batch', 'batch must be an array of events')
  }
  return { values: [value], form: 'single', envelope: NO_ENVELOPE }
}

/** The raw text of each item. */
export function rawItems(text: string, form: Items['form']): string[] {
  if (form === 'single') return [text]
  return form === 'array' ? arrayItems(text) : arrayItemsOfField(text, 'batch')
}

/** The raw text of the context that the items of a batch share. */
export function rawEnvelopeContext(text: string, envelope: Envelope): string | null {
  if (!envelope.context) return null
  return objectFields(text).findLast(([key]) => key === 'context')?.[1] ?? null
}

/**
 * Extracts one item of a request as a request of its own, in its raw text, so that a dead letter contains only the item
 * that failed. The shared fields of a batch stay with the item.
 */
export function itemAlone(text: string, context: EventContext, index: number): { text: string; context: EventContext } {
  const { items: _, ...rest } = context
  const items = readItems(openBody(text), context, [])
  if (!items || items.form === 'single') return { text, context: rest }
  const raw = rawItems(text, items.form)[index]!
  if (items.form === 'array') return { text: `[${raw}]`, context: rest }
  const envelope = objectFields(text).filter(([key]) => key === 'sentAt' || key === 'context')
  const fields = envelope.map(([key, value]) => `${JSON.stringify(key)}:${value},`).join('')
  return { text: `{${fields}"batch":[${raw}]}`, context: rest }
}

/** The raw text of an item of a batch, and the number of items. Null if the body is not a batch or has no such item. */
export function findBatchItem(
  body: string,
  context: EventContext,
  index: number,
): { text: string; items: number } | null {
  const items = readItems(openBody(body), context, [])
  if (!items || items.form === 'single') return null
  const text = rawItems(body, items.form)[index]
  return text === undefined ? null : { text, items: items.values.length }
}

/** JSON pointer of an item. */
export function pointerTo(form: Items['form'], index: number): string {
  if (form === 'single') return ''
  return form === 'array' ? `/${index}` : `/batch/${index}`
}

function mayBeBatch(context: EventContext): boolean {
  if (context.route === 'cdp') return context.kind === 'batch' || context.kind === 'any'
  return context.route === 'inbound'
}

/** On webhook sources a field `batch` has no special meaning. */
function readsBatchField(context: EventContext): boolean {
  return context.route === 'cdp' || (context.route === 'inbound' && context.sourceType === 'cdp')
}

function reject(errors: ValidationError[], pointer: string, message: string): null {
  errors.push({ pointer, message })
  return null
}

/** The fields of a batch that apply to all of its items. */
export type Envelope = { sentAt: Date | null; context: JsonObject | null }

export const NO_ENVELOPE: Envelope = { sentAt: null, context: null }

function readEnvelope(batch: JsonObject): Envelope {
  return { sentAt: parseTimestamp(batch.sentAt), context: isObject(batch.context) ? batch.context : null }
}

/** Limits of one request with events. Sizes are stored sizes: a shared context counts once per item. */
const MAX_ITEMS = 5_000
export const MAX_ITEM_BYTES = 65_536
export const MAX_STORED_BYTES = 16_777_216

/** Up to this many invalid items of a request are reported and kept as dead letters. The others are only counted. */
export const MAX_NAMED_REJECTIONS = 100

/** The stored sizes of a request's items. */
export type Sizes = {
  /** The error of an item that is too large, or null. */
  findError(index: number): ValidationError | null
  /** The total of the items at these indexes. */
  storedBytes(indexes: number[]): number
}

export function measureSizes(body: Body, items: Items, context: EventContext): Sizes {
  const bodyBytes = Buffer.byteLength(body.text)
  const shared = rawEnvelopeContext(body.text, items.envelope)
  const sharedBytes = shared === null ? 0 : Buffer.byteLength(shared)
  // If the whole body is below the limit of one item, every item is too. Then no item is measured.
  const raws = isBounded(context) && bodyBytes > MAX_ITEM_BYTES ? rawItems(body.text, items.form) : null
  const headerBytes = JSON.stringify(context.headers).length
  return {
    findError(index) {
      if (raws === null) return null
      const own = Buffer.byteLength(raws[index]!)
      const bytes = sharesContext(items.values[index]) ? own + sharedBytes : own
      if (bytes <= MAX_ITEM_BYTES) return null
      const message = `an event may have ${MAX_ITEM_BYTES} bytes, the shared context included; this one has ${bytes}`
      return { pointer: '', message }
    },
    storedBytes(indexes) {
      const sharing = sharedBytes === 0 ? 0 : indexes.filter(index => sharesContext(items.values[index])).length
      return bodyBytes + sharing * sharedBytes + indexes.length * headerBytes
    },
  }
}

/** Webhooks and automations are limited by the `max_body_bytes` of their source instead. */
function isBounded(context: EventContext): boolean {
  return context.route !== 'inbound' || context.sourceType === 'cdp'
}

function sharesContext(item: unknown): boolean {
  return isObject(item) && !Object.hasOwn(item as JsonObject, 'context')
}

/** The message for a request that is rejected as a whole, or null. */
export function tooManyItems(items: Items): string | null {
  const { length } = items.values
  return length > MAX_ITEMS ? `A request may hold ${MAX_ITEMS} events; this one has ${length}.` : null
}

export function tooManyBytes(bytes: number): string | null {
  if (bytes <= MAX_STORED_BYTES) return null
  return `The events of a request may take ${MAX_STORED_BYTES} bytes as they are stored, each with the shared context; these take ${bytes}.`
}
