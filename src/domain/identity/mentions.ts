import { isObject } from '../json/json.ts'
import { type Identifier, type IdentifierKind, parseEmail, parseId } from './identity.ts'

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
export type IdentifierIndex = { wanted: Set<string>; emails: Set<string>; ids: Set<string> }

export function indexIdentifiers(names: Identifier[]): IdentifierIndex {
  return {
    wanted: new Set(names.map(identifierKey)),
    emails: new Set(names.flatMap(name => (name.kind === 'email' ? [name.value] : []))),
    ids: new Set(names.flatMap(({ value }) => (value.length >= MIN_IDENTIFYING_LENGTH ? [value] : []))),
  }
}

export function identifierKey({ kind, value }: Identifier): string {
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
