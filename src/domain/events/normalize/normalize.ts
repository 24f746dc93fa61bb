import { isbot } from 'isbot'
import { findNamespace } from '../../billing/namespace.ts'
import { itemId } from '../../ids.ts'
import { readEventType, readWebhook, webhookPayload } from '../../inbound/webhook.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { isShop } from '../../providers/shops.ts'
import { occurredAt } from '../../time.ts'
import type { ValidationError } from '../../validation-error.ts'
import type {
  EventContext,
  Inspection,
  Normalized,
  NormalizedEvent,
  ReceivedEvents,
  RejectedItem,
} from '../events.ts'
import {
  type Body,
  type Envelope,
  type Items,
  itemsOf,
  MAX_STORED_BYTES,
  openBody,
  pointerTo,
  rawEnvelopeContext,
  rawItems,
  type Sizes,
  sizesOf,
  tooManyBytes,
  tooManyItems,
} from './body.ts'
import { cdpPayload, type Draft, isNative, readCdp, readTrack, trackPayload } from './items.ts'

export { type Body, itemAlone, itemOfBatch, MAX_ITEM_BYTES, MAX_NAMED_REJECTIONS, openBody } from './body.ts'

/** Every item of a request, read. */
type Reading = {
  drafts: { index: number; draft: Draft }[]
  rejected: RejectedItem[]
  /** Of rejected items, by index: the ids they have at their senders. */
  rejectedIds: Map<number, string>
  refusedTypes: Set<string>
}

/** On arrival: how many items, which are valid, and what is wrong with the others. Never throws. */
export function inspect(body: Body, context: EventContext): Inspection {
  const faults: ValidationError[] = []
  const items = itemsOf(body, context, faults)
  if (!items) return refused(faults, { items: 1, isTooLarge: false })
  const tooMany = tooManyItems(items)
  if (tooMany !== null)
    return refused([faultOf(items, tooMany)], { items: items.values.length, isTooLarge: true })
  const sizes = sizesOf(body, items, context)
  const { drafts, rejected, refusedTypes } = read(items, context, sizes, faults)
  const storedBytes = sizes.storedBytes(drafts.map(({ index }) => index))
  const tooMuch = tooManyBytes(storedBytes)
  if (tooMuch !== null)
    return refused([faultOf(items, tooMuch)], { items: items.values.length, isTooLarge: true })
  const first = drafts[0]?.draft
  return {
    items: drafts.length + rejected.length,
    accepted: drafts.map(({ index, draft }) => ({ index, inboundEventId: draft.inboundEventId })),
    rejected,
    faults,
    isTooLarge: false,
    isForbidden: items.form === 'single' && refusedTypes.size === 1 && faults.length === 1,
    refusedTypes: [...refusedTypes],
    storedBytes,
    orderingKey: first ? orderingKey(first, context) : null,
  }
}

/** Of a body that is at fault as a whole. */
function refused(faults: ValidationError[], facts: Pick<Inspection, 'items' | 'isTooLarge'>): Inspection {
  const rejected = [{ index: 0, message: faults[0]!.message }]
  const nothing = { accepted: [], isForbidden: false, refusedTypes: [], storedBytes: 0, orderingKey: null }
  return { ...facts, ...nothing, rejected, faults }
}

function faultOf(items: Items, message: string): ValidationError {
  return { pointer: items.form === 'batch' ? '/batch' : '', message }
}

/** In the pipeline: the same reading, brought into the one shape. Never throws. */
export function normalize(received: ReceivedEvents): Normalized {
  const { context } = received
  const body = openBody(received.body, context.plain)
  const faults: ValidationError[] = []
  const items = itemsOf(body, context, faults)
  if (!items) {
    const { message } = faults[0]!
    return { events: [], rejected: [{ index: 0, message, raw: body.text, inboundEventId: null }] }
  }
  const { drafts, rejected, rejectedIds } = read(items, context, sizesOf(body, items, context), faults)
  const raws = rawItems(body.text, items.form)
  const originals = body.text === body.original ? raws : rawItems(body.original, items.form)
  const batchContext = rawEnvelopeContext(body.text, items.envelope)
  const events: NormalizedEvent[] = []
  let length = 0
  for (const { index, draft } of drafts) {
    const value = items.values[index] as JsonObject
    const raw = raws[index]!
    const payload = payloadOf(raw, value, draft, context, batchContext)
    length += payload.length
    // Only of an entry that came in before there was this bound: it is not to fill the memory now.
    if (length > MAX_STORED_BYTES) {
      rejected.push({ index, message: tooManyBytes(length)! })
      continue
    }
    const sanitized = raw !== originals[index]
    events.push(eventOf(received, index, items, draft, payload, sanitized))
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

function read(items: Items, context: EventContext, sizes: Sizes, faults: ValidationError[]): Reading {
  const drafts: Reading['drafts'] = []
  const rejected: RejectedItem[] = []
  const rejectedIds = new Map<number, string>()
  const wanted = context.items ? new Set(context.items) : null
  const isRefused = typesRefusedTo(context)
  const refusedTypes = new Set<string>()
  for (let index = 0; index < items.values.length; index++) {
    if (wanted && !wanted.has(index)) continue
    const known = faults.length
    const draft = readItem(items.values[index], context, items.envelope, faults)
    const tooLarge = sizes.faultOf(index)
    if (tooLarge) faults.push(tooLarge)
    if (draft && isRefused?.(draft.eventType)) {
      faults.push({ pointer: '', message: 'the key may not send events of this type' })
      refusedTypes.add(draft.eventType)
    }
    if (draft && faults.length === known) {
      drafts.push({ index, draft })
      continue
    }
    rejected.push({ index, message: describeItem(faults, known, pointerTo(items.form, index)) })
    if (draft?.inboundEventId) rejectedIds.set(index, draft.inboundEventId)
  }
  return { drafts, rejected, rejectedIds, refusedTypes }
}

/** What an item says, in whichever format its route has. */
function readItem(
  value: unknown,
  context: EventContext,
  envelope: Envelope,
  faults: ValidationError[],
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
  return { ...draft, ...readEventType(value, draft.eventType, context.eventTypeOverride, faults) }
}

function typesRefusedTo({ allowedTypes, refusedTypes }: EventContext): ((type: string) => boolean) | null {
  if (allowedTypes) {
    const allowed = new Set(allowedTypes)
    return type => type !== '' && !allowed.has(type)
  }
  if (!refusedTypes) return null
  const refused = new Set(refusedTypes)
  return type => refused.has(type)
}

/** Gives the faults of one item their full pointers, and puts them into one sentence. */
function describeItem(faults: ValidationError[], from: number, prefix: string): string {
  const own = faults.slice(from)
  for (const fault of own) fault.pointer = prefix + fault.pointer
  return own.map(fault => fault.message).join('; ')
}

function orderingKey(draft: Draft, context: EventContext): string | null {
  if (context.route !== 'inbound') return draft.visitor ?? draft.userId ?? draft.inboundEventId
  const key = draft.objectId ?? draft.visitor ?? draft.userId ?? draft.inboundEventId
  return key && `${context.sourceId}/${key}`
}

function eventOf(
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
  // Servers import what happened long ago; whoever has the public key only makes it up.
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
    meta: metaOf(context, index, items, draft, { generated, replaced, sanitized }),
  }
}

/** The part of an item that is kept, in its raw text. */
function payloadOf(
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

function metaOf(
  context: EventContext,
  index: number,
  items: Items,
  draft: Draft,
  is: { generated: boolean; replaced: boolean; sanitized: boolean },
): NormalizedEvent['meta'] {
  const meta: NormalizedEvent['meta'] = {}
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
  // The senders of webhooks are servers: their own user agent says nothing about the visitor.
  const userAgent =
    context.route === 'inbound' ? draft.userAgent : (draft.userAgent ?? context.headers['user-agent'])
  if (userAgent && isBot(userAgent)) meta.bot = true
  return meta
}

/** Programs that forward events: their user agent says nothing about the visitor. */
const CLIENT_LIBRARY =
  /^(?:analytics-|rudder|jitsu|kontor|node\b|undici|axios|got\b|curl|wget|python|aiohttp|httpx|go-http-client|okhttp|java|ruby|faraday|php|guzzle|dart|postman|insomnia|apache-httpclient|libwww-perl|reqwest|bun\b|deno\b)/i

const knownAgents = new Map<string, boolean>()
const MAX_KNOWN_AGENTS = 2000
/** What is longer is judged by its beginning and not remembered: 2,000 of these stay below 2 MB. */
const MAX_AGENT_LENGTH = 500

/** Whether a user agent is a crawler's or the like; remembered, since a list of 200 patterns is tried on it. */
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
