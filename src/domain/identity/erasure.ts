import type { Entry } from '../entries/entry.ts'
import type { EventContext } from '../events/events.ts'
import { normalize } from '../events/normalize/normalize.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import type { RecordContext } from '../records/records.ts'
import { emailOf, type Identity, identitiesOf, identitiesOfContact, identitiesOfOrder } from './identity.ts'

/** What an order keeps when its buyer is erased: enough for the accounts, and no name. */
export const KEPT_ORDER_FIELDS = [
  ...['amount', 'total', 'total_price', 'value', 'revenue', 'currency', 'status', 'state'],
  ...['created_at', 'createdAt', 'placed_at', 'placedAt', 'ordered_at', 'orderedAt'],
  ...['occurred_at', 'occurredAt', 'date'],
]

/** An id that is shorter may be anything: a quantity, a size, an order number. */
const MIN_IDENTIFYING_LENGTH = 8

/** The names of a person, ready to be looked for: thousands of entries are compared with thousands of names. */
export type PersonNames = { wanted: Set<string>; emails: Set<string>; ids: Set<string> }

export function personNames(names: Identity[]): PersonNames {
  return {
    wanted: new Set(names.map(nameText)),
    emails: new Set(names.flatMap(name => (name.kind === 'email' ? [name.value] : []))),
    ids: new Set(names.flatMap(({ value }) => (value.length >= MIN_IDENTIFYING_LENGTH ? [value] : []))),
  }
}

type StoredEntry = Pick<Entry, 'id' | 'kind' | 'receivedAt' | 'context' | 'body'>

/** Which items of an entry that never took effect are about a person, and which are not. */
export function itemsAbout(entry: StoredEntry, person: PersonNames): { about: number[]; others: number[] } {
  const { wanted } = person
  const isKnown = (identities: Identity[]) => identities.some(identity => wanted.has(nameText(identity)))
  const about: number[] = []
  const others: number[] = []
  if (entry.kind === 'record') {
    ;(isKnown(identitiesOfRecord(entry)) ? about : others).push(0)
    return { about, others }
  }
  const context = JSON.parse(entry.context) as EventContext
  const { events, rejected } = normalize({
    entryId: entry.id,
    receivedAt: entry.receivedAt,
    body: entry.body,
    context,
  })
  for (const event of events) (isKnown(identitiesOf(event)) ? about : others).push(event.index)
  for (const item of rejected) (mentions(item.raw, person) ? about : others).push(item.index)
  return { about, others }
}

function identitiesOfRecord(entry: StoredEntry): Identity[] {
  const { entityType } = JSON.parse(entry.context) as RecordContext
  const body: unknown = JSON.parse(entry.body)
  if (!isObject(body)) return []
  const data = isObject(body.data) ? body.data : {}
  if (entityType === 'order') return identitiesOfOrder(data)
  return entityType === 'contact' ? identitiesOfContact(String(body.id), data) : []
}

/** Whether something that could not be read as an event has a name of the person as one of its values. */
export function mentions(raw: string, { emails, ids }: PersonNames): boolean {
  let value: unknown
  try {
    value = JSON.parse(raw)
  } catch {
    const text = raw.toLowerCase()
    return [...emails].some(email => text.includes(email))
  }
  const isName = (leaf: unknown): boolean => {
    if (typeof leaf === 'string') return ids.has(leaf.trim()) || emails.has(emailOf(leaf) ?? '')
    if (Array.isArray(leaf)) return leaf.some(isName)
    return isObject(leaf) && Object.values(leaf as JsonObject).some(isName)
  }
  return isName(value)
}

function nameText({ kind, value }: Identity): string {
  return `${kind} ${value}`
}
