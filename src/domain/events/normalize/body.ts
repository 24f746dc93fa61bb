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

/** A request body read once; `fault`: why it could not be read, for the sender. */
export type Body = Document & { fault: string | null }

export function openBody(text: string, isKnownPlain = false): Body {
  try {
    return { ...openJson(text, isKnownPlain), fault: null }
  } catch (error) {
    const fault = (error as Error).message
    return { value: undefined, text: storableText(text), original: text, plain: false, fault }
  }
}

/** What a body holds, and where: one event, an array of them, or an object with a `batch`. */
export type Items = {
  values: unknown[]
  form: 'single' | 'array' | 'batch'
  envelope: Envelope
}

/** The items of a body; null, with a fault, when it can hold none. */
export function itemsOf(body: Body, context: EventContext, faults: ValidationError[]): Items | null {
  const { value } = body
  if (body.fault !== null) return refuse(faults, '', body.fault)
  if (!mayBeBatch(context)) return { values: [value], form: 'single', envelope: NO_ENVELOPE }
  if (Array.isArray(value)) return { values: value, form: 'array', envelope: NO_ENVELOPE }
  if (!isObject(value) || !readsBatchField(context)) {
    return { values: [value], form: 'single', envelope: NO_ENVELOPE }
  }
  if (Array.isArray(value.batch)) {
    return { values: value.batch, form: 'batch', envelope: envelopeOf(value) }
  }
  if (value.batch !== undefined || (context.route === 'cdp' && context.kind === 'batch')) {
    return refuse(faults, '/batch', 'batch must be an array of events')
  }
  return { values: [value], form: 'single', envelope: NO_ENVELOPE }
}

/** The raw text of each item. */
export function rawItems(text: string, form: Items['form']): string[] {
  if (form === 'single') return [text]
  return form === 'array' ? arrayItems(text) : arrayItemsOfField(text, 'batch')
}

/** The raw text of the context that a batch gives to its items. */
export function rawEnvelopeContext(text: string, envelope: Envelope): string | null {
  if (!envelope.context) return null
  return objectFields(text).findLast(([key]) => key === 'context')?.[1] ?? null
}

/**
 * One item of a request as a request of its own, in its raw text: a dead letter holds no more than what it is about.
 * What a batch says for all of its items stays with it.
 */
export function itemAlone(
  text: string,
  context: EventContext,
  index: number,
): { text: string; context: EventContext } {
  const { items: _, ...rest } = context
  const items = itemsOf(openBody(text), context, [])
  if (!items || items.form === 'single') return { text, context: rest }
  const raw = rawItems(text, items.form)[index]!
  if (items.form === 'array') return { text: `[${raw}]`, context: rest }
  const envelope = objectFields(text).filter(([key]) => key === 'sentAt' || key === 'context')
  const fields = envelope.map(([key, value]) => `${JSON.stringify(key)}:${value},`).join('')
  return { text: `{${fields}"batch":[${raw}]}`, context: rest }
}

/** An item of a batch as it was written, and how many there are; null where the body is no batch, or has no such item. */
export function itemOfBatch(
  body: string,
  context: EventContext,
  index: number,
): { text: string; items: number } | null {
  const items = itemsOf(openBody(body), context, [])
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

/** On webhook sources a field `batch` is the sender's own business. */
function readsBatchField(context: EventContext): boolean {
  return context.route === 'cdp' || (context.route === 'inbound' && context.sourceType === 'cdp')
}

function refuse(faults: ValidationError[], pointer: string, message: string): null {
  faults.push({ pointer, message })
  return null
}

/** What a batch says for all of its items. */
export type Envelope = { sentAt: Date | null; context: JsonObject | null }

export const NO_ENVELOPE: Envelope = { sentAt: null, context: null }

function envelopeOf(batch: JsonObject): Envelope {
  return { sentAt: parseTimestamp(batch.sentAt), context: isObject(batch.context) ? batch.context : null }
}

/** What one request with events may hold. Sizes are those of what will be stored: a shared context counts for each item. */
const MAX_ITEMS = 5_000
export const MAX_ITEM_BYTES = 65_536
export const MAX_STORED_BYTES = 16_777_216

/** So many of a request's invalid items are named and kept as dead letters; the others are counted. */
export const MAX_NAMED_REJECTIONS = 100

/** How large the items of a request become when they are stored. */
export type Sizes = {
  /** Why an item is too large, or null. */
  faultOf(index: number): ValidationError | null
  /** Of the items at these places. */
  storedBytes(indexes: number[]): number
}

export function sizesOf(body: Body, items: Items, context: EventContext): Sizes {
  const bodyBytes = Buffer.byteLength(body.text)
  const shared = rawEnvelopeContext(body.text, items.envelope)
  const sharedBytes = shared === null ? 0 : Buffer.byteLength(shared)
  // The body holds each item and the context: where it is small enough, so are they, and nothing is measured.
  const raws = isBounded(context) && bodyBytes > MAX_ITEM_BYTES ? rawItems(body.text, items.form) : null
  const headerBytes = JSON.stringify(context.headers).length
  return {
    faultOf(index) {
      if (raws === null) return null
      const own = Buffer.byteLength(raws[index]!)
      const bytes = sharesContext(items.values[index]) ? own + sharedBytes : own
      if (bytes <= MAX_ITEM_BYTES) return null
      const message = `an event may have ${MAX_ITEM_BYTES} bytes, the shared context included; this one has ${bytes}`
      return { pointer: '', message }
    },
    storedBytes(indexes) {
      const sharing =
        sharedBytes === 0 ? 0 : indexes.filter(index => sharesContext(items.values[index])).length
      return bodyBytes + sharing * sharedBytes + indexes.length * headerBytes
    },
  }
}

/** Webhooks and automations are bounded by the `max_body_bytes` of their source. */
function isBounded(context: EventContext): boolean {
  return context.route !== 'inbound' || context.sourceType === 'cdp'
}

function sharesContext(item: unknown): boolean {
  return isObject(item) && !Object.hasOwn(item as JsonObject, 'context')
}

/** Why a request is refused as a whole, or null. */
export function tooManyItems(items: Items): string | null {
  const { length } = items.values
  return length > MAX_ITEMS ? `A request may hold ${MAX_ITEMS} events; this one has ${length}.` : null
}

export function tooManyBytes(bytes: number): string | null {
  if (bytes <= MAX_STORED_BYTES) return null
  return `The events of a request may take ${MAX_STORED_BYTES} bytes as they are stored, each with the shared context; these take ${bytes}.`
}
