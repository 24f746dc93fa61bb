import type { Fault } from '../../fault.ts'
import { emailOf } from '../../identity/identity.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { withoutField } from '../../json/slices.ts'
import { parseTimestamp } from '../../time.ts'
import { CDP_KINDS, type CdpContext } from '../events.ts'
import { type Draft, idField, looseId, nameField, timeField } from './draft.ts'

const KINDS: ReadonlySet<string> = new Set(CDP_KINDS)

/** What a batch says for all of its items. */
export type Envelope = { sentAt: Date | null; context: JsonObject | null }

export const NO_ENVELOPE: Envelope = { sentAt: null, context: null }

export function envelopeOf(batch: JsonObject): Envelope {
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

function kindOf(item: JsonObject, routeKind: CdpContext['kind'], faults: Fault[]): string {
  const own = item.type ?? item.kind
  if (typeof own === 'string' && KINDS.has(own)) return own
  if (KINDS.has(routeKind)) return routeKind
  faults.push({ pointer: '/type', message: `type must be one of ${CDP_KINDS.join(', ')}` })
  return ''
}

/** The item as received, without the credential some SDKs put into it, and with the context of its batch. */
export function cdpPayload(raw: string, item: JsonObject, batchContext: string | null): string {
  const payload = Object.hasOwn(item, 'writeKey') ? withoutField(raw, 'writeKey') : raw
  if (batchContext === null || Object.hasOwn(item, 'context')) return payload
  const rest = payload.slice(payload.indexOf('{') + 1)
  return `{"context":${batchContext}${/^\s*\}/.test(rest) ? '' : ','}${rest}`
}
