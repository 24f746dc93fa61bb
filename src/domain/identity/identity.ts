import type { NormalizedEvent } from '../events/events.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { customerIn } from '../providers/customers.ts'
import { stripeObject } from '../providers/stripe/event.ts'
import { addressIn } from './email.ts'

/** Something a person is known by. Identities seen together belong to one profile. */
export type Identity = { kind: IdentityKind; value: string }

export const IDENTITY_KINDS = ['visitor', 'user', 'email', 'contact'] as const
export type IdentityKind = (typeof IDENTITY_KINDS)[number]

/** A person under one of the names they are known by. */
export type PersonNode = { tenantId: number; node: number }

/** An id longer than this is no id; it also has to fit an index. */
export const MAX_ID_LENGTH = 255

/** What broken code and placeholder forms send instead of an id. Taken seriously, they would merge strangers. */
const PLACEHOLDERS = new Set(
  `0 -1 null undefined nil none nan na n/a true false anonymous anon guest unknown unidentified unauthenticated
   not_authenticated not_set (not_set) (none) (null) (empty) id userid user_id distinct_id distinctid email e-mail
   - -- . ? {} [] [object_object] 00000000-0000-0000-0000-000000000000`.split(/\s+/),
)

export function publicProfileId(profile: number | null): string | null {
  return profile === null ? null : `prof_${profile}`
}

/** A person's id as text, or null for what is none. */
export function idOf(value: unknown): string | null {
  const text = typeof value === 'string' ? value.trim() : typeof value === 'number' ? String(value) : ''
  if (text === '' || text.length > MAX_ID_LENGTH) return null
  // every placeholder is short; longer ids need no look-up
  return text.length <= 36 && PLACEHOLDERS.has(text.toLowerCase().replaceAll(' ', '_')) ? null : text
}

/** An e-mail address in the form in which it is compared, or null for what is none. */
export function emailOf(value: unknown): string | null {
  if (typeof value !== 'string' || !(value.includes('@') || /[＠﹫%]/.test(value))) return null
  const text = addressIn(value)
  const at = text.indexOf('@')
  if (at < 1 || at === text.length - 1 || text.length > MAX_ID_LENGTH || /[\s<>,;]/.test(text)) return null
  return PLACEHOLDERS.has(text.slice(0, at)) && PLACEHOLDERS.has(text.slice(at + 1)) ? null : text
}

export function identitiesOf(event: NormalizedEvent): Identity[] {
  const found: Identity[] = []
  add(found, 'visitor', idOf(event.visitor))
  add(found, 'user', idOf(event.userId))
  add(found, 'email', emailOf(event.email) ?? emailOf(event.userId))
  if (event.previousId !== null) {
    // An alias may name an anonymous id or an earlier user id; whose user id it was, only a server can tell.
    const previous = idOf(event.previousId)
    add(found, 'visitor', previous)
    if (event.trusted) add(found, 'user', previous)
    add(found, 'email', emailOf(event.previousId))
  }
  // a group's fields are those of a company, not of the person in it
  if (event.meta.kind === 'group') return found
  addContact(found, event)
  if (!found.some(({ kind }) => kind === 'email')) {
    const object = stripeObject(event.subject) ?? event.subject
    // Whose sale it is or whom a form is about, only a server can tell; what somebody writes of themselves, anybody.
    add(found, 'email', event.trusted ? emailIn(object) : ownEmailIn(object))
  }
  return found
}

function addContact(found: Identity[], event: NormalizedEvent): void {
  // only sources tell of billing
  const customer = event.sourceConfigId === null ? null : customerIn(event.subject)
  if (customer) {
    add(found, 'contact', idOf(customer.id))
    add(found, 'email', emailOf(customer.email))
    return
  }
  const stripe = stripeObject(event.subject)
  const object = stripe ?? event.subject
  if (stripe || /^(?:subscription|invoice|refund)\./.test(event.eventType)) {
    const customer = object.object === 'customer' ? object : object.customer
    add(found, 'contact', idOf(isObject(customer) ? customer.id : customer))
    add(
      found,
      'email',
      emailOf(object.customer_email) ?? (isObject(customer) ? emailOf(customer.email) : null),
    )
  } else {
    add(found, 'contact', contactIdIn(object))
  }
}

export function identitiesOfContact(id: string, data: JsonObject): Identity[] {
  const found: Identity[] = []
  add(found, 'contact', id)
  addPerson(found, data)
  return found
}

/** Who ordered: the contact that the order names, its e-mail, and the visitor or user where the shop knows them. */
export function identitiesOfOrder(data: JsonObject): Identity[] {
  const found: Identity[] = []
  add(found, 'contact', contactIdIn(data))
  addPerson(found, data)
  return found
}

function addPerson(found: Identity[], data: JsonObject): void {
  add(found, 'email', emailIn(data))
  add(found, 'visitor', idOf(data.visitor ?? data.anonymousId ?? data.anonymous_id))
  add(found, 'user', idOf(data.userId ?? data.user_id))
}

/** Where Stripe, shops and CRMs put the buyer's address when it is not in `email`: the first that is one. */
const EMAIL_FIELDS = ['contact_email', 'receipt_email']
const EMAIL_OBJECTS = ['customer', 'customer_details', 'billing_details', 'billing']

function emailIn(data: JsonObject): string | null {
  const own = ownEmailIn(data)
  if (own !== null) return own
  for (const field of EMAIL_FIELDS) {
    const email = emailOf(data[field])
    if (email !== null) return email
  }
  for (const field of EMAIL_OBJECTS) {
    const object = data[field]
    const email = isObject(object) ? ownEmailIn(object) : null
    if (email !== null) return email
  }
  return null
}

function ownEmailIn({ email, Email, emails }: JsonObject): string | null {
  const first = Array.isArray(emails) ? emails[0] : null
  return emailOf(email) ?? emailOf(Email) ?? emailOf(isObject(first) ? (first.email ?? first.value) : first)
}

/** The contact's own id in an order or event: `contactId | contact_id | customerId | customer_id`. */
export function contactIdIn(data: JsonObject): string | null {
  return idOf(data.contactId ?? data.contact_id ?? data.customerId ?? data.customer_id)
}

function add(found: Identity[], kind: IdentityKind, value: string | null): void {
  if (value === null) return
  if (found.some(identity => identity.kind === kind && identity.value === value)) return
  found.push({ kind, value })
}
