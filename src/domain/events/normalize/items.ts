import type { Fault } from '../../fault.ts'
import { emailOf } from '../../identity/identity.ts'
import { readWebhook, typeOf, webhookPayload } from '../../inbound/webhook.ts'
import { type Document, isObject, type JsonObject, openJson, storableText } from '../../json/json.ts'
import { arrayItems, arrayItemsOfField, objectFields, withoutField } from '../../json/slices.ts'
import { parseTimestamp } from '../../time.ts'
import { CDP_KINDS, type CdpContext, type EventContext } from '../events.ts'
import { type Draft, idField, looseId, nameField, timeField } from './draft.ts'

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

/** What an item says, in whichever format its route has. */
export function readItem(
  value: unknown,
  context: EventContext,
  envelope: Envelope,
  faults: Fault[],
): Draft | null {
  if (!isObject(value)) {
    faults.push({ pointer: '', message: 'an event must be a JSON object' })
    return null
  }
  if (context.route === 'track' || isNative(value, context)) return readTrack(value, faults)
  if (context.route === 'cdp') return readCdp(value, context.kind, envelope, faults)
  if (context.sourceType !== 'cdp') return readWebhook(value, context, faults)
  const draft = readCdp(value, 'any', envelope, faults)
  if (!context.eventTypeOverride || draft.eventType === '') return draft
  return { ...draft, ...typeOf(value, draft.eventType, context.eventTypeOverride, faults) }
}

/** An item of a batch that is an event of our own form: servers send their history so. */
export function isNative(item: JsonObject, context: EventContext): boolean {
  const isBatch = context.route === 'cdp' && context.kind === 'batch'
  return isBatch && typeof item.event_type === 'string' && !namesKind(item)
}

/** The part of an item that is kept, in its raw text. */
export function payloadOf(
  raw: string,
  item: JsonObject,
  draft: Draft,
  context: EventContext,
  batchContext: string | null,
): string {
  if (context.route === 'track' || isNative(item, context)) return trackPayload(raw, item)
  if (context.route === 'cdp' || context.sourceType === 'cdp') return cdpPayload(raw, item, batchContext)
  return webhookPayload(raw, item, draft.subject)
}

const KINDS: ReadonlySet<string> = new Set(CDP_KINDS)

/** What a batch says for all of its items. */
export type Envelope = { sentAt: Date | null; context: JsonObject | null }

export const NO_ENVELOPE: Envelope = { sentAt: null, context: null }

function envelopeOf(batch: JsonObject): Envelope {
  return { sentAt: parseTimestamp(batch.sentAt), context: isObject(batch.context) ? batch.context : null }
}

/** An item as Segment, RudderStack and Jitsu send it; `kind` is what the route says. */
export function readCdp(
  item: JsonObject,
  kind: CdpContext['kind'],
  envelope: Envelope,
  faults: Fault[],
): Draft {
  const itemKind = kindOf(item, kind, faults)
  const context = isObject(item.context) ? item.context : envelope.context
  const traits = isObject(item.traits) ? item.traits : null
  const properties = isObject(item.properties) ? item.properties : null
  const contextTraits = context && isObject(context.traits) ? context.traits : null
  const timeName = item.timestamp === undefined || item.timestamp === null ? 'originalTimestamp' : 'timestamp'
  const messageId = idField(item.messageId, 'messageId', faults)
  // a group's traits are those of a company
  const ownEmail = itemKind === 'group' ? null : (traits?.email ?? properties?.email)
  return {
    eventType: itemKind === 'track' ? nameField(item.event, 'event', faults) : itemKind,
    kind: itemKind,
    inboundEventId: messageId,
    providerEventId: messageId,
    visitor: idField(item.anonymousId, 'anonymousId', faults),
    sessionId: looseId(context?.sessionId ?? context?.session_id ?? item.sessionId),
    userId: idField(item.userId, 'userId', faults),
    previousId: itemKind === 'alias' ? idField(item.previousId, 'previousId', faults) : null,
    email: emailOf(ownEmail) ?? emailOf(contextTraits?.email),
    subject: (itemKind === 'identify' || itemKind === 'group' ? (traits ?? contextTraits) : properties) ?? {},
    context,
    clientTime: item[timeName],
    ownTime: timeField(item[timeName], timeName, faults),
    sentAt: item.sentAt === undefined || item.sentAt === null ? envelope.sentAt : parseTimestamp(item.sentAt),
    userAgent: typeof context?.userAgent === 'string' ? context.userAgent : null,
    overriddenFrom: null,
    objectId: null,
  }
}

/** Whether an item says itself that it is a call of a customer-data platform, and of which kind. */
function namesKind({ type, kind }: JsonObject): boolean {
  const own = type ?? kind
  return typeof own === 'string' && KINDS.has(own)
}

function kindOf(item: JsonObject, routeKind: CdpContext['kind'], faults: Fault[]): string {
  if (namesKind(item)) return (item.type ?? item.kind) as string
  if (KINDS.has(routeKind)) return routeKind
  faults.push({ pointer: '/type', message: `type must be one of ${CDP_KINDS.join(', ')}` })
  return ''
}

/** The item as received, without the credential some SDKs put into it, and with the context of its batch. */
function cdpPayload(raw: string, item: JsonObject, batchContext: string | null): string {
  const payload = Object.hasOwn(item, 'writeKey') ? withoutField(raw, 'writeKey') : raw
  if (batchContext === null || Object.hasOwn(item, 'context')) return payload
  const rest = payload.slice(payload.indexOf('{') + 1)
  return `{"context":${batchContext}${/^\s*\}/.test(rest) ? '' : ','}${rest}`
}

/** Fields of an event in our own format with a meaning of their own; all others are kept in the payload beside `data`. */
const TRACK_FIELDS = new Set([
  'event_type',
  'visitor',
  'session_id',
  'user_id',
  'event_id',
  'occurred_at',
  'data',
  // a credential, where a client sends it in the body
  'writeKey',
])

function readTrack(item: JsonObject, faults: Fault[]): Draft {
  const { data = null } = item
  if (data !== null && !isObject(data)) faults.push({ pointer: '/data', message: 'data must be an object' })
  const subject = subjectOf(item, isObject(data) ? data : {})
  return {
    eventType: nameField(item.event_type, 'event_type', faults),
    kind: 'track',
    inboundEventId: idField(item.event_id, 'event_id', faults),
    providerEventId: null,
    visitor: idField(item.visitor, 'visitor', faults),
    sessionId: idField(item.session_id, 'session_id', faults),
    userId: idField(item.user_id, 'user_id', faults),
    previousId: null,
    email: emailOf(subject.email) ?? (isObject(subject.traits) ? emailOf(subject.traits.email) : null),
    subject,
    context: null,
    clientTime: item.occurred_at,
    ownTime: timeField(item.occurred_at, 'occurred_at', faults),
    sentAt: null,
    userAgent: null,
    overriddenFrom: null,
    objectId: looseId(subject.id),
  }
}

/** `data`, and the unknown fields beside it. */
function subjectOf(item: JsonObject, data: JsonObject): JsonObject {
  let merged: JsonObject | null = null
  for (const key of Object.keys(item)) {
    // Object.hasOwn: a field called `constructor` is a field like any other
    if (TRACK_FIELDS.has(key) || key === '__proto__' || Object.hasOwn(data, key)) continue
    merged ??= { ...data }
    merged[key] = item[key]
  }
  return merged ?? data
}

/** The raw text of `data`, with the raw text of the other fields put before its own. */
function trackPayload(raw: string, item: JsonObject): string {
  const { data = null } = item
  let dataText = '{}'
  let others = ''
  for (const [key, value] of objectFields(raw)) {
    if (key === 'data') dataText = data === null ? '{}' : value
    else if (!TRACK_FIELDS.has(key) && !(isObject(data) && Object.hasOwn(data, key))) {
      others += `${others && ','}${JSON.stringify(key)}:${value}`
    }
  }
  if (!others) return dataText
  return isObject(data) && Object.keys(data).length > 0 ? `{${others},${dataText.slice(1)}` : `{${others}}`
}
