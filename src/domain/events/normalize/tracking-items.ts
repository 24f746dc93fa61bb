import { MAX_ID_LENGTH, parseEmail } from '../../identity/identifiers.ts'
import {
  arrayItems,
  arrayItemsOfField,
  type Document,
  isObject,
  type JsonObject,
  MAX_DEPTH,
  NESTED_TOO_DEEP,
  nestingDepth,
  objectFields,
  openJson,
  rawField,
  storableText,
  withoutField,
} from '../../json/json.ts'
import { parseTimestamp, TIME_FORMAT } from '../../time.ts'
import type { ValidationError } from '../../validation-error.ts'
import { CDP_KINDS, type CdpContext, type EventContext, MAX_EVENT_TYPE_LENGTH, type NormalizedEvent } from '../types.ts'
/** The content of one item, before its entry id and times are added. */
export type Draft = Pick<
  NormalizedEvent,
  'eventType' | 'inboundEventId' | 'providerEventId' | 'visitor' | 'sessionId' | 'userId' | 'previousId' | 'email'
> & {
  kind: string | null
  subject: JsonObject
  context: JsonObject | null
  /** The event's own time, as sent and as parsed. */
  clientTime: unknown
  ownTime: Date | null
  sentAt: Date | null
  userAgent: string | null
  overriddenFrom: string | null
  /** The id of the object that the event is about, if any. Events of one object stay in order. */
  objectId: string | null
}

/** Reads a name of 1 to 200 characters. */
export function nameField(value: unknown, field: string, errors: ValidationError[]): string {
  if (typeof value !== 'string') {
    const message = value === undefined || value === null ? `${field} is required` : `${field} must be a string`
    errors.push({ pointer: `/${field}`, message })
    return ''
  }
  if (value === '') errors.push({ pointer: `/${field}`, message: `${field} must not be empty` })
  else if (isLongerThan(value, MAX_EVENT_TYPE_LENGTH)) {
    const message = `${field} must not be longer than ${MAX_EVENT_TYPE_LENGTH} characters`
    errors.push({ pointer: `/${field}`, message })
  }
  return value
}

/** Reads an optional id: a string, or a number that is converted to a string. */
export function idField(value: unknown, field: string, errors: ValidationError[]): string | null {
  if (value === undefined || value === null || value === '') return null
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') {
    errors.push({ pointer: `/${field}`, message: `${field} must be a string` })
  } else if (isLongerThan(value, MAX_ID_LENGTH)) {
    const message = `${field} must not be longer than ${MAX_ID_LENGTH} characters`
    errors.push({ pointer: `/${field}`, message })
  } else {
    return value
  }
  return null
}

/** Reads an id from a field that may contain anything. Returns null if the value is not a usable id. */
export function looseId(value: unknown): string | null {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_LENGTH ? value : null
}

export function timeField(value: unknown, field: string, errors: ValidationError[]): Date | null {
  if (value === undefined || value === null) return null
  const time = parseTimestamp(value)
  if (!time) errors.push({ pointer: `/${field}`, message: `${field} must be ${TIME_FORMAT}` })
  return time
}

/** Counts characters as PostgreSQL does: an emoji is one. */
export function isLongerThan(text: string, max: number): boolean {
  if (text.length <= max) return false
  return text.length > 2 * max || [...text].length > max
}

const KINDS: ReadonlySet<string> = new Set(CDP_KINDS)

/** Whether an item of a batch is an event in our own format. Servers send their history this way. */
export function isNative(item: JsonObject, context: EventContext): boolean {
  const isBatch = context.route === 'cdp' && context.kind === 'batch'
  return isBatch && typeof item.event_type === 'string' && !namesKind(item)
}

/** The event type of an item of a request with a tracking key, or null if it has none. Reads nothing else. */
export function eventTypeOf(item: unknown, context: EventContext): string | null {
  if (!isObject(item) || context.route === 'inbound') return null
  if (context.route === 'track' || isNative(item, context)) return stringOrNull(item.event_type)
  const kind = findKind(item, context.kind)
  return kind === 'track' ? stringOrNull(item.event) : kind
}

function stringOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** Reads an item in the format of Segment, RudderStack and Jitsu. `kind` is the kind that the route implies. */
export function readCdp(
  item: JsonObject,
  kind: CdpContext['kind'],
  envelope: Envelope,
  errors: ValidationError[],
): Draft {
  const itemKind = readKind(item, kind, errors)
  const context = isObject(item.context) ? readContext(item.context) : envelope.context
  const traits = isObject(item.traits) ? item.traits : null
  const properties = isObject(item.properties) ? item.properties : null
  const timeName = item.timestamp === undefined || item.timestamp === null ? 'originalTimestamp' : 'timestamp'
  const idName = item.messageId === undefined || item.messageId === null ? 'event_id' : 'messageId'
  const messageId = idField(item[idName], idName, errors)
  // The traits of a group describe a company.
  const ownEmail = itemKind === 'group' ? null : (traits?.email ?? properties?.email)
  return {
    eventType: itemKind === 'track' ? nameField(item.event, 'event', errors) : itemKind,
    kind: itemKind,
    inboundEventId: messageId,
    providerEventId: messageId,
    visitor: idField(item.anonymousId, 'anonymousId', errors),
    sessionId: looseId(context?.sessionId ?? item.sessionId),
    userId: idField(item.userId, 'userId', errors),
    previousId: itemKind === 'alias' ? idField(item.previousId, 'previousId', errors) : null,
    email: parseEmail(ownEmail) ?? context?.email ?? null,
    subject: (itemKind === 'identify' || itemKind === 'group' ? (traits ?? context?.traits) : properties) ?? {},
    context: context?.value ?? null,
    clientTime: item[timeName],
    ownTime: timeField(item[timeName], timeName, errors),
    sentAt: item.sentAt === undefined || item.sentAt === null ? envelope.sentAt : parseTimestamp(item.sentAt),
    userAgent: context?.userAgent ?? null,
    overriddenFrom: null,
    objectId: null,
  }
}

/** Whether the item itself has a valid CDP kind. */
function namesKind({ type, kind }: JsonObject): boolean {
  const own = type ?? kind
  return typeof own === 'string' && KINDS.has(own)
}

function readKind(item: JsonObject, routeKind: CdpContext['kind'], errors: ValidationError[]): string {
  const kind = findKind(item, routeKind)
  if (kind === null) errors.push({ pointer: '/type', message: `type must be one of ${CDP_KINDS.join(', ')}` })
  return kind ?? ''
}

function findKind(item: JsonObject, routeKind: CdpContext['kind']): string | null {
  if (namesKind(item)) return (item.type ?? item.kind) as string
  return KINDS.has(routeKind) ? routeKind : null
}

/** The item as received, without the credential that some SDKs put into it, and with the context of its batch. */
export function cdpPayload(raw: string, item: JsonObject, batchContext: string | null): string {
  const payload = Object.hasOwn(item, 'writeKey') ? withoutField(raw, 'writeKey') : raw
  if (batchContext === null || Object.hasOwn(item, 'context')) return payload
  const rest = payload.slice(payload.indexOf('{') + 1)
  return `{"context":${batchContext}${/^\s*\}/.test(rest) ? '' : ','}${rest}`
}

/** Fields of our own format with a defined meaning. All others are kept in the payload beside `data`. */
const TRACK_FIELDS = new Set([
  'event_type',
  'visitor',
  'session_id',
  'user_id',
  'event_id',
  'occurred_at',
  'data',
  // A credential, if a client sends it in the body.
  'writeKey',
])

export function readTrack(item: JsonObject, errors: ValidationError[]): Draft {
  const { data = null } = item
  if (data !== null && !isObject(data)) errors.push({ pointer: '/data', message: 'data must be an object' })
  const subject = buildSubject(item, isObject(data) ? data : {})
  return {
    eventType: nameField(item.event_type, 'event_type', errors),
    kind: 'track',
    inboundEventId: idField(item.event_id, 'event_id', errors),
    providerEventId: null,
    visitor: idField(item.visitor, 'visitor', errors),
    sessionId: idField(item.session_id, 'session_id', errors),
    userId: idField(item.user_id, 'user_id', errors),
    previousId: null,
    email: parseEmail(subject.email) ?? (isObject(subject.traits) ? parseEmail(subject.traits.email) : null),
    subject,
    context: null,
    clientTime: item.occurred_at,
    ownTime: timeField(item.occurred_at, 'occurred_at', errors),
    sentAt: null,
    userAgent: null,
    overriddenFrom: null,
    objectId: looseId(subject.id),
  }
}

/** `data`, and the unknown fields beside it. */
function buildSubject(item: JsonObject, data: JsonObject): JsonObject {
  let merged: JsonObject | null = null
  for (const key of Object.keys(item)) {
    // Object.hasOwn, because a field may be called `constructor`.
    if (TRACK_FIELDS.has(key) || key === '__proto__' || Object.hasOwn(data, key)) continue
    merged ??= { ...data }
    merged[key] = item[key]
  }
  return merged ?? data
}

/** The raw text of `data`, with the raw text of the other fields before its own fields. */
export function trackPayload(raw: string, item: JsonObject): string {
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

/** A request body read once; `error` says why it could not be read. */
export type Body = Document & { error: string | null }

export function openBody(text: string, isKnownPlain = false): Body {
  try {
    const document = openJson(text, isKnownPlain)
    return { ...document, error: document.isTooDeep && !isBatch(document.value) ? NESTED_TOO_DEEP : null }
  } catch (error) {
    const { message } = error as Error
    const nothing = { value: undefined, plain: false, isTooDeep: false }
    return { ...nothing, text: storableText(text), original: text, error: message }
  }
}

function isBatch(value: unknown): boolean {
  return Array.isArray(value) || (isObject(value) && Array.isArray(value.batch))
}

/** The items of a body, which is one event, an array of events, or an object with a `batch`. */
export type Items = { values: unknown[]; form: 'single' | 'array' | 'batch'; envelope: Envelope }

/** Reads the items of a body. Returns null, and adds an error, if the body cannot contain any. */
export function readItems(body: Body, context: EventContext, errors: ValidationError[]): Items | null {
  if (body.error !== null) return reject(errors, '', body.error)
  const items = findItems(body, context, errors)
  return items?.form === 'single' && body.isTooDeep ? reject(errors, '', NESTED_TOO_DEEP) : items
}

function findItems({ value }: Body, context: EventContext, errors: ValidationError[]): Items | null {
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
  return rawField(text, 'context')
}

/**
 * Extracts one item of a request as a request of its own, in its raw text, so that a dead letter contains only the item
 * that failed. The shared fields of a batch stay with the item.
 */
export function itemAlone(text: string, context: EventContext, index: number): { text: string; context: EventContext } {
  const { items: _, ...rest } = context
  const items = readItems(openBody(text), context, [])
  if (!items || items.form === 'single') return { text, context: rest }
  return { text: requestWith([rawItems(text, items.form)[index]!], items.form, text), context: rest }
}

/** The request with only these items of its batch. The others become null, so that each keeps its index. */
export function keepItems(text: string, context: EventContext, kept: number[]): string {
  const items = readItems(openBody(text), context, [])
  if (!items || items.form === 'single') return text
  const wanted = new Set(kept)
  const batch = rawItems(text, items.form).map((raw, index) => (wanted.has(index) ? raw : 'null'))
  return requestWith(batch, items.form, text)
}

function requestWith(batch: string[], form: 'array' | 'batch', text: string): string {
  if (form === 'array') return `[${batch.join(',')}]`
  const envelope = objectFields(text).filter(([key]) => key === 'sentAt' || key === 'context')
  const fields = envelope.map(([key, value]) => `${JSON.stringify(key)}:${value},`).join('')
  return `{${fields}"batch":[${batch.join(',')}]}`
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

/** The fields of a batch that apply to all of its items. They are read once, because a batch may have 5,000 items. */
export type Envelope = { sentAt: Date | null; context: SharedContext | null }

export const NO_ENVELOPE: Envelope = { sentAt: null, context: null }

function readEnvelope(batch: JsonObject): Envelope {
  return {
    sentAt: parseTimestamp(batch.sentAt),
    context: isObject(batch.context) ? readContext(batch.context) : null,
  }
}

/** What Kontor reads from the `context` of a CDP call. */
type SharedContext = {
  value: JsonObject
  traits: JsonObject | null
  email: string | null
  sessionId: unknown
  userAgent: string | null
}

function readContext(value: JsonObject): SharedContext {
  const traits = isObject(value.traits) ? value.traits : null
  return {
    value,
    traits,
    email: parseEmail(traits?.email),
    sessionId: value.sessionId ?? value.session_id,
    userAgent: typeof value.userAgent === 'string' ? value.userAgent : null,
  }
}

/** Limits of one request with events. Sizes are stored sizes: a shared context counts once per item. */
const MAX_ITEMS = 5_000
export const MAX_ITEM_BYTES = 65_536
export const MAX_STORED_BYTES = 16_777_216
/** An event of a batch is inside of an array, which may be inside of an object. */
const MAX_ITEM_DEPTH = MAX_DEPTH - 2

/** Up to this many invalid items of a request are reported and kept as dead letters. The others are only counted. */
export const MAX_NAMED_REJECTIONS = 100

/** The stored sizes of a request's items. */
export type Sizes = {
  /** The error of an item that is too large or nested too deep, or null. */
  findError(index: number): ValidationError | null
  /** The total of the items at these indexes. */
  storedBytes(indexes: number[]): number
}

export function measureSizes(body: Body, items: Items, context: EventContext): Sizes {
  const bodyBytes = Buffer.byteLength(body.text)
  const shared = rawEnvelopeContext(body.text, items.envelope)
  const sharedBytes = shared === null ? 0 : Buffer.byteLength(shared)
  const isMeasured = isBounded(context) && bodyBytes > MAX_ITEM_BYTES
  // If the whole body is below the limits of one item, every item is too. Then no item is measured.
  const raws = isMeasured || body.isTooDeep ? rawItems(body.text, items.form) : null
  const sharedDepth = shared !== null && body.isTooDeep ? 1 + nestingDepth(shared) : 0
  const headerBytes = JSON.stringify(context.headers).length
  return {
    findError(index) {
      if (raws === null) return null
      const isSharing = sharesContext(items.values[index])
      if (body.isTooDeep && Math.max(nestingDepth(raws[index]!), isSharing ? sharedDepth : 0) > MAX_ITEM_DEPTH)
        return { pointer: '', message: `an event may be nested ${MAX_ITEM_DEPTH} levels deep; this one is deeper` }
      const own = Buffer.byteLength(raws[index]!)
      const bytes = isSharing ? own + sharedBytes : own
      if (!isMeasured || bytes <= MAX_ITEM_BYTES) return null
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
  return length > MAX_ITEMS ? `A request may contain at most ${MAX_ITEMS} events. This one contains ${length}.` : null
}

export function tooManyBytes(bytes: number): string | null {
  if (bytes <= MAX_STORED_BYTES) return null
  return `The events of a request may take ${MAX_STORED_BYTES} bytes as they are stored, each with the shared context; these take ${bytes}.`
}
