import type { Fault } from '../../fault.ts'
import { MAX_ID_LENGTH } from '../../identity/identity.ts'
import type { JsonObject } from '../../json/json.ts'
import { parseTimestamp } from '../../time.ts'
import { MAX_EVENT_TYPE_LENGTH } from '../events.ts'

/** What one item says, before it is known when and under which entry it came in. */
export type Draft = {
  eventType: string
  kind: string | null
  inboundEventId: string | null
  providerEventId: string | null
  visitor: string | null
  sessionId: string | null
  userId: string | null
  previousId: string | null
  email: string | null
  subject: JsonObject
  context: JsonObject | null
  /** The event's own time, as sent and as understood. */
  clientTime: unknown
  ownTime: Date | null
  sentAt: Date | null
  userAgent: string | null
  overriddenFrom: string | null
  /** The id of the thing it is about, where it names one: events of one object stay in order. */
  objectId: string | null
}

/** A name of 1 to 200 characters. */
export function nameField(value: unknown, field: string, faults: Fault[]): string {
  if (typeof value !== 'string') {
    const message =
      value === undefined || value === null ? `${field} is required` : `${field} must be a string`
    faults.push({ pointer: `/${field}`, message })
    return ''
  }
  if (value === '') faults.push({ pointer: `/${field}`, message: `${field} must not be empty` })
  else if (isLongerThan(value, MAX_EVENT_TYPE_LENGTH)) {
    const message = `${field} must not be longer than ${MAX_EVENT_TYPE_LENGTH} characters`
    faults.push({ pointer: `/${field}`, message })
  }
  return value
}

/** An optional id: text, or a number taken as its text. */
export function idField(value: unknown, field: string, faults: Fault[]): string | null {
  if (value === undefined || value === null || value === '') return null
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') {
    faults.push({ pointer: `/${field}`, message: `${field} must be a string` })
  } else if (isLongerThan(value, MAX_ID_LENGTH)) {
    const message = `${field} must not be longer than ${MAX_ID_LENGTH} characters`
    faults.push({ pointer: `/${field}`, message })
  } else {
    return value
  }
  return null
}

/** An id in a field that may hold anything: null where it is not usable as one. */
export function looseId(value: unknown): string | null {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_LENGTH ? value : null
}

export function timeField(value: unknown, field: string, faults: Fault[]): Date | null {
  if (value === undefined || value === null) return null
  const time = parseTimestamp(value)
  if (!time) faults.push({ pointer: `/${field}`, message: `${field} must be an ISO 8601 timestamp` })
  return time
}

/** Characters as people and PostgreSQL count them: an emoji is one. */
export function isLongerThan(text: string, max: number): boolean {
  if (text.length <= max) return false
  return text.length > 2 * max || [...text].length > max
}
