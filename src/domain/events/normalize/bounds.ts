import type { Fault } from '../../fault.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import type { EventContext } from '../events.ts'
import { type Body, type Items, rawEnvelopeContext, rawItems } from './items.ts'

/** What one request with events may hold. Sizes are those of what will be stored: a shared context counts for each item. */
export const MAX_ITEMS = 5_000
export const MAX_ITEM_BYTES = 65_536
export const MAX_STORED_BYTES = 16_777_216

/** So many of a request's invalid items are named and kept as dead letters; the others are counted. */
export const MAX_NAMED_REJECTIONS = 100

/** How large the items of a request become when they are stored. */
export type Sizes = {
  /** Why an item is too large, or null. */
  faultOf(index: number): Fault | null
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
