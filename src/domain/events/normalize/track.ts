import type { Fault } from '../../fault.ts'
import { emailOf } from '../../identity/identity.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { objectFields } from '../../json/slices.ts'
import { type Draft, idField, looseId, nameField, timeField } from './draft.ts'

/** Fields with a meaning of their own; all others are kept in the payload beside `data`. */
const FIELDS = new Set([
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

export function readTrack(item: JsonObject, faults: Fault[]): Draft {
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
    if (FIELDS.has(key) || key === '__proto__' || Object.hasOwn(data, key)) continue
    merged ??= { ...data }
    merged[key] = item[key]
  }
  return merged ?? data
}

/** The raw text of `data`, with the raw text of the other fields put before its own. */
export function trackPayload(raw: string, item: JsonObject): string {
  const { data = null } = item
  let dataText = '{}'
  let others = ''
  for (const [key, value] of objectFields(raw)) {
    if (key === 'data') dataText = data === null ? '{}' : value
    else if (!FIELDS.has(key) && !(isObject(data) && Object.hasOwn(data, key))) {
      others += `${others && ','}${JSON.stringify(key)}:${value}`
    }
  }
  if (!others) return dataText
  return isObject(data) && Object.keys(data).length > 0 ? `{${others},${dataText.slice(1)}` : `{${others}}`
}
