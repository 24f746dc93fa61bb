import { parseEmail } from '../identity/identity.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { stripeObject } from '../providers/stripe/objects.ts'
import type { CdpContext, EventSource, NormalizedEvent } from './events.ts'
import { NO_ENVELOPE } from './normalize/body.ts'
import { readCdp } from './normalize/items.ts'

/** An event as it is kept. */
export type StoredEvent = Pick<
  NormalizedEvent,
  | 'id'
  | 'eventType'
  | 'occurredAt'
  | 'receivedAt'
  | 'sourceConfigId'
  | 'keyId'
  | 'trusted'
  | 'visitor'
  | 'userId'
> & {
  source: EventSource
  /** JSON text, both */
  payload: string
  meta: string | null
}

/** Reads a kept event again: what it says of people and of sales is what it said when it came in. */
export function eventOfStored(stored: StoredEvent): NormalizedEvent {
  const item = objectIn(stored.payload)
  const meta = objectIn(stored.meta ?? '{}')
  return {
    ...{
      index: 0,
      inboundEventId: null,
      providerEventId: null,
      sessionId: null,
      headers: {},
      preset: null,
      makesRecords: false,
      billingNamespace: null,
    },
    ...stored,
    sourceType: stored.source,
    ...(stored.source === 'cdp' ? cdpFacts(item, meta) : ownFacts(item)),
    userId: stored.userId ?? (stored.source === 'cdp' ? textOf(item.userId) : null),
    meta,
  }
}

type Facts = Pick<NormalizedEvent, 'subject' | 'context' | 'email' | 'previousId'>

function cdpFacts(item: JsonObject, meta: JsonObject): Facts {
  const kind = (typeof meta.kind === 'string' ? meta.kind : 'any') as CdpContext['kind']
  const { subject, context, email, previousId } = readCdp(item, kind, NO_ENVELOPE, [])
  return { subject, context, email, previousId }
}

function ownFacts(subject: JsonObject): Facts {
  const object = stripeObject(subject) ?? subject
  const traits = isObject(subject.traits) ? parseEmail(subject.traits.email) : null
  return { subject, context: null, email: parseEmail(object.email) ?? traits, previousId: null }
}

function objectIn(text: string): JsonObject {
  const value: unknown = JSON.parse(text)
  return isObject(value) ? value : {}
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
}
