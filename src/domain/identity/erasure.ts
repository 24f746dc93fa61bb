import { createHash } from 'node:crypto'
import type { Entry } from '../entries/entry.ts'
import type { EventContext, NormalizedEvent } from '../events/events.ts'
import { normalize } from '../events/normalize/normalize.ts'
import { isObject, objectFields } from '../json/json.ts'
import { SHOPIFY_TOPIC } from '../providers/shops/shopify.ts'
import type { RecordContext, RecordWrite } from '../records/records.ts'
import { publicTenantId } from '../tenants/tenants.ts'
import {
  contactIdentifiers,
  eventIdentifiers,
  type Identifier,
  type IdentifierKind,
  orderIdentifiers,
  parseEmail,
  parseId,
} from './identity.ts'
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

/** An id that is shorter may be anything: a quantity, a size, an order number. It is a name in a field of names only. */
const MIN_IDENTIFYING_LENGTH = 8

type IdKind = Exclude<IdentifierKind, 'email'>
const ID_KINDS: readonly IdKind[] = ['visitor', 'user', 'contact']

/** Fields that hold somebody's id, in lower case and without separators. */
const FIELDS = new Map<string, readonly IdKind[]>([
  ...['visitor', 'visitorid', 'anonymousid'].map(name => [name, ['visitor']] as const),
  ...['user', 'userid', 'uid'].map(name => [name, ['user']] as const),
  ...['contact', 'contactid', 'customer', 'customerid'].map(name => [name, ['contact']] as const),
  ...['previousid', 'distinctid'].map(name => [name, ['visitor', 'user']] as const),
])

const kindsOfField = (field: string): readonly IdKind[] | undefined =>
  FIELDS.get(field.replace(/[-_ ]/g, '').toLowerCase())

/** The names of a person, ready to be looked for: thousands of entries are compared with thousands of names. */
type IdentifierIndex = { wanted: Set<string>; emails: Set<string>; ids: Set<string> }

export function indexIdentifiers(names: Identifier[]): IdentifierIndex {
  return {
    wanted: new Set(names.map(identifierKey)),
    emails: new Set(names.flatMap(name => (name.kind === 'email' ? [name.value] : []))),
    ids: new Set(names.flatMap(({ value }) => (value.length >= MIN_IDENTIFYING_LENGTH ? [value] : []))),
  }
}

function identifierKey({ kind, value }: Identifier): string {
  return `${kind} ${value}`
}

/** Whether a name of the person stands somewhere in a text, JSON or not. */
export function mentionsAny(raw: string, { wanted, emails, ids }: IdentifierIndex): boolean {
  for (const { text, kinds } of readStrings(raw)) {
    const id = text.trim()
    if (ids.has(id) || kinds?.some(kind => wanted.has(identifierKey({ kind, value: id })))) return true
    if (emails.size > 0 && findAddresses(text).some(address => emails.has(address))) return true
  }
  return false
}

// A text with more of them is a list of something else.
const MAX_IDS = 1_000

/** Everything in a text, JSON or not, that somebody may be known by. */
export function findMentions(raw: string): Identifier[] {
  const names = new Map<string, Identifier>()
  const add = (identity: Identifier) => names.set(identifierKey(identity), identity)
  let named = 0
  let others = 0
  for (const { text, kinds } of readStrings(raw)) {
    for (const value of findAddresses(text)) add({ kind: 'email', value })
    const id = parseId(text)
    if (id === null) continue
    if (kinds && named++ < MAX_IDS) for (const kind of kinds) add({ kind, value: id })
    if (id.length >= MIN_IDENTIFYING_LENGTH && others++ < MAX_IDS)
      for (const kind of ID_KINDS) add({ kind, value: id })
  }
  return [...names.values()]
}

/** A text in a body, and of what kind the id is that its field is named after. */
type Found = { text: string; kinds: readonly IdKind[] | undefined }

function readStrings(raw: string): Iterable<Found> {
  let value: unknown
  try {
    value = JSON.parse(raw)
  } catch {
    return stringsInText(raw)
  }
  return stringsInJson(value)
}

/** Every text in a JSON value, however deep: with a stack of its own, which no depth overflows. */
function* stringsInJson(value: unknown): Generator<Found> {
  const left: { value: unknown; kinds: Found['kinds'] }[] = [{ value, kinds: undefined }]
  for (let next = left.pop(); next; next = left.pop()) {
    const { value, kinds } = next
    if (typeof value === 'string') yield { text: value, kinds }
    else if (typeof value === 'number' && kinds) yield { text: String(value), kinds }
    else if (Array.isArray(value)) for (const item of value) left.push({ value: item, kinds })
    else if (isObject(value))
      // of `customer: {id: 1}` too
      for (const [key, item] of Object.entries(value))
        left.push({ value: item, kinds: key === 'id' ? kinds : kindsOfField(key) })
  }
}

const DELIMITERS = /[\s"'<>,;:=&?()[\]{}|\\/]+/

/** What is no JSON: `"userId": "4711` and `user_id=4711` as fields, as far as that can be told. */
function* stringsInText(raw: string): Generator<Found> {
  let before = ''
  for (const text of raw.replaceAll('\\u0040', '@').split(DELIMITERS)) {
    yield { text, kinds: kindsOfField(before) }
    before = text
  }
}

/** The address that a text is, and those that stand in it, also percent-encoded. Words, not a search by pattern: a text may be long. */
function findAddresses(text: string): string[] {
  if (!/[@＠﹫]|%40/.test(text)) return []
  const words = text.replaceAll('%40', '@').split(DELIMITERS)
  const found = [text, ...words.filter(word => word.includes('@')).map(decoded)].map(parseEmail)
  return [...new Set(found.filter(address => address !== null))]
}

function decoded(word: string): string {
  try {
    return word.includes('%') ? decodeURIComponent(word) : word
  } catch {
    return word
  }
}

/** All that is kept of a name that is not to be recorded again. */
export function hashIdentifier(tenantId: number, { kind, value }: Identifier): Buffer {
  return createHash('sha256')
    .update(`${publicTenantId(tenantId)} ${kind} ${value}`)
    .digest()
}

/** Of all that somebody is called here; what is an address counts as one, whatever it was sent as. */
export function hashIdentifiers(tenantId: number, names: Identifier[]): Buffer[] {
  const hashes = new Map<string, Buffer>()
  for (const name of names) {
    const email = name.kind === 'email' ? null : parseEmail(name.value)
    for (const compared of email === null ? [name] : [name, { kind: 'email' as const, value: email }]) {
      const hash = hashIdentifier(tenantId, compared)
      hashes.set(hash.toString('hex'), hash)
    }
  }
  return [...hashes.values()]
}

/** An order as an erasure leaves it: enough for the accounts, and no name. Figures stay as they were written. */
export function anonymizeOrder(write: RecordWrite): RecordWrite {
  const kept = new Map(
    objectFields(write.dataText).filter(
      ([key, raw]) => KEPT_ORDER_FIELDS.includes(key) && !/^[[{n]/.test(raw),
    ),
  )
  const dataText = `{${[...kept].map(([key, raw]) => `${JSON.stringify(key)}:${raw}`).join(',')}}`
  const data = Object.fromEntries([...kept.keys()].map(key => [key, write.data[key]]))
  return { ...write, externalId: null, data, dataText }
}
