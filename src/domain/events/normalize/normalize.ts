import { isbot } from 'isbot'
import { readInstant } from '../../billing/fields.ts'
import { findNamespace } from '../../billing/namespace.ts'
import { parseEmail } from '../../identity/identifiers.ts'
import { itemId } from '../../ids.ts'
import { findPreset, isShopifyTest } from '../../inbound/presets.ts'
import type { EventTypeOverride } from '../../inbound/source-config.ts'
import { canonicalJson, isObject, type JsonObject, rawField, textDigest, valueAt } from '../../json/json.ts'
import { isShop } from '../../providers/shops.ts'
import { isStripeEvent, stripeObject } from '../../providers/stripe/objects.ts'
import { occurredAt, parseTimestamp } from '../../time.ts'
import type { ValidationError } from '../../validation-error.ts'
import {
  type EventContext,
  type InboundContext,
  type Inspection,
  MAX_EVENT_TYPE_LENGTH,
  type Normalized,
  type NormalizedEvent,
  type ReceivedEvents,
  type RejectedItem,
} from '../types.ts'
import {
  type Body,
  cdpPayload,
  type Draft,
  eventTypeOf,
  type Items,
  idField,
  isLongerThan,
  isNative,
  looseId,
  MAX_STORED_BYTES,
  measureSizes,
  nameField,
  openBody,
  pointerTo,
  rawEnvelopeContext,
  rawItems,
  readCdp,
  readItems,
  readTrack,
  type Sizes,
  timeField,
  tooManyBytes,
  tooManyItems,
  trackPayload,
} from './tracking-items.ts'

export {
  type Body,
  findBatchItem,
  itemAlone,
  keepItems,
  MAX_ITEM_BYTES,
  MAX_NAMED_REJECTIONS,
  openBody,
} from './tracking-items.ts'

/** The items of a request after reading. */
type Reading = {
  drafts: { index: number; draft: Draft }[]
  rejected: RejectedItem[]
  /** The senders' ids of rejected items, by index. */
  rejectedIds: Map<number, string>
  refusedTypes: Set<string>
}

/** Validates a request on arrival: which items are valid, and what is wrong with the others. Never throws. */
export function inspect(body: Body, context: EventContext): Inspection {
  const errors: ValidationError[] = []
  const items = readItems(body, context, errors)
  if (!items) return rejectBody(errors, { items: 1, isTooLarge: false })
  const tooMany = tooManyItems(items)
  if (tooMany !== null)
    return rejectBody([requestError(items, tooMany)], { items: items.values.length, isTooLarge: true })
  const sizes = measureSizes(body, items, context)
  const { drafts, rejected, refusedTypes } = read(items, context, sizes, errors)
  const storedBytes = sizes.storedBytes(drafts.map(({ index }) => index))
  const tooMuch = tooManyBytes(storedBytes)
  if (tooMuch !== null)
    return rejectBody([requestError(items, tooMuch)], { items: items.values.length, isTooLarge: true })
  const first = drafts[0]?.draft
  return {
    items: drafts.length + rejected.length,
    accepted: drafts.map(({ index, draft }) => ({ index, inboundEventId: draft.inboundEventId })),
    rejected,
    errors,
    isTooLarge: false,
    isForbidden: items.form === 'single' && refusedTypes.size === 1 && errors.length === 1,
    refusedTypes: [...refusedTypes],
    storedBytes,
    orderingKey: first ? orderingKey(first, context) : null,
  }
}

/**
 * The number of items that a tracking key may send: objects of an allowed type. Reads nothing else, so that the limits of
 * a key are checked before any other work per item. 0 if the request will be rejected as a whole.
 */
export function countSendable(body: Body, context: EventContext): number {
  const items = readItems(body, context, [])
  if (!items || tooManyItems(items) !== null) return 0
  const isRefused = createTypeFilter(context)
  return items.values.filter(item => isObject(item) && !isRefused?.(item)).length
}

/** The result for a body that is rejected as a whole. */
function rejectBody(errors: ValidationError[], facts: Pick<Inspection, 'items' | 'isTooLarge'>): Inspection {
  const rejected = [{ index: 0, message: errors[0]!.message }]
  const nothing = { accepted: [], isForbidden: false, refusedTypes: [], storedBytes: 0, orderingKey: null }
  return { ...facts, ...nothing, rejected, errors }
}

function requestError(items: Items, message: string): ValidationError {
  return { pointer: items.form === 'batch' ? '/batch' : '', message }
}

/** Reads the items again in the pipeline, and converts them to normalized events. Never throws. */
export function normalize(received: ReceivedEvents): Normalized {
  const { context } = received
  const body = openBody(received.body, context.plain)
  const errors: ValidationError[] = []
  const items = readItems(body, context, errors)
  if (!items) {
    const { message } = errors[0]!
    return { events: [], rejected: [{ index: 0, message, raw: body.text, inboundEventId: null }] }
  }
  const { drafts, rejected, rejectedIds } = read(items, context, measureSizes(body, items, context), errors)
  const raws = rawItems(body.text, items.form)
  const originals = body.text === body.original ? raws : rawItems(body.original, items.form)
  const batchContext = rawEnvelopeContext(body.text, items.envelope)
  const events: NormalizedEvent[] = []
  let length = 0
  for (const { index, draft } of drafts) {
    const value = items.values[index] as JsonObject
    const raw = raws[index]!
    const payload = buildPayload(raw, value, draft, context, batchContext)
    length += payload.length
    // Only for an entry that was accepted before this limit existed. It must not exhaust the memory.
    if (length > MAX_STORED_BYTES) {
      rejected.push({ index, message: tooManyBytes(length)! })
      continue
    }
    const sanitized = raw !== originals[index]
    events.push(buildEvent(received, index, items, draft, payload, sanitized))
  }
  return {
    events,
    rejected: rejected.map(item => ({
      ...item,
      raw: raws[item.index]!,
      inboundEventId: rejectedIds.get(item.index) ?? null,
    })),
  }
}

function read(items: Items, context: EventContext, sizes: Sizes, errors: ValidationError[]): Reading {
  const drafts: Reading['drafts'] = []
  const rejected: RejectedItem[] = []
  const rejectedIds = new Map<number, string>()
  const wanted = context.items ? new Set(context.items) : null
  const isRefused = createTypeFilter(context)
  const refusedTypes = new Set<string>()
  for (let index = 0; index < items.values.length; index++) {
    if (wanted && !wanted.has(index)) continue
    const item = items.values[index]
    const refusedType = isRefused?.(item)
    if (refusedType) {
      const message = 'the key is not allowed to send events of this type'
      errors.push({ pointer: pointerTo(items.form, index), message })
      rejected.push({ index, message })
      refusedTypes.add(refusedType)
      const id = readSenderId(item as JsonObject)
      if (id !== null) rejectedIds.set(index, id)
      continue
    }
    const known = errors.length
    const draft = readItem(item, context, items, errors)
    const tooLarge = sizes.findError(index)
    if (tooLarge) errors.push(tooLarge)
    if (draft && errors.length === known) {
      drafts.push({ index, draft })
      continue
    }
    rejected.push({ index, message: describeItem(errors, known, pointerTo(items.form, index)) })
    if (draft?.inboundEventId) rejectedIds.set(index, draft.inboundEventId)
  }
  return { drafts, rejected, rejectedIds, refusedTypes }
}

/** Reads an item in the format of its route. */
function readItem(
  value: unknown,
  context: EventContext,
  { form, envelope }: Items,
  errors: ValidationError[],
): Draft | null {
  if (!isObject(value)) {
    errors.push({ pointer: '', message: 'an event must be a JSON object' })
    return null
  }
  if (context.route === 'track' || isNative(value, context)) return readTrack(value, errors)
  if (context.route === 'cdp') return readCdp(value, context.kind, envelope, errors)
  if (context.sourceType !== 'cdp') return readWebhook(value, context, form === 'single', errors)
  const draft = readCdp(value, 'any', envelope, errors)
  if (!context.eventTypeOverride || draft.eventType === '') return draft
  return { ...draft, ...readEventType(value, draft.eventType, context.eventTypeOverride, errors) }
}

/** Finds the type of an item that the key may not send. Null if it may. */
type TypeFilter = (item: unknown) => string | null

function createTypeFilter(context: EventContext): TypeFilter | null {
  const { allowedTypes, refusedTypes } = context
  if (!allowedTypes && !refusedTypes) return null
  const allowed = allowedTypes && new Set(allowedTypes)
  const refused = new Set(refusedTypes)
  return item => {
    const type = eventTypeOf(item, context)
    return type !== null && (allowed ? !allowed.has(type) : refused.has(type)) ? type : null
  }
}

function readSenderId(item: JsonObject): string | null {
  return looseId(item.messageId ?? item.event_id)
}

/** Completes the pointers of one item's errors, and joins their messages into one sentence. */
function describeItem(errors: ValidationError[], from: number, prefix: string): string {
  const own = errors.slice(from)
  for (const error of own) error.pointer = prefix + error.pointer
  return own.map(error => error.message).join('; ')
}

function orderingKey(draft: Draft, context: EventContext): string | null {
  // An alias moves the visitor id that it names.
  const person = draft.visitor ?? draft.previousId ?? draft.userId
  if (context.route !== 'inbound') return person ?? draft.inboundEventId
  const key = draft.objectId ?? person ?? draft.inboundEventId
  return key && `${context.sourceId}/${key}`
}

function buildEvent(
  { entryId, receivedAt, context, floorMs }: ReceivedEvents,
  index: number,
  items: Items,
  draft: Draft,
  payload: string,
  sanitized: boolean,
): NormalizedEvent {
  const id = itemId(entryId, index)
  const inbound = context.route === 'inbound' ? context : null
  const generated = inbound !== null && draft.inboundEventId === null
  const trusted = inbound !== null || context.trusted === true
  // Servers import old events. An old time from a public tracking key is most likely wrong or forged.
  const { at, replaced } = occurredAt(draft.ownTime, draft.sentAt, receivedAt, trusted ? null : floorMs)
  const isTimeIgnored = replaced || (draft.ownTime === null && isShortScalar(draft.clientTime))
  const isTracking = context.route === 'track' || isNative(items.values[index] as JsonObject, context)
  const source = inbound ? inbound.sourceType : isTracking ? 'tracking' : 'cdp'
  return {
    id,
    index,
    eventType: draft.eventType,
    occurredAt: at,
    receivedAt,
    source,
    sourceConfigId: inbound ? inbound.sourceId : null,
    preset: inbound ? inbound.preset : null,
    makesRecords: inbound !== null && inbound.records !== false && isShop(inbound.preset),
    billingNamespace: findNamespace(context),
    key: context.key ?? null,
    trusted,
    inboundEventId: generated ? id : draft.inboundEventId,
    providerEventId: draft.providerEventId,
    visitor: draft.visitor,
    sessionId: draft.sessionId,
    userId: draft.userId,
    previousId: draft.previousId,
    email: draft.email,
    payload,
    subject: draft.subject,
    context: draft.context,
    headers: context.headers,
    meta: buildMeta(context, index, items, draft, { generated, replaced: isTimeIgnored, sanitized }),
  }
}

/** The part of an item that is stored, as raw text. */
function buildPayload(
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

function buildMeta(
  context: EventContext,
  index: number,
  items: Items,
  draft: Draft,
  is: { generated: boolean; replaced: boolean; sanitized: boolean },
): NormalizedEvent['meta'] {
  // First, so that statements find test events by the beginning of their `meta` (store/events/events.ts).
  const meta: NormalizedEvent['meta'] = {}
  if (context.route === 'inbound') {
    // in the properties of a CDP, `livemode` may mean something else
    const isProvider = context.sourceType !== 'cdp' || context.billing === true
    const isTestMode = isProvider && isInTestMode(context, draft.subject)
    if (context.test || isTestMode) meta.test = true
    if (isTestMode) meta.test_mode = true
  }
  if (draft.kind !== null) meta.kind = draft.kind
  if (context.ip !== null) meta.ip = context.ip
  if (items.form !== 'single') {
    meta.batch_index = index
    meta.batch_size = items.values.length
  }
  if (context.route === 'inbound' && context.signature) meta.signature = context.signature
  if (is.sanitized) meta.sanitized = true
  if (is.generated) meta.generated_id = true
  if (draft.overriddenFrom !== null) meta.overridden_from = draft.overriddenFrom
  if (is.replaced) meta.client_time = draft.clientTime
  // Webhooks are sent by servers. Their user agent says nothing about the visitor.
  const userAgent = context.route === 'inbound' ? draft.userAgent : (draft.userAgent ?? context.headers['user-agent'])
  if (userAgent && isBot(userAgent)) meta.bot = true
  return meta
}

/** Whether the provider marks its object as test data: `livemode: false`, a test of Shopify, or RevenueCat's sandbox. */
function isInTestMode({ preset, headers }: InboundContext, subject: JsonObject): boolean {
  if (subject.livemode === false || stripeObject(subject)?.livemode === false) return true
  if (preset === 'shopify') return isShopifyTest(headers, subject)
  return preset === 'revenuecat' && isObject(subject.event) && subject.event.environment === 'SANDBOX'
}

/** Programs that forward events. Their user agent says nothing about the visitor. */
const CLIENT_LIBRARY =
  /^(?:analytics-|rudder|jitsu|kontor|node\b|undici|axios|got\b|curl|wget|python|aiohttp|httpx|go-http-client|okhttp|java|ruby|faraday|php|guzzle|dart|postman|insomnia|apache-httpclient|libwww-perl|reqwest|bun\b|deno\b)/i

const knownAgents = new Map<string, boolean>()
const MAX_KNOWN_AGENTS = 2000
/** Only the beginning of a longer user agent is tested, and it is not cached. 2,000 cached ones stay below 2 MB. */
const MAX_AGENT_LENGTH = 500

/** Whether a user agent belongs to a bot. Cached, because the test tries 200 patterns. */
function isBot(userAgent: string): boolean {
  if (userAgent.length > MAX_AGENT_LENGTH) return matchesBot(userAgent.slice(0, MAX_AGENT_LENGTH))
  let bot = knownAgents.get(userAgent)
  if (bot === undefined) {
    bot = matchesBot(userAgent)
    if (knownAgents.size >= MAX_KNOWN_AGENTS) knownAgents.clear()
    knownAgents.set(userAgent, bot)
  }
  return bot
}

function matchesBot(userAgent: string): boolean {
  return !CLIENT_LIBRARY.test(userAgent) && isbot(userAgent)
}

/** Reads an event of a webhook or automation source: Kontor's fields, a provider's body, or a Stripe event. */
function readWebhook(
  item: JsonObject,
  context: InboundContext,
  /** Whether the body is one event, not an array. */
  isAlone: boolean,
  errors: ValidationError[],
): Draft {
  const provider = readProviderFields(item, context)
  if (provider?.contradiction) errors.push({ pointer: '', message: provider.contradiction })
  const wrapped = !provider && item.payload !== undefined && item.payload !== null
  if (wrapped && !isObject(item.payload)) {
    errors.push({ pointer: '/payload', message: 'payload must be an object' })
  }
  const subject = wrapped && isObject(item.payload) ? item.payload : (provider?.subject ?? item)
  const object = stripeObject(subject) ?? subject
  const time = wrapped ? timeField(item.occurred_at, 'occurred_at', errors) : readOwnTime(item, subject)
  const ownTime = provider?.ownTime ?? time
  return {
    ...readEventType(item, provider ? provider.eventType : item.event_type, context.eventTypeOverride, errors),
    kind: null,
    inboundEventId: readEventId(item, { context, provider, isAlone }, errors),
    providerEventId: provider?.eventId ?? providerEventId(item, subject, context),
    visitor: looseId(item.visitor ?? object.visitor ?? object.anonymousId ?? object.anonymous_id),
    sessionId: looseId(item.session_id ?? object.session_id),
    userId: provider?.userId === undefined ? looseId(item.user_id ?? object.user_id ?? object.userId) : provider.userId,
    previousId: null,
    email: parseEmail(object.email),
    subject,
    context: null,
    clientTime: item.occurred_at ?? ownTime?.toISOString() ?? null,
    ownTime,
    sentAt: null,
    userAgent: null,
    objectId: looseId(object.id ?? object.order_id ?? object.orderId),
  } satisfies Draft
}

/** The raw text of `payload`, else the complete body. */
function webhookPayload(raw: string, item: JsonObject, subject: JsonObject): string {
  return item.payload === subject ? rawField(raw, 'payload')! : raw
}

type ProviderFields = {
  eventType: string
  eventId: string | null
  subject: JsonObject
  contradiction?: string | null
  ownTime?: Date | null
  /** Undefined: read from the usual fields. */
  userId?: string | null
}

/** Reads a body in a provider's format, with the source's preset or as a Stripe event; null: another format. */
function readProviderFields(item: JsonObject, context: InboundContext): ProviderFields | null {
  const preset = findPreset(context.preset)
  const eventType = preset?.eventType(context.headers, item)
  if (preset && eventType) {
    return {
      eventType,
      eventId: preset.eventId(context.headers, item),
      subject: preset.subject?.(item) ?? item,
      contradiction: preset.contradiction?.(context.headers, item) ?? null,
      ...(preset.occurredAt && { ownTime: readTime(preset.occurredAt(item)) }),
      ...(preset.userId && { userId: preset.userId(item) }),
    }
  }
  if (!isStripeEvent(item)) return null
  return { eventType: item.type as string, eventId: item.id as string, subject: item }
}

function isShortScalar(value: unknown): boolean {
  return typeof value === 'number' || (typeof value === 'string' && value.length <= MAX_TIME_LENGTH)
}

function readTime(value: unknown): Date | null {
  const at = readInstant(value)
  return at === null ? null : new Date(at)
}

const MAX_TIME_LENGTH = 100

const ID_REQUIRED = 'the event has no id, so a repeat cannot be detected; the source requires one (require_event_id)'

/** The id in a header of the request. The events of an array share it, and differ by their content. */
function headerEventId({ preset, headers }: InboundContext, item: JsonObject, isAlone: boolean): string | null {
  const id = findPreset(preset)?.eventId(headers, {}) ?? null
  return id === null || isAlone ? id : `${id}/${textDigest(canonicalJson(item))}`
}

function readEventId(
  item: JsonObject,
  { context, provider, isAlone }: { context: InboundContext; provider: ProviderFields | null; isAlone: boolean },
  errors: ValidationError[],
): string | null {
  const own = idField(item.inbound_event_id, 'inbound_event_id', errors)
  if (own !== null) return own
  const atPath = context.eventIdPath === null ? undefined : valueAt(item, context.eventIdPath)
  // a body without an event type may still have its id in a header
  const inHeader = headerEventId(context, item, isAlone)
  const found = atPath ?? (isAlone ? (provider?.eventId ?? inHeader) : (inHeader ?? provider?.eventId))
  if (found === undefined || found === null || found === '') {
    if (context.requireEventId) errors.push({ pointer: '/inbound_event_id', message: ID_REQUIRED })
    return null
  }
  const id = looseId(found)
  if (id === null) {
    const pointer = atPath === undefined ? '/id' : `/${context.eventIdPath!.replaceAll('.', '/')}`
    errors.push({ pointer, message: 'the event id must be a string of at most 255 characters' })
  }
  return id
}

function providerEventId(item: JsonObject, subject: JsonObject, context: InboundContext): string | null {
  if (isStripeEvent(subject)) return looseId(subject.id)
  return looseId(item.provider_event_id) ?? looseId(context.headers['webhook-id'])
}

/**
 * Of an arbitrary body: `occurred_at`, or `created` of a Stripe event: Unix time, or ISO 8601 in a thin event. A wrong time is no validation
 * error, because the field may mean something else; `meta.client_time` shows it.
 */
function readOwnTime(item: JsonObject, subject: JsonObject): Date | null {
  if (item.occurred_at !== undefined) return parseTimestamp(item.occurred_at)
  return isStripeEvent(subject) ? readTime(subject.created) : null
}

type TypeFacts = { eventType: string; overriddenFrom: string | null }

/** Applies the source's override to the event type `given`. */
function readEventType(
  item: JsonObject,
  given: unknown,
  override: EventTypeOverride | null,
  errors: ValidationError[],
): TypeFacts {
  const own = typeof given === 'string' && given !== '' ? given : null
  const changed = override && applyOverride(item, own, override)
  if (changed === null || changed === undefined) {
    return { eventType: nameField(given, 'event_type', errors), overriddenFrom: null }
  }
  if (changed === '' || isLongerThan(changed, MAX_EVENT_TYPE_LENGTH)) {
    const message = `the overridden event type must have 1 to ${MAX_EVENT_TYPE_LENGTH} characters`
    errors.push({ pointer: '/event_type', message })
  }
  return { eventType: changed, overriddenFrom: own !== null && own !== changed ? own : null }
}

/** Null: the override does not apply to this event. */
function applyOverride(item: JsonObject, own: string | null, override: EventTypeOverride): string | null {
  if ('set' in override) return override.set
  if ('path' in override) return looseId(valueAt(item, override.path))
  if (own === null) return null
  if ('prefix' in override) return override.prefix + own
  return Object.hasOwn(override.map, own) ? override.map[own]! : null
}
