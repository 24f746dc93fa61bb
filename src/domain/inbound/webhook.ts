import { readInstant } from '../billing/fields.ts'
import type { InboundContext } from '../events/events.ts'
import { MAX_EVENT_TYPE_LENGTH } from '../events/events.ts'
import { type Draft, idField, isLongerThan, looseId, nameField } from '../events/normalize/items.ts'
import { parseEmail } from '../identity/identity.ts'
import { isObject, type JsonObject, objectFields, valueAt } from '../json/json.ts'
import { isStripeEvent, stripeObject } from '../providers/stripe/objects.ts'
import { parseTimestamp } from '../time.ts'
import type { ValidationError } from '../validation-error.ts'
import { findPreset } from './presets.ts'
import type { EventTypeOverride } from './source-config.ts'

/** Reads an event of a webhook or automation source: Kontor's fields, a provider's body, or a Stripe event. */
export function readWebhook(item: JsonObject, context: InboundContext, errors: ValidationError[]): Draft {
  const provider = readProviderFields(item, context)
  if (provider?.contradiction) errors.push({ pointer: '', message: provider.contradiction })
  const wrapped = !provider && item.payload !== undefined && item.payload !== null
  if (wrapped && !isObject(item.payload)) {
    errors.push({ pointer: '/payload', message: 'payload must be an object' })
  }
  const subject = wrapped && isObject(item.payload) ? item.payload : (provider?.subject ?? item)
  const object = stripeObject(subject) ?? subject
  const ownTime = provider?.ownTime ?? readOwnTime(item, subject)
  return {
    ...readEventType(item, provider ? provider.eventType : item.event_type, context.eventTypeOverride, errors),
    kind: null,
    inboundEventId: readEventId(item, context, provider, errors),
    providerEventId: provider?.eventId ?? providerEventId(item, subject, context),
    visitor: looseId(item.visitor ?? object.visitor ?? object.anonymousId ?? object.anonymous_id),
    sessionId: looseId(item.session_id ?? object.session_id),
    userId: provider?.userId === undefined ? looseId(item.user_id ?? object.user_id ?? object.userId) : provider.userId,
    previousId: null,
    email: parseEmail(object.email),
    subject,
    context: null,
    clientTime: ownTime && (item.occurred_at ?? ownTime.toISOString()),
    ownTime,
    sentAt: null,
    userAgent: null,
    objectId: looseId(object.id ?? object.order_id ?? object.orderId),
  } satisfies Draft
}

/** The raw text of `payload`, else the complete body. */
export function webhookPayload(raw: string, item: JsonObject, subject: JsonObject): string {
  if (item.payload !== subject) return raw
  let payload = raw
  for (const [key, value] of objectFields(raw)) if (key === 'payload') payload = value
  return payload
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
      subject: preset.subject(item),
      contradiction: preset.contradiction?.(context.headers, item) ?? null,
      ...(preset.occurredAt && { ownTime: readTime(preset.occurredAt(item)) }),
      ...(preset.userId && { userId: preset.userId(item) }),
    }
  }
  if (!isStripeEvent(item)) return null
  return { eventType: item.type as string, eventId: item.id as string, subject: item }
}

function readTime(value: unknown): Date | null {
  const at = readInstant(value)
  return at === null ? null : new Date(at)
}

const ID_REQUIRED = 'the event has no id, so a repeat cannot be detected; the source requires one (require_event_id)'

function readEventId(
  item: JsonObject,
  context: InboundContext,
  provider: ProviderFields | null,
  errors: ValidationError[],
): string | null {
  const own = idField(item.inbound_event_id, 'inbound_event_id', errors)
  if (own !== null) return own
  const atPath = context.eventIdPath === null ? undefined : valueAt(item, context.eventIdPath)
  const found = atPath ?? provider?.eventId
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

/** `occurred_at`, or `created` of a Stripe event. A wrong time is no validation error, because the body is arbitrary. */
function readOwnTime(item: JsonObject, subject: JsonObject): Date | null {
  if (item.occurred_at !== undefined) return parseTimestamp(item.occurred_at)
  if (!isStripeEvent(subject) || !Number.isInteger(subject.created)) return null
  const seconds = subject.created as number
  return seconds > 0 && seconds < 253_402_300_800 ? new Date(seconds * 1000) : null
}

type TypeFacts = { eventType: string; overriddenFrom: string | null }

/** Applies the source's override to the event type `given`. */
export function readEventType(
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
