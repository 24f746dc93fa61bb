import { domainToUnicode } from 'node:url'
import type { NormalizedEvent } from '../events/types.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { readCustomer } from '../providers/adapters.ts'
import { stripeObject } from '../providers/stripe/objects.ts'
import { trimEnd, trimStart } from '../trim.ts'

/** An identifier of a person. Identifiers that appear together belong to one profile. */
export type Identifier = { kind: IdentifierKind; value: string }

export const IDENTIFIER_KINDS = ['visitor', 'user', 'email', 'contact'] as const
export type IdentifierKind = (typeof IDENTIFIER_KINDS)[number]

/** A node of the identity graph: events of one identifier point to it. */
export type NodeKey = { tenantId: number; node: number }

/** A longer value is not an id. It also has to fit an index. */
export const MAX_ID_LENGTH = 255

/** Values that broken code and placeholder forms send instead of an id. As identifiers they would merge unrelated people. */
const PLACEHOLDERS = new Set(
  `0 -1 null undefined nil none nan na n/a true false anonymous anon guest unknown unidentified unauthenticated
   not_authenticated not_set (not_set) (none) (null) (empty) id userid user_id distinct_id distinctid email e-mail
   - -- . ? {} [] [object_object] 00000000-0000-0000-0000-000000000000`.split(/\s+/),
)

export function publicProfileId(profile: number | null): string | null {
  return profile === null ? null : `prof_${profile}`
}

/** Parses a person's id. Returns null if the value is not one. */
export function parseId(value: unknown): string | null {
  const text = typeof value === 'string' ? value.trim() : typeof value === 'number' ? String(value) : ''
  if (text === '' || text.length > MAX_ID_LENGTH) return null
  // All placeholders are short, so longer ids need no look-up.
  return text.length <= 36 && isPlaceholder(text.toLowerCase()) ? null : text
}

function isPlaceholder(lower: string): boolean {
  return PLACEHOLDERS.has(lower.includes(' ') ? lower.replaceAll(' ', '_') : lower)
}

/** Parses an e-mail address into its normalized form. Returns null if the value is not one. */
export function parseEmail(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const trimmed = value.trim()
  if (trimmed.length > MAX_LENGTH || !/[@＠﹫%]/.test(trimmed)) return null
  const text = normalizeAddress(trimmed)
  const at = text.indexOf('@')
  if (at < 1 || at === text.length - 1 || text.length > MAX_ID_LENGTH || /[\s<>,;]/.test(text)) return null
  return PLACEHOLDERS.has(text.slice(0, at)) && PLACEHOLDERS.has(text.slice(at + 1)) ? null : text
}

export function eventIdentifiers(event: NormalizedEvent): Identifier[] {
  const found: Identifier[] = []
  add(found, 'visitor', parseId(event.visitor))
  add(found, 'user', parseId(event.userId))
  add(found, 'email', parseEmail(event.email))
  // An address that is used as a user id counts as the address.
  add(found, 'email', parseEmail(event.userId))
  if (event.previousId !== null) {
    // An alias may have a visitor id or an earlier user id. Only a trusted sender may link user ids.
    const previous = parseId(event.previousId)
    add(found, 'visitor', previous)
    if (event.trusted) add(found, 'user', previous)
    add(found, 'email', parseEmail(event.previousId))
  }
  // The fields of a group describe a company, not the person.
  if (event.meta.kind === 'group') return found
  addContact(found, event)
  if (!hasKind(found, 'email')) {
    const object = stripeObject(event.subject) ?? event.subject
    // A browser may only report the visitor's own address. A trusted sender may report the address of a buyer.
    add(found, 'email', event.trusted ? readEmail(object) : readOwnEmail(object))
  }
  if (hasKind(found, 'contact'))
    for (const { kind, value } of [...found]) if (kind === 'contact') add(found, 'email', parseEmail(value))
  return found
}

function hasKind(found: Identifier[], kind: IdentifierKind): boolean {
  for (const own of found) if (own.kind === kind) return true
  return false
}

function addContact(found: Identifier[], event: NormalizedEvent): void {
  // Only sources report billing.
  const customer = event.sourceConfigId === null ? null : readCustomer(event.subject)
  if (customer) {
    add(found, 'contact', parseId(customer.id))
    add(found, 'email', parseEmail(customer.email))
    return
  }
  const stripe = stripeObject(event.subject)
  const object = stripe ?? event.subject
  if (stripe || /^(?:subscription|invoice|refund)\./.test(event.eventType)) {
    const customer = object.object === 'customer' ? object : object.customer
    add(found, 'contact', parseId(isObject(customer) ? customer.id : customer))
    add(found, 'email', parseEmail(object.customer_email) ?? (isObject(customer) ? parseEmail(customer.email) : null))
  } else {
    add(found, 'contact', readContactId(object))
  }
}

export function contactIdentifiers(id: string, data: JsonObject): Identifier[] {
  const found: Identifier[] = []
  add(found, 'contact', id)
  addPerson(found, data)
  add(found, 'email', parseEmail(id))
  return found
}

/** The buyer of an order: contact id, e-mail address, and the visitor or user id if the shop knows them. */
export function orderIdentifiers(data: JsonObject): Identifier[] {
  const found: Identifier[] = []
  add(found, 'contact', readContactId(data))
  addPerson(found, data)
  add(found, 'email', parseEmail(readContactId(data)))
  return found
}

function addPerson(found: Identifier[], data: JsonObject): void {
  add(found, 'email', readEmail(data))
  add(found, 'visitor', parseId(data.visitor ?? data.anonymousId ?? data.anonymous_id))
  add(found, 'user', parseId(data.userId ?? data.user_id))
  add(found, 'email', parseEmail(data.userId ?? data.user_id))
}

/** Where Stripe, shops and CRMs put the buyer's address if it is not in `email`. The first valid one counts. */
const EMAIL_FIELDS = ['contact_email', 'receipt_email']
const EMAIL_OBJECTS = ['customer', 'customer_details', 'billing_details', 'billing']

function readEmail(data: JsonObject): string | null {
  const own = readOwnEmail(data)
  if (own !== null) return own
  for (const field of EMAIL_FIELDS) {
    const email = parseEmail(data[field])
    if (email !== null) return email
  }
  for (const field of EMAIL_OBJECTS) {
    const object = data[field]
    const email = isObject(object) ? readOwnEmail(object) : null
    if (email !== null) return email
  }
  return null
}

function readOwnEmail({ email, Email, emails }: JsonObject): string | null {
  const first = Array.isArray(emails) ? emails[0] : null
  return parseEmail(email) ?? parseEmail(Email) ?? parseEmail(isObject(first) ? (first.email ?? first.value) : first)
}

/** The contact's own id in an order or event: `contactId | contact_id | customerId | customer_id`. */
export function readContactId(data: JsonObject): string | null {
  return parseId(data.contactId ?? data.contact_id ?? data.customerId ?? data.customer_id)
}

function add(found: Identifier[], kind: IdentifierKind, value: string | null): void {
  if (value === null) return
  for (const own of found) if (own.kind === kind && own.value === value) return
  found.push({ kind, value })
}

/** Nearly every address. Apart from its case it has only one spelling. */
const PLAIN = /^[\w.+%-]+@[a-z\d-]+(?:\.[a-z\d-]+)+$/

/** RFC 5321: 64 characters before the @ and 255 after it. A name before the address counts. */
const MAX_LENGTH = 320

/**
 * Normalizes an address for storage and comparison. Accepts `Ada <ADA@Example.org>`,
 * `mailto:ada%40example.org`, `ada@example.org.`, full-width and invisible characters, and domains in punycode.
 * The result for text that is not an address is undefined.
 */
function normalizeAddress(text: string): string {
  const lower = text.toLowerCase()
  if (PLAIN.test(lower) && !lower.includes('xn--')) return lower
  const visible = lower.normalize('NFKC').replace(/[\p{Cf}\p{Cc}]/gu, '')
  const bare = trimEnd(trimStart(withoutMailto(withoutName(visible)), isAroundAddress), isAfterAddress)
  const at = bare.lastIndexOf('@')
  return at < 0 ? bare : `${bare.slice(0, at)}@${normalizeDomain(bare.slice(at + 1))}`.normalize('NFKC')
}

const isAroundAddress = (char: string) => /["'\s]/.test(char)
const isAfterAddress = (char: string) => /["'\s.,;]/.test(char)

/** `Ada <a@b>` and `a@b (Ada)`: the address alone. */
function withoutName(text: string): string {
  const between = /<([^<>]+)>[^<>@]*$/.exec(text)?.[1]
  return (between ?? text).replace(/\([^()@]*\)\s*$/, '').trim()
}

function withoutMailto(text: string): string {
  if (!text.startsWith('mailto:')) return text
  const path = text.slice('mailto:'.length).split('?', 1)[0]!
  try {
    return decodeURIComponent(path).toLowerCase()
  } catch {
    return path
  }
}

/** Converts punycode to Unicode. Only if needed, because a number would be read as an IP address. */
function normalizeDomain(text: string): string {
  const isPlain = /^[\w.-]*$/.test(text) && !text.includes('xn--')
  return isPlain ? text : domainToUnicode(text) || text
}
