import { type Identifier, parseEmail } from '../domain/identity/identifiers.ts'
import { unconfirmedNodes, verifiedCore, verifiedNodes, verifiedWith } from '../domain/identity/linking.ts'
import type { Db } from '../postgres/database.ts'
import { loadProfileGraph } from '../store/identity/identities.ts'
import { type FoundIdentifier, findIdentifiers, findLinkedIdentifiers } from '../store/identity/people.ts'
import { loadFormerIdentifiers, loadTracedIdentifiers, type TracedIdentifier } from '../store/identity/traces.ts'

/**
 * `isVerified`: verified input connects it with the person. `isUnverifiedLink`: only unverified input connects it with
 * what the request names.
 */
export type ScopedIdentifier = TracedIdentifier & { isVerified: boolean; isUnverifiedLink: boolean }

/** What an export, an erasure or a suppression covers. */
export type PersonScope = {
  /** Null if no profile has the identifier. */
  profile: number | null
  names: ScopedIdentifier[]
  /** The identifiers of the profile that are not covered. */
  others: TracedIdentifier[]
}

type Start = {
  profile: number
  /** The identifier that the request starts from. Null if it starts from the profile. */
  node: number | null
}

type Wanted = {
  isExport: boolean
  /** The caller confirmed that all identifiers of the profile are the same person. */
  confirmProfile: boolean
}

/**
 * Finds what a request covers (decisions.md §6, Privacy). Anyone can claim to be a customer: one public event with the
 * customer's contact id or user id and another e-mail address. So what verified input named is covered only if verified
 * links connect it with the start. What only unverified input named follows a verified start. An unverified start covers
 * no more than itself, unless the profile has no verified identifier.
 */
export async function findScope(
  db: Db,
  tenantId: number,
  { profile, node }: Start,
  { isExport, confirmProfile }: Wanted,
): Promise<PersonScope> {
  const { nodes, links } = await loadProfileGraph(db, tenantId, profile)
  const all = await loadTracedIdentifiers(db, tenantId, profile)
  const verified = verifiedNodes(nodes, links)
  const start = all.find(name => name.node === node)
  // A visitor id has several nodes.
  const same = all.flatMap(name => (name.kind === start?.kind && name.value === start.value ? name.node! : []))
  const own = verifiedWith(nodes, links, same)
  const isNamed = (name: TracedIdentifier) => own.has(name.node!) || (start !== undefined && isSameAddress(name, start))
  const isVerifiedStart = same.some(node => verified.has(node))
  const person = isVerifiedStart ? own : verifiedCore(nodes, links)
  const coversOthers = !start || isVerifiedStart || (verified.size === 0 && !isExport)
  const unconfirmed = unconfirmedNodes(nodes, links, person)
  const isCovered = (name: TracedIdentifier) =>
    confirmProfile || isNamed(name) || (coversOthers && !unconfirmed.has(name.node!))
  const names = all.filter(isCovered).map(name => ({
    ...name,
    isVerified: person.has(name.node!),
    isUnverifiedLink: !verified.has(name.node!) && !isNamed(name),
  }))
  const former = await loadFormerIdentifiers(
    db,
    tenantId,
    names.flatMap(({ node }) => (verified.has(node!) ? node! : [])),
  )
  return {
    profile,
    names: [...names, ...former.map(name => ({ ...name, isVerified: false, isUnverifiedLink: false }))],
    others: all.filter(name => !isCovered(name)),
  }
}

// Previews, receipts and exports list at most this many.
const MAX_UNCOVERED = 20

/** The identifiers of the profile that are not covered, each once. A visitor id has several nodes. */
export function listUncovered({ others }: Pick<PersonScope, 'others'>): Identifier[] {
  const each = new Map(others.map(({ kind, value }) => [`${kind} ${value}`, { kind, value }]))
  return [...each.values()].slice(0, MAX_UNCOVERED)
}

/** The scope of an e-mail address. A user id or contact id that is this address counts as the address. */
export async function findScopeOfAddress(
  db: Db,
  tenantId: number,
  email: string,
  wanted: Wanted,
): Promise<PersonScope> {
  const [found] = await findIdentifiers(db, tenantId, { kinds: ['email'], values: [email] })
  const scope: PersonScope = found
    ? await findScope(db, tenantId, found, wanted)
    : {
        profile: null,
        names: [{ node: null, kind: 'email', value: email, isVerified: false, isUnverifiedLink: false }],
        others: [],
      }
  return withSameAddress(db, tenantId, scope, { email, node: found?.node ?? null })
}

/** Adds the user ids and contact ids of other profiles that are this address, without the rest of those profiles. */
export async function withSameAddress(
  db: Db,
  tenantId: number,
  scope: PersonScope,
  address: { email: string; node: number | null },
): Promise<PersonScope> {
  const known = new Set(scope.names.map(({ node }) => node))
  const namesakes = (await findSameAddress(db, tenantId, address)).filter(({ node }) => !known.has(node))
  const added = new Set(namesakes.map(({ node }) => node))
  return {
    ...scope,
    others: scope.others.filter(({ node }) => !added.has(node!)),
    names: [
      ...scope.names,
      ...namesakes.map(({ node, kind, value }) => ({
        ...{ node, kind, value, isVerified: false, isUnverifiedLink: false },
      })),
    ],
  }
}

async function findSameAddress(
  db: Db,
  tenantId: number,
  { email, node }: { email: string; node: number | null },
): Promise<FoundIdentifier[]> {
  const kinds = ['user', 'contact'] as const
  const exact = await findIdentifiers(db, tenantId, { kinds: [...kinds], values: kinds.map(() => email) })
  const linked = node === null ? [] : await findLinkedIdentifiers(db, tenantId, node)
  const all = [...exact, ...linked.filter(name => isSameAddress(name, { kind: 'email', value: email }))]
  return [...new Map(all.map(name => [name.node, name])).values()]
}

function isSameAddress(
  name: Pick<TracedIdentifier, 'kind' | 'value'>,
  other: Pick<TracedIdentifier, 'kind' | 'value'>,
) {
  if (name.kind === 'visitor' || other.kind === 'visitor') return false
  const address = parseEmail(name.value)
  return address !== null && address === parseEmail(other.value)
}
