import { emailOf, type Identity, type IdentityKind, publicProfileId } from '../../domain/identity/identity.ts'
import { storableText } from '../../domain/json/json.ts'
import type { Db } from '../../postgres/database.ts'
import { currentProfile, type FoundName, namesLike, nodesOfProfile } from '../../store/identity/people.ts'
import { AdminError } from '../error.ts'

/** A person, and the name that they were asked for by (of a profile: the one that it began with). */
type FoundPerson = { profile: number; node: number }

const KINDS: readonly IdentityKind[] = ['user', 'contact', 'visitor', 'email']

export function parseProfileId(text: string): number | null {
  const digits = /^prof_([1-9]\d{0,15})$/.exec(text)?.[1]
  return digits === undefined ? null : Number(digits)
}

/**
 * Whom an operator means: a profile id, an e-mail, a user id, a contact id or a visitor; `user:…`, `contact:…`, `visitor:…`
 * or `email:…` says which. Throws where nobody is known by it, or more than one person.
 */
export async function findPerson(db: Db, tenantId: number, id: string): Promise<FoundPerson> {
  const number = parseProfileId(id.trim())
  if (number !== null) {
    const profile = await currentProfile(db, tenantId, number)
    if (profile === null) throw unknownPerson(id)
    const nodes = await nodesOfProfile(db, tenantId, profile)
    return { profile, node: nodes.includes(profile) ? profile : nodes[0]! }
  }
  const found = await findNames(db, tenantId, id)
  if (found.length === 0) throw unknownPerson(id)
  if (new Set(found.map(({ profile }) => profile)).size > 1) throw ambiguous(id, found)
  return found[0]!
}

/** Everybody who goes by this name; of the kind that it says, where it says one. */
export async function findNames(db: Db, tenantId: number, text: string): Promise<FoundName[]> {
  const wanted = namesMeant(storableText(text))
  return namesLike(db, tenantId, {
    kinds: wanted.map(({ kind }) => kind),
    values: wanted.map(({ value }) => value),
  })
}

function namesMeant(text: string): Identity[] {
  const [, kind, value] = /^(user|contact|visitor|email):(.+)$/s.exec(text) ?? []
  const names = KINDS.map(kind => ({ kind, value: nameValue(kind, text) }))
  return kind === undefined
    ? names
    : [...names, { kind: kind as IdentityKind, value: nameValue(kind as IdentityKind, value!) }]
}

function nameValue(kind: IdentityKind, text: string): string {
  return (kind === 'email' ? emailOf(text) : null) ?? text.trim()
}

export function unknownPerson(id: string): AdminError {
  return new AdminError('not_found', 'person_not_found', `Nobody is known as ${JSON.stringify(id)}.`)
}

export function ambiguous(id: string, found: FoundName[]): AdminError {
  const choices = found.map(({ kind, value, profile }) => ({
    name: `${kind}:${value}`,
    profile_id: publicProfileId(profile)!,
  }))
  const names = choices.map(({ name, profile_id }) => `${name} (${profile_id})`)
  const detail = `${JSON.stringify(id)} is more than one: ${names.join(', ')}. Say which, for example ${choices[0]!.name}.`
  return new AdminError('conflict', 'person_ambiguous', detail, [], choices)
}
