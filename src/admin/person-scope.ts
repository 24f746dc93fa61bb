import { parseEmail } from '../domain/identity/identity.ts'
import { verifiedCore, verifiedWith } from '../domain/identity/linking.ts'
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
  /** Set if only the identifier itself is covered: the other nodes of the profile that unverified input links it to. */
  others: number[] | null
}

type Start = {
  profile: number
  /** The identifier that the request starts from. Null if it starts from the profile. */
  node: number | null
}

type Wanted = {
  isExport: boolean
  /** The caller confirmed that the identifier and the profile are the same person. */
  confirmProfile: boolean
}

/**
 * Finds what a request covers (decisions.md §6, Privacy). Anyone can claim to be a customer: one public event with the
 * customer's contact id and another e-mail address. So a request that starts from an identifier that only unverified input
 * links to a person covers no more than that identifier.
 */
export async function findScope(
  db: Db,
  tenantId: number,
  { profile, node }: Start,
  wanted: Wanted,
): Promise<PersonScope> {
  const { nodes, links } = await loadProfileGraph(db, tenantId, profile)
  const core = verifiedCore(nodes, links)
  const all = (await loadTracedIdentifiers(db, tenantId, profile)).map(name => ({
    ...name,
    isVerified: core.has(name.node!),
  }))
  const start = all.find(name => name.node === node)
  // A visitor id has several nodes.
  const isSame = (name: TracedIdentifier) => name.kind === start?.kind && name.value === start.value
  const own = start ? verifiedWith(links, start.node!) : new Set<number>()
  const isNamed = (name: TracedIdentifier) =>
    start !== undefined && (own.has(name.node!) || isSame(name) || isSameAddress(name, start))
  const isOwn = () =>
    core.size > 0
      ? all.some(name => name.isVerified && isSame(name))
      : !wanted.isExport || all.every(name => isSame(name))
  if (!start || wanted.confirmProfile || isOwn()) {
    const former = await loadFormerIdentifiers(db, tenantId, [...core])
    const names = all.map(name => ({ ...name, isUnverifiedLink: !name.isVerified && !isNamed(name) }))
    return {
      profile,
      names: [...names, ...former.map(name => ({ ...name, isVerified: false, isUnverifiedLink: false }))],
      others: null,
    }
  }
  const names = all.filter(isNamed).map(name => ({ ...name, isUnverifiedLink: false }))
  const covered = new Set(names.map(name => name.node))
  return { profile, names, others: all.flatMap(name => (covered.has(name.node) ? [] : name.node!)) }
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
        others: null,
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
  return {
    ...scope,
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
