import { parseEmail } from '../identity/identifiers.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { stripeObject } from '../providers/stripe/objects.ts'
import { NO_ENVELOPE, readCdp } from './normalize/tracking-items.ts'
import type { CdpContext, EventSource, NormalizedEvent } from './types.ts'

/** An event as it is stored. */
export type StoredEvent = Pick<
  NormalizedEvent,
  'id' | 'eventType' | 'occurredAt' | 'receivedAt' | 'sourceConfigId' | 'key' | 'trusted' | 'visitor' | 'userId'
> & {
  source: EventSource
  /** Both are JSON text. */
  payload: string
  meta: string | null
}

/** Parses a stored event. It yields the same identifiers and sales as when it was received. */
export function parseStoredEvent(stored: StoredEvent): NormalizedEvent {
  const item = parseObject(stored.payload)
  const meta = parseObject(stored.meta ?? '{}')
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
    ...(stored.source === 'cdp' ? cdpFacts(item, meta) : ownFacts(item)),
    userId: stored.userId ?? (stored.source === 'cdp' ? toText(item.userId) : null),
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

function parseObject(text: string): JsonObject {
  const value: unknown = JSON.parse(text)
  return isObject(value) ? value : {}
}

function toText(value: unknown): string | null {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : null
}
