import { createHash } from 'node:crypto'
import type { Entry } from '../entries/entry.ts'
import { normalize } from '../events/normalize/normalize.ts'
import type { EventContext, NormalizedEvent } from '../events/types.ts'
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
} from './identifiers.ts'

/** The fields that an order keeps when its buyer is erased: enough for accounting, and no identifier. */
export const KEPT_ORDER_FIELDS = [
  ...['amount', 'total', 'total_price', 'value', 'revenue', 'currency', 'status', 'state'],
  ...['created_at', 'createdAt', 'placed_at', 'placedAt', 'ordered_at', 'orderedAt'],
  ...['occurred_at', 'occurredAt', 'date'],
]

type StoredEntry = Pick<Entry, 'id' | 'kind' | 'receivedAt' | 'context' | 'body'>

/** `isInRest`: the body also contains items about the person that were applied before the rest was deferred or parked. */
type Items = { about: number[]; others: number[]; isInRest: boolean }

/** Like `findItems`, but also searches the raw text of a dead letter. It may have failed because of a misplaced identifier. */
export function findLetterItems(entry: StoredEntry, person: IdentifierIndex): Items {
  const items = findItems(entry, person)
  const isMentioned = items.about.length === 0 && mentionsAny(entry.body, person)
  return isMentioned ? { ...items, about: items.others, others: [] } : items
}

/** Finds which items of an entry that was never applied are about a person, and which are not. */
export function findItems(entry: StoredEntry, person: IdentifierIndex): Items {
  const { wanted } = person
  const isKnown = (identities: Identifier[]) => identities.some(identity => wanted.has(identifierKey(identity)))
  const about: number[] = []
  const others: number[] = []
  if (entry.kind === 'record') {
    ;(isKnown(recordIdentifiers(entry)) ? about : others).push(0)
    return { about, others, isInRest: false }
  }
  const { items: own, ...context } = JSON.parse(entry.context) as EventContext
  const { id: entryId, receivedAt, body } = entry
  const { events, rejected } = normalize({ entryId, receivedAt, body, context })
  const isOwn = own ? new Set(own) : null
  let isInRest = false
  const add = (index: number, isAbout: boolean) => {
    if (isOwn && !isOwn.has(index)) isInRest ||= isAbout
    else (isAbout ? about : others).push(index)
  }
  for (const event of events) add(event.index, isKnown(eventIdentifiers(event)))
  for (const item of rejected) add(item.index, mentionsAny(item.raw, person))
  return { about, others, isInRest }
}

/**
 * The identifiers of an event, including the shop's customer number. The next order of a person whose address is
 * suppressed may contain only that number.
 */
export function suppressibleIdentifiers(event: NormalizedEvent): Identifier[] {
  const identifiers = eventIdentifiers(event)
  const topic = event.sourceConfigId === null ? undefined : event.headers[SHOPIFY_TOPIC]
  if (topic === undefined) return identifiers
  const { customer, id } = event.subject
  const number = topic.startsWith('customers/') ? id : isObject(customer) ? customer.id : null
  const contact = parseId(number)
  return contact === null ? identifiers : [...identifiers, { kind: 'contact', value: contact }]
}

/** The identifiers of an entry: those of its events or record, and all that its rejected items mention. */
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

/** Whether a private key, a server key or a source sent the entry. */
export function isVerifiedEntry({ kind, context }: StoredEntry): boolean {
  if (kind === 'record') return true
  const { route, trusted } = JSON.parse(context) as EventContext
  return route === 'inbound' || trusted === true
}

/** The identifiers of a person, indexed: thousands of entries are compared with thousands of identifiers. */
type IdentifierIndex = { wanted: Set<string>; emails: Set<string>; ids: Set<string> }

export function indexIdentifiers(identifiers: Identifier[]): IdentifierIndex {
  return {
    wanted: new Set(identifiers.map(identifierKey)),
    emails: new Set(identifiers.flatMap(identifier => (identifier.kind === 'email' ? [identifier.value] : []))),
    ids: new Set(identifiers.flatMap(({ value }) => (value.length >= MIN_IDENTIFYING_LENGTH ? [value] : []))),
  }
}

/** Whether a string, JSON or not, contains an identifier of the person. */
export function mentionsAny(raw: string, { wanted, emails, ids }: IdentifierIndex): boolean {
  for (const { text, kinds } of readStrings(raw)) {
    const id = text.trim()
    if (ids.has(id) || kinds?.some(kind => wanted.has(identifierKey({ kind, value: id })))) return true
    if (emails.size > 0 && findAddresses(text).some(address => emails.has(address))) return true
  }
  return false
}

/**
 * Whether a request contains one of the addresses, also within other text such as an id. An address that is only a part
 * of another one does not count: mal@x.example in normal@x.example.
 */
export function containsAddress(raw: string, emails: string[]): boolean {
  const base64 = emails.flatMap(base64Spellings).map(spelling => spelling.toLowerCase())
  for (const found of textsIn(raw)) {
    const text = found.toLowerCase()
    if (base64.some(spelling => text.includes(spelling))) return true
    const plain = decodeAddresses(found.normalize('NFKC').replace(/\\u0040/gi, '@'))
      .replaceAll('=40', '@')
      // JSON within a string.
      .replace(/\\(?:u[\da-f]{4}|[bfnrt])/gi, ' ')
      .toLowerCase()
    for (const word of plain.split(DELIMITERS))
      if (emails.some(email => word.includes(email)) && !isAnotherAddress(word, emails)) return true
  }
  return false
}

function* textsIn(raw: string): Generator<string> {
  let value: unknown
  try {
    value = JSON.parse(raw)
  } catch {
    yield raw
    return
  }
  for (const { text } of stringsInJson(value)) yield text
}

function isAnotherAddress(word: string, emails: string[]): boolean {
  const address = word.replace(/^[^\p{L}\p{N}]+/u, '').replace(/[._+-]{1,100}$/, '')
  return !emails.includes(address) && /^[\p{L}\p{N}._+-]+@[\p{L}\p{N}.-]+$/u.test(address)
}

// Text with more ids than this is a list of something else.
const MAX_IDS = 1_000

/** Everything in a string, JSON or not, that may be an identifier. */
export function findMentions(raw: string): Identifier[] {
  const identifiers = new Map<string, Identifier>()
  const add = (identity: Identifier) => identifiers.set(identifierKey(identity), identity)
  let named = 0
  let others = 0
  for (const { text, kinds } of readStrings(raw)) {
    for (const value of findAddresses(text)) add({ kind: 'email', value })
    const id = parseId(text)
    if (id === null) continue
    if (kinds && named++ < MAX_IDS) for (const kind of kinds) add({ kind, value: id })
    if (id.length >= MIN_IDENTIFYING_LENGTH && others++ < MAX_IDS) for (const kind of ID_KINDS) add({ kind, value: id })
  }
  return [...identifiers.values()]
}

/** The hash of a suppressed identifier. Nothing else of it is stored. */
export function hashIdentifier(tenantId: number, { kind, value }: Identifier): Buffer {
  return createHash('sha256')
    .update(`${publicTenantId(tenantId)} ${kind} ${value}`)
    .digest()
}

/** The hashes of identifiers. A value that is an e-mail address is also hashed as one, whatever its kind. */
export function hashIdentifiers(tenantId: number, identifiers: Identifier[]): Buffer[] {
  const hashes = new Map<string, Buffer>()
  for (const identifier of identifiers) {
    const email = identifier.kind === 'email' ? null : parseEmail(identifier.value)
    for (const compared of email === null ? [identifier] : [identifier, { kind: 'email' as const, value: email }]) {
      const hash = hashIdentifier(tenantId, compared)
      hashes.set(hash.toString('hex'), hash)
    }
  }
  return [...hashes.values()]
}

/** An order after an erasure: only `KEPT_ORDER_FIELDS`. Digits stay as they were written. */
export function anonymizeOrder(write: RecordWrite): RecordWrite {
  const kept = new Map(
    objectFields(write.dataText).filter(([key, raw]) => KEPT_ORDER_FIELDS.includes(key) && !/^[[{n]/.test(raw)),
  )
  const dataText = `{${[...kept].map(([key, raw]) => `${JSON.stringify(key)}:${raw}`).join(',')}}`
  const data = Object.fromEntries([...kept.keys()].map(key => [key, write.data[key]]))
  return { ...write, externalId: null, data, dataText }
}

function recordIdentifiers(entry: StoredEntry): Identifier[] {
  const { entityType } = JSON.parse(entry.context) as RecordContext
  const body: unknown = JSON.parse(entry.body)
  if (!isObject(body)) return []
  const data = isObject(body.data) ? body.data : {}
  if (entityType === 'order') return orderIdentifiers(data)
  return entityType === 'contact' ? contactIdentifiers(String(body.id), data) : []
}

/** A shorter value may be a quantity, a size or an order number. It counts as an id only in a field for ids. */
const MIN_IDENTIFYING_LENGTH = 8

type IdKind = Exclude<IdentifierKind, 'email'>
const ID_KINDS: readonly IdKind[] = ['visitor', 'user', 'contact']

/** Fields that contain a person's id, in lower case and without separators. */
const FIELDS = new Map<string, readonly IdKind[]>([
  ...['visitor', 'visitorid', 'anonymousid'].map(field => [field, ['visitor']] as const),
  ...['user', 'userid', 'uid'].map(field => [field, ['user']] as const),
  ...['contact', 'contactid', 'customer', 'customerid'].map(field => [field, ['contact']] as const),
  ...['previousid', 'distinctid'].map(field => [field, ['visitor', 'user']] as const),
])

const kindsOfField = (field: string): readonly IdKind[] | undefined =>
  FIELDS.get(field.replace(/[-_ ]/g, '').toLowerCase())

export function identifierKey({ kind, value }: Identifier): string {
  return `${kind} ${value}`
}

/** A string in a body, and the kinds of id that its field may contain. */
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

/** Every string in a JSON value, and every key that may be an address. Uses a stack of its own, so that no depth overflows the call stack. */
function* stringsInJson(value: unknown): Generator<Found> {
  const left: { value: unknown; kinds: Found['kinds'] }[] = [{ value, kinds: undefined }]
  for (let next = left.pop(); next; next = left.pop()) {
    const { value, kinds } = next
    if (typeof value === 'string') yield { text: value, kinds }
    else if (typeof value === 'number' && kinds) yield { text: String(value), kinds }
    else if (Array.isArray(value)) for (const item of value) left.push({ value: item, kinds })
    else if (isObject(value))
      // Also for `customer: {id: 1}`.
      for (const [key, item] of Object.entries(value)) {
        if (MAYBE_ADDRESS.test(key)) yield { text: key, kinds: undefined }
        left.push({ value: item, kinds: key === 'id' ? kinds : kindsOfField(key) })
      }
  }
}

const DELIMITERS = /[\s"'<>,;:=&?()[\]{}|\\/]+/

/** Strings in text that is not JSON. Recognizes fields such as `"userId": "4711` and `user_id=4711`. */
function* stringsInText(raw: string): Generator<Found> {
  let before = ''
  for (const text of decodeAddresses(raw.replaceAll('\\u0040', '@')).split(DELIMITERS)) {
    yield { text, kinds: kindsOfField(before) }
    before = text
  }
}

/** How forms, URLs, HTML, JSON and e-mail headers write the at sign of an address. */
const AT_SIGNS = ['@', '＠', '﹫', '%40', '%2540', '&#64;', '&#x40;', '&commat;', '\\u0040', '=40']
const MAYBE_ADDRESS = /[@＠﹫]|%(?:25){0,9}40|&#0{0,5}64;|&#x0{0,5}40;|&commat;|=40|=\?/i
const MAYBE_ENCODED = /%(?:25){0,9}40|&#0{0,5}64;|&#x0{0,5}40;|&commat;|=40|=\?/i

/** The e-mail addresses in a string, however they are encoded. Splits into words instead of using a pattern: the string may be long. */
function findAddresses(text: string): string[] {
  if (!MAYBE_ADDRESS.test(text)) return []
  const plain = decodeAddresses(text)
  const texts = plain.includes('=40') ? [plain, plain.replaceAll('=40', '@')] : [plain]
  const words = texts.flatMap(some => some.split(DELIMITERS)).filter(word => word.includes('@'))
  const found = [text, plain, ...words.map(decoded)].map(parseEmail)
  return [...new Set(found.filter(address => address !== null))]
}

/** Decodes what may hide an address: HTML entities, repeated percent-encoding, and encoded words of e-mail headers. */
function decodeAddresses(text: string): string {
  return text
    .replace(/\?=\s{1,9}=\?/g, '?==?')
    .replace(/=\?[\w*-]{1,40}\?([bq])\?([^?\s]{1,1000})\?=/gi, (_, encoding: string, word: string) =>
      decodeWord(encoding, word),
    )
    .replace(/&#(?:x([\da-f]{1,6})|(\d{1,7}));/gi, (_, hex?: string, digits?: string) =>
      characterOf(hex === undefined ? Number(digits) : Number.parseInt(hex, 16)),
    )
    .replace(/&commat;/gi, '@')
    .replace(/%(?:25){1,9}(?=[\da-f]{2})/gi, '%')
    .replaceAll('%40', '@')
}

/** An encoded word as in RFC 2047. Its charset does not matter, because addresses are ASCII. */
function decodeWord(encoding: string, word: string): string {
  if (encoding.toLowerCase() === 'b') return Buffer.from(word, 'base64').toString('latin1')
  return word.replaceAll('_', ' ').replace(/=([\da-f]{2})/gi, (_, hex: string) => characterOf(Number.parseInt(hex, 16)))
}

function characterOf(code: number): string {
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : ' '
}

/** The spellings of an address to search for in stored text. */
export function addressSpellings(email: string): string[] {
  const encoded = encodeURIComponent(email)
  const plain = [...AT_SIGNS.map(at => email.replace('@', at)), encoded, encodeURIComponent(encoded)]
  return [...new Set([...plain, ...base64Spellings(email)])]
}

/** The beginning depends on the characters before it. */
function base64Spellings(email: string): string[] {
  return [0, 1, 2].map(offset =>
    Buffer.from(`${' '.repeat(offset)}${email}`)
      .toString('base64')
      .replaceAll('=', '')
      // Without the characters that also depend on what is before and after the address.
      .slice(offset && offset + 1, (offset + email.length) % 3 === 0 ? undefined : -1),
  )
}

/** A JSON text with its encoded addresses decoded, so that they are read like plain ones. */
export function decodePayload(raw: string): string {
  if (!MAYBE_ENCODED.test(raw)) return raw
  return JSON.stringify(JSON.parse(raw), (_key, value) => {
    if (typeof value !== 'string' || !MAYBE_ENCODED.test(value)) return value
    const plain = decodeAddresses(value)
    return plain.includes('@') ? plain : plain.replaceAll('=40', '@')
  })
}

function decoded(word: string): string {
  try {
    return word.includes('%') ? decodeURIComponent(word) : word
  } catch {
    return word
  }
}
