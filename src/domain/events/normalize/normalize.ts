import { isbot } from 'isbot'
import { findNamespace } from '../../billing/namespace.ts'
import { itemId } from '../../ids.ts'
import { readEventType, readWebhook, webhookPayload } from '../../inbound/webhook.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { isShop } from '../../providers/shops.ts'
import { occurredAt } from '../../time.ts'
import type { ValidationError } from '../../validation-error.ts'
import type { EventContext, Inspection, Normalized, NormalizedEvent, ReceivedEvents, RejectedItem } from '../events.ts'
import {
  type Body,
  type Envelope,
  type Items,
  MAX_STORED_BYTES,
  measureSizes,
  openBody,
  pointerTo,
  rawEnvelopeContext,
  rawItems,
  readItems,
  type Sizes,
  tooManyBytes,
  tooManyItems,
} from './body.ts'
import { cdpPayload, type Draft, isNative, readCdp, readTrack, trackPayload } from './items.ts'

export {
  type Body,
  findBatchItem,
  itemAlone,
  MAX_ITEM_BYTES,
  MAX_NAMED_REJECTIONS,
  openBody,
} from './body.ts'

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
    const known = errors.length
    const draft = readItem(items.values[index], context, items.envelope, errors)
    const tooLarge = sizes.findError(index)
    if (tooLarge) errors.push(tooLarge)
    if (draft && isRefused?.(draft.eventType)) {
      errors.push({ pointer: '', message: 'the key may not send events of this type' })
      refusedTypes.add(draft.eventType)
    }
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
function readItem(value: unknown, context: EventContext, envelope: Envelope, errors: ValidationError[]): Draft | null {
  if (!isObject(value)) {
    errors.push({ pointer: '', message: 'an event must be a JSON object' })
    return null
  }
  if (context.route === 'track' || isNative(value, context)) return readTrack(value, errors)
  if (context.route === 'cdp') return readCdp(value, context.kind, envelope, errors)
  if (context.sourceType !== 'cdp') return readWebhook(value, context, errors)
  const draft = readCdp(value, 'any', envelope, errors)
  if (!context.eventTypeOverride || draft.eventType === '') return draft
  return { ...draft, ...readEventType(value, draft.eventType, context.eventTypeOverride, errors) }
}

function createTypeFilter({ allowedTypes, refusedTypes }: EventContext): ((type: string) => boolean) | null {
  if (allowedTypes) {
    const allowed = new Set(allowedTypes)
    return type => type !== '' && !allowed.has(type)
  }
  if (!refusedTypes) return null
  const refused = new Set(refusedTypes)
  return type => refused.has(type)
}

/** Completes the pointers of one item's errors, and joins their messages into one sentence. */
function describeItem(errors: ValidationError[], from: number, prefix: string): string {
  const own = errors.slice(from)
  for (const error of own) error.pointer = prefix + error.pointer
  return own.map(error => error.message).join('; ')
}

function orderingKey(draft: Draft, context: EventContext): string | null {
  if (context.route !== 'inbound') return draft.visitor ?? draft.userId ?? draft.inboundEventId
  const key = draft.objectId ?? draft.visitor ?? draft.userId ?? draft.inboundEventId
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
  // Servers import old events. An old time from a public key is most likely wrong or forged.
  const { at, replaced } = occurredAt(draft.ownTime, draft.sentAt, receivedAt, trusted ? null : floorMs)
  const isTracking = context.route === 'track' || isNative(items.values[index] as JsonObject, context)
  const source = inbound ? inbound.sourceType : isTracking ? 'tracking' : 'cdp'
  return {
    id,
    index,
    eventType: draft.eventType,
    occurredAt: at,
    receivedAt,
    source,
    sourceType: source,
    sourceConfigId: inbound ? inbound.sourceId : null,
    preset: inbound ? inbound.preset : null,
    makesRecords: inbound !== null && inbound.records !== false && isShop(inbound.preset),
    billingNamespace: findNamespace(context),
    keyId: context.keyId ?? null,
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
    meta: buildMeta(context, index, items, draft, { generated, replaced, sanitized }),
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
  const meta: NormalizedEvent['meta'] = context.route === 'inbound' && context.test ? { test: true } : {}
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
