import type { IdentifierKind } from './identity.ts'

/**
 * Decides which identifiers share a profile. Identifiers that appear together are linked, with three limits: a visitor id
 * belongs to one person at a time, only a trusted sender merges two identified people, and a profile has a maximum size.
 */

/** Limits how many identifiers anyone with a public key can attach to a person. */
export const MAX_IDENTIFIERS = 200

export type Profile = {
  id: number
  identifiers: number
  hasUser: boolean
  hasContact: boolean
  /** The profile that it was merged into in this batch. */
  mergedInto: Profile | null
}

/** Events of an identifier point to its node. An identifier that moves to another person gets a new node. */
type Node = {
  /** Null until it is written. */
  id: number | null
  profile: Profile
}

export type KnownIdentifier = {
  kind: IdentifierKind
  node: Node
  /** Confirmed by a record, a server or an operator, not only by an event that anyone could have sent. */
  trusted: boolean
}

/** Why a link was made. Stored with it, so that it can be explained and undone. */
export type Cause = { kind: 'event' | 'record' | 'sale' | 'command'; id: string }

/** Identifiers that appear together. */
type Group = { identifiers: KnownIdentifier[]; trusted: boolean; cause: Cause }

/** `node` and `other` appeared together. `node` belongs to `from`. */
type Merge = { from: Profile; into: Profile; node: Node; other: Node; cause: Cause }
type Move = { identifier: KnownIdentifier; from: Node; to: Node; other: Node; cause: Cause }

export type Links = {
  merges: Merge[]
  moves: Move[]
  /** Appeared together but were not linked. Stored, so that an erasure finds them. */
  unlinked: { node: Node; other: Node; cause: Cause }[]
  /** Identifiers that became trusted. */
  confirmed: KnownIdentifier[]
  /** Per group, the resulting node of its first identifier. Null if it has none. */
  nodes: (Node | null)[]
}

/** Links the identifiers of each group, in order. Changes profiles and identifiers in place. */
export function linkIdentifiers(groups: Group[]): Links {
  const links: Links = { merges: [], moves: [], unlinked: [], confirmed: [], nodes: [] }
  for (const group of groups) {
    const { identifiers, trusted } = group
    const primary = choosePrimary(identifiers)
    for (const identifier of identifiers) if (identifier !== primary) linkIdentifier(links, group, primary!, identifier)
    recordUnlinked(links, group)
    if (trusted && areConfirming(identifiers)) {
      for (const identifier of identifiers) {
        if (identifier.trusted) continue
        identifier.trusted = true
        links.confirmed.push(identifier)
      }
    }
    links.nodes.push(identifiers[0]?.node ?? null)
  }
  return links
}

export function survivingProfile({ profile }: Node): Profile {
  let current = profile
  while (current.mergedInto) current = current.mergedInto
  return current
}

/** Whether a group confirms its identifiers. It needs a user id or contact id: a browser may be shared. */
export function areConfirming(identifiers: { kind: IdentifierKind }[]): boolean {
  return identifiers.length > 1 && identifiers.some(({ kind }) => kind === 'user' || kind === 'contact')
}

/** Whether a profile has a user id or a contact id, and is not just a browser. */
export function isIdentified({ hasUser, hasContact }: Pick<Profile, 'hasUser' | 'hasContact'>): boolean {
  return hasUser || hasContact
}

export function createProfile(id: number): Profile {
  return { id, identifiers: 1, hasUser: false, hasContact: false, mergedInto: null }
}

/** The event points to the first identifier's node. Records the others that stayed unlinked, so that an erasure finds it. */
function recordUnlinked(links: Links, { identifiers: [first, ...others], cause }: Group): void {
  for (const { node } of others)
    if (survivingProfile(node) !== survivingProfile(first!.node))
      links.unlinked.push({ node: first!.node, other: node, cause })
}

/** The identifier that the others are linked to: the most reliable one. */
function choosePrimary(identifiers: KnownIdentifier[]): KnownIdentifier | undefined {
  return (
    identifiers.find(({ kind }) => kind === 'user') ??
    identifiers.find(({ kind }) => kind === 'contact') ??
    identifiers.find(({ kind, node }) => kind === 'email' && isIdentified(survivingProfile(node))) ??
    identifiers[0]
  )
}

function linkIdentifier(
  links: Links,
  { trusted, cause }: Group,
  primary: KnownIdentifier,
  identifier: KnownIdentifier,
): void {
  const target = survivingProfile(primary.node)
  const own = survivingProfile(identifier.node)
  if (own === target) return
  const areKnown = isIdentified(own) && isIdentified(target)
  // An e-mail address that only untrusted events linked to another person moves. It must not merge two customers.
  const isOtherPerson = (own.hasUser && target.hasUser) || (own.hasContact && target.hasContact)
  const isReassigned = trusted && identifier.kind === 'email' && !identifier.trusted && isOtherPerson
  if (areKnown && (identifier.kind === 'visitor' || isReassigned)) move(links, primary, identifier, cause)
  else if (!areKnown || trusted) merge(links, primary, identifier, cause)
  // The two people stay separate. An erasure of one must also find what the other sent about them.
  else {
    links.unlinked.push({ node: identifier.node, other: primary.node, cause })
    links.unlinked.push({ node: primary.node, other: identifier.node, cause })
  }
}

/** Merges into the identified profile. If both or neither are identified, into the older one. */
function merge(links: Links, primary: KnownIdentifier, identifier: KnownIdentifier, cause: Cause): void {
  const a = survivingProfile(primary.node)
  const b = survivingProfile(identifier.node)
  const isFirst = isIdentified(a) === isIdentified(b) ? a.id < b.id : isIdentified(a)
  const [into, from] = isFirst ? [a, b] : [b, a]
  if (into.identifiers + from.identifiers > MAX_IDENTIFIERS) {
    links.unlinked.push({ node: identifier.node, other: primary.node, cause })
    return
  }
  into.identifiers += from.identifiers
  into.hasUser ||= from.hasUser
  into.hasContact ||= from.hasContact
  from.mergedInto = into
  const [node, other] = isFirst ? [identifier.node, primary.node] : [primary.node, identifier.node]
  links.merges.push({ from, into, node, other, cause })
}

function move(links: Links, primary: KnownIdentifier, identifier: KnownIdentifier, cause: Cause): void {
  const target = survivingProfile(primary.node)
  if (target.identifiers >= MAX_IDENTIFIERS) {
    links.unlinked.push({ node: identifier.node, other: primary.node, cause })
    return
  }
  const from = identifier.node
  survivingProfile(from).identifiers--
  target.identifiers++
  identifier.node = { id: null, profile: target }
  links.moves.push({ identifier, from, to: identifier.node, other: primary.node, cause })
}

/**
 * Undoing a link. The links of a profile form a tree over its nodes, because each link connected two separate parts. The
 * latest link on the path between two identifiers is the one that connected them. Without it the tree has two parts, each
 * as if that link had never been made.
 */

/** An active link: `node`, on the merged side, appeared with `other`. A higher id is a later link. */
export type Link = { id: number; node: number; other: number; profile: number; fromProfile: number }

export type Split = {
  undone: Link
  /** The nodes that are split off: those connected with the identifier to split. */
  splitOff: Set<number>
  /** Whether those were the merged side of the link. */
  isMergedSide: boolean
}

/** Finds the link to undo to split `node` from `from`. Null if no links connect them. */
export function findSplit(links: Link[], node: number, from: number): Split | null {
  const path = findPath(buildAdjacency(links), node, from)
  if (path === null || path.length === 0) return null
  const undone = path.reduce((latest, link) => (link.id > latest.id ? link : latest))
  const splitOff = reachableNodes(buildAdjacency(links.filter(link => link !== undone)), node)
  return { undone, splitOff, isMergedSide: splitOff.has(undone.node) }
}

/** The profile ids of both sides. The side with the profile's first node keeps the id; the other gets its former id back. */
export function splitProfiles(profile: number, { undone, splitOff, isMergedSide }: Split): SplitProfiles {
  const before = splitOff.has(profile) === isMergedSide ? undone.profile : undone.fromProfile
  return splitOff.has(profile) ? { splitOff: profile, kept: before } : { splitOff: before, kept: profile }
}

export type SplitProfiles = { splitOff: number; kept: number }

/**
 * Returns the active links whose profile ids change by the split. Links of the side with a new id get that id, unless they
 * belong to a profile that was merged within this side. Links of the other side no longer use that id.
 */
export function relabelLinks(
  links: Link[],
  profile: number,
  { undone, splitOff }: Split,
  sides: SplitProfiles,
): Link[] {
  const isSplitOffNew = sides.splitOff !== profile
  const given = isSplitOffNew ? sides.splitOff : sides.kept
  const other = undone.profile === given ? undone.fromProfile : undone.profile
  const isNew = (link: Link) => splitOff.has(link.node) === isSplitOffNew
  const active = links.filter(link => link !== undone)
  const within = new Set(active.filter(isNew).map(({ fromProfile }) => fromProfile))
  const relabeled = active.map(link =>
    isNew(link)
      ? { ...link, profile: within.has(link.profile) ? link.profile : given }
      : {
          ...link,
          profile: link.profile === given ? other : link.profile,
          fromProfile: link.fromProfile === given ? other : link.fromProfile,
        },
  )
  return relabeled.filter(
    (link, i) => link.profile !== active[i]!.profile || link.fromProfile !== active[i]!.fromProfile,
  )
}

/** The nodes connected with this one, including itself. */
function reachableNodes(links: Map<number, Link[]>, node: number): Set<number> {
  const reached = new Set([node])
  for (const at of reached) for (const link of links.get(at) ?? []) reached.add(link.node).add(link.other)
  return reached
}

function findPath(links: Map<number, Link[]>, node: number, goal: number): Link[] | null {
  const cameBy = new Map<number, Link | null>([[node, null]])
  for (const [at] of cameBy)
    for (const link of links.get(at) ?? [])
      for (const next of [link.node, link.other]) if (!cameBy.has(next)) cameBy.set(next, link)
  if (!cameBy.has(goal)) return null
  const path: Link[] = []
  for (let at = goal; at !== node; ) {
    const link = cameBy.get(at)!
    path.push(link)
    at = link.node === at ? link.other : link.node
  }
  return path
}

function buildAdjacency(links: Link[]): Map<number, Link[]> {
  const found = new Map<number, Link[]>()
  for (const link of links)
    for (const node of [link.node, link.other]) {
      const own = found.get(node)
      if (own) own.push(link)
      else found.set(node, [link])
    }
  return found
}
