import type { Entry } from '../entries/entry.ts'
import type { EventContext, NormalizedEvent } from '../events/events.ts'
import { normalize } from '../events/normalize/normalize.ts'
import { isObject } from '../json/json.ts'
import { SHOPIFY_TOPIC } from '../providers/shops/shopify.ts'
import type { RecordContext } from '../records/records.ts'
import {
  contactIdentifiers,
  eventIdentifiers,
  type Identifier,
  orderIdentifiers,
  parseId,
} from './identity.ts'
import { findMentions, type IdentifierIndex, identifierKey, mentionsAny } from './mentions.ts'

/** What an order keeps when its buyer is erased: enough for the accounts, and no name. */
export const KEPT_ORDER_FIELDS = [
  ...['amount', 'total', 'total_price', 'value', 'revenue', 'currency', 'status', 'state'],
  ...['created_at', 'createdAt', 'placed_at', 'placedAt', 'ordered_at', 'orderedAt'],
  ...['occurred_at', 'occurredAt', 'date'],
]

type StoredEntry = Pick<Entry, 'id' | 'kind' | 'receivedAt' | 'context' | 'body'>

type Items = { about: number[]; others: number[] }

/** Whom a dead letter is about: what failed may have failed because it says that where nobody looks for it. */
export function findLetterItems(entry: StoredEntry, person: IdentifierIndex): Items {
  const { about, others } = findItems(entry, person)
  return about.length === 0 && mentionsAny(entry.body, person)
    ? { about: others, others: [] }
    : { about, others }
}

/** Which items of an entry that never took effect are about a person, and which are not. */
export function findItems(entry: StoredEntry, person: IdentifierIndex): Items {
  const { wanted } = person
  const isKnown = (identities: Identifier[]) =>
    identities.some(identity => wanted.has(identifierKey(identity)))
  const about: number[] = []
  const others: number[] = []
  if (entry.kind === 'record') {
    ;(isKnown(recordIdentifiers(entry)) ? about : others).push(0)
    return { about, others }
  }
  const context = JSON.parse(entry.context) as EventContext
  const { events, rejected } = normalize({
    entryId: entry.id,
    receivedAt: entry.receivedAt,
    body: entry.body,
    context,
  })
  for (const event of events) (isKnown(eventIdentifiers(event)) ? about : others).push(event.index)
  for (const item of rejected) (mentionsAny(item.raw, person) ? about : others).push(item.index)
  return { about, others }
}

function recordIdentifiers(entry: StoredEntry): Identifier[] {
  const { entityType } = JSON.parse(entry.context) as RecordContext
  const body: unknown = JSON.parse(entry.body)
  if (!isObject(body)) return []
  const data = isObject(body.data) ? body.data : {}
  if (entityType === 'order') return orderIdentifiers(data)
  return entityType === 'contact' ? contactIdentifiers(String(body.id), data) : []
}

/**
 * Whom an event is about, with the shop's number for its customer: of somebody whose address is not to be recorded,
 * that number alone stands in the next order.
 */
export function suppressibleIdentifiers(event: NormalizedEvent): Identifier[] {
  const names = eventIdentifiers(event)
  const topic = event.sourceConfigId === null ? undefined : event.headers[SHOPIFY_TOPIC]
  if (topic === undefined) return names
  const { customer, id } = event.subject
  const number = topic.startsWith('customers/') ? id : isObject(customer) ? customer.id : null
  const contact = parseId(number)
  return contact === null ? names : [...names, { kind: 'contact', value: contact }]
}

/** Whom an entry is about: by the names of its events or its record, and by all that its bad items mention. */
export function entryIdentifiers(entry: StoredEntry): Identifier[] {
  try {
    if (entry.kind === 'record') return recordIdentifiers(entry)
    const { id: entryId, receivedAt, body } = entry
    const context = JSON.parse(entry.context) as EventContext
    const { events, rejected } = normalize({ entryId, receivedAt, body, context })
    return [...events.flatMap(suppressibleIdentifiers), ...rejected.flatMap(({ raw }) => findMentions(raw))]
  } catch {
    return findMentions(entry.body)
  }
}
