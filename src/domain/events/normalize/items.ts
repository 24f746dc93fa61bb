import type { Fault } from '../../fault.ts'
import { type Document, isObject, openJson, storableText } from '../../json/json.ts'
import { arrayItems, arrayItemsOfField, objectFields } from '../../json/slices.ts'
import type { EventContext } from '../events.ts'
import { type Envelope, envelopeOf, NO_ENVELOPE } from './cdp.ts'

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
export function itemsOf(body: Body, context: EventContext, faults: Fault[]): Items | null {
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

function refuse(faults: Fault[], pointer: string, message: string): null {
  faults.push({ pointer, message })
  return null
}
