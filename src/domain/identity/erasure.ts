import type { Entry } from '../entries/entry.ts'
import type { EventContext, NormalizedEvent } from '../events/events.ts'
import { normalize } from '../events/normalize/normalize.ts'
import { isObject } from '../json/json.ts'
import { SHOPIFY_TOPIC } from '../providers/shops/shopify.ts'
import type { RecordContext } from '../records/records.ts'
import {
  emailOf,
  type Identity,
  identitiesOf,
  identitiesOfContact,
  identitiesOfOrder,
  idOf,
} from './identity.ts'

/** What an order keeps when its buyer is erased: enough for the accounts, and no name. */
export const KEPT_ORDER_FIELDS = [
  ...['amount', 'total', 'total_price', 'value', 'revenue', 'currency', 'status', 'state'],
  ...['created_at', 'createdAt', 'placed_at', 'placedAt', 'ordered_at', 'orderedAt'],
  ...['occurred_at', 'occurredAt', 'date'],
]

/** An id that is shorter may be anything: a quantity, a size, an order number. */
const MIN_IDENTIFYING_LENGTH = 8

/** The names of a person, ready to be looked for: thousands of entries are compared with thousands of names. */
type PersonNames = { wanted: Set<string>; emails: Set<string>; ids: Set<string> }

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
  for (const text of textsIn(value)) if (ids.has(text.trim()) || emails.has(emailOf(text) ?? '')) return true
  return false
}

/** Every text in a JSON value, however deep: with a stack of its own, which no depth overflows. */
function* textsIn(value: unknown): Generator<string> {
  const left = [value]
  while (left.length > 0) {
    const next = left.pop()
    if (typeof next === 'string') yield next
    else if (Array.isArray(next)) for (const item of next) left.push(item)
    else if (isObject(next)) for (const item of Object.values(next)) left.push(item)
  }
}

const NAMED_BY_IDS = ['visitor', 'user', 'contact'] as const
// A text with more of them is a list of something else.
const MAX_IDS = 1_000

/** Everything in a text, JSON or not, that somebody may be known by. */
export function namesMentioned(raw: string): Identity[] {
  const emails = new Set<string>()
  const ids = new Set<string>()
  for (const text of textsOf(raw)) {
    const email = emailOf(text)
    if (email !== null) emails.add(email)
    const id = idOf(text)
    if (id !== null && id.length >= MIN_IDENTIFYING_LENGTH && ids.size < MAX_IDS) ids.add(id)
  }
  return [
    ...[...emails].map((value): Identity => ({ kind: 'email', value })),
    ...[...ids].flatMap(value => NAMED_BY_IDS.map((kind): Identity => ({ kind, value }))),
  ]
}

function textsOf(raw: string): Iterable<string> {
  try {
    return textsIn(JSON.parse(raw))
  } catch {
    return raw.match(/[^\s"'<>,;()[\]{}]+/g) ?? []
  }
}

/**
 * Whom an event is about, with the shop's number for its customer: of somebody whose address is not to be recorded,
 * that number alone stands in the next order.
 */
export function suppressibleNames(event: NormalizedEvent): Identity[] {
  const names = identitiesOf(event)
  const topic = event.sourceConfigId === null ? undefined : event.headers[SHOPIFY_TOPIC]
  if (topic === undefined) return names
  const { customer, id } = event.subject
  const number = topic.startsWith('customers/') ? id : isObject(customer) ? customer.id : null
  const contact = idOf(number)
  return contact === null ? names : [...names, { kind: 'contact', value: contact }]
}

/** Whom an entry is about: by the names of its events or its record, and by all that its bad items mention. */
export function namesInEntry(entry: StoredEntry): Identity[] {
  try {
    if (entry.kind === 'record') return identitiesOfRecord(entry)
    const { id: entryId, receivedAt, body } = entry
    const context = JSON.parse(entry.context) as EventContext
    const { events, rejected } = normalize({ entryId, receivedAt, body, context })
    return [...events.flatMap(suppressibleNames), ...rejected.flatMap(({ raw }) => namesMentioned(raw))]
  } catch {
    return namesMentioned(entry.body)
  }
}

function nameText({ kind, value }: Identity): string {
  return `${kind} ${value}`
}
